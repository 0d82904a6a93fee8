"""Stage `word_counts`: the counts that a suite takes unigram probabilities from."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

from pipeline.artifacts import read_table, write_table
from pipeline.corpora.catalogue import find_corpus
from pipeline.corpora.sources import check_columns, check_count, read_split
from pipeline.errors import SourceError, located
from pipeline.suite import Suite
from pipeline.words.paths import COUNT_COLUMNS, counts_path, vocabulary_path

# What `counts:` of a suite file may name beside its own sentences -> the corpus of the catalogue.
PUBLISHED = {"enwiki": "word-freq"}


def word_counts(suite: Suite) -> dict[str, int]:
    """Write, for each tokeniser, the words and counts that `counts:` of the suite file names.

    `own` are those of the suite's sentences by that tokeniser; `enwiki` is a file that knows no tokeniser.
    Returns tokeniser -> number of words. Raises SourceError if the suite's source does not hold that file.
    """
    published = None if suite.counts == "own" else read_published(PUBLISHED[suite.counts], suite)
    written = {}
    for tokenizer in suite.makers.tokenizers:
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
        written[tokenizer] = int(table.num_rows)
    return written


def read_published(slug: str, suite: Suite) -> tuple[pa.Table, dict[str, str]]:
    """The counts of the catalogue's corpus `slug` from the suite's source, and sha256 of what was read.

    A word that stands twice is counted together, as the word it is.
    """
    corpus = find_corpus(slug)
    frames, files = [], {}
    with located(
        f"{suite.file}: counts: {suite.counts}", remedy=f"write `counts: own` in {suite.file}, or get the file"
    ):
        for split in corpus.splits:
            reading = read_split(corpus.dataset_name, corpus.dataset, split, source=suite.source)
            where = f"{slug} from {reading.source}"
            check_count(reading.frame, corpus.dataset, split, where=where)
            frames.append(check_columns(reading.frame, corpus.dataset, where=where))
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
