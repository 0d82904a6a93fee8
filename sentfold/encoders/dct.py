"""The first coefficients of the discrete cosine transform along the words of a sentence.

Source: Almarwani, Aldarmaki & Diab 2019, "Efficient sentence embedding using discrete cosine transform",
EMNLP, doi:10.18653/v1/D19-1380.

published  a sentence without words has the zero vector
released   an empty sentence is read as ".", as users of SentEval do. The released script does not run; this variant
           does what the script evidently intends: the orthonormal DCT-II of the words, where a sentence with fewer
           words than coefficients is padded with zero vectors
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
from sentfold.encoders.base.word_encoder import Reader, WordEncoder, WordSettings, choose_removal, settings_lexicon
from sentfold.kernels.compiled import fast

Float64 = npt.NDArray[np.float64]

TITLE = "DCT"


class Settings(WordSettings):
    """coefficients: K, 1 to 6 in the paper; a sentence vector has K times the dimension of the words."""

    coefficients: int = Field(default=6, ge=1, le=100)
    components: int = Field(default=1, ge=1)


class DCT(WordEstimator):
    """DCT as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "dct"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """c[k] = s_k sum_i v(w_i) cos(pi (i + 1/2) k / n) for k < K, s_0 = sqrt(1/n), s_k = sqrt(2/n)."""
    lexicon = settings_lexicon(lexicon, settings)
    removal = choose_removal(settings, count=settings.components, default="none")
    return WordEncoder(
        Reader(lexicon, settings.tokenizer, stand_in="." if settings.released else None),
        CosineTransform(lexicon.vectors, settings.coefficients),
        removal,
    )


@dataclass(frozen=True)
class CosineTransform:
    """A Composer: the first `coefficients` of the orthonormal DCT-II of each coordinate along the sentence.

    vectors       (v, d) float32
    coefficients  K; a shorter sentence is padded with zero vectors to K words first
    Cost O(words d K).
    """

    vectors: Vectors
    coefficients: int

    @property
    def dimension(self) -> int:
        """The dimension of the words, times K."""
        return int(self.vectors.shape[1]) * self.coefficients

    def compose(self, words: Ragged, out: Float64) -> Mapping[str, int]:
        """The concatenated coefficients of each sentence; the zero vector for a sentence without words."""
        _cosine_transform(words.ids, words.offsets, self.vectors, self.coefficients, out)
        return {}


@fast
def _cosine_transform(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vectors: Vectors,
    coefficients: int,
    out: Float64,
) -> None:
    d = vectors.shape[1]
    for s in range(len(offsets) - 1):
        out[s, :] = 0.0
        n = max(offsets[s + 1] - offsets[s], coefficients)
        for t in range(offsets[s], offsets[s + 1]):
            vector = vectors[ids[t]]
            for k in range(coefficients):
                scale = np.sqrt((1.0 if k == 0 else 2.0) / n)
                factor = scale * np.cos(np.pi * (t - offsets[s] + 0.5) * k / n)
                row = out[s, k * d : (k + 1) * d]
                for j in range(d):
                    row[j] += factor * vector[j]
