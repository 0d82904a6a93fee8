"""A partition of words into clusters, the rules for the centroids, and the two control partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError

Float64 = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]

# The rule for the centroid of a cluster, from the vectors v and the weights w of its words:
#   model          the centroids that the clusterer returns: the means of k-means or of a mixture
#   weighted-mean  sum w v / sum w (S3E as released; the centroids that weighted k-means converges to)
#   scaled-mean    sum w v / number of words (the poster of S3E; LASE as released, for spectral clusters)
#   mean           sum v / number of words (the LASE thesis)
CentroidRule = Literal["model", "weighted-mean", "scaled-mean", "mean"]
Control = Literal["random", "frequency"]


@dataclass(frozen=True)
class Partition:
    """Labels of words, and the centroids and notes of the clusterer that made the labels.

    labels     (v,) int32 in 0..size-1; a number that does not occur is an empty cluster
    size       number of clusters, empty ones included
    centroids  (size, d) float64 that the clusterer returns, or None if the clusterer has no centroids
    notes      counts and certificates of the clusterer (JSON-able)
    """

    labels: Labels
    size: int
    centroids: Float64 | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def check_size(size: int, n: int) -> None:
    """ParameterError unless 1 <= size <= n words."""
    if not 1 <= size <= n:
        raise ParameterError(
            "the number of clusters is out of range",
            where="sizes",
            expected=f"1 <= clusters <= {n} words",
            got=str(size),
            remedy="change `sizes` in params.yaml, or add a corpus",
        )


def centroids_of(
    partition: Partition, vectors: npt.NDArray[np.floating[Any]], weights: Float64, rule: CentroidRule
) -> Float64:
    """The centroid of each cluster by `rule`.

    vectors  (v, d); weights: (v,) positive
    Returns (size, d) float64. An empty cluster has the zero vector, except by "model"; no word uses that vector.
    """
    if rule == "model":
        if partition.centroids is None:
            raise ParameterError("this clusterer returns no centroids", where="centroids", got=rule)
        return partition.centroids
    x = np.asarray(vectors, dtype=np.float64)
    w = np.ones(len(x)) if rule == "mean" else weights
    members = np.bincount(partition.labels, minlength=partition.size)
    below = np.bincount(partition.labels, weights=w, minlength=partition.size) if rule == "weighted-mean" else members
    sums = np.zeros((partition.size, x.shape[1]))
    np.add.at(sums, partition.labels, x * w[:, None])
    return sums / np.where(members > 0, below, 1)[:, None]


def random_partition(like: Partition, *, seed: int) -> Partition:
    """The words assigned at random to clusters of the same sizes: the control for claims about meaning."""
    return Partition(np.random.default_rng(seed).permutation(like.labels), like.size)


def frequency_partition(like: Partition, ranks: npt.NDArray[np.integer[Any]]) -> Partition:
    """Words of consecutive frequency ranks in blocks that have the sizes of clusters 0, 1, 2, ... of `like`.

    ranks  (v,) rank of each word, distinct; the lowest rank is the most frequent word
    """
    sizes = np.bincount(like.labels, minlength=like.size)
    labels = np.empty(len(like.labels), dtype=np.int32)
    labels[np.argsort(ranks, kind="stable")] = np.repeat(np.arange(like.size, dtype=np.int32), sizes)
    return Partition(labels, like.size)
