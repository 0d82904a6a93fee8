"""Counts of words, and the probabilities and weights that the papers compute from the counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.errors import ParameterError
from sentfold.settings import Parameters

Float64 = npt.NDArray[np.float64]

# Where counts come from. "suite": the corpus that the suite file names. "own": always the suite's own sentences.
CountSource = Literal["suite", "own"]


@dataclass(frozen=True)
class WordCounts:
    """Occurrences of every word of a corpus, also of words outside a vocabulary.

    words   distinct
    counts  (u,) int64, positive
    """

    words: tuple[str, ...]
    counts: npt.NDArray[np.int64]

    @property
    def total(self) -> int:
        """Number of tokens of the corpus."""
        return sum(self.counts.tolist())  # of Python integers: the sum may exceed int64

    def of(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """(n,) int64 occurrences of each of `words`; 0 for a word that the corpus does not contain."""
        known = dict(zip(self.words, self.counts.tolist(), strict=True))
        return np.array([known.get(word, 0) for word in words], dtype=np.int64)


def unigram_probabilities(counts: npt.NDArray[np.int64], *, total: int) -> Float64:
    """count / total; 0 for a word that the corpus does not contain.

    counts  (n,) occurrences; total: tokens of the corpus, > 0. Returns (n,) float64.
    """
    return counts / float(_positive(total))


def laplace_probabilities(counts: npt.NDArray[np.int64], *, total: int, types: int) -> Float64:
    """(1 + count) / (total + types), positive for every word (LASE thesis, eq. 4.2).

    counts  (n,) occurrences; total, types: tokens and distinct words of the corpus. Returns (n,) float64.
    """
    return (1 + counts) / float(_positive(total + types))


def sif_weights(probabilities: Float64, *, a: float) -> Float64:
    """a / (a + p), in (0, 1]; 1 for a word that does not occur (Arora, Liang & Ma 2017, algorithm 1).

    probabilities  (n,) in [0, 1]; a: > 0. Returns (n,) float64.
    """
    return a / (a + probabilities)


class UniformWeights(Parameters):
    """Every word weighs 1."""

    rule: Literal["uniform"]


class SifWeights(Parameters):
    """a / (a + p) with unsmoothed p: the rule of S3E and of the released LASE code."""

    rule: Literal["sif"]
    a: float = Field(gt=0, le=1)
    counts: CountSource = "suite"


class InverseWeights(Parameters):
    """1 / p with p smoothed by Laplace's rule: the rule of the LASE thesis."""

    rule: Literal["inverse"]
    counts: CountSource = "own"


class FrequencyWeights(Parameters):
    """The count of the word in the suite's own sentences, so that k-means runs over tokens, as in VLAWE."""

    rule: Literal["frequency"]
    counts: Literal["own"] = "own"


AnyWeights = UniformWeights | SifWeights | InverseWeights | FrequencyWeights
WeightRule = Annotated[AnyWeights, Field(discriminator="rule")]


def word_weights(words: Sequence[str], corpus: WordCounts | None, rule: AnyWeights) -> Float64:
    """(n,) float64 positive weight of each word by `rule`; only UniformWeights needs no corpus."""
    if isinstance(rule, UniformWeights):
        return np.ones(len(words))
    if corpus is None:
        raise ParameterError("weights by frequency need word counts", where="weights", got=rule.rule)
    counts = corpus.of(words)
    if isinstance(rule, SifWeights):
        return sif_weights(unigram_probabilities(counts, total=corpus.total), a=rule.a)
    if isinstance(rule, FrequencyWeights):
        return counts.astype(np.float64)
    return 1 / laplace_probabilities(counts, total=corpus.total, types=len(corpus.words))


def _positive(total: int) -> int:
    if total <= 0:
        raise ParameterError(
            "the corpus of the word counts is empty", where="counts", expected="at least one token", got=str(total)
        )
    return total
