"""Locally-aggregated sentence embeddings (LASE).

Source: the LASE thesis, and the code released with it. That code is S3E's code with other clusterers, so the two
variants are two different methods.

published  weights 1 / p(w) with Laplace's smoothing; residuals sum weight(w) (v(w) - c_i); the covariance part
           alone, without sqrt(2), signed square root, length 1; no direction removed. An unknown word is
           cut into the longest pieces that are known words; its vector is the mean of the centroids of the
           clusters of these pieces.
released   weights a / (a + p(w)); residuals sum (weight(w) v(w) - c_i); mean part and covariance part with
           sqrt(2), no power, length 1; one direction removed by the randomised solver with 7 iterations; an
           empty sentence is read as "."
Both variants count a repeated word once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.encoders.base.components import Components
from sentfold.encoders.base.estimator import WordEstimator
from sentfold.encoders.base.lexicon import Clusters, Lexicon
from sentfold.encoders.base.protocol import Encoded, Encoder
from sentfold.encoders.base.subspace import Centroid, Descriptor, describe_parts, find_centroids
from sentfold.encoders.base.word_encoder import (
    FittedWordEncoder,
    Reader,
    WordEncoder,
    WordSettings,
    choose_removal,
    settings_lexicon,
)
from sentfold.words.partition import CentroidRule

Float64 = npt.NDArray[np.float64]
RELEASED_ITERATIONS = 7

TITLE = "LASE"


class Settings(WordSettings):
    """A setting that is null takes the value of the variant.

    a                 parameter of the released weight a / (a + p(w))
    mean, covariance  which parts the vector has
    power             exponent of the signed power of the covariance part, 1 for none
    normalise         give the covariance part length 1
    centroid          given, weighted-mean, scaled-mean or mean; null: given if the clustering has centroids,
                      otherwise mean as published and scaled-mean as released
    components        number of directions to remove; as published, none is removed unless `component` is joint
    pieces            cut unknown words into known pieces
    """

    a: float = Field(default=1e-3, gt=0)
    components: int = Field(default=1, ge=1)
    mean: bool | None = None
    covariance: bool = True
    power: float | None = Field(default=None, gt=0, le=1)
    normalise: bool = True
    centroid: Centroid | None = None
    pieces: bool | None = None


def describe(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of the only part, if the settings leave out the other part."""
    return describe_parts(settings)


class LASE(WordEstimator):
    """LASE as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "lase"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """The encoder of the thesis, or of the released code."""
    lexicon.demand_clusters("LASE")
    lexicon = settings_lexicon(lexicon, settings)
    released = settings.released
    otherwise: CentroidRule = "scaled-mean" if released else "mean"
    centroids = find_centroids(lexicon, word_weights(lexicon, settings), settings.centroid, otherwise=otherwise)
    pieces = not released if settings.pieces is None else settings.pieces
    plain = make_encoder(lexicon, centroids, settings)
    return PieceEncoder(plain, lexicon, centroids, settings) if pieces else plain


def make_encoder(lexicon: Lexicon, centroids: Float64, settings: Settings) -> WordEncoder:
    """The encoder for a lexicon; the centroids may come from a smaller lexicon."""
    released = settings.released
    descriptor = Descriptor(
        vectors=lexicon.vectors,
        weights=word_weights(lexicon, settings),
        labels=lexicon.demand_clusters("LASE").labels,
        centroids=centroids,
        weigh_residual=not released,
        mean=released if settings.mean is None else settings.mean,
        covariance=settings.covariance,
        root_two=released,
        power=settings.power or (1.0 if released else 0.5),
        normalise=settings.normalise,
    )
    return WordEncoder(
        Reader(lexicon, settings.tokenizer, stand_in="." if released else None),
        descriptor,
        choose_removal(
            settings,
            count=settings.components,
            default="joint" if released else "none",
            iterations=RELEASED_ITERATIONS,
        ),
    )


def word_weights(lexicon: Lexicon, settings: Settings) -> Float64:
    """(v,) weights: 1 / p as published, a / (a + p) as released."""
    return lexicon.smooth_inverse_frequency(settings.a) if settings.released else lexicon.inverse_smoothed_probability()


@dataclass(frozen=True)
class PieceEncoder:
    """An Encoder that first gives each unknown word the vector of the thesis's rule for pieces of words."""

    plain: WordEncoder
    lexicon: Lexicon
    centroids: Float64
    settings: Settings

    def fit(self, sentences: Sequence[str]) -> FittedPieceEncoder:
        """Fit on sentences; their unknown words get vectors from their pieces."""
        return FittedPieceEncoder(self, self.knowing(sentences)[0].fit(sentences).components)

    def knowing(self, sentences: Sequence[str]) -> tuple[WordEncoder, int]:
        """The encoder with a row for each unknown word of `sentences` that has known pieces, and their number."""
        tokens = self.plain.reader.tokens(sentences)
        longest = max(map(len, self.lexicon.index), default=0)
        unknown = dict.fromkeys(word for words in tokens for word in words if word not in self.lexicon.index)
        added = {word: rows for word in unknown if (rows := known_pieces(word, self.lexicon.index, longest))}
        if not added:
            return self.plain, 0
        return make_encoder(extend(self.lexicon, self.centroids, added), self.centroids, self.settings), len(added)


@dataclass(frozen=True)
class FittedPieceEncoder:
    """A Fitted: a PieceEncoder and the directions that it removes."""

    encoder: PieceEncoder
    components: Components

    @property
    def learned(self) -> Mapping[str, npt.NDArray[Any]]:
        """The removed directions, if any."""
        return FittedWordEncoder(self.encoder.plain, self.components).learned

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """One vector per sentence."""
        encoder, added = self.encoder.knowing(sentences)
        encoded = FittedWordEncoder(encoder, self.components).encode(sentences)
        return Encoded(encoded.vectors, {**encoded.fallbacks, "words known by their pieces (types)": added})


def known_pieces(word: str, index: Mapping[str, int], longest: int) -> list[int]:
    """Rows of the longest known pieces of a word, from its beginning; characters outside known pieces are skipped.

    longest  number of characters of the longest known word
    Cost O(characters longest^2).
    """
    rows, start = [], 0
    while start < len(word):
        end = min(len(word), start + longest)
        while end > start and word[start:end] not in index:
            end -= 1
        if end > start:
            rows.append(index[word[start:end]])
        start = max(end, start + 1)
    return rows


def extend(lexicon: Lexicon, centroids: Float64, added: Mapping[str, list[int]]) -> Lexicon:
    """The lexicon with a row for each added word: the mean of its pieces' centroids, and the nearest cluster."""
    labels = lexicon.demand_clusters("LASE").labels
    means = np.array([centroids[labels[rows]].mean(axis=0) for rows in added.values()])
    nearest = [int(((centroids - mean) ** 2).sum(axis=1).argmin()) for mean in means]
    return replace(
        lexicon,
        words=(*lexicon.words, *added),
        vectors=np.vstack([lexicon.vectors, means.astype(np.float32)]),
        clusters=Clusters(np.concatenate([labels, np.array(nearest, dtype=np.int32)]), centroids),
    )
