"""Semantic subspace sentence embedding (S3E).

Source: Wang, Chen, Wang & Kuo 2020, "Efficient sentence embedding via semantic subspace analysis", ICPR.

published  residuals sum weight(w) (v(w) - g_i); g_i is the mean of weight(w) v(w); an empty sentence has the zero
           vector
released   residuals sum (weight(w) v(w) - g_i); g_i is the weighted mean; an empty sentence is read as ".";
           the shared direction comes from the randomised solver with 7 iterations
Both variants have the mean part: the published dimensions include it, although the published formulas omit it. Both
count a repeated word once and multiply the covariances off the diagonal by sqrt(2). Centroids that come with the
clustering are used unchanged, unless `centroid` names another rule.
The paper also levels the variance of the word vectors (10 components): word_vectors.<name>.pvn sets this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from sentfold.encoders.base.estimator import WordEstimator
from sentfold.encoders.base.lexicon import Lexicon
from sentfold.encoders.base.protocol import Encoder
from sentfold.encoders.base.subspace import Centroid, Descriptor, describe_parts, find_centroids
from sentfold.encoders.base.word_encoder import Reader, WordEncoder, WordSettings, choose_removal, settings_lexicon

RELEASED_ITERATIONS = 7

TITLE = "S3E"


class Settings(WordSettings):
    """a: parameter of the weight a / (a + p(w)); components: number of directions to remove.

    mean, covariance  which parts the vector has
    power             exponent of the signed power of the covariance part, 1 for none
    normalise         give the covariance part length 1
    centroid          given, weighted-mean, scaled-mean or mean; null: given if the clustering has centroids,
                      otherwise scaled-mean as published and weighted-mean as released
    """

    a: float = Field(default=1e-3, gt=0)
    components: int = Field(default=1, ge=1)
    mean: bool = True
    covariance: bool = True
    power: float = Field(default=1.0, gt=0, le=1)
    normalise: bool = True
    centroid: Centroid | None = None


def describe(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of the only part, if the settings leave out the other part."""
    return describe_parts(settings)


class S3E(WordEstimator):
    """S3E as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "s3e"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """[(1/types) sum weight(w) v(w); vect(C) / |vect(C)|], minus the direction that all sentences share."""
    clusters = lexicon.demand_clusters("S3E")
    lexicon = settings_lexicon(lexicon, settings)
    weights = lexicon.smooth_inverse_frequency(settings.a)
    descriptor = Descriptor(
        vectors=lexicon.vectors,
        weights=weights,
        labels=clusters.labels,
        centroids=find_centroids(
            lexicon, weights, settings.centroid, otherwise="weighted-mean" if settings.released else "scaled-mean"
        ),
        weigh_residual=not settings.released,
        mean=settings.mean,
        covariance=settings.covariance,
        root_two=True,
        power=settings.power,
        normalise=settings.normalise,
    )
    return WordEncoder(
        Reader(lexicon, settings.tokenizer, stand_in="." if settings.released else None),
        descriptor,
        choose_removal(settings, count=settings.components, default="joint", iterations=RELEASED_ITERATIONS),
    )
