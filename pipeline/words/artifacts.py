"""The artifacts about the words of a suite: their paths, their columns, and functions that load them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.base.artifacts import read_lists, read_table
from sentfold.errors import ArtifactError
from sentfold.words.counts import CountSource, WordCounts

WORD_COLUMNS = {"word": pa.string()}
COUNT_COLUMNS = {"word": pa.string(), "count": pa.int64()}
CLUSTER_COLUMNS = {"word": pa.string(), "cluster": pa.int32()}


def vocabulary_path(suite: str, tokenizer: str) -> Path:
    """Words of the suite with their counts in its own sentences, most frequent first."""
    return Path("data") / suite / "words" / "vocabulary" / f"{tokenizer}.parquet"


def counts_path(suite: str, tokenizer: str) -> Path:
    """Words and counts of the corpus from which the suite takes unigram probabilities."""
    return Path("data") / suite / "words" / "counts" / f"{tokenizer}.parquet"


def count_source_path(suite: str, tokenizer: str, counts: CountSource) -> Path:
    """The file with the counts of the suite's own sentences, or of the corpus that the suite file names."""
    return (vocabulary_path if counts == "own" else counts_path)(suite, tokenizer)


def vectors_path(suite: str, source: str, tokenizer: str) -> Path:
    """Vectors of one source for the words of a vocabulary, in the order of the vocabulary."""
    return Path("data") / suite / "words" / "vectors" / source / f"{tokenizer}.parquet"


def clusters_path(suite: str, clustering: str, partition: str, part: str) -> Path:
    """The file of `part`, "clusters" or "centroids", of one partition of a clustering."""
    return Path("data") / suite / "words" / "clusters" / clustering / partition / f"{part}.parquet"


def partition_name(size: int, seed: int, control: str | None = None) -> str:
    """The folder name of a partition: the number of clusters, the seed, and the name of the control, if any."""
    return f"k{size}-s{seed}" + (f"-{control}" if control else "")


@dataclass(frozen=True)
class WordClusters:
    """A partition of words into clusters, and the centroid of each cluster.

    words      distinct
    labels     (v,) int32, the cluster of each word, 0 <= label < k
    centroids  (k, d) float32; the zero vector for a cluster without words
    """

    words: tuple[str, ...]
    labels: npt.NDArray[np.int32]
    centroids: npt.NDArray[np.float32]

    def labels_of(self, words: tuple[str, ...]) -> npt.NDArray[np.int32]:
        """(n,) int32 cluster of each of `words`; -1 for a word that is not in the partition."""
        if words == self.words:
            return self.labels
        known = dict(zip(self.words, self.labels.tolist(), strict=True))
        return np.array([known.get(word, -1) for word in words], dtype=np.int32)


def load_vocabulary(suite: str, tokenizer: str) -> list[str]:
    """The words of a vocabulary, most frequent first."""
    words: list[str] = (
        read_table(vocabulary_path(suite, tokenizer), kind="vocabulary", columns=COUNT_COLUMNS)
        .column("word")
        .to_pylist()
    )
    return words


def load_vectors(suite: str, source: str, tokenizer: str) -> tuple[tuple[str, ...], npt.NDArray[np.float32]]:
    """Words and their (v, d) float32 vectors, in the order of the vocabulary."""
    path = vectors_path(suite, source, tokenizer)
    table = read_table(path, kind="word_vectors", columns=WORD_COLUMNS)
    vectors = read_lists(table, "vector", path=path).astype(np.float32, copy=False)
    return tuple(table.column("word").to_pylist()), vectors


def load_counts(suite: str, tokenizer: str, counts: CountSource = "suite") -> WordCounts:
    """The counts of all words of a corpus, so that the total and the number of distinct words are known too."""
    kind = "vocabulary" if counts == "own" else "counts"
    table = read_table(count_source_path(suite, tokenizer, counts), kind=kind, columns=COUNT_COLUMNS)
    return WordCounts(tuple(table.column("word").to_pylist()), np.asarray(table.column("count"), dtype=np.int64))


def load_clusters(suite: str, clustering: str, *, size: int, seed: int = 0, control: str | None = None) -> WordClusters:
    """One partition of a clustering, with `size` clusters and made with `seed`, or its control partition.

    control  None, "random" or "frequency"
    Raises ArtifactError if the partition does not exist.
    """
    folder = partition_name(size, seed, control)
    path = clusters_path(suite, clustering, folder, "clusters")
    table = read_table(path, kind="clusters", columns=CLUSTER_COLUMNS)
    points = clusters_path(suite, clustering, folder, "centroids")
    rows = read_table(points, kind="centroids")
    labels = np.asarray(table.column("cluster"), dtype=np.int32)
    centroids = read_lists(rows, "vector", path=points).astype(np.float32, copy=False)
    if rows.column("cluster").to_pylist() != list(range(len(centroids))) or labels.max(initial=-1) >= len(centroids):
        raise ArtifactError(
            "the files of clusters and centroids do not match",
            where=str(path.parent),
            expected=f"clusters 0 to {len(centroids) - 1}",
            got=f"clusters up to {int(labels.max(initial=-1))}",
            state="the files were left as they are",
            remedy="delete the folder and run `dvc repro`",
        )
    return WordClusters(tuple(table.column("word").to_pylist()), labels, centroids)
