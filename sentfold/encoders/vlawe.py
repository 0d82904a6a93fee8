"""Vector of locally-aggregated word embeddings (VLAWE).

Source: Ionescu & Butnaru 2019, "Vector of locally-aggregated word embeddings (VLAWE)", NAACL,
doi:10.18653/v1/N19-1033.

published  signed square root of every entry, then the vector is scaled to length 1
released   length 1, without the root: the script with the linear kernel has the root commented out
The cluster of a word is its label in the clustering. If only centroids are given, it is the cluster of the nearest
centroid (the released code searches for this centroid with an approximate tree).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.encoders.base.estimator import WordEstimator
from sentfold.encoders.base.lexicon import Lexicon, Vectors
from sentfold.encoders.base.protocol import Encoder
from sentfold.encoders.base.ragged import Ragged
from sentfold.encoders.base.subspace import find_centroids
from sentfold.encoders.base.word_encoder import Reader, WordEncoder, WordSettings, choose_removal, settings_lexicon
from sentfold.kernels.compiled import fast

Float64 = npt.NDArray[np.float64]

TITLE = "VLAWE"


class Settings(WordSettings):
    """power: exponent of the signed power, 1 for none; null: 0.5 as published, 1 as released."""

    power: float | None = Field(default=None, gt=0, le=1)
    components: int = Field(default=1, ge=1)


class VLAWE(WordEstimator):
    """VLAWE as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "vlawe"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """v_i = sum over the words in cluster i of (v(w) - mu_i), concatenated, to the signed power, scaled to length 1."""
    labels = lexicon.demand_clusters("VLAWE").labels
    lexicon = settings_lexicon(lexicon, settings)
    centroids = find_centroids(lexicon, np.ones(len(lexicon.words)), None, otherwise="mean")
    power = settings.power if settings.power is not None else 1.0 if settings.released else 0.5
    removal = choose_removal(settings, count=settings.components, default="none")
    return WordEncoder(
        Reader(lexicon, settings.tokenizer),
        AggregatedResiduals(lexicon.vectors, labels, centroids, power),
        removal,
    )


@dataclass(frozen=True)
class AggregatedResiduals:
    """A Composer: sums of residuals per cluster, concatenated; the zero vector for a sentence without words.

    vectors    (v, d) float32
    labels     (v,) int32 cluster of each word
    centroids  (k, d) float64
    power      exponent of the signed power
    Cost O(words d + k d).
    """

    vectors: Vectors
    labels: npt.NDArray[np.int32]
    centroids: Float64
    power: float

    @property
    def dimension(self) -> int:
        """Number of clusters times the dimension of the words."""
        return int(self.centroids.size)

    def compose(self, words: Ragged, out: Float64) -> Mapping[str, int]:
        """The residuals of each sentence."""
        flat = _aggregate(words.ids, words.offsets, self.vectors, self.labels, self.centroids, self.power, out)
        return {"every word a centroid": flat}


@fast
def _aggregate(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vectors: Vectors,
    labels: npt.NDArray[np.int32],
    centroids: Float64,
    power: float,
    out: Float64,
) -> int:
    k, d = centroids.shape
    held = np.full(k, -1, dtype=np.int64)  # the last sentence with a word of the cluster
    flat = 0
    for s in range(len(offsets) - 1):
        row = out[s]
        row[:] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            vector = vectors[ids[t]]
            label = labels[ids[t]]
            held[label] = s
            centroid = centroids[label]
            part = row[label * d : (label + 1) * d]
            for j in range(d):
                part[j] += vector[j] - centroid[j]
        square = 0.0
        for label in range(k):
            if held[label] == s:
                part = row[label * d : (label + 1) * d]
                if power == 0.5:
                    for j in range(d):
                        part[j] = np.copysign(np.sqrt(np.abs(part[j])), part[j])
                elif power != 1.0:
                    for j in range(d):
                        part[j] = np.copysign(np.abs(part[j]) ** power, part[j])
                for j in range(d):
                    square += part[j] * part[j]
        if square == 0.0:
            flat += offsets[s + 1] > offsets[s]
            continue
        length = np.sqrt(square)
        for label in range(k):
            if held[label] == s:
                for j in range(label * d, (label + 1) * d):
                    row[j] /= length
    return flat
