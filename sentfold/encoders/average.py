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
    """components: number of directions to remove if `component` is joint. Both variants are the same."""

    components: int = Field(default=1, ge=1)


class AverageOfWords(WordEstimator):
    """The average of word vectors as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "average"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """The mean of the known words, repeats counted; a sentence without known words has the zero vector."""
    lexicon = settings_lexicon(lexicon, settings)
    removal = choose_removal(settings, count=settings.components, default="none")
    composer = WeightedMean(lexicon.vectors, np.ones(len(lexicon.words)))
    return WordEncoder(Reader(lexicon, settings.tokenizer), composer, removal)
