"""Concatenated power means.

Source: Rueckle, Eger, Peyrard & Gurevych 2018, "Concatenated power mean word embeddings as universal
cross-lingual sentence representations", arXiv:1803.01400.

published  H_p(x) = ((1/n) sum x_i^p)^(1/p) in real numbers: for odd p, a negative mean has a negative root
released   the real part of the principal complex root: a mean cube of -8 gives +1, not -2
To use several vector tables, concatenate their vectors into one table: power means are taken per coordinate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.encoders.base.estimator import WordEstimator
from sentfold.encoders.base.lexicon import Lexicon, Vectors
from sentfold.encoders.base.protocol import Encoder
from sentfold.encoders.base.ragged import Ragged
from sentfold.encoders.base.word_encoder import Reader, WordEncoder, WordSettings, choose_removal, settings_lexicon
from sentfold.kernels.compiled import fast

Float64 = npt.NDArray[np.float64]
# A mean of powers outside of these bounds may have lost its digits: the words are divided by the largest one first.
TINY, HUGE = 1e-290, 1e290
MINIMUM, MAXIMUM = -1, 0  # codes of the minimum and the maximum; the code of any other mean is its p >= 1
MeanName = Annotated[str, Field(pattern=r"^(mean|min|max|p[1-9][0-9]?)$")]

TITLE = "p-means"


class Settings(WordSettings):
    """means: the means to concatenate, in this order: mean (p = 1), min, max, or p2, p3, ... (p = 2, 3, ...)."""

    means: tuple[MeanName, ...] = Field(default=("mean", "min", "max"), min_length=1)
    components: int = Field(default=1, ge=1)


class PowerMeans(WordEstimator):
    """Power means as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "pmeans"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """The means of the words, coordinate by coordinate, concatenated; a sentence without words has the zero vector."""
    lexicon = settings_lexicon(lexicon, settings)
    powers = np.array([power_of(name) for name in settings.means], dtype=np.int64)
    removal = choose_removal(settings, count=settings.components, default="none")
    return WordEncoder(
        Reader(lexicon, settings.tokenizer), PowerMeanComposer(lexicon.vectors, powers, settings.released), removal
    )


def power_of(name: str) -> int:
    """The code of a mean: its p, or MINIMUM or MAXIMUM."""
    limits = {"mean": 1, "min": MINIMUM, "max": MAXIMUM}
    return limits[name] if name in limits else int(name[1:])


@dataclass(frozen=True)
class PowerMeanComposer:
    """A Composer: one power mean per entry of `powers`, concatenated.

    vectors    (v, d) float32
    powers     (m,) int64, p >= 1, MINIMUM or MAXIMUM
    principal  take the real part of the principal complex root of a negative mean
    Cost O(words d m).
    """

    vectors: Vectors
    powers: npt.NDArray[np.int64]
    principal: bool

    @property
    def dimension(self) -> int:
        """The dimension of the words, times the number of means."""
        return int(self.vectors.shape[1]) * len(self.powers)

    def compose(self, words: Ragged, out: Float64) -> Mapping[str, int]:
        """The concatenated means of each sentence; the zero vector for a sentence without words."""
        _power_means(words.ids, words.offsets, self.vectors, self.powers, self.principal, out)
        return {}


@fast
def _power_means(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vectors: Vectors,
    powers: npt.NDArray[np.int64],
    principal: bool,
    out: Float64,
) -> None:
    d = vectors.shape[1]
    for s in range(len(offsets) - 1):
        n = offsets[s + 1] - offsets[s]
        out[s, :] = 0.0
        if n == 0:
            continue
        for m in range(len(powers)):
            p = powers[m]
            row = out[s, m * d : (m + 1) * d]
            if p == MINIMUM:
                row[:] = np.inf
            elif p == MAXIMUM:
                row[:] = -np.inf
            for t in range(offsets[s], offsets[s + 1]):
                vector = vectors[ids[t]]
                if p == MINIMUM:
                    for j in range(d):
                        row[j] = min(row[j], np.float64(vector[j]))
                elif p == MAXIMUM:
                    for j in range(d):
                        row[j] = max(row[j], np.float64(vector[j]))
                elif p == 1:
                    for j in range(d):
                        row[j] += vector[j]
                else:
                    for j in range(d):
                        row[j] += np.float64(vector[j]) ** p
            if p >= 1:
                for j in range(d):
                    row[j] /= n
            if p >= 2:
                sign = np.cos(np.pi / p) if principal else -1.0
                for j in range(d):
                    largest = 1.0
                    if not TINY < np.abs(row[j]) < HUGE:
                        row[j], largest = _mean_power(ids[offsets[s] : offsets[s + 1]], vectors, j, p)
                    root = np.abs(row[j]) ** (1.0 / p) * largest
                    row[j] = root if row[j] >= 0 else sign * root


@fast
def _mean_power(words: npt.NDArray[np.int32], vectors: Vectors, j: int, p: int) -> tuple[float, float]:
    """The mean of (x_j / largest)^p over the words, and the largest |x_j|; 0 and 0 if all are 0."""
    largest, total = 0.0, 0.0
    for word in words:
        largest = max(largest, np.abs(np.float64(vectors[word, j])))
    if largest > 0.0:
        for word in words:
            total += (np.float64(vectors[word, j]) / largest) ** p
    return total / len(words), largest
