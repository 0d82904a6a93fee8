"""Residuals of words from the centroids of their clusters, and the covariance between clusters: S3E and LASE.

The two papers and the code that both released differ in some points; each point is an argument of `Descriptor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sentfold.encoders.base.lexicon import Clusters, Lexicon, Vectors
from sentfold.encoders.base.ragged import Ragged
from sentfold.errors import ParameterError
from sentfold.kernels.compiled import fast
from sentfold.words.partition import CentroidRule, Partition, centroids_of

Float64 = npt.NDArray[np.float64]

# given: the centroids that the clusterer returned; the others: rules of the papers (see words/partition.py).
Centroid = Literal["given", "weighted-mean", "scaled-mean", "mean"]


def find_centroids(
    lexicon: Lexicon, weights: Float64, centroid: Centroid | None, *, otherwise: CentroidRule
) -> Float64:
    """(k, d) centroids of the lexicon's clusters by a rule; zeros for a cluster without words.

    centroid  the rule, or None: the centroids that the clusterer returned; if it returned none, the rule `otherwise`
    Raises ParameterError if there are no clusters, if the clusterer's centroids do not fit the words, or if the rule is
    `given` and the clusterer returned no centroids.
    """
    clusters = lexicon.demand_clusters("this method")
    if centroid in (None, "given") and clusters.centroids is not None:
        if clusters.centroids.shape != (clusters.size, lexicon.dimension):
            raise misfit(clusters, lexicon.dimension)
        return clusters.centroids
    if centroid == "given":
        raise misfit(clusters, lexicon.dimension)
    partition = Partition(clusters.labels, clusters.size)
    return centroids_of(partition, lexicon.vectors, weights, centroid or otherwise)


def misfit(clusters: Clusters, dimension: int) -> ParameterError:
    """The error if the clusterer's centroids are missing or have the wrong shape."""
    held = clusters.centroids
    return ParameterError(
        "the centroids do not fit the words and their clusters",
        where="centroids",
        expected=f"{clusters.size} centroids of {dimension} dimensions",
        got="none" if held is None else f"{held.shape[0]} of {held.shape[1]}",
        remedy="give the centroids of these clusters, or set `centroid: weighted-mean`",
    )


def describe_parts(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of the only part, if the settings leave out the other part."""
    for part, other in (("mean", "covariance"), ("covariance", "mean")):
        if settings.get(other) is False:
            yield f"{part} part alone"


@dataclass(frozen=True)
class Descriptor:
    """A Composer: [mean part; covariance part] of each sentence, from its distinct words.

    vectors         (v, d) float32
    weights         (v,) float64
    labels          (v,) int32 cluster of each word
    centroids       (k, d) float64
    weigh_residual  True: row i of Phi is sum weight(w) (v(w) - g_i) over the words w of cluster i, as published;
                    False: sum (weight(w) v(w) - g_i), as released
    mean            whether there is a mean part: (1/types) sum weight(w) v(w), d entries; types: number of distinct
                    words
    covariance      whether there is a covariance part: upper triangle of (Phi - rowmean)(Phi - rowmean)^T / d, row by
                    row, k (k + 1) / 2 entries
    root_two        whether entries off the diagonal are multiplied by sqrt(2)
    power           exponent of the signed power of the covariance part, 1 for none
    normalise       whether the covariance part is divided by its length; a part of zeros stays zero
    Cost O(types d + groups^2 d + k^2) per sentence; groups: number of clusters that have a word of the sentence.
    """

    vectors: Vectors
    weights: Float64
    labels: npt.NDArray[np.int32]
    centroids: Float64
    weigh_residual: bool
    mean: bool
    covariance: bool
    root_two: bool
    power: float
    normalise: bool

    @property
    def dimension(self) -> int:
        """d, if there is a mean part, and k (k + 1) / 2, if there is a covariance part."""
        k = len(self.centroids)
        return int(self.vectors.shape[1]) * self.mean + k * (k + 1) // 2 * self.covariance

    def compose(self, words: Ragged, out: Float64) -> Mapping[str, int]:
        """Write the descriptor of each sentence; a sentence without words has the zero vector."""
        flat = _describe(
            words.ids,
            words.offsets,
            self.vectors,
            self.weights,
            self.labels,
            self.centroids,
            self.weigh_residual,
            self.mean,
            self.covariance,
            2.0**0.5 if self.root_two else 1.0,
            self.power,
            self.normalise,
            out,
        )
        return {"covariance 0": flat} if self.covariance else {}


@fast
def _describe(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vectors: Vectors,
    weights: Float64,
    labels: npt.NDArray[np.int32],
    centroids: Float64,
    weigh_residual: bool,
    mean: bool,
    covariance: bool,
    off_diagonal: float,
    power: float,
    normalise: bool,
    out: Float64,
) -> int:
    k, d = centroids.shape
    met = np.full(len(vectors), -1, dtype=np.int64)  # for each word, the last sentence that has the word
    rows = np.full(k, -1, dtype=np.int64)  # for each cluster, its row of Phi in sentence s; -1: none
    groups = np.empty(k, dtype=np.int64)  # for each row of Phi, its cluster
    phi = np.empty((k, d))
    start = d if mean else 0
    flat = 0
    for s in range(len(offsets) - 1):
        row = out[s]
        row[:] = 0.0
        types, present = 0, 0
        for t in range(offsets[s], offsets[s + 1]):
            word = ids[t]
            if met[word] == s:
                continue
            met[word] = s
            types += 1
            weight, vector = weights[word], vectors[word]
            if mean:
                for j in range(d):
                    row[j] += weight * vector[j]
            if not covariance:
                continue
            label = labels[word]
            if rows[label] < 0:
                rows[label] = present
                groups[present] = label
                phi[present, :] = 0.0
                present += 1
            residual, centroid = phi[rows[label]], centroids[label]
            share = weight if weigh_residual else 1.0
            for j in range(d):
                residual[j] += weight * vector[j] - share * centroid[j]
        if mean and types:
            for j in range(d):
                row[j] /= types
        for a in range(present):
            rows[groups[a]] = -1
            total = 0.0
            for j in range(d):
                total += phi[a, j]
            center = total / d
            for j in range(d):
                phi[a, j] -= center
        for a in range(present):
            for b in range(a, present):
                product = 0.0
                for j in range(d):
                    product += phi[a, j] * phi[b, j]
                low, high = min(groups[a], groups[b]), max(groups[a], groups[b])
                scale = (1.0 if a == b else off_diagonal) / d
                row[start + low * k - low * (low - 1) // 2 + high - low] = scale * product
        if present:
            flat += _finish(row[start:], power, normalise)
    return flat


@fast
def _finish(part: Float64, power: float, normalise: bool) -> int:
    """Apply the signed power and, if `normalise`, scale to length 1, in place. Returns 1 if all are zeros, else 0."""
    square = 0.0
    for j in range(len(part)):
        if power != 1.0 and part[j] != 0.0:
            size = np.abs(part[j])
            part[j] = np.copysign(np.sqrt(size) if power == 0.5 else size**power, part[j])
        square += part[j] * part[j]
    if square == 0.0:
        return 1
    if normalise:
        length = np.sqrt(square)
        for j in range(len(part)):
            part[j] /= length
    return 0
