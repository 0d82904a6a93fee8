"""Reconstruction weights against their optimality conditions, closed forms and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group
from sklearn.manifold import _locally_linear as sklearn_lle

from sentfold.errors import ParameterError
from sentfold.manifold.weights.weights import barycentric_weights, solve_weights
from sentfold.neighbors.neighbors import nearest_among, nearest_neighbors

seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds, k=st.integers(1, 13), d=st.integers(1, 40), reg=st.sampled_from([1e-3, 0.1, 1.0]))
@settings(deadline=None, max_examples=50)
def test_weights_satisfy_the_lagrange_conditions_of_their_minimum(seed: int, k: int, d: int, reg: float) -> None:
    # Minimising w^T (G + R I) w under sum w = 1 makes (G + R I) w constant over the neighbours.
    x = np.random.default_rng(seed).standard_normal((30, d))
    neighbors = nearest_neighbors(x, k).indices
    weights = solve_weights(x, neighbors, regularization=reg, block=7)
    for row in range(30):
        difference = x[neighbors[row]] - x[row]
        gram = difference @ difference.T
        gradient = (gram + np.eye(k) * reg * np.trace(gram)) @ weights.values[row]
        # The solve is backward stable; its error grows with the condition number, at most (1 + reg) / reg * k.
        np.testing.assert_allclose(gradient, gradient.mean(), rtol=1e-9, atol=1e-9 * np.trace(gram))
        # The error is a sum of squares: relative to the largest term it is exact to rounding.
        rebuilt = weights.values[row] @ difference
        np.testing.assert_allclose(weights.error[row], rebuilt @ rebuilt, rtol=1e-9, atol=1e-25 * np.trace(gram))
    np.testing.assert_allclose(weights.values.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 10, 31])
def test_weights_equal_those_of_scikit_learn(k: int) -> None:
    x = np.random.default_rng(0).standard_normal((200, 25))
    neighbors = nearest_neighbors(x, k).indices
    theirs = sklearn_lle.barycenter_weights(x, x, neighbors, reg=1e-3)
    np.testing.assert_allclose(solve_weights(x, neighbors, regularization=1e-3).values, theirs, atol=1e-10)


def test_weights_of_points_outside_equal_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    x, queries = rng.standard_normal((200, 9)), rng.standard_normal((77, 9))
    neighbors = nearest_among(queries, x, 12).indices
    theirs = sklearn_lle.barycenter_weights(queries, x, neighbors, reg=1e-3)
    ours = barycentric_weights(queries, x, neighbors, regularization=1e-3, block=10)
    np.testing.assert_allclose(ours.values, theirs, atol=1e-10)
    rebuilt = np.einsum("qk,qkd->qd", theirs, x[neighbors])
    np.testing.assert_allclose(ours.error, np.square(rebuilt - queries).sum(axis=1), atol=1e-9)


@given(seed=seeds, reg=st.sampled_from([1e-6, 1e-3, 1.0]))
@settings(deadline=None, max_examples=50)
def test_two_neighbors_have_the_weights_of_the_closed_form(seed: int, reg: float) -> None:
    # Gram [[a, b], [b, c]] and R = reg (a + c): w is proportional to (c + R - b, a + R - b).
    x = np.random.default_rng(seed).standard_normal((3, 4))
    weights = solve_weights(x, np.array([[1, 2], [0, 2], [0, 1]]), regularization=reg).values[0]
    first, second = x[1] - x[0], x[2] - x[0]
    a, b, c = first @ first, first @ second, second @ second
    added = reg * (a + c)
    expected = np.array([c + added - b, a + added - b])
    np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-8, atol=1e-12)


@given(seed=seeds, k=st.integers(2, 9))
@settings(deadline=None, max_examples=50)
def test_a_point_in_the_affine_hull_of_its_neighbors_is_rebuilt(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    corners, coordinates = rng.standard_normal((k, 12)), rng.dirichlet(np.ones(k))
    spread = np.linalg.svd(corners - coordinates @ corners, compute_uv=False)
    assume(spread[k - 2] > 0.1)  # k points span k - 1 dimensions, by how much the weights are determined
    weights = barycentric_weights(
        (coordinates @ corners)[None], corners, np.arange(k)[None], regularization=1e-13, block=1
    )
    # The minimum moves by R over the smallest square spread, times k; rounding of the Gram matrix adds as much.
    np.testing.assert_allclose(weights.values[0], coordinates, atol=1e-9)
    assert weights.error[0] < 1e-18


@given(seed=seeds, scale=st.sampled_from([1e-3, 1.0, 1e4]), shift=st.sampled_from([0.0, 1.0, 10.0]))
@settings(deadline=None, max_examples=30)
def test_weights_do_not_change_under_scaling_translation_and_rotation(seed: int, scale: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 6))
    moved = scale * (x @ ortho_group(6, seed=rng).rvs() + shift * rng.standard_normal(6))
    neighbors = nearest_neighbors(x, 8).indices
    plain, turned = (solve_weights(points, neighbors, regularization=1e-2).values for points in (x, moved))
    # The moved points are rounded to 1e-15 of their length; the condition number is at most 8 / 1e-2.
    np.testing.assert_allclose(turned, plain, atol=1e-10)


def test_float32_input_gives_the_weights_of_the_same_numbers_in_float64() -> None:
    x = np.random.default_rng(3).standard_normal((100, 50)).astype(np.float32)
    neighbors = nearest_neighbors(x, 9).indices
    single, double = (solve_weights(points, neighbors, regularization=1e-3) for points in (x, x.astype(np.float64)))
    np.testing.assert_array_equal(single.values, double.values)
    np.testing.assert_array_equal(single.error, double.error)


def test_a_sentence_equal_to_all_its_neighbors_gets_equal_weights_and_is_named() -> None:
    x = np.vstack([np.ones((4, 3)), np.random.default_rng(0).standard_normal((6, 3))])
    neighbors = nearest_neighbors(x, 3).indices
    weights = solve_weights(x, neighbors, regularization=1e-3)
    np.testing.assert_array_equal(weights.degenerate, [0, 1, 2, 3])
    np.testing.assert_allclose(weights.values[:4], 1 / 3)
    np.testing.assert_array_equal(weights.error[:4], 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbors_that_differ_by_rounding_alone_are_as_good_as_equal(dtype: type[np.floating]) -> None:
    x = np.ones((4, 64), dtype=dtype)
    x[1, 0] = np.nextafter(x[1, 0], dtype(2))  # half an ulp of the whole vector: rounding
    x[3] += 64 * np.finfo(dtype).eps  # a difference that no rounding makes
    neighbors = np.array([[1, 2], [0, 2], [0, 1], [0, 1]])
    assert solve_weights(x, neighbors, regularization=1e-3).degenerate.tolist() == [0, 1, 2]


def test_more_neighbors_than_dimensions_are_handled_by_the_regularisation() -> None:
    x = np.random.default_rng(1).standard_normal((60, 2))
    weights = solve_weights(x, nearest_neighbors(x, 20).indices, regularization=1e-3)
    assert np.isfinite(weights.values).all()
    assert weights.repaired == 0


@pytest.mark.parametrize("d", [2, 6, 40])
@pytest.mark.parametrize("reg", [1e-16, 1e-30, 1e-300])
def test_a_regularisation_below_rounding_is_repaired_and_gives_the_limit_of_small_ones(reg: float, d: int) -> None:
    x = np.random.default_rng(4).standard_normal((50, d))
    x[1::2] = x[::2]  # twins, so that the Gram matrix is singular in any dimension
    neighbors = nearest_neighbors(x, 6).indices
    weights = solve_weights(x, neighbors, regularization=reg)
    np.testing.assert_allclose(weights.values.sum(axis=1), 1.0, atol=1e-12)
    assert weights.repaired == 50
    # 1e-9 is already within 1e-6 of the limit and needs no repair.
    limit = solve_weights(x, neighbors, regularization=1e-9)
    assert limit.repaired == 0
    np.testing.assert_allclose(weights.values, limit.values, atol=1e-4)


@pytest.mark.parametrize("reg", [1e-9, 1e-30])
def test_two_copies_of_one_neighbor_share_its_weight(reg: float) -> None:
    corners = np.random.default_rng(5).standard_normal((4, 7))
    query = corners.mean(axis=0)[None] + 0.5
    four = barycentric_weights(query, corners, np.array([[0, 1, 2, 3]]), regularization=1e-9).values[0]
    five = barycentric_weights(query, corners[[0, 1, 2, 3, 3]], np.array([[0, 1, 2, 3, 4]]), regularization=reg)
    assert five.repaired == (reg < 1e-16)
    np.testing.assert_allclose(five.values[0], [*four[:3], four[3] / 2, four[3] / 2], atol=1e-6)


def test_weights_do_not_depend_on_blocks_or_workers() -> None:
    x = np.random.default_rng(2).standard_normal((333, 12)).astype(np.float32)
    neighbors = nearest_neighbors(x, 8).indices
    one = solve_weights(x, neighbors, regularization=1e-3, block=333, workers=1)
    other = solve_weights(x, neighbors, regularization=1e-3, block=10, workers=2)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.error, other.error)


@pytest.mark.parametrize("reg", [0.0, -1.0, np.nan, np.inf])
def test_a_regularisation_that_is_not_positive_is_refused(reg: float) -> None:
    with pytest.raises(ParameterError, match="regularisation"):
        solve_weights(np.eye(4), np.array([[1], [0], [0], [0]]), regularization=reg)


@pytest.mark.parametrize("neighbor", [-1, 4])
def test_a_neighbor_that_is_no_row_is_refused_by_the_row_that_names_it(neighbor: int) -> None:
    with pytest.raises(ParameterError) as error:
        solve_weights(np.eye(4), np.array([[1], [0], [neighbor], [0]]), regularization=1e-3)
    assert "row 2" in error.value.where


def test_vectors_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ParameterError, match="not finite"):
        solve_weights(np.full((3, 2), np.nan), np.array([[1], [0], [0]]), regularization=1e-3)


@pytest.mark.parametrize("neighbors", [[[1.0], [0.0], [np.nan], [0.0]], [[1.5], [0.0], [1.0], [0.0]], [1, 0, 1, 0]])
def test_neighbors_that_are_no_integers_are_refused(neighbors: list[list[float]]) -> None:
    with pytest.raises(ParameterError, match="neighbours do not fit"):
        solve_weights(np.eye(4), np.array(neighbors), regularization=1e-3)


def test_queries_of_another_dimension_than_the_vectors_are_refused() -> None:
    for width in (2, 9):
        with pytest.raises(ParameterError, match="another dimension"):
            barycentric_weights(np.ones((3, width)), np.ones((6, 4)), np.zeros((3, 2), np.int64), regularization=1e-3)
