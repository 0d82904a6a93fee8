"""The trained head: its targets, its optimum against scikit-learn, and what has no part in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr
from sklearn.linear_model import LogisticRegression

from sentfold.errors import ParameterError
from sentfold.measures.base.case import Case
from sentfold.measures.similarity import Settings, expected_values, score_head, spread_over_bins, train_head

BINS = np.arange(6.0)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=20))
def test_a_score_is_spread_over_two_whole_numbers_whose_mean_it_is(scores: list[float]) -> None:
    shares = spread_over_bins(np.array(scores), BINS)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares @ BINS, scores, atol=1e-14)
    assert ((shares > 0).sum(axis=1) <= 2).all()


def test_the_expected_value_of_a_flat_softmax_is_the_middle_of_the_scale() -> None:
    np.testing.assert_allclose(expected_values(np.zeros((2, 3, 6)), BINS), 2.5)


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((400, 10)).astype(np.float32)
    human = np.clip(2.5 + x[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(400), 0, 5)
    return x, human, ["train"] * 240 + ["dev"] * 60 + ["test"] * 100


def test_the_head_is_scikit_learns_softmax_on_examples_weighted_by_their_shares() -> None:
    x, human, splits = problem()
    head = train_head(x, human, splits, strengths=[1.0])
    shares = spread_over_bins(human[:240], BINS)
    rows, bins = np.nonzero(shares)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    theirs.fit(x[rows].astype(float), bins, sample_weight=shares[rows, bins])
    wanted = theirs.predict_proba(x[300:].astype(float)) @ theirs.classes_
    np.testing.assert_allclose(head.values, wanted, atol=1e-3)
    assert pearsonr(head.values, human[300:]).statistic > 0.8


def test_neither_the_test_scores_nor_for_one_strength_the_dev_scores_have_a_part_in_it() -> None:
    x, human, splits = problem(1)
    other = human.copy()
    other[300:] = other[300:][::-1]
    first, second = (train_head(x, scores, splits, strengths=[0.25, 1.0, 8.0]) for scores in (human, other))
    assert first.strength == second.strength
    np.testing.assert_array_equal(first.values, second.values)
    other[240:300] = 5 - other[240:300]
    alone, changed = (train_head(x, scores, splits, strengths=[1.0]) for scores in (human, other))
    np.testing.assert_array_equal(alone.values, changed.values)


def test_a_scale_of_more_than_a_thousand_whole_numbers_is_refused_before_its_bins_are_made() -> None:
    x, human, splits = problem()
    with pytest.raises(ParameterError, match="too long for a trained head"):
        train_head(x, human * 1e9, splits, strengths=[1.0])


@pytest.mark.parametrize("lacking", ["train", "dev"])
def test_a_head_without_pairs_to_learn_or_to_choose_from_is_refused(lacking: str) -> None:
    x, human, splits = problem()
    with pytest.raises(ParameterError, match="train and of dev"):
        train_head(x, human, [split.replace(lacking, "other") for split in splits], strengths=[1.0])


def test_test_pairs_of_one_human_score_have_no_score_of_the_head() -> None:
    vectors = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
    rows = {"row1": list(range(0, 40, 2)), "row2": list(range(1, 40, 2))}
    tested = {**rows, "score": [3.0] * 20, "subset": [""] * 20, "split": ["test"] * 20}
    known = {name: values * 2 for name, values in rows.items()}
    known |= {"score": [*range(5)] * 4 + [3.0] * 20, "split": ["train"] * 15 + ["dev"] * 5 + ["test"] * 20}
    pool = Case("pool", "regression", known, {}, vectors)
    case = Case("pairs", "similarity", tested, {"resample": "items"}, vectors, training=pool)
    scores = score_head(case, Settings(resamples=100)).scores
    assert scores == {"pearson.trained-head": None, "spearman.trained-head": None}
