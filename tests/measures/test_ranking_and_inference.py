"""Average precision and thresholded F1 against scikit-learn and counting by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve

from sentfold.measures.base.case import Case
from sentfold.measures.inference import NEUTRAL, THRESHOLDS, Settings, best_f1, mean_f1, score
from sentfold.measures.ranking import average_precisions


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_average_precision_is_scikit_learns_where_no_values_are_equal(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.permutation(3 * size).astype(float)
    relevant = rng.integers(0, 2, 3 * size)
    queries = [f"q{row % 3}" for row in range(3 * size)]
    found = average_precisions(queries, values, relevant, [str(row) for row in range(3 * size)])
    for number in range(3):
        rows = np.arange(number, 3 * size, 3)
        wanted = average_precision_score(relevant[rows], values[rows]) if relevant[rows].any() else 0.0
        np.testing.assert_allclose(found[number], wanted, atol=1e-12)


def test_a_query_without_a_relevant_candidate_counts_as_zero() -> None:
    found = average_precisions(["a", "b", "a", "b"], np.array([2.0, 1, 1, 2]), np.array([0, 0, 1, 0]), list("wxyz"))
    assert found.tolist() == [0.5, 0.0]


def test_equal_values_are_ordered_by_name_and_not_by_the_order_of_the_file() -> None:
    # The file lists candidates as the search engine ranked them: its order must not leak into ours.
    level, relevant = np.zeros(2), np.array([1, 0])
    assert average_precisions(["q", "q"], level, relevant, ["b", "a"]).tolist() == [0.5]
    assert average_precisions(["q", "q"], level, relevant, ["a", "b"]).tolist() == [1.0]


def pairs_of(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    entailed = rng.random(80) < rng.uniform(0.2, 0.8)
    cosine = np.clip(0.4 + 0.3 * entailed + 0.3 * rng.standard_normal(80), -1, 1).round(rng.integers(1, 4))
    return cosine, entailed, rng.multinomial(80, np.full(80, 1 / 80), size=3).astype(float)


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=10)
def test_both_f1_scores_are_scikit_learns_on_the_resample_written_out(seed: int) -> None:
    cosine, entailed, weights = pairs_of(seed)
    best, threshold = best_f1(cosine, entailed, weights)
    mean = mean_f1(cosine, entailed, weights)
    for row, weight in enumerate(weights):
        drawn = np.repeat(np.arange(80), weight.astype(int))
        gold, value = entailed[drawn], cosine[drawn]
        # One label for each threshold: scikit-learn scores all of them in one call.
        at = value[:, np.newaxis] >= np.asarray(THRESHOLDS)
        each = f1_score(np.broadcast_to(gold[:, np.newaxis], at.shape), at, average=None, zero_division=0)
        np.testing.assert_allclose(mean[row], np.mean(each), atol=1e-12)
        precision, recall, _ = precision_recall_curve(gold, value)
        curve = 2 * precision * recall / np.where(precision + recall > 0, precision + recall, 1)
        np.testing.assert_allclose(best[row], curve.max(), atol=1e-12)
        np.testing.assert_allclose(f1_score(gold, value >= threshold[row]), best[row], atol=1e-12)


def test_the_mean_f1_rewards_cosines_that_are_all_large() -> None:
    # Half of the pairs are entailed: calling all of them entailed has 2 pi / (1 + pi) = 2/3 at every threshold.
    entailed = np.arange(100) % 2 == 0
    useless = mean_f1(np.full(100, 0.995), entailed, np.ones((1, 100)))
    perfect = mean_f1(np.where(entailed, 0.6, 0.4), entailed, np.ones((1, 100)))
    np.testing.assert_allclose(useless, 2 / 3)
    assert perfect < useless
    assert best_f1(np.where(entailed, 0.6, 0.4), entailed, np.ones((1, 100)))[0] == 1.0


def test_neutral_pairs_alone_have_no_score_and_a_reason() -> None:
    items = {"row1": [0, 1], "row2": [1, 0], "label": [NEUTRAL, NEUTRAL]}
    got = score(Case("c", "inference", items, {"resample": "items"}, np.eye(2, dtype=np.float32)), Settings())
    assert got.scores == {"best-f1.cosine": None, "mean-f1.cosine": None}
    assert set(got.reasons) == set(got.scores)
