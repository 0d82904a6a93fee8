"""Bottom eigenvectors against dense eigh, scikit-learn, and spectra known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.manifold import LocallyLinearEmbedding

from sentfold.errors import ParameterError, SolverError
from sentfold.manifold.solver import eigensolver, ordering, product, search
from sentfold.manifold.solver.eigensolver import Eigenpairs, bottom_eigenvectors, canonical_signs, weight_matrix
from sentfold.manifold.solver.krylov import Filter, KrylovSpace
from sentfold.manifold.solver.product import Operator
from sentfold.manifold.solver.ritz import Candidates, Demands, smallest_outside
from sentfold.manifold.solver.search import Search
from sentfold.manifold.solver.spectrum import Spectrum, closed_classes, estimate_spectrum
from sentfold.manifold.weights.weights import solve_weights
from sentfold.neighbors.neighbors import nearest_neighbors


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
    return in_groups(700)


@pytest.fixture(scope="module")
def large() -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Weights of 1,600 such points with hubs among them, and their dense spectrum."""
    x = in_groups(1600)
    # Points near the middle of all others become neighbours of very many.
    x[:20] = x[20:].mean(axis=0) + 0.05 * x[:20]
    weights = lle_weights(x, 20)
    return weights, *dense_spectrum(weights)


def in_groups(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((35, 40))[rng.integers(0, 35, n)] + 1.1 * rng.standard_normal((n, 40))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(autouse=True)
def no_rescue(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the Krylov space cannot do is an error, as it is for many rows."""
    monkeypatch.setattr(eigensolver, "DENSE_AT_LAST", 0)


@pytest.fixture
def no_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small problems go to the Krylov space too, as far as they fit in."""
    monkeypatch.setattr(eigensolver, "DENSE", 0)


@pytest.fixture(params=["LAPACK", "Krylov"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small problems by LAPACK, as they are, and through the Krylov space as well. Returns which."""
    if request.param == "Krylov":
        monkeypatch.setattr(eigensolver, "DENSE", 0)
    return str(request.param)


def assert_solved_by(pairs: Eigenpairs, either: str) -> None:
    """So that no test of the Krylov space is LAPACK's in truth."""
    assert (pairs.precision == "dense") == (either == "LAPACK")


@pytest.fixture(params=[False, True], ids=["blocks of few rows", "blocks of many rows"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the widths of blocks, and the order, that only problems of many rows take."""
    if request.param:
        monkeypatch.setattr(product, "MANY", 0)
        monkeypatch.setattr(ordering, "MANY", 0)


@pytest.mark.parametrize(("k", "p"), [(12, 5), (30, 60), (30, 300), (60, 600)])
@pytest.mark.usefixtures("blocks")
def test_eigenvalues_and_subspace_equal_dense_eigh(clustered: np.ndarray, k: int, p: int, no_lapack: None) -> None:
    weights = lle_weights(clustered, k)
    values, vectors = dense_spectrum(weights)
    pairs = bottom_eigenvectors(weights, p, seed=0)
    assert pairs.precision == ("float64" if p < 80 else "dense")
    null = int((values <= 1e-10).sum())
    assert pairs.nullity == null
    np.testing.assert_allclose(pairs.values, values[null : null + p], atol=1e-8)
    assert largest_sine(pairs.vectors, vectors[:, null : null + p]) < 1e-6
    assert pairs.residuals.max() < 1e-8
    assert pairs.orthogonality < 1e-12


# 233 is the largest p of 1,600 rows that is not LAPACK's: the space has no room for as many vectors as usual.
@pytest.mark.parametrize("p", [60, 200, 233])
@pytest.mark.parametrize(("tolerance", "precision"), [(1e-3, "float32"), (1e-8, "float64")])
@pytest.mark.usefixtures("blocks")
def test_both_precisions_meet_their_tolerance_against_dense_eigh(
    large: tuple[sp.csr_array, np.ndarray, np.ndarray], p: int, tolerance: float, precision: str
) -> None:
    weights, values, vectors = large
    pairs = bottom_eigenvectors(weights, p, seed=0, tolerance=tolerance)
    assert pairs.precision == precision
    # A residual r stands for an error of at most r in the value (Weyl).
    last = values[p]
    assert np.abs(pairs.values - values[1 : p + 1]).max() <= tolerance * last
    assert np.linalg.norm(dense_product(weights, pairs.vectors) - pairs.vectors * pairs.values, axis=0).max() <= (
        tolerance * last * (1 + 1e-6)
    )
    # And of at most r / gap in the space (Davis and Kahan).
    gap = values[p + 1] - last
    assert largest_sine(pairs.vectors, vectors[:, 1 : p + 1]) <= np.sqrt(p) * tolerance * last / gap + 1e-7


def dense_product(weights: sp.csr_array, block: np.ndarray) -> np.ndarray:
    difference = sp.eye_array(weights.shape[0], format="csr") - weights
    return np.asarray(difference.T @ (difference @ block))


def test_the_space_equals_scikit_learns_up_to_sign(clustered: np.ndarray) -> None:
    x = clustered.astype(np.float64)
    theirs = LocallyLinearEmbedding(
        n_neighbors=20, n_components=30, reg=1e-3, eigen_solver="dense", neighbors_algorithm="brute"
    ).fit_transform(x)
    pairs = bottom_eigenvectors(lle_weights(x, 20), 30, seed=0)
    assert pairs.nullity == 1
    # scikit-learn leaves the sign of each column to LAPACK; single vectors need the gaps, here > 1e-4.
    np.testing.assert_allclose(pairs.vectors, canonical_signs(theirs), atol=1e-6)


def test_a_smaller_p_is_a_prefix_of_a_larger_one(clustered: np.ndarray, either: str) -> None:
    weights = lle_weights(clustered, 25)
    small, large = (bottom_eigenvectors(weights, p, seed=0) for p in (10, 40))
    assert_solved_by(large, either)
    np.testing.assert_allclose(small.values, large.values[:10], atol=1e-12)
    np.testing.assert_allclose(small.vectors, large.vectors[:, :10], atol=1e-7)


def test_every_null_vector_is_skipped_when_the_graph_falls_apart(either: str) -> None:
    rng = np.random.default_rng(1)
    islands = [rng.standard_normal((100, 10)) + 100 * i for i in range(4)]
    weights = lle_weights(np.vstack(islands), 8)
    pairs = bottom_eigenvectors(weights, 20, seed=0)
    assert_solved_by(pairs, either)
    values, _ = dense_spectrum(weights)
    assert pairs.nullity == 4 == int((values <= 1e-10).sum())
    np.testing.assert_allclose(pairs.values, values[4:24], atol=1e-8)
    # A null vector is constant on each island; a kept one is orthogonal to all of those.
    indicator = np.kron(np.eye(4), np.ones((100, 1))) / np.sqrt(100)
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
    _assert_agrees_with_dense_eigh(seed, n, data, width=3, most=n - 2)


@given(seed=st.integers(0, 2**31), n=st.integers(700, 900), data=st.data())
@settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_problems_in_the_krylov_space_agree_with_dense_eigh(
    no_lapack: None, seed: int, n: int, data: st.DataObject
) -> None:
    pairs = _assert_agrees_with_dense_eigh(seed, n, data, width=12, most=40)
    assert pairs is None or pairs.precision != "dense"


def _assert_agrees_with_dense_eigh(
    seed: int, n: int, data: st.DataObject, *, width: int, most: int
) -> Eigenpairs | None:
    """The pairs; None where rounding alone decides what is null, or leaves more than the tolerance."""
    x = np.random.default_rng(seed).standard_normal((n, width))
    weights = lle_weights(x, data.draw(st.integers(4, 8)))
    values, vectors = dense_spectrum(weights)
    null = int((values <= 1e-10).sum())
    p = data.draw(st.integers(1, most - null))
    if ((values > 1e-11) & (values < 1e-9)).any() or values[null + p - 1] < 1e-5:
        return None
    pairs = bottom_eigenvectors(weights, p, seed=0)
    assert pairs.nullity == null
    np.testing.assert_allclose(pairs.values, values[null : null + p], atol=1e-8)
    # The space as well, but for what the last gap cannot tell apart (Davis and Kahan).
    if null + p < n and (gap := values[null + p] - values[null + p - 1]) > 1e-5:
        assert largest_sine(pairs.vectors, vectors[:, null : null + p]) <= np.sqrt(p) * 1e-8 * values[-1] / gap + 1e-7
    return pairs


def test_nearly_multiple_eigenvalues_are_told_apart_and_none_is_lost(either: str) -> None:
    # Three copies of one graph, of which the second and third are changed by a millionth: every eigenvalue of
    # the whole is one of a copy, so they come in threes whose members differ in the sixth digit.
    copies = [lle_weights(in_groups(180), 12) for _ in range(3)]
    noise = np.random.default_rng(4)
    for copy in copies[1:]:
        copy.data *= 1 + 1e-6 * noise.standard_normal(copy.data.shape)
        copy.data /= np.repeat(np.add.reduceat(copy.data, copy.indptr[:-1]), np.diff(copy.indptr))
    weights = sp.csr_array(sp.block_diag(copies))
    pairs = bottom_eigenvectors(weights, 45, seed=0)
    assert_solved_by(pairs, either)
    apart = np.sort(np.concatenate([dense_spectrum(copy)[0][1:] for copy in copies]))
    assert pairs.nullity == 3
    np.testing.assert_allclose(pairs.values, apart[:45], rtol=1e-9, atol=1e-13)
    assert np.diff(apart[:45]).min() < 1e-6 * apart[44]


def test_lapacks_residuals_pass_the_gate_or_are_an_error() -> None:
    # Of a ring of 900 the first eigenvalues are 6e-10, and rounding leaves residuals of about 1e-15.
    rows = np.arange(900)
    weights = weight_matrix(np.column_stack([(rows - 1) % 900, (rows + 1) % 900]), np.full((900, 2), 0.5))
    with pytest.raises(SolverError, match="certified") as caught:
        bottom_eigenvectors(weights, 2, seed=0)
    assert "LAPACK" in caught.value.where
    assert bottom_eigenvectors(weights, 2, seed=0, tolerance=1e-3).precision == "dense"


def test_more_null_vectors_than_memory_could_hold_are_refused() -> None:
    weights = sp.csr_array(sp.kron(sp.eye_array(4000), (np.ones((6, 6)) - np.eye(6)) / 5))
    with pytest.raises(ParameterError) as caught:
        bottom_eigenvectors(weights, 128, seed=0)
    assert "4128" in caught.value.got


def test_the_same_seed_gives_the_same_bits_and_another_seed_the_same_space(clustered: np.ndarray, either: str) -> None:
    weights = lle_weights(clustered, 20)
    first, second, other = (bottom_eigenvectors(weights, 20, seed=seed) for seed in (0, 0, 1))
    assert_solved_by(first, either)
    np.testing.assert_array_equal(first.vectors, second.vectors)
    assert largest_sine(first.vectors, other.vectors) < 1e-6


@pytest.mark.usefixtures("blocks")
def test_a_cut_that_is_far_too_low_is_noticed_and_mended(
    large: tuple[sp.csr_array, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, values, _ = large
    monkeypatch.setattr(Spectrum, "cut_above", lambda self, count: float(values[22]))
    pairs = bottom_eigenvectors(weights, 30, seed=0)
    np.testing.assert_allclose(pairs.values, values[1:31], atol=1e-8)


@pytest.mark.usefixtures("blocks")
def test_a_solve_that_starves_its_last_vector_is_caught_by_the_gate(
    large: tuple[sp.csr_array, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The Krylov space is kept from seeing the 30th vector until the last gate looks outside of it.
    weights, values, vectors = large
    hiding = [True]
    remove = KrylovSpace._remove

    def starve(self: KrylovSpace, block: np.ndarray) -> np.ndarray:
        if hiding[0]:
            hidden = vectors[self.operator.order, 30:31].astype(block.dtype)
            block -= hidden @ (hidden.T @ block)
        return remove(self, block)

    complaints: list[float] = []
    look = search.smallest_outside

    def watch(*arguments: object, **settings: object) -> tuple[float, np.ndarray]:
        hiding[0] = False
        outside, omitted = look(*arguments, **settings)  # type: ignore[arg-type]
        complaints.append(outside)
        return outside, omitted

    monkeypatch.setattr(KrylovSpace, "_remove", starve)
    monkeypatch.setattr(search, "smallest_outside", watch)
    pairs = bottom_eigenvectors(weights, 30, seed=0)
    # A Ritz value bounds the hidden eigenvalue from above, and proves the omission below the next.
    assert values[30] * (1 - 1e-9) <= complaints[0] < values[31]
    np.testing.assert_allclose(pairs.values, values[1:31], atol=1e-8)


def test_a_gate_that_is_never_passed_is_an_error(
    large: tuple[sp.csr_array, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, _, vectors = large
    monkeypatch.setattr(search, "smallest_outside", lambda *_, **__: (1e-9, vectors[:, :16]))
    with pytest.raises(SolverError, match="left out"):
        bottom_eigenvectors(weights, 10, seed=0)


def test_of_few_rows_lapack_solves_what_passes_no_gate(
    large: tuple[sp.csr_array, np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, values, vectors = large
    monkeypatch.setattr(search, "smallest_outside", lambda *_, **__: (1e-9, vectors[:, :16]))
    monkeypatch.setattr(eigensolver, "DENSE_AT_LAST", len(vectors))
    pairs = bottom_eigenvectors(weights, 10, seed=0)
    assert pairs.precision == "dense"
    np.testing.assert_allclose(pairs.values, values[1:11], atol=1e-12)
    assert largest_sine(pairs.vectors, vectors[:, 1:11]) < 1e-9


def test_the_largest_residual_is_gated_not_the_median(
    large: tuple[sp.csr_array, np.ndarray, np.ndarray],
) -> None:
    weights, values, vectors = large
    rng = np.random.default_rng(0)
    with Operator.from_weights(weights) as operator:
        search_ = Search(operator, Demands(20, 1e-6, 1e-10), estimate_spectrum(operator, 100, rng), rng)
        search_.wanted, search_.cut, search_.fast = 21, float(values[60]), False
        search_._start()
        residuals = np.full(40, 1e-12)
        sound = Candidates(values[:40], vectors[:, :40], residuals)
        assert search_._complaint(sound)[0] == ""
        residuals[13] = 1e-3
        assert "residual" in search_._complaint(Candidates(values[:40], vectors[:, :40], residuals))[0]


@pytest.mark.parametrize("hidden", [17, 38, 39])
@pytest.mark.usefixtures("blocks")
def test_an_omitted_vector_is_noticed(large: tuple[sp.csr_array, np.ndarray, np.ndarray], hidden: int) -> None:
    weights, values, vectors = large
    rng = np.random.default_rng(0)
    with Operator.from_weights(weights) as operator:
        ordered = vectors[operator.order]
        chosen = Filter.for_cut(float(values[80]), float(values[-1]) * 1.01, strength=2.0)
        space = KrylovSpace(operator, chosen, rng, capacity=400, precision="float64", without=ordered[:, [hidden]])
        while not space.is_full:
            space.extend()
        space._without = None  # from here on nothing is kept out of it
        known = space.ritz(39)
        found = space.vectors(known)
        outside, _ = smallest_outside(space, known, found, last=float(values[39]))
        assert values[hidden] * (1 - 1e-9) <= outside < values[hidden + 1]


@pytest.mark.usefixtures("blocks")
def test_where_nothing_was_omitted_nothing_below_the_next_eigenvalue_is_found_and_the_space_is_as_before(
    large: tuple[sp.csr_array, np.ndarray, np.ndarray],
) -> None:
    weights, values, vectors = large
    rng = np.random.default_rng(0)
    with Operator.from_weights(weights) as operator:
        chosen = Filter.for_cut(float(values[80]), float(values[-1]) * 1.01, strength=2.0)
        space = KrylovSpace(operator, chosen, rng, capacity=400, precision="float64")
        while space.applied < 256:
            space.extend()
        known = space.ritz(40)
        before = space.size, space.applied, space._basis[:, : space.size].copy()
        outside, _ = smallest_outside(space, known, vectors[operator.order][:, :40], last=float(values[39]))
        assert outside >= values[40] * (1 - 1e-9)
        assert (space.size, space.applied) == before[:2]
        np.testing.assert_array_equal(space._basis[:, : space.size], before[2])
        space.extend()  # goes on where it was
        assert (
            np.abs(space._basis[:, : space.size].T @ space._basis[:, : space.size] - np.eye(space.size)).max() < 1e-12
        )


@pytest.mark.parametrize(
    ("islands", "size", "p"), [(8, 40, 2), (15, 40, 2), (30, 6, 2), (60, 6, 5), (100, 6, 2), (40, 60, 5)]
)
@pytest.mark.usefixtures("blocks")
def test_far_more_null_vectors_than_wanted_ones_are_all_skipped(islands: int, size: int, p: int) -> None:
    rng = np.random.default_rng(5)
    blocks = []
    for _ in range(islands):
        block = rng.random((size, size)) * (1 - np.eye(size))
        blocks.append(block / block.sum(axis=1, keepdims=True))
    weights = sp.csr_array(sp.block_diag(blocks))
    assert closed_classes(weights) == islands
    # M falls apart as the graph does, so its eigenvalues are those of the islands.
    values = np.sort(np.concatenate([dense_spectrum(sp.csr_array(block))[0] for block in blocks]))
    pairs = bottom_eigenvectors(weights, p, seed=0)
    assert pairs.nullity == islands
    np.testing.assert_allclose(pairs.values, values[islands : islands + p], atol=1e-8)


@pytest.mark.parametrize("tolerances", [(0.0, 1e-10), (1.0, 1e-10), (1e-8, 0.0), (1e-8, 1e-2)])
def test_a_tolerance_out_of_range_is_refused(clustered: np.ndarray, tolerances: tuple[float, float]) -> None:
    with pytest.raises(ParameterError, match="tolerance"):
        bottom_eigenvectors(lle_weights(clustered, 5), 3, seed=0, tolerance=tolerances[0], null_tolerance=tolerances[1])


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8])
@pytest.mark.usefixtures("blocks")
def test_the_number_of_threads_does_not_change_a_bit(tolerance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "ROWS_PER_WORKER", 100)
    weights = lle_weights(in_groups(1500), 15)
    alone, together = (
        bottom_eigenvectors(weights, 20, seed=0, tolerance=tolerance, workers=workers) for workers in (1, 3)
    )
    np.testing.assert_array_equal(alone.vectors, together.vectors)
    np.testing.assert_array_equal(alone.values, together.values)


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


def spoilt(weights: sp.csr_array, how: str) -> sp.csr_array:
    weights = weights.copy()
    if how == "a column beyond the last":
        weights.indices[7] = 2_000_000_000
    elif how == "a row that begins beyond the last weight":
        weights.indptr[7] = 100_000_000
    elif how == "other sums":
        weights.data *= 0.5
    elif how == "huge":
        weights.data *= 1e200
    elif how == "NaN":
        weights.data[3] = np.nan
    else:
        weights = weights[:, :-1]
    return weights


@pytest.mark.parametrize(
    "how",
    ["a column beyond the last", "a row that begins beyond the last weight", "other sums", "huge", "NaN", "not square"],
)
def test_weights_of_no_graph_are_refused_before_compiled_code_reads_them(clustered: np.ndarray, how: str) -> None:
    with pytest.raises(ParameterError, match="not those of a neighbour graph"):
        bottom_eigenvectors(spoilt(lle_weights(clustered, 5), how), 3, seed=0)


def test_a_null_vector_that_rounding_lifts_above_the_tolerance_is_no_coordinate(clustered: np.ndarray) -> None:
    weights = sp.csr_array(sp.block_diag([lle_weights(clustered[:40], 8)] * 20))
    assert bottom_eigenvectors(weights, 40, seed=0).nullity == 20
    with pytest.raises(SolverError, match="null vectors could not be told from others"):
        bottom_eigenvectors(weights, 40, seed=0, null_tolerance=1e-40)
