"""Reconstruction weights against their optimality conditions and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.manifold import _locally_linear as sklearn_lle

from pipeline.errors import ParameterError
from pipeline.manifold.neighbors import nearest_neighbors
from pipeline.manifold.weights import solve_weights


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 12), d=st.integers(1, 8), reg=st.sampled_from([1e-3, 0.1, 1.0]))
@settings(deadline=None, max_examples=50)
def test_weights_satisfy_the_lagrange_conditions_of_their_minimum(seed: int, k: int, d: int, reg: float) -> None:
    # Minimising w^T (G + R I) w under sum w = 1 makes (G + R I) w constant over the neighbours.
    x = np.random.default_rng(seed).standard_normal((30, d))
    neighbors = nearest_neighbors(x, k).indices
    weights = solve_weights(x, neighbors, regularization=reg, block=7).values
    for row in range(30):
        difference = x[neighbors[row]] - x[row]
        gram = difference @ difference.T
        gram += np.eye(k) * reg * np.trace(gram)
        gradient = gram @ weights[row]
        # The solve is backward stable; its error grows with the condition number, at most (1 + reg) / reg * k.
        np.testing.assert_allclose(gradient, gradient.mean(), rtol=1e-9, atol=1e-9 * np.trace(gram))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)


def test_weights_equal_those_of_scikit_learn() -> None:
    x = np.random.default_rng(0).standard_normal((200, 25))
    neighbors = nearest_neighbors(x, 10).indices
    theirs = sklearn_lle.barycenter_weights(x, x, neighbors, reg=1e-3)
    np.testing.assert_allclose(solve_weights(x, neighbors, regularization=1e-3).values, theirs, atol=1e-10)


def test_a_point_inside_a_simplex_gets_its_barycentric_coordinates() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    coordinates = np.array([0.2, 0.5, 0.3])
    x = np.vstack([coordinates @ corners, corners])
    neighbors = np.array([[1, 2, 3], [2, 3, 0], [1, 3, 0], [1, 2, 0]])
    weights = solve_weights(x, neighbors, regularization=1e-12)
    np.testing.assert_allclose(weights.values[0], coordinates, atol=1e-9)
    assert weights.error[0] < 1e-18


def test_a_sentence_equal_to_all_its_neighbors_gets_equal_weights_and_is_named() -> None:
    x = np.vstack([np.ones((4, 3)), np.random.default_rng(0).standard_normal((6, 3))])
    neighbors = nearest_neighbors(x, 3).indices
    weights = solve_weights(x, neighbors, regularization=1e-3)
    np.testing.assert_array_equal(weights.degenerate, [0, 1, 2, 3])
    np.testing.assert_allclose(weights.values[:4], 1 / 3)


def test_more_neighbors_than_dimensions_are_handled_by_the_regularisation() -> None:
    x = np.random.default_rng(1).standard_normal((60, 2))
    weights = solve_weights(x, nearest_neighbors(x, 20).indices, regularization=1e-3)
    assert np.isfinite(weights.values).all()


def test_weights_do_not_depend_on_blocks_or_workers() -> None:
    x = np.random.default_rng(2).standard_normal((333, 12))
    neighbors = nearest_neighbors(x, 8).indices
    one = solve_weights(x, neighbors, regularization=1e-3, block=333, workers=1).values
    other = solve_weights(x, neighbors, regularization=1e-3, block=10, workers=2).values
    np.testing.assert_array_equal(one, other)


def test_a_regularisation_of_zero_is_refused() -> None:
    with pytest.raises(ParameterError, match="regularisation"):
        solve_weights(np.eye(4), np.array([[1], [0], [0], [0]]), regularization=0.0)
