"""Smooth inverse frequency (SIF): a weighted mean of words, minus the first direction of all sentences.

Source: Arora, Liang & Ma 2017, "A simple but tough-to-beat baseline for sentence embeddings", ICLR.

published  words without a vector are left out; the direction is exact
released   a word without a vector gets the vector of UUUNKKK, or, if the table has no UUUNKKK, of the table's last
           word; '#' is removed from hashtags; weights are rounded to float32; the direction comes from the
           randomised solver with 7 iterations. The released evaluation finds one direction for the first sentences
           of the pairs and one for the second sentences: to do the same, fit each side separately.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sentfold.encoders.base.estimator import WordEstimator
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.encoders.base.protocol import Encoder
from sentfold.encoders.base.ragged import UNKNOWN, Ragged, number_all
from sentfold.encoders.base.word_encoder import (
    Reader,
    Reading,
    WeightedMean,
    WordEncoder,
    WordSettings,
    choose_removal,
    settings_lexicon,
)

RELEASED_ITERATIONS = 7

TITLE = "SIF"


class Settings(WordSettings):
    """a: parameter of the weight a / (a + p(w)), in the paper 3e-5 to 3e-3; components: directions to remove."""

    a: float = Field(default=1e-3, gt=0)
    components: int = Field(default=1, ge=1)


class SIF(WordEstimator):
    """SIF as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "sif"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """v_s = mean_i a / (a + p(w_i)) v(w_i), then v_s - u u^T v_s. A sentence without words has the zero vector."""
    lexicon = settings_lexicon(lexicon, settings)
    weights = lexicon.smooth_inverse_frequency(settings.a)
    if settings.released:
        weights = weights.astype(np.float32).astype(np.float64)
    return WordEncoder(
        (ReleasedReader if settings.released else Reader)(lexicon, settings.tokenizer, lower=True),
        WeightedMean(lexicon.vectors, weights),
        choose_removal(settings, count=settings.components, default="joint", iterations=RELEASED_ITERATIONS),
    )


class ReleasedReader(Reader):
    """The released code's rule for words without a vector, and for hashtags."""

    def read(self, sentences: list[str]) -> Reading:  # type: ignore[override]
        tokens = self.tokens(sentences)
        if any("#" in sentence for sentence in sentences):
            tokens = [[bare_hashtag(token) for token in words] for words in tokens]
        words = number_all(tokens, self.lexicon.index)
        stand_in = self.lexicon.index.get("UUUNKKK", len(self.lexicon.words) - 1)
        unknown = words.ids == UNKNOWN
        ids = np.where(unknown, np.int32(stand_in), words.ids)
        name = f"unknown words, read as '{self.lexicon.words[stand_in]}' (tokens)"
        return Reading(Ragged(ids, words.offsets, words.dropped), {name: int(unknown.sum())})


def bare_hashtag(token: str) -> str:
    """A hashtag without its '#'; any other token as it is."""
    return token.replace("#", "") if len(token) > 1 and token[0] == "#" else token
