"""Unsupervised smooth inverse frequency (uSIF): SIF without a free parameter.

Source: Ethayarajh 2018, "Unsupervised random walk sentence embeddings", RepL4NLP, doi:10.18653/v1/W18-3012.

published  directions are exact; a sentence without words has the zero vector; the counts of words that differ only
           in case are added
released   directions come from the randomised solver with 5 iterations; in the vector of a sentence without words
           every entry is a, and the fit uses this vector (its dimension is 300 in the released code, here the
           dimension of the words); of words that differ only in case, the last count is used; tokens are cleaned
           as in the authors' code, with any tokeniser
In both variants each *dimension* is divided by its norm over the words of the sentence, as in the released code; a
dimension that is 0 in all words stays 0 (the released code divides 0 by 0). If no word is so frequent that it is
likely to occur by chance, every word has the weight 2 (the released code divides by 0).
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
from sentfold.words.counts import WordCounts
from sentfold.words.tokenizers import TokenizerName, clean_usif

Float64 = npt.NDArray[np.float64]
RELEASED_ITERATIONS = 5

TITLE = "uSIF"


class Settings(WordSettings):
    """length: n, expected number of words in a sentence; components: m, number of directions to weaken, 0 for none."""

    length: int = Field(default=11, ge=1)
    components: int = Field(default=5, ge=0)
    tokenizer: TokenizerName = "treebank"


class USIF(WordEstimator):
    """uSIF as an estimator for your own sentences: construct, fit, encode. See WordEstimator."""

    method = "usif"


def build(lexicon: Lexicon, settings: Settings) -> Encoder:
    """v_s = mean_i a / (a/2 + p(w_i)) v~(w_i), minus lambda_j (v_s . u_j) u_j for the first m directions."""
    lexicon = settings_lexicon(lexicon, settings)
    counts, total = lower_counts(lexicon.counts, add=not settings.released), lexicon.counts.total
    a = find_a(counts, total=total, length=settings.length)
    known = counts.of([word.lower() for word in lexicon.words])
    # A word without a count gets the smallest count of any word.
    rarest = counts.counts.min(initial=np.iinfo(np.int64).max)
    # This form of a / (a/2 + p) has the right limit for an infinite a.
    weights = 1 / (0.5 + np.where(known > 0, known, rarest) / max(total, 1) / a)
    # The authors lower-case after tokenising; the treebank tokeniser and `clean` do the same.
    lower = settings.tokenizer != "treebank" and not settings.released
    return WordEncoder(
        Reader(lexicon, settings.tokenizer, lower=lower, clean=clean if settings.released else None),
        NormalisedMean(lexicon.vectors, weights, a if settings.released and np.isfinite(a) else 0.0, np.isinf(a)),
        choose_removal(
            settings, count=settings.components, default="joint", iterations=RELEASED_ITERATIONS, weighted=True
        ),
    )


def clean(tokens: list[list[str]]) -> list[list[str]]:
    """The released code's cleaning; cleaning the tokens again changes nothing."""
    return [clean_usif(words) for words in tokens]


def lower_counts(counts: WordCounts, *, add: bool) -> WordCounts:
    """Counts of lower-cased words; counts of words that become equal are added, or, without `add`, the last is used."""
    table: dict[str, int] = {}
    for word, count in zip(counts.words, counts.counts.tolist(), strict=True):
        lowered = word.lower()
        table[lowered] = table.get(lowered, 0) + count if add else count
    return WordCounts(tuple(table), np.array(list(table.values()), dtype=np.int64))


def find_a(counts: WordCounts, *, total: int, length: int) -> float:
    """The weight's a = (1 - alpha) / (alpha |V| / 2).

    alpha is the share of counted words with p(w) > 1 - (1 - 1/|V|)^length, the words likely to occur by chance.
    If there is no such word, as in a few sentences, a is infinite and every weight a / (a/2 + p) is 2. The same holds
    if every word is one, as rounding has it for equal counts and length 1: a of 0 would make every weight 0.
    """
    size, alpha = float(len(counts.words)), 0.0
    if total > 0:
        threshold = 1 - (1 - 1 / size) ** length
        alpha = float((counts.counts / total > threshold).sum()) / size
    return (1 - alpha) / (alpha * 0.5 * size) if 0 < alpha < 1 else np.inf


@dataclass(frozen=True)
class NormalisedMean:
    """A Composer: the mean of weight(w_i) v~(w_i), where v~ has each dimension divided by its norm in the sentence.

    vectors  (v, d) float32
    weights  (v,) float64
    nothing  value of every entry in the vector of a sentence without words
    alike    whether all weights are equal because no word is frequent; used only to report such sentences
    Cost O(words d).
    """

    vectors: Vectors
    weights: Float64
    nothing: float
    alike: bool

    @property
    def dimension(self) -> int:
        """The dimension of the words."""
        return int(self.vectors.shape[1])

    def compose(self, words: Ragged, out: Float64) -> Mapping[str, int]:
        """One normalised mean per sentence."""
        _normalised_means(words.ids, words.offsets, self.vectors, self.weights, self.nothing, out)
        return {"words weighed alike, for want of a frequent one": len(words)} if self.alike else {}


@fast
def _normalised_means(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vectors: Vectors,
    weights: Float64,
    nothing: float,
    out: Float64,
) -> None:
    squares = np.empty(out.shape[1])
    for s in range(len(offsets) - 1):
        row = out[s]
        n = offsets[s + 1] - offsets[s]
        if n == 0:
            row[:] = nothing
            continue
        row[:] = 0.0
        squares[:] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            weight = weights[ids[t]]
            vector = vectors[ids[t]]
            for j in range(len(row)):
                x = np.float64(vector[j])
                row[j] += weight * x
                squares[j] += x * x
        for j in range(len(row)):
            row[j] /= n * np.sqrt(squares[j]) if squares[j] > 0 else 1.0
