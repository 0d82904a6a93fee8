"""Stage `word_counts`: the counts that a suite takes unigram probabilities from."""

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
    """Write, for one tokenizer, the words and counts that `counts:` of the suite file names.

    `own` are those of the suite's sentences by that tokenizer; `enwiki` is a file that knows no tokenizer.
    Returns the number of words. Raises SourceError if the suite's source does not hold that file.
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
    """Published counts from the suite's source, and sha256 of what was read.

    The counts of a word that occurs twice are added.
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
    ordered = sorted(merged.items(), key=lambda item: (-item[1], item[0]))
    return pa.table(
        {
            "word": pa.array([word for word, _ in ordered], pa.string()),
            "count": pa.array([count for _, count in ordered], pa.int64()),
        }
    ), files
