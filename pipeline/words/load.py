"""Words, vectors, counts and clusters of a suite, read from their artifacts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import read_lists, read_table
from pipeline.errors import ArtifactError
from pipeline.words.counts import CountSource, WordCounts
from pipeline.words.paths import (
    CLUSTER_COLUMNS,
    COUNT_COLUMNS,
    WORD_COLUMNS,
    clusters_path,
    counts_path,
    partition_name,
    vectors_path,
    vocabulary_path,
)
from pipeline.words.table import WordClusters, WordTable


def load_words(suite: str, *, vectors: str, tokenizer: str, counts: CountSource = "suite") -> WordTable:
    """The words of a suite that have a vector from one source, most frequent in the suite first.

    vectors    a block of `word_vectors:` in params.yaml
    tokenizer  whose vocabulary it is
    counts     "suite": of the corpus that the suite file names; "own": of the suite's own sentences
    Raises ArtifactError if an artifact is missing or damaged.
    """
    words, array = load_vectors(suite, vectors, tokenizer)
    return WordTable(words, array, load_counts(suite, tokenizer, counts).of(words))


def load_vectors(suite: str, source: str, tokenizer: str) -> tuple[tuple[str, ...], npt.NDArray[np.float32]]:
    """Words, and their (v, d) float32 vectors, in the order of the vocabulary."""
    path = vectors_path(suite, source, tokenizer)
    table = read_table(path, kind="word_vectors", columns=WORD_COLUMNS)
    return tuple(table.column("word").to_pylist()), read_lists(table, "vector", path=path).astype(
        np.float32, copy=False
    )


def load_counts(suite: str, tokenizer: str, counts: CountSource = "suite") -> WordCounts:
    """All words and counts of the corpus of counts, for its total and its number of words too."""
    own = counts == "own"
    path = vocabulary_path(suite, tokenizer) if own else counts_path(suite, tokenizer)
    table = read_table(path, kind="vocabulary" if own else "counts", columns=COUNT_COLUMNS)
    return WordCounts(tuple(table.column("word").to_pylist()), np.asarray(table.column("count"), dtype=np.int64))


def load_clusters(suite: str, clustering: str, *, size: int, seed: int = 0, control: str | None = None) -> WordClusters:
    """One partition of a clustering: `size` clusters by `seed`, or one of its control partitions.

    control  None, "random" or "frequency"
    Raises ArtifactError if that partition was not made.
    """
    folder = partition_name(size, seed, control)
    path = clusters_path(suite, clustering, folder, "clusters")
    table = read_table(path, kind="clusters", columns=CLUSTER_COLUMNS)
    points = clusters_path(suite, clustering, folder, "centroids")
    held = read_table(points, kind="centroids")
    labels = np.asarray(table.column("cluster"), dtype=np.int32)
    centroids = read_lists(held, "vector", path=points).astype(np.float32, copy=False)
    if held.column("cluster").to_pylist() != list(range(len(centroids))) or labels.max(initial=-1) >= len(centroids):
        raise ArtifactError(
            "clusters and centroids do not belong together",
            where=str(path.parent),
            expected=f"clusters 0 to {len(centroids) - 1}",
            got=f"up to {int(labels.max(initial=-1))}",
            state="the files were left as they are",
            remedy="delete the folder and run `dvc repro`",
        )
    return WordClusters(tuple(table.column("word").to_pylist()), labels, centroids)
