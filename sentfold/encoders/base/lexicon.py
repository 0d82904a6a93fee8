"""Words with their vectors, counts and clusters: what an encoder over words knows before it reads a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError
from sentfold.words.counts import WordCounts, laplace_probabilities, sif_weights, unigram_probabilities

Float64 = npt.NDArray[np.float64]
# float32 if the vectors were read as stored, float64 if an encoder computed them.
Vectors = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Clusters:
    """A partition of the lexicon's words.

    labels     (v,) int32 cluster of each word
    centroids  (k, d) float64 by the clusterer's own definition, or None: each method computes centroids by its own rule
    """

    labels: npt.NDArray[np.int32]
    centroids: Float64 | None = None

    @property
    def size(self) -> int:
        """Number of clusters, empty ones included."""
        highest = int(self.labels.max(initial=-1)) + 1
        return highest if self.centroids is None else max(highest, len(self.centroids))


@dataclass(frozen=True)
class Lexicon:
    """Words, one row each, with their vectors, counts and clusters.

    words     (v,) distinct
    vectors   (v, d) finite
    counts    of every word of the corpus whose words were counted, also of words without a vector
    clusters  the clusters of the words, or None
    """

    words: tuple[str, ...]
    vectors: Vectors
    counts: WordCounts
    clusters: Clusters | None = None

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def dimension(self) -> int:
        """Length of a word vector."""
        return int(self.vectors.shape[1])

    def with_unit_vectors(self) -> Lexicon:
        """This lexicon with every word vector divided by its length; a zero vector stays zero."""
        lengths = np.linalg.norm(self.vectors.astype(np.float64), axis=1, keepdims=True)
        unit = self.vectors / np.where(lengths > 0, lengths, 1)
        return replace(self, vectors=unit.astype(np.float32))

    def only(self, kept: npt.NDArray[np.bool_]) -> Lexicon:
        """This lexicon with only the words for which `kept`, (v,) bool, is true."""
        clusters = self.clusters
        return replace(
            self,
            words=tuple(word for word, stays in zip(self.words, kept, strict=True) if stays),
            vectors=self.vectors[kept],
            clusters=None if clusters is None else replace(clusters, labels=clusters.labels[kept]),
        )

    def demand_clusters(self, method: str) -> Clusters:
        """The clusters. Raises ParameterError if there are none."""
        if self.clusters is None:
            raise ParameterError(
                f"{method} needs clusters of words",
                where="clusters",
                got="none",
                remedy="name a clustering in params.yaml, or give --clusters on the command line",
            )
        return self.clusters

    def smooth_inverse_frequency(self, a: float) -> Float64:
        """(v,) weights a / (a + p(w)); 1 for a word that the counts lack (Arora et al. 2017)."""
        counts = self.counts.of(self.words)
        return sif_weights(unigram_probabilities(counts, total=self.counts.total), a=a)

    def inverse_smoothed_probability(self) -> Float64:
        """(v,) weights 1 / p(w), p with Laplace's smoothing (LASE thesis, eq. 4.1)."""
        counts, types = self.counts.of(self.words), len(self.counts.words)
        return 1 / laplace_probabilities(counts, total=self.counts.total, types=types)
