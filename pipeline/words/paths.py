"""Where the artifacts about words lie, and what they are called inside."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

WORD_COLUMNS = {"word": pa.string()}
COUNT_COLUMNS = {"word": pa.string(), "count": pa.int64()}
CLUSTER_COLUMNS = {"word": pa.string(), "cluster": pa.int32()}


def vocabulary_path(suite: str, tokenizer: str) -> Path:
    """Words of the suite with their counts in its own sentences, most frequent first."""
    return Path("data") / suite / "words" / "vocabulary" / f"{tokenizer}.parquet"


def counts_path(suite: str, tokenizer: str) -> Path:
    """Words and counts of the corpus that the suite takes unigram probabilities from."""
    return Path("data") / suite / "words" / "counts" / f"{tokenizer}.parquet"


def vectors_path(suite: str, source: str, tokenizer: str) -> Path:
    """Vectors of one source for the words of a vocabulary, in its order."""
    return Path("data") / suite / "words" / "vectors" / source / f"{tokenizer}.parquet"


def clusters_path(suite: str, clustering: str, partition: str, part: str) -> Path:
    """Where `part` ("clusters" or "centroids") of one partition of a clustering lies."""
    return Path("data") / suite / "words" / "clusters" / clustering / partition / f"{part}.parquet"


def partition_name(size: int, seed: int, control: str | None = None) -> str:
    """The folder of one partition: its number of clusters, its seed, and which control it is, if one."""
    return f"k{size}-s{seed}" + (f"-{control}" if control else "")
