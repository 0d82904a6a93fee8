"""A partition of words: labels and points, the rules for the points, and the two control partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError

Float64 = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]

# The point of a cluster:
#   model          what the clusterer itself says: means of k-means, means of a mixture
#   weighted-mean  sum w v / sum w over its words (S3E as released; what weighted k-means minimises to)
#   scaled-mean    sum w v / number of words (S3E's poster; LASE as released, for spectral clusters)
#   mean           sum v / number of words (the LASE thesis)
CentroidRule = Literal["model", "weighted-mean", "scaled-mean", "mean"]
Control = Literal["random", "frequency"]


@dataclass(frozen=True)
class Partition:
    """Labels of words, and what the clusterer that made them says.

    labels     (v,) int32 in 0..size-1; not every number need occur
    size       number of clusters, empty ones included
    centroids  (size, d) float64 of the clusterer's own, or None if it has none
    notes      what the making counted (JSON-able)
    """

    labels: Labels
    size: int
    centroids: Float64 | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def check_size(size: int, n: int) -> None:
    """ParameterError unless 1 <= size <= n words."""
    if not 1 <= size <= n:
        raise ParameterError(
            "more clusters than words",
            where="sizes",
            expected=f"1 <= clusters <= {n} words",
            got=str(size),
            remedy="lower `sizes` in params.yaml, or add a corpus",
        )


def centroids_of(
    partition: Partition, vectors: npt.NDArray[np.floating[Any]], weights: Float64, rule: CentroidRule
) -> Float64:
    """The point of each cluster by one of the papers' rules.

    vectors  (v, d); weights: (v,) positive
    Returns (size, d) float64. An empty cluster has the zero vector by every rule but "model": no word asks for it.
    """
    if rule == "model":
        if partition.centroids is None:
            raise ParameterError("this clustering has no centroids of its own", where="centroids", got=rule)
        return partition.centroids
    x = np.asarray(vectors, dtype=np.float64)
    w = np.ones(len(x)) if rule == "mean" else weights
    members = np.bincount(partition.labels, minlength=partition.size)
    below = np.bincount(partition.labels, weights=w, minlength=partition.size) if rule == "weighted-mean" else members
    sums = np.zeros((partition.size, x.shape[1]))
    np.add.at(sums, partition.labels, x * w[:, None])
    return sums / np.where(members > 0, below, 1)[:, None]


def random_partition(like: Partition, *, seed: int) -> Partition:
    """Words dealt at random into clusters of the same sizes: the control of every claim about meaning."""
    return Partition(np.random.default_rng(seed).permutation(like.labels), like.size)


def frequency_partition(like: Partition, ranks: npt.NDArray[np.integer[Any]]) -> Partition:
    """Blocks of neighbouring frequency rank, as large as the clusters, in the order of the clusters' numbers.

    ranks  (v,) rank of each word, distinct; the lowest rank is the most frequent word
    """
    sizes = np.bincount(like.labels, minlength=like.size)
    labels = np.empty(len(like.labels), dtype=np.int32)
    labels[np.argsort(ranks, kind="stable")] = np.repeat(np.arange(like.size, dtype=np.int32), sizes)
    return Partition(labels, like.size)
