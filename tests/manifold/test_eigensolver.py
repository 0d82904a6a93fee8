"""Bottom eigenvectors against dense eigh, scikit-learn, and spectra known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.manifold import LocallyLinearEmbedding

from pipeline.errors import ParameterError
from pipeline.manifold import eigensolver
from pipeline.manifold.chebyshev import Filter, Operator
from pipeline.manifold.eigensolver import bottom_eigenvectors, canonical_signs, smallest_outside, weight_matrix
from pipeline.manifold.neighbors import nearest_neighbors
from pipeline.manifold.spectrum import closed_classes
from pipeline.manifold.weights import solve_weights


def lle_weights(x: np.ndarray, k: int, reg: float = 1e-3) -> sp.csr_array:
    neighbors = nearest_neighbors(x, k).indices
    return weight_matrix(neighbors, solve_weights(x, neighbors, regularization=reg).values)


def dense_spectrum(weights: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    difference = np.eye(weights.shape[0]) - weights.toarray()
    values, vectors = np.linalg.eigh(difference.T @ difference)
    return values, vectors


def largest_sine(a: np.ndarray, b: np.ndarray) -> float:
    """Sine of the largest principal angle, by the residual, which is exact for small angles."""
    return float(np.linalg.norm(a - b @ (b.T @ a), 2))


@pytest.fixture(scope="module")
def clustered() -> np.ndarray:
    """Unit vectors in groups, like sentences: 700 points of 40 dimensions."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((35, 40))[rng.integers(0, 35, 700)] + 1.1 * rng.standard_normal((700, 40))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(("k", "p"), [(12, 5), (30, 60), (30, 300), (60, 600)])
def test_eigenvalues_and_subspace_equal_dense_eigh(clustered: np.ndarray, k: int, p: int) -> None:
    weights = lle_weights(clustered, k)
    values, vectors = dense_spectrum(weights)
    pairs = bottom_eigenvectors(weights, p, seed=0)
    null = int((values <= 1e-10).sum())
    assert pairs.nullity == null
    np.testing.assert_allclose(pairs.values, values[null : null + p], atol=1e-8)
    assert largest_sine(pairs.vectors, vectors[:, null : null + p]) < 1e-6
    assert pairs.residuals.max() < 1e-8
    assert pairs.orthogonality < 1e-12


def test_the_space_equals_scikit_learns_up_to_sign(clustered: np.ndarray) -> None:
    x = clustered.astype(np.float64)
    theirs = LocallyLinearEmbedding(
        n_neighbors=20, n_components=30, reg=1e-3, eigen_solver="dense", neighbors_algorithm="brute"
    ).fit_transform(x)
    pairs = bottom_eigenvectors(lle_weights(x, 20), 30, seed=0)
    assert pairs.nullity == 1
    # scikit-learn leaves the sign of each column to LAPACK; single vectors need the gaps, here > 1e-4.
    np.testing.assert_allclose(pairs.vectors, canonical_signs(theirs), atol=1e-6)


def test_a_smaller_p_is_a_prefix_of_a_larger_one(clustered: np.ndarray) -> None:
    weights = lle_weights(clustered, 25)
    small, large = (bottom_eigenvectors(weights, p, seed=0) for p in (10, 40))
    np.testing.assert_allclose(small.values, large.values[:10], atol=1e-12)
    np.testing.assert_allclose(small.vectors, large.vectors[:, :10], atol=1e-7)


def test_every_null_vector_is_skipped_when_the_graph_falls_apart() -> None:
    rng = np.random.default_rng(1)
    islands = [rng.standard_normal((60, 10)) + 100 * i for i in range(4)]
    weights = lle_weights(np.vstack(islands), 8)
    pairs = bottom_eigenvectors(weights, 20, seed=0)
    values, _ = dense_spectrum(weights)
    assert pairs.nullity == 4 == int((values <= 1e-10).sum())
    np.testing.assert_allclose(pairs.values, values[4:24], atol=1e-8)
    # A null vector is constant on each island; a kept one is orthogonal to all of those.
    indicator = np.kron(np.eye(4), np.ones((60, 1))) / np.sqrt(60)
    assert np.abs(indicator.T @ pairs.vectors).max() < 1e-6


def test_more_null_vectors_than_components_of_the_graph_are_found_by_eigenvalue() -> None:
    # Twins rebuild each other exactly when the regularisation is tiny, though the graph is connected.
    rng = np.random.default_rng(2)
    x = rng.standard_normal((120, 6))
    twins = np.vstack([x, x[:30]])
    neighbors = nearest_neighbors(twins, 6).indices
    values = solve_weights(twins, neighbors, regularization=1e-13).values
    weights = weight_matrix(neighbors, values)
    dense, _ = dense_spectrum(weights)
    components = sp.csgraph.connected_components(weights, directed=False)[0]
    nullity = int((dense <= 1e-10).sum())
    assert nullity > components + 10
    pairs = bottom_eigenvectors(weights, 15, seed=0)
    assert pairs.nullity == nullity
    np.testing.assert_allclose(pairs.values, dense[nullity : nullity + 15], atol=1e-8)


