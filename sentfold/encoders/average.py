"""The average of word vectors, also called bag of words (BOW)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sentfold.encoders.base.estimator import WordEstimator
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.encoders.base.protocol import Encoder
from sentfold.encoders.base.word_encoder import (
    Reader,
    WeightedMean,
    WordEncoder,
    WordSettings,
    choose_removal,
    settings_lexicon,
)

TITLE = "mean of words"


class Settings(WordSettings):
    """components: directions to remove, where `component` is joint. Both variants are the same."""

    components: int = Field(default=1, ge=1)


class AverageOfWords(WordEstimator):
    """The method of this file for sentences of your own: construct, fit, encode. See WordEstimator."""

    method = "average"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """The plain mean of the words, repeats counted, unknown ones left out; no word gives the zero vector."""
    lexicon = settings_lexicon(lexicon, settings)
    removal = choose_removal(settings, count=settings.components, default="none")
    composer = WeightedMean(lexicon.vectors, np.ones(len(lexicon.words)))
    return WordEncoder(Reader(lexicon, settings.tokenizer), composer, removal)
