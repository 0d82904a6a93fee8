"""Counts: the papers' probabilities and weights, by hand and by their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentfold.errors import ParameterError
from sentfold.words.counts import (
    FrequencyWeights,
    InverseWeights,
    SifWeights,
    UniformWeights,
    WordCounts,
    laplace_probabilities,
    sif_weights,
    unigram_probabilities,
    word_weights,
)

CORPUS = WordCounts(("the", "dog", "naps"), np.array([6, 3, 1]))


def test_a_word_that_was_not_counted_has_count_zero() -> None:
    assert CORPUS.of(["naps", "cat", "the"]).tolist() == [1, 0, 6]
    assert CORPUS.total == 10


def test_weights_are_those_of_the_papers() -> None:
    words = ["the", "naps", "cat"]
    np.testing.assert_allclose(
        word_weights(words, CORPUS, SifWeights(rule="sif", a=0.1)), [0.1 / 0.7, 0.1 / 0.2, 1.0], rtol=1e-15
    )
    # Laplace: (1 + count) / (10 tokens + 3 types).
    np.testing.assert_allclose(
        word_weights(words, CORPUS, InverseWeights(rule="inverse")), [13 / 7, 13 / 2, 13.0], rtol=1e-15
    )
    assert word_weights(words, None, UniformWeights(rule="uniform")).tolist() == [1, 1, 1]
    assert word_weights(words[:2], CORPUS, FrequencyWeights(rule="frequency")).tolist() == [6, 1]


def test_the_known_weight_of_the_in_english_wikipedia() -> None:
    # The head of the published file: "the" 238,473,164 of 3,484,135,472 tokens would weigh 0.0144 at a = 0.001.
    p = unigram_probabilities(np.array([238_473_164]), total=3_484_135_472)
    assert float(sif_weights(p, a=1e-3)[0]) == pytest.approx(1e-3 / (1e-3 + 0.0684454), rel=1e-5)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_laplace_probabilities_of_all_words_sum_to_one(counts: list[int]) -> None:
    array = np.array(counts)
    p = laplace_probabilities(array, total=int(array.sum()), types=len(counts))
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    assert (p > 0).all()


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20, unique=True), st.floats(1e-6, 1))
def test_a_rarer_word_never_weighs_less(p: list[float], a: float) -> None:
    weights = sif_weights(np.sort(np.array(p)), a=a)
    assert (np.diff(weights) <= 0).all()
    assert (weights > 0).all() and (weights <= 1).all()


def test_an_empty_corpus_gives_no_probability() -> None:
    empty = WordCounts((), np.zeros(0, dtype=np.int64))
    for rule in (SifWeights(rule="sif", a=0.1), InverseWeights(rule="inverse")):
        with pytest.raises(ParameterError, match="empty"):
            word_weights(["a"], empty, rule)
    with pytest.raises(ParameterError, match="need word counts"):
        word_weights(["a"], None, SifWeights(rule="sif", a=0.1))


def test_the_total_of_many_large_counts_is_theirs_and_not_what_is_left_of_it_in_64_bits() -> None:
    corpus = WordCounts(tuple(map(str, range(3000))), np.full(3000, 2**53))
    assert corpus.total == 3000 * 2**53 > 2**63
    weights = word_weights(["7"], corpus, SifWeights(rule="sif", a=0.1))
    np.testing.assert_allclose(weights, 0.1 / (0.1 + 1 / 3000))
    np.testing.assert_allclose(word_weights(["7"], corpus, InverseWeights(rule="inverse")), 3000)