def test_the_ring_has_its_closed_form_spectrum_with_every_double_eigenvalue() -> None:
    # On a ring of n points with weights 1/2 to both sides, I - W is circulant with eigenvalues
    # 1 - cos(2 pi j / n), each twice but for j = 0; M has their squares.
    n, p = 401, 40
    rows = np.arange(n)
    weights = weight_matrix(np.column_stack([(rows - 1) % n, (rows + 1) % n]), np.full((n, 2), 0.5))
    pairs = bottom_eigenvectors(weights, p, seed=3)
    frequencies = np.repeat(np.arange(1, p // 2 + 1), 2)
    # The smallest is 1.5e-8, above the null tolerance of 1e-10.
    np.testing.assert_allclose(pairs.values, (1 - np.cos(2 * np.pi * frequencies / n)) ** 2, atol=1e-12)
    assert pairs.nullity == 1


@given(seed=st.integers(0, 2**31), n=st.integers(12, 60), data=st.data())
@settings(deadline=None, max_examples=25)
def test_small_random_problems_agree_with_dense_eigh(seed: int, n: int, data: st.DataObject) -> None:
    x = np.random.default_rng(seed).standard_normal((n, 3))
    weights = lle_weights(x, data.draw(st.integers(4, 8)))
    values, _ = dense_spectrum(weights)
    null = int((values <= 1e-10).sum())
    p = data.draw(st.integers(1, n - 2 - null))
    pairs = bottom_eigenvectors(weights, p, seed=0)
    # An eigenvalue within rounding of the tolerance may fall on either side of it.
    if not ((values > 1e-11) & (values < 1e-9)).any():
        assert pairs.nullity == null
        np.testing.assert_allclose(pairs.values, values[null : null + p], atol=1e-8)


def test_the_same_seed_gives_the_same_bits_and_another_seed_the_same_space(clustered: np.ndarray) -> None:
    weights = lle_weights(clustered, 20)
    first, second, other = (bottom_eigenvectors(weights, 20, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert largest_sine(first.vectors, other.vectors) < 1e-6


def test_a_cut_that_is_far_too_low_is_noticed_and_mended(
    clustered: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = lle_weights(clustered, 20)
    values, _ = dense_spectrum(weights)
    monkeypatch.setattr(eigensolver, "cut_above", lambda density, count, largest: float(values[10]))
    pairs = bottom_eigenvectors(weights, 30, seed=0)
    np.testing.assert_allclose(pairs.values, values[1:31], atol=1e-8)


def test_an_omitted_vector_is_noticed(clustered: np.ndarray) -> None:
    weights = lle_weights(clustered, 20)
    values, vectors = dense_spectrum(weights)
    operator, rng = Operator.from_weights(weights), np.random.default_rng(0)
    chosen = Filter(float(values[60]), float(values[-1]) * 1.01, 12)
    without = np.delete(np.arange(40), 17)
    np.testing.assert_allclose(smallest_outside(operator, vectors[:, without], chosen, rng), values[17], rtol=1e-2)
    assert smallest_outside(operator, vectors[:, :40], chosen, rng) >= values[39]


def test_an_omitted_vector_is_noticed_even_when_it_is_the_only_one_left(clustered: np.ndarray) -> None:
    weights = lle_weights(clustered[:40], 8)
    values, vectors = dense_spectrum(weights)
    operator, chosen = Operator.from_weights(weights), Filter.for_cut(float(values[-1]), float(values[-1]))
    without = np.delete(np.arange(40), 17)
    left = smallest_outside(operator, vectors[:, without], chosen, np.random.default_rng(0))
    np.testing.assert_allclose(left, values[17], atol=1e-9)


@pytest.mark.parametrize(("islands", "size", "p"), [(8, 40, 2), (15, 40, 2), (30, 6, 2), (60, 6, 5), (100, 6, 2)])
def test_far_more_null_vectors_than_wanted_ones_are_all_skipped(islands: int, size: int, p: int) -> None:
    rng = np.random.default_rng(5)
    blocks = []
    for _ in range(islands):
        block = rng.random((size, size)) * (1 - np.eye(size))
        blocks.append(block / block.sum(axis=1, keepdims=True))
    weights = sp.csr_array(sp.block_diag(blocks))
    assert closed_classes(weights) == islands
    values, _ = dense_spectrum(weights)
    pairs = bottom_eigenvectors(weights, p, seed=0)
    assert pairs.nullity == islands
    np.testing.assert_allclose(pairs.values, values[islands : islands + p], atol=1e-8)


def test_a_residual_tolerance_that_leaves_the_null_space_open_is_refused(clustered: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="null"):
        bottom_eigenvectors(lle_weights(clustered, 5), 3, seed=0, null_tolerance=1e-10, residual_tolerance=1e-8)


@pytest.mark.parametrize("p", [0, 699, 700])
def test_p_outside_the_data_is_refused_with_the_range(clustered: np.ndarray, p: int) -> None:
    with pytest.raises(ParameterError) as error:
        bottom_eigenvectors(lle_weights(clustered, 5), p, seed=0)
    assert "n - 2 = 698" in error.value.expected


def test_no_dense_square_matrix_is_formed() -> None:
    # 6,000 sentences: one n x n float64 matrix would take 275 MiB; all allocations together stay far below.
    import tracemalloc

    x = np.random.default_rng(0).standard_normal((6000, 16)).astype(np.float32)
    tracemalloc.start()
    bottom_eigenvectors(lle_weights(x, 10), 16, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 2**20


def test_signs_make_the_entry_of_largest_modulus_positive() -> None:
    vectors = np.array([[0.1, -0.2], [-0.9, 0.3]])
    np.testing.assert_array_equal(canonical_signs(vectors), [[-0.1, -0.2], [0.9, 0.3]])
