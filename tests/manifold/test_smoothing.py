"""Smoothing over the neighbour graph: its definition, its limits, and new rows among fitted ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.estimator_checks import parametrize_with_checks

from sentfold.errors import ParameterError
from sentfold.manifold.estimators.linear import GraphSmoothing, nearest_fitted
from sentfold.manifold.smooth import smooth

SMALL_GRIDS = arrays(
    np.float64, st.tuples(st.integers(3, 30), st.integers(1, 3)), elements=st.integers(-2, 2).map(float)
)


def cloud(n: int = 400, d: int = 6, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)) + 5.0


@parametrize_with_checks([GraphSmoothing(), GraphSmoothing(amount=-0.3)])
def test_the_estimator_keeps_every_convention_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("amount", [0.1, 0.6, 1.0, -0.3])
def test_a_row_moves_by_the_amount_towards_the_mean_of_its_neighbors(amount: float) -> None:
    x = cloud()
    neighbors = np.argsort(cdist(x, x) + np.diag(np.full(len(x), np.inf)), axis=1)[:, :7]
    mean = np.array([x[row].mean(axis=0) for row in neighbors])
    smoothed = GraphSmoothing(n_neighbors=7, amount=amount).fit_transform(x)
    np.testing.assert_allclose(smoothed - x, amount * (mean - x), atol=1e-13)


def test_an_amount_of_zero_is_the_identity() -> None:
    model = GraphSmoothing(amount=0).fit(cloud())
    np.testing.assert_array_equal(model.transform(cloud(seed=1)), cloud(seed=1))
    np.testing.assert_array_equal(model.fit_transform(cloud()), cloud())


def test_an_amount_of_one_with_all_others_as_neighbors_is_the_mean_of_the_others() -> None:
    x = cloud(20)
    others = (x.sum(axis=0) - x) / 19
    np.testing.assert_allclose(GraphSmoothing(n_neighbors=19, amount=1.0).fit_transform(x), others, atol=1e-13)


def test_smoothing_brings_neighbors_together_and_sharpening_drives_them_apart() -> None:
    x = cloud()

    def spread(rows: np.ndarray) -> float:
        return float(np.sort(cdist(rows, rows), axis=1)[:, 1:6].mean())

    smoothed, sharpened = (GraphSmoothing(amount=a).fit_transform(x) for a in (0.3, -0.3))
    assert spread(smoothed) < spread(x) < spread(sharpened)


def test_a_rotation_and_a_translation_go_through_smoothing() -> None:
    x = cloud()
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    moved = GraphSmoothing(amount=0.4).fit_transform(x @ rotation + 3.0)
    np.testing.assert_allclose(moved, GraphSmoothing(amount=0.4).fit_transform(x) @ rotation + 3.0, atol=1e-12)


def test_new_rows_take_their_neighbors_from_the_fitted_ones() -> None:
    x, new = cloud(), cloud(300, seed=1)
    neighbors = NearestNeighbors(n_neighbors=4, algorithm="brute").fit(x).kneighbors(new, return_distance=False)
    wanted = 0.7 * new + 0.3 * x[neighbors].mean(axis=1)
    np.testing.assert_allclose(GraphSmoothing(n_neighbors=4, amount=0.3).fit(x).transform(new), wanted, atol=1e-13)


@pytest.mark.slow
@given(x=SMALL_GRIDS, data=st.data())
@settings(deadline=None)
def test_fitted_rows_are_smoothed_alike_when_they_come_back_even_among_twins(
    x: np.ndarray, data: st.DataObject
) -> None:
    # A grid of small whole numbers is full of twins and of ties.
    k = data.draw(st.integers(1, len(x) - 1))
    model = GraphSmoothing(n_neighbors=k, amount=0.5)
    np.testing.assert_allclose(model.fit_transform(x), model.fit(x).transform(x), atol=1e-14)


@given(x=SMALL_GRIDS, data=st.data())
@settings(deadline=None)
def test_ties_among_fitted_rows_are_ordered_by_row(x: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(x) - 1))
    new = x[:2] + 0.5  # off the grid, so that no row is left out
    squared = ((new[:, None] - x[None]) ** 2).sum(axis=2)
    wanted = np.argsort(squared, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(nearest_fitted(new, x, k), wanted)


def test_near_twins_far_from_the_origin_are_told_apart() -> None:
    # Products around 1e12 resolve squared distances to about 1e-4; these differ by 1e-6.
    x = np.full((30, 3), 1e6)
    x[:, 0] += 2.0**-10 * np.arange(30)  # exact, so that 14 and 16 tie
    np.testing.assert_array_equal(nearest_fitted(x[15:16], x, 2), [[14, 16]])


def test_blocks_of_rows_change_nothing_and_the_answer_has_the_type_asked_for() -> None:
    x = cloud(1000).astype(np.float32)
    neighbors = np.random.default_rng(0).integers(0, 1000, (1000, 5))
    whole = 0.9 * x.astype(np.float64) + 0.1 * x.astype(np.float64)[neighbors].mean(axis=1)
    np.testing.assert_allclose(smooth(x, neighbors, amount=0.1), whole, rtol=1e-14)
    assert smooth(x, neighbors, amount=0.1, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("amount", [1.01, float("nan"), float("-inf"), True])
def test_an_amount_that_is_no_step_is_refused(amount: float) -> None:
    with pytest.raises(ParameterError, match="amount"):
        GraphSmoothing(amount=amount).fit(cloud())


def test_more_neighbors_than_there_are_others_are_refused() -> None:
    with pytest.raises(ParameterError, match="1 <= k < n = 10"):
        GraphSmoothing(n_neighbors=10).fit(cloud(10))


def test_neighbors_that_are_no_rows_are_refused_and_not_counted_from_the_end() -> None:
    x = cloud(12)
    for wrong in (np.full((12, 2), -1), np.full((12, 2), 12), np.zeros((5, 2), dtype=int), np.full((12, 2), 0.5)):
        with pytest.raises(ParameterError, match="do not fit the vectors"):
            smooth(x, wrong, amount=0.1)
    assert smooth(x[:3], np.full((3, 2), 11), amount=0.1, pool=x).shape == (3, x.shape[1])
