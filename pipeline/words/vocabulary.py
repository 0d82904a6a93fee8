"""Stage `vocabulary`: the words of a suite by each of its tokenisers, with their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import Field

from pipeline.artifacts import absence, corpus_path, read_table, write_table
from pipeline.errors import ParameterError
from pipeline.params import Parameters, load_parameters
from pipeline.words.paths import vocabulary_path
from pipeline.words.tokenizers import tokenize


class VocabularyParameters(Parameters):
    """minimum_count: occurrences below which a word is left out."""

    minimum_count: int = Field(ge=1, le=1_000_000)


def vocabulary(suite: str, tokenizers: tuple[str, ...], corpora: tuple[str, ...]) -> dict[str, int]:
    """Count the words of all corpora of a suite and write them by tokeniser, the most frequent first.

    A sentence that stands in several corpora counts once. Returns tokeniser -> number of words.
    Raises ParameterError if no word is left.
    """
    parameters = load_parameters(VocabularyParameters, "vocabulary")
    paths = [corpus_path(suite, corpus, "sentences") for corpus in corpora]
    held = [path for path in paths if absence(path, kind="sentences") is None]
    sentences = distinct_sentences(held)
    without = [corpus for corpus, path in zip(corpora, paths, strict=True) if path not in held]
    return {
        tokenizer: _write_vocabulary(suite, tokenizer, sentences, parameters, paths, without)
        for tokenizer in tokenizers
    }


def _write_vocabulary(
    suite: str,
    tokenizer: str,
    sentences: list[str],
    parameters: VocabularyParameters,
    inputs: list[Path],
    without: list[str],
) -> int:
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
    write_table(
        vocabulary_path(suite, tokenizer),
        pa.table(
            {
                "word": pa.array(words[:kept], pa.string()),
                "count": counts[:kept],
                "rank": np.arange(1, kept + 1, dtype=np.int64),
            }
        ),
        kind="vocabulary",
        parameters={"tokenizer": tokenizer, **parameters.model_dump()},
        inputs=inputs,
        notes={
            "rare": len(words) - kept,
            "sentences": len(sentences),
            "tokens": int(counts.sum()),
            "without": without,
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
