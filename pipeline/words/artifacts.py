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


def _integers(table: pa.Table, column: str, path: Path, *, least: int, most: int) -> npt.NDArray[np.int64]:
    """The whole numbers of a column. Raises ArtifactError for a null, and for numbers below `least` or above `most`."""
    values: npt.NDArray[np.int64] = table.column(column).drop_null().to_numpy().astype(np.int64)
    if len(values) < table.num_rows or (values < least).any() or (values > most).any():
        raise ArtifactError(
            f"an artifact about words has wrong numbers in '{column}'",
            where=str(path),
            expected=f"{least} to {most} in every row",
            got=f"{values.min()} to {values.max()}" if len(values) == table.num_rows else "an empty value",
            state="the files were left as they are",
            remedy="delete the folder and run `dvc repro`, which makes it again",
        )
    return values


def _finite_lists(table: pa.Table, path: Path) -> npt.NDArray[np.float32]:
    vectors = read_lists(table, "vector", path=path).astype(np.float32, copy=False)
    if not np.isfinite(vectors).all():
        raise ArtifactError(
            "an artifact about words has a vector that is not finite",
            where=str(path),
            expected="finite numbers",
            got="NaN or infinity",
            state="the file is unchanged",
            remedy="delete the file and run `dvc repro`, which makes it again",
        )
    return vectors


def load_vocabulary(suite: str, tokenizer: str) -> list[str]:
    """The words of a vocabulary, most frequent first."""
    words: list[str] = (
        read_table(vocabulary_path(suite, tokenizer), kind="vocabulary", columns=COUNT_COLUMNS)
        .column("word")
        .to_pylist()
    )
    return words


def load_vectors(suite: str, source: str, tokenizer: str) -> tuple[tuple[str, ...], npt.NDArray[np.float32]]:
    """Words and their (v, d) float32 vectors, in the order of the vocabulary.

    Raises ArtifactError if a vector is not finite.
    """
    path = vectors_path(suite, source, tokenizer)
    table = read_table(path, kind="word_vectors", columns=WORD_COLUMNS)
    vectors = _finite_lists(table, path)
    return tuple(table.column("word").to_pylist()), vectors


def load_counts(suite: str, tokenizer: str, counts: CountSource = "suite") -> WordCounts:
    """The counts of all words of a corpus, so that the total and the number of distinct words are known too.

    Raises ArtifactError if a count is missing or not between 1 and 2^53.
    """
    kind, path = "vocabulary" if counts == "own" else "counts", count_source_path(suite, tokenizer, counts)
    table = read_table(path, kind=kind, columns=COUNT_COLUMNS)
    return WordCounts(tuple(table.column("word").to_pylist()), _integers(table, "count", path, least=1, most=2**53))


def load_clusters(suite: str, clustering: str, *, size: int, seed: int = 0, control: str | None = None) -> WordClusters:
    """One partition of a clustering, with `size` clusters and made with `seed`, or its control partition.

    control  None, "random" or "frequency"
    Raises ArtifactError if the partition does not exist, a word is in no cluster, or a centroid is not finite.
    """
    folder = partition_name(size, seed, control)
    path = clusters_path(suite, clustering, folder, "clusters")
    table = read_table(path, kind="clusters", columns=CLUSTER_COLUMNS)
    points = clusters_path(suite, clustering, folder, "centroids")
    rows = read_table(points, kind="centroids")
    centroids = _finite_lists(rows, points)
    labels = _integers(table, "cluster", path, least=0, most=2**31 - 1).astype(np.int32)
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
