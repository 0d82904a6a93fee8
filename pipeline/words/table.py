"""Words with their vectors, counts and clusters: what every word encoder is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class WordTable:
    """A vocabulary, one row per word.

    words    distinct, in the order of the artifact
    vectors  (v, d) float32
    counts   (v,) int64 occurrences in the corpus of counts; 0 = unseen there
    """

    words: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]

    def index(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}


@dataclass(frozen=True)
class WordClusters:
    """A partition of words, and a point for each part.

    words      distinct
    labels     (v,) int32, the cluster of each word, 0 <= label < k
    centroids  (k, d) float32; the zero vector where a cluster has no word
    """

    words: tuple[str, ...]
    labels: npt.NDArray[np.int32]
    centroids: npt.NDArray[np.float32]

    def labels_of(self, words: tuple[str, ...]) -> npt.NDArray[np.int32]:
        """(n,) int32 cluster of each of `words`, -1 where the partition does not know the word."""
        if words == self.words:
            return self.labels
        known = dict(zip(self.words, self.labels.tolist(), strict=True))
        return np.array([known.get(word, -1) for word in words], dtype=np.int32)
