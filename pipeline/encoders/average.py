"""The average of word vectors, also called bag of words (BOW)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.encoders.compiled import compiled
from pipeline.encoders.lexicon import Lexicon, Vectors
from pipeline.encoders.protocol import Encoder
from pipeline.encoders.ragged import Ragged
from pipeline.encoders.word_encoder import Reader, WordEncoder, WordSettings, choose_removal, settings_lexicon

Float64 = npt.NDArray[np.float64]


class Settings(WordSettings):
    """components: directions to remove, where `component` is joint. Both variants are the same."""

    components: int = Field(default=1, ge=1)


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """The plain mean of the words, repeats counted, unknown ones left out; no word gives the zero vector."""
    lexicon = settings_lexicon(lexicon, settings)
    removal = choose_removal(settings, count=settings.components, default="none")
    composer = WeightedMean(lexicon.vectors, np.ones(len(lexicon.words)))
    return WordEncoder(Reader(lexicon, settings.tokenizer), composer, removal)


@dataclass(frozen=True)
class WeightedMean:
    """A Composer: v_s = (1/n) sum_i weight(w_i) v(w_i).

    vectors  (v, d) float32
    weights  (v,) float64
    Cost O(words d).
    """

    vectors: Vectors
    weights: Float64

    @property
    def dimension(self) -> int:
        """That of the words."""
        return int(self.vectors.shape[1])

    def compose(self, words: Ragged, out: Float64) -> Mapping[str, int]:
        """One weighted mean per sentence; the zero vector for no words."""
        _weighted_means(words.ids, words.offsets, self.vectors, self.weights, out)
        return {}


@compiled
def _weighted_means(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vectors: Vectors,
    weights: Float64,
    out: Float64,
) -> None:
    for s in range(len(offsets) - 1):
        row = out[s]
        row[:] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            weight = weights[ids[t]]
            vector = vectors[ids[t]]
            for j in range(len(row)):
                row[j] += weight * vector[j]
        # Not inside: the compiler would divide every product.
        n = max(offsets[s + 1] - offsets[s], 1)
        for j in range(len(row)):
            row[j] /= n
