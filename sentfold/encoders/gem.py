"""Geometric embedding (GEM): words weighted by what they add to the span of their neighbours.

Source: Yang, Zhu & Chen 2019, "Parameter-free sentence embedding via orthogonal basis", EMNLP,
doi:10.18653/v1/D19-1059. docs/methods.md has the equations.

published  all punctuation is skipped; words without a vector are left out; the significance is divided by
           2m + 1; singular vectors of a sentence have their largest entry positive
released   only ! . : ? @ - " ' are skipped; if the table has the word `unk`, a word without a vector is
           read as a random word, the same in all sentences; if not, as the word before it in the sentence (and left
           out if there is none); the significance is divided by the window's width, or by the dimension if that is
           smaller; singular vectors have the signs that LAPACK gives them
In both variants, a sentence without words, or with skipped punctuation alone, has the zero vector.

This code computes no singular value decomposition for a word: q_i is orthogonal to the context, so the significance
is r_i / width. It usually computes no orthogonal basis either: r_i is the last pivot of the Cholesky factor of the
window's Gram matrix, neighbouring windows share entries of this matrix, and q_i . x for any vector x follows from the
products of the window's words with x. Only a window whose word is almost in the span of the others is orthogonalised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy.linalg import eigh

from sentfold.encoders.base.estimator import WordEstimator
from sentfold.encoders.base.lexicon import Lexicon, Vectors
from sentfold.encoders.base.protocol import Encoded, Encoder
from sentfold.encoders.base.ragged import UNKNOWN, Ragged, drop_unknown, number_all
from sentfold.encoders.base.word_encoder import (
    Reader,
    Reading,
    WordSettings,
    first_directions,
    require_finite,
    settings_lexicon,
    without_words,
)
from sentfold.errors import ParameterError
from sentfold.kernels.arrays import canonical_signs
from sentfold.kernels.compiled import fast
from sentfold.words.tokenizers import TokenizerName

Float64 = npt.NDArray[np.float64]
Score = Literal["novelty", "significance", "uniqueness"]
# Signs of singular vectors. lapack: the signs that LAPACK gives; canonical: largest entry positive; free: the corpus
# directions are those of sum_j (A_j A_j^T)^t, which is the mean of sum_j g_j g_j^T over all choices of signs.
Signs = Literal["lapack", "canonical", "free"]
Selection = Literal["sdr", "sir", "none"]

# A residual shorter than this counts as zero (the released code's EPS).
RANK_TOLERANCE = 5e-7
# A residual below this share of its word's length is too inaccurate when computed from squared lengths.
NEARLY_WITHIN = 1e-2
# Longer sentences are decomposed by their smaller Gram matrix, which takes at most a third of the work.
LONG = 64
SKIPPED_AS_RELEASED = frozenset("!.:?@-\"'")

TITLE = "GEM"


class Settings(WordSettings):
    """Parameters of the paper and of its ablations.

    window      m, number of neighbours on each side
    candidates  K, number of corpus directions to choose from
    removed     h, number of directions removed from a sentence
    power       t, exponent of the singular values in the coarse vector of a sentence
    scores      the scores whose sum is a word's weight; if empty, every weight is 1
    selection   sdr: remove the h directions that fit the sentence best; sir: remove the first h from every sentence;
                none: remove nothing (uniqueness still uses the h that fit best)
    scaled      whether directions are chosen by fit times singular value, or by fit alone (the paper's CQA runs)
    signs       of the singular vectors that make a coarse vector; null: canonical as published, lapack as released
    seed        of the random rows for unknown words, released variant only
    """

    tokenizer: TokenizerName = "wordpunct"
    window: int = Field(default=7, ge=1, le=1000)  # the windows of all words share a matrix of (2m + 1)^2 numbers
    candidates: int = Field(default=45, ge=1)
    removed: int = Field(default=17, ge=0)
    power: float = Field(default=3.0, gt=0)
    scores: tuple[Score, ...] = ("novelty", "significance", "uniqueness")
    selection: Selection = "sdr"
    scaled: bool = True
    signs: Signs | None = None
    seed: int = 0


def describe(settings: Mapping[str, Any]) -> Iterator[str]:
    """Which weights a word gets, which directions are removed, and the parameters that differ from their defaults."""
    # SDR and SIR are terms of the paper: sentence-dependent and sentence-independent removal of directions.
    removals = {"sdr": "SDR", "sir": "SIR", "none": "no directions removed"}
    scores = settings.get("scores")
    if scores is not None:
        yield "three weights" if len(scores) == 3 else f"weights: {' and '.join(scores) or 'none'}"
    if settings.get("selection") in removals:
        yield removals[settings["selection"]]
    for name, symbol in (("window", "m"), ("removed", "h")):
        usual = Settings.model_fields[name].default
        if settings.get(name, usual) != usual:
            yield f"{symbol} = {settings[name]}"
    if settings.get("scaled") is False:
        yield "directions chosen without their singular values"
    if settings.get("signs") == "free":
        yield "mean over signs"


@dataclass(frozen=True)
class Directions:
    """The directions of a corpus: (k, d) float64 orthonormal rows and their (k,) singular values, descending."""

    rows: Float64
    singular_values: Float64


class GEM(WordEstimator):
    """GEM as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "gem"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """e = c - D D^T c with c = sum_i (alpha_n + alpha_s + alpha_u) v_i, D the sentence's h corpus directions."""
    lexicon = settings_lexicon(lexicon, settings)
    return GemEncoder(lexicon, settings, GemReader(lexicon, settings.tokenizer, settings=settings))


@dataclass(frozen=True)
class GemReader(Reader):
    """GEM's rules for punctuation and for words without a vector."""

    settings: Settings = field(default_factory=Settings)

    def tokens(self, sentences: Sequence[str]) -> list[list[str]]:
        """Lower-cased tokens without the punctuation that is skipped."""
        quoted = [text.replace("''", '" ').replace("``", '" ') for text in sentences]
        tokens = [[token.lower() for token in words] for words in super().tokens(quoted)]
        if self.settings.released:
            return [[token for token in words if token not in SKIPPED_AS_RELEASED] for words in tokens]
        return [[token for token in words if WORD_CHARACTER.search(token)] for words in tokens]

    def read(self, sentences: Sequence[str]) -> Reading:
        """The words as rows of the lexicon; the variant has the rule for unknown words."""
        tokens = self.tokens(sentences)
        words = number_all(tokens, self.lexicon.index)
        unknown = words.ids == UNKNOWN
        if not self.settings.released or not unknown.any():
            return Reading(drop_unknown(words), {})
        if "unk" in self.lexicon.index:
            ids, name = draw_rows(tokens, words, size=len(self.lexicon.words), seed=self.settings.seed), "a random word"
        else:
            ids, name = repeat_last(words), "the word before"
        stood_in = int(unknown.sum() - (ids == UNKNOWN).sum())
        filled = drop_unknown(Ragged(ids, words.offsets, words.dropped))
        return Reading(filled, {f"unknown words, read as {name} (tokens)": stood_in})


WORD_CHARACTER = re.compile(r"[^\W_]")


def draw_rows(tokens: list[list[str]], words: Ragged, *, size: int, seed: int) -> npt.NDArray[np.int32]:
    """Ids with a random row for each unknown word; every occurrence of a word gets the same row."""
    ids = words.ids.copy()
    flat = [token for sentence in tokens for token in sentence]
    for place in np.flatnonzero(ids == UNKNOWN):
        ids[place] = Random(f"{seed} {flat[place]}").randrange(size)
    return ids


def repeat_last(words: Ragged) -> npt.NDArray[np.int32]:
    """Ids with each unknown word replaced by the last known word before it in the sentence; UNKNOWN if none exists."""
    places = np.arange(len(words.ids))
    last = np.maximum.accumulate(np.where(words.ids == UNKNOWN, -1, places))
    begins = np.repeat(words.offsets[:-1], words.lengths)
    return np.where(last >= begins, words.ids[last], np.int32(UNKNOWN)).astype(np.int32)


@dataclass(frozen=True)
class GemEncoder:
    """An Encoder that can also be fitted with given corpus directions."""

    lexicon: Lexicon
    settings: Settings
    reader: GemReader

    def fit(self, sentences: Sequence[str]) -> FittedGem:
        """Find the corpus directions of `sentences`; repeated sentences count each time."""
        return self.fit_words(self.reader.read(sentences).words)

    def fit_words(self, words: Ragged) -> FittedGem:
        """The same as fit, for sentences as rows of the lexicon."""
        signs = self.settings.signs or ("lapack" if self.settings.released else "canonical")
        directions = corpus_directions(
            self.lexicon.vectors, words, count=self.settings.candidates, power=self.settings.power, signs=signs
        )
        return self._remove(np.ascontiguousarray(directions.rows), np.ascontiguousarray(directions.singular_values))

    def fit_directions(self, rows: Float64, values: Float64) -> FittedGem:
        """Use given corpus directions, the first `candidates` of them. See DirectedEncoder.

        Raises ParameterError if the directions do not fit the words.
        """
        return self._remove(
            *first_directions(rows, values, count=self.settings.candidates, width=self.lexicon.dimension)
        )

    def _remove(self, rows: Float64, values: Float64) -> FittedGem:
        return FittedGem(self, Directions(rows, values), self.lexicon.vectors.astype(np.float64) @ rows.T)


def corpus_directions(vectors: Vectors, words: Ragged, *, count: int, power: float, signs: Signs) -> Directions:
    """The leading left singular directions of the matrix of coarse sentence vectors.

    The coarse vector of sentence j is g_j = sum_c s_c^t U_c with A_j = U diag(s) V^T, one column per word.
    vectors  (v, d) float32; words: the corpus; count: directions wanted; power: t; signs: see Signs
    Returns at most `count` directions, fewer where the rank is lower. Cost O(words^2 d + n d^2).
    Raises ParameterError if the powers of the singular values leave the range of float64.
    """
    d = vectors.shape[1]
    if signs == "free":
        outer = _powers(mean_outer_product(vectors, words, power=power), vectors, words, power)
        squares, columns = eigh(outer, subset_by_index=(max(0, d - count), d - 1))
        rows, values = canonical_signs(columns[:, ::-1]).T, np.sqrt(np.maximum(squares[::-1], 0))
    else:
        coarse = np.zeros((d, len(words)))
        for s in range(len(words)):
            a = vectors[words.ids[words.offsets[s] : words.offsets[s + 1]]].astype(np.float64).T
            if a.size:
                coarse[:, s] = coarse_vector(a, power=power, signs=signs)
        if not _powers(coarse, vectors, words, power).any():
            return Directions(np.zeros((0, d)), np.zeros(0))
        u, values, _ = np.linalg.svd(coarse, full_matrices=False)
        rows, values = u[:, :count].T, values[:count]
    kept = values > values[0] * 1e-12 if len(values) and values[0] > 0 else np.zeros(len(values), dtype=bool)
    return Directions(rows[kept], values[kept])


def _powers(values: Float64, vectors: Vectors, words: Ragged, power: float) -> Float64:
    """The values, sums of powers. Raises ParameterError if they are not finite, or if they all vanished."""
    if np.isfinite(values).all() and (values.any() or not vectors[words.ids].any()):
        return values
    raise ParameterError(
        "powers of the singular values of the sentences leave the range of float64",
        where="power",
        expected="a power t with which s^t, or s^(2t) for `signs: free`, is neither infinite nor 0",
        got=f"{power:g}",
        remedy="lower `power`, or divide all word vectors by their mean length",
    )


def coarse_vector(a: Float64, *, power: float, signs: Literal["lapack", "canonical"]) -> Float64:
    """(d,) g = sum_c s_c^t U_c of (d, n) words A = U diag(s) V^T.

    Long sentences use the eigenvectors of A A^T or A^T A, unless `signs` is lapack: eigenvectors do not have LAPACK's
    signs of singular vectors. This is inaccurate for directions whose s is below about 1e-7 of the largest.
    """
    d, n = a.shape
    if n <= LONG or signs == "lapack":
        u, singular, _ = np.linalg.svd(a, full_matrices=False)
    elif n < d:
        squares, v = np.linalg.eigh(a.T @ a)
        kept = squares > squares[-1] * 1e-14
        singular = np.sqrt(squares[kept])
        u = (a @ v[:, kept]) / singular
    else:
        squares, u = np.linalg.eigh(a @ a.T)
        singular = np.sqrt(np.maximum(squares, 0))
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses infinity and NaN
        coarse: Float64 = (canonical_signs(u) if signs == "canonical" else u).dot(singular**power)
    return coarse


def mean_outer_product(vectors: Vectors, words: Ragged, *, power: float) -> Float64:
    """(d, d) sum over sentences of (A A^T)^t, by the eigenvalues of A^T A or A A^T, whichever is smaller."""
    d = vectors.shape[1]
    total = np.zeros((d, d))
    for s in range(len(words)):
        a = vectors[words.ids[words.offsets[s] : words.offsets[s + 1]]].astype(np.float64)
        if len(a) > d:
            squares, u = np.linalg.eigh(a.T @ a)
            with np.errstate(over="ignore", invalid="ignore"):
                total += (u * np.maximum(squares, 0) ** power) @ u.T
            continue
        squares, v = np.linalg.eigh(a @ a.T)
        # A V has columns of squared length `squares`: (A A^T)^t = (A V) squares^(t-1) (A V)^T.
        kept = squares > squares.max(initial=0.0) * 1e-14
        with np.errstate(over="ignore", invalid="ignore"):
            spread = (a.T @ v[:, kept]) * squares[kept] ** ((power - 1) / 2)
            total += spread @ spread.T
    return total


@dataclass(frozen=True)
class FittedGem:
    """A Fitted: corpus directions, and the words' projections on them, (v, k) float64."""

    encoder: GemEncoder
    directions: Directions
    projections: Float64

    @property
    def learned(self) -> Mapping[str, npt.NDArray[Any]]:
        """The corpus directions and their singular values."""
        return {"directions": self.directions.rows, "singular_values": self.directions.singular_values}

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """One vector per sentence."""
        reading = self.encoder.reader.read(sentences)
        encoded = self.encode_words(reading.words)
        return Encoded(encoded.vectors, {**reading.fallbacks, **encoded.fallbacks})

    def encode_words(self, words: Ragged) -> Encoded:
        """`encode` for sentences as rows of the lexicon. Raises ParameterError if a vector is not finite."""
        settings = self.encoder.settings
        vectors = np.empty((len(words), self.encoder.lexicon.dimension), dtype=np.float32)
        _encode(
            words.ids,
            words.offsets,
            self.encoder.lexicon.vectors,
            self.directions.rows,
            self.directions.singular_values,
            self.projections,
            settings.window,
            min(settings.removed, len(self.directions.rows)),
            ("novelty" in settings.scores, "significance" in settings.scores, "uniqueness" in settings.scores),
            settings.selection == "sir",
            settings.selection != "none" and settings.component != "none",
            settings.scaled,
            settings.released,
            vectors,
        )
        fallbacks = without_words(words)
        fallbacks["vanished with the removed directions"] = int((~vectors.any(axis=1) & (words.lengths > 0)).sum())
        return Encoded(require_finite(vectors), fallbacks)


@fast
def _encode(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vectors: Vectors,
    directions: Float64,
    singular_values: Float64,
    projections: Float64,
    window: int,
    removed: int,
    scores: tuple[bool, bool, bool],
    first: bool,
    remove: bool,
    scaled: bool,
    actual_width: bool,
    out: npt.NDArray[np.float32],
) -> None:
    d = vectors.shape[1]
    factor = np.empty((2 * window + 1, 2 * window + 1))
    for s in range(len(offsets) - 1):
        words = ids[offsets[s] : offsets[s + 1]]
        n = len(words)
        chosen = _choose(words, singular_values, projections, removed, first, scaled)
        products = _products(words, vectors, window)
        total = np.zeros(d)
        for i in range(n):
            low, high = max(i - window, 0), min(i + window, n - 1)
            width = high - low + 1
            r = _residual(words, products, i, low, high, factor)
            q = np.empty(0)
            if r < 0:
                r, q = _orthogonalised(words, vectors, i, low, high)
            length = np.sqrt(products[i, 0])
            weight = 0.0
            if scores[0]:
                weight += np.exp(r / length) if length > 0 else 1.0
            if scores[1]:
                weight += r / (min(width, d) if actual_width else 2 * window + 1)
            if scores[2]:
                square = 0.0
                if r > 0 and len(q):
                    for h in chosen:
                        square += (singular_values[h] * _dot(q, directions[h])) ** 2
                elif r > 0:
                    square = _overlap(words, i, low, high, factor, projections, singular_values, chosen)
                weight += np.exp(-np.sqrt(square) / max(len(chosen), 1))
            if not (scores[0] or scores[1] or scores[2]):
                weight = 1.0
            vector = vectors[words[i]]
            for j in range(d):
                total[j] += weight * vector[j]
        before = _dot(total, total)
        if remove:
            for h in range(len(chosen)):
                direction = directions[chosen[h]]
                projection = _dot(total, direction)
                for j in range(d):
                    total[j] -= projection * direction[j]
        vanished = _dot(total, total) <= before * 1e-20
        for j in range(d):
            out[s, j] = 0.0 if vanished else total[j]


@fast
def _dot(x: Float64, y: Float64) -> float:
    product = 0.0
    for j in range(len(x)):
        product += np.float64(x[j]) * np.float64(y[j])
    return product


@fast
def _choose(
    words: npt.NDArray[np.int32],
    singular_values: Float64,
    projections: Float64,
    removed: int,
    first: bool,
    scaled: bool,
) -> npt.NDArray[np.int64]:
    """Indices of the directions of largest sigma_k |A^T d_k| (`scaled`) or |A^T d_k|; the first ones, if `first`."""
    if first:
        return np.arange(removed)
    fit = np.zeros(len(singular_values))
    for word in words:
        for k in range(len(fit)):
            fit[k] += projections[word, k] * projections[word, k]
    for k in range(len(fit)):
        fit[k] = np.sqrt(fit[k]) * (singular_values[k] if scaled else 1.0)
    return np.argsort(fit, kind="mergesort")[len(fit) - removed :]


@fast
def _products(words: npt.NDArray[np.int32], vectors: Vectors, window: int) -> Float64:
    """(n, 2m + 1) float64 products of word i with word i + k of a sentence, as far as windows reach."""
    n = len(words)
    products = np.zeros((n, 2 * window + 1))
    for i in range(n):
        for k in range(min(2 * window + 1, n - i)):
            products[i, k] = _dot(vectors[words[i]], vectors[words[i + k]])
    return products


@fast
def _member(place: int, i: int, low: int, high: int) -> int:
    """The position of the `place`-th word in the window of word i; word i itself comes last."""
    if place == high - low:
        return i
    return low + place if low + place < i else low + place + 1


@fast
def _residual(words: npt.NDArray[np.int32], products: Float64, i: int, low: int, high: int, factor: Float64) -> float:
    """Distance r of word i from the span of its window; 0 if the word is there twice, -1 if r is inaccurate.

    Writes the lower Cholesky factor of the window's Gram matrix, word i last; a repeated word has a zero on the
    diagonal and zeros in its column.
    """
    width = high - low + 1
    for row in range(width):
        t = _member(row, i, low, high)
        square, repeated = products[t, 0], False
        for column in range(row):
            u = _member(column, i, low, high)
            repeated |= words[u] == words[t]
            left = products[min(t, u), abs(t - u)]
            for k in range(column):
                left -= factor[row, k] * factor[column, k]
            factor[row, column] = left / factor[column, column] if factor[column, column] > 0 else 0.0
            square -= factor[row, column] * factor[row, column]
        if not repeated and square <= NEARLY_WITHIN * NEARLY_WITHIN * products[t, 0]:
            return -1.0
        factor[row, row] = 0.0 if repeated else np.sqrt(square)
    return float(factor[width - 1, width - 1])


@fast
def _orthogonalised(
    words: npt.NDArray[np.int32], vectors: Vectors, i: int, low: int, high: int
) -> tuple[float, Float64]:
    """Distance r of word i from the span of its window, and the residual's direction q; zeros if in the span.

    Modified Gram-Schmidt over the window with word i last.
    """
    d = vectors.shape[1]
    width = high - low + 1
    work = np.empty((width, d))
    for row in range(width):
        vector = vectors[words[_member(row, i, low, high)]]
        for j in range(d):
            work[row, j] = vector[j]
    for k in range(width):
        r = np.sqrt(_dot(work[k], work[k]))
        if k == width - 1:
            if r < RANK_TOLERANCE:
                return 0.0, np.zeros(d)
            return r, work[k] / r
        if r < RANK_TOLERANCE:
            continue
        for j in range(d):
            work[k, j] /= r
        for other in range(k + 1, width):
            projection = _dot(work[k], work[other])
            for j in range(d):
                work[other, j] -= projection * work[k, j]
    return 0.0, np.zeros(d)


@fast
def _overlap(
    words: npt.NDArray[np.int32],
    i: int,
    low: int,
    high: int,
    factor: Float64,
    projections: Float64,
    singular_values: Float64,
    chosen: npt.NDArray[np.int64],
) -> float:
    """Sum of squares of sigma_h (q . D_h) over the chosen directions, where q is the direction of word i's residual.

    With F the factor and p the products of the window's words with D_h, q . D_h is the last entry of F^-1 p.
    """
    width = high - low + 1
    solved = np.empty((width, len(chosen)))
    for row in range(width):
        word = words[_member(row, i, low, high)]
        for h in range(len(chosen)):
            solved[row, h] = projections[word, chosen[h]]
        for k in range(row):
            share = factor[row, k]
            for h in range(len(chosen)):
                solved[row, h] -= share * solved[k, h]
        inverse = 1.0 / factor[row, row] if factor[row, row] > 0 else 0.0
        for h in range(len(chosen)):
            solved[row, h] *= inverse
    square = 0.0
    for h in range(len(chosen)):
        kept = singular_values[chosen[h]] * solved[width - 1, h]
        square += kept * kept
    return square
