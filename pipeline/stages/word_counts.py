"""Stage `word_counts`: the word counts from which a suite estimates unigram probabilities."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from pipeline.base.artifacts import read_table, write_table
from pipeline.base.suite import Suite
from pipeline.corpora.catalogue import find_corpus
from pipeline.corpora.sources import read_checked
from pipeline.words.artifacts import COUNT_COLUMNS, counts_path, vocabulary_path
from sentfold.errors import SourceError, located


def word_counts(suite: Suite, tokenizer: str) -> int:
    """Write the words and counts that `counts:` of the suite file names, for one tokenizer.

    `own` names the counts in the suite's own sentences by the tokenizer. Another name, such as `enwiki`, is a
    published file, the same for every tokenizer.
    Returns the number of words. Raises SourceError if the suite's source lacks the published file.
    """
    published = None if suite.counts == "own" else read_published(suite)
    own = vocabulary_path(suite.suite, tokenizer)
    table, files = published or (read_table(own, kind="vocabulary", columns=COUNT_COLUMNS), {})
    write_table(
        counts_path(suite.suite, tokenizer),
        table.select(list(COUNT_COLUMNS)),
        kind="counts",
        parameters={"counts": suite.counts, "tokenizer": tokenizer},
        inputs=[] if published else [own],
        notes={"files": files, "tokens": int(np.asarray(table.column("count")).sum())},
    )
    return int(table.num_rows)


def read_published(suite: Suite) -> tuple[pa.Table, dict[str, str]]:
    """Published counts from the suite's source, and the sha256 of each file that was read.

    If a word is listed several times, its counts are added. Raises SourceError for counts that are not positive, or
    whose sum float64 cannot hold.
    """
    corpus = find_corpus(suite.counted)
    frames, files = [], {}
    with located(
        f"{suite.written}: counts: {suite.counts}", remedy=f"write `counts: own` in {suite.written}, or get the file"
    ):
        for split in corpus.splits:
            reading = read_checked(corpus, split, source=suite.source)
            frames.append(reading.frame.select("word", "count"))
            files.update(reading.files)
        frame = pl.concat(frames)
        if bool((frame["count"] <= 0).any()):
            raise SourceError("a word was counted less than once", expected="positive counts")
        merged: dict[str, int] = {}
        for word, count in frame.iter_rows():
            merged[word] = merged.get(word, 0) + count
        if sum(merged.values()) > 2**53:
            raise SourceError("the counts of all words are too large", expected="at most 2^53 together")
    ordered = sorted(merged.items(), key=lambda item: (-item[1], item[0]))
    return pa.table(
        {
            "word": pa.array([word for word, _ in ordered], pa.string()),
            "count": pa.array([count for _, count in ordered], pa.int64()),
        }
    ), files
