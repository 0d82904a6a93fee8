"""Stage `vocabulary`: the words of a suite by one tokeniser, with their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import Field

from pipeline.base.artifacts import absence, corpus_path, read_table, write_table
from pipeline.base.params import load_parameters
from pipeline.words.artifacts import vocabulary_path
from sentfold.errors import ParameterError
from sentfold.settings import Parameters
from sentfold.words.tokenizers import tokenize


class VocabularyParameters(Parameters):
    """minimum_count: a word that occurs less often is left out."""

    minimum_count: int = Field(ge=1, le=1_000_000)


def vocabulary(suite: str, tokenizer: str, corpora: tuple[str, ...]) -> int:
    """Count the words of all corpora of a suite and write them, the most frequent first.

    A sentence that is in several corpora counts once. Returns the number of words.
    Raises ParameterError if no word is left.
    """
    parameters = load_parameters(VocabularyParameters, "vocabulary")
    paths = {corpus: corpus_path(suite, corpus, "sentences") for corpus in corpora}
    absent = [corpus for corpus, path in paths.items() if absence(path, kind="sentences") is not None]
    sentences = distinct_sentences(path for corpus, path in paths.items() if corpus not in absent)
    words, counts = count_words(tokenize(sentences, tokenizer))
    kept = int((counts >= parameters.minimum_count).sum())
    if not kept:
        raise ParameterError(
            "the suite has no words",
            where=f"suite {suite}, tokeniser {tokenizer}",
            expected=f"a word that occurs {parameters.minimum_count} times or more",
            got=f"{len(sentences)} sentences, {len(words)} words",
            remedy="lower vocabulary.minimum_count in params.yaml, or add a corpus",
        )
    ranks = np.arange(1, kept + 1, dtype=np.int64)
    write_table(
        vocabulary_path(suite, tokenizer),
        pa.table({"word": pa.array(words[:kept], pa.string()), "count": counts[:kept], "rank": ranks}),
        kind="vocabulary",
        parameters={"tokenizer": tokenizer, **parameters.model_dump()},
        inputs=list(paths.values()),
        notes={
            "rare": len(words) - kept,
            "sentences": len(sentences),
            "tokens": int(counts.sum()),
            "without": absent,
        },
    )
    return kept


def distinct_sentences(paths: Iterable[Path]) -> list[str]:
    """The texts of several corpora, each once, in order of first appearance."""
    texts = (read_table(path, kind="sentences").column("text").to_pylist() for path in paths)
    return list(dict.fromkeys(chain.from_iterable(texts)))


def count_words(tokens: Iterable[Sequence[str]]) -> tuple[list[str], np.ndarray]:
    """Distinct words and their (v,) int64 counts, by count descending, then by word (code points)."""
    counter = Counter(chain.from_iterable(tokens))
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, _ in ordered], np.array([count for _, count in ordered], dtype=np.int64)
