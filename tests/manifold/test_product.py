"""The product with M against scipy's sparse matrices, and the damped operator against its formula."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sentfold.manifold.solver import product
from sentfold.manifold.solver.krylov import Filter
from sentfold.manifold.solver.product import NARROW, WIDE, WIDTH, Operator
from tests.reference import kernels as plain


def random_weights(n: int, k: int, seed: int, *, hubs: int = 0) -> sp.csr_array:
    """Rows of k weights that sum to 1, some negative; the first rows are in every other row's list."""
    rng = np.random.default_rng(seed)
    columns = np.array([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)])
    for hub in range(hubs):
        columns[hub + 1 :, hub] = hub
    values = rng.standard_normal((n, k)) + 1
    values /= values.sum(axis=1, keepdims=True)
    dense = np.zeros((n, n))
    np.add.at(dense, (np.arange(n)[:, None], columns), values)
    np.fill_diagonal(dense, 0)
    return sp.csr_array(dense / dense.sum(axis=1, keepdims=True))


def dense_m(weights: sp.csr_array) -> np.ndarray:
    difference = np.eye(weights.shape[0]) - weights.toarray()
    return difference.T @ difference


@given(n=st.integers(3, 60), k=st.integers(1, 7), columns=st.integers(1, 40), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=30)
def test_the_product_is_m_in_both_precisions(n: int, k: int, columns: int, seed: int) -> None:
    # Odd and even numbers of neighbours, rows that nobody chose, any number of vectors.
    weights = random_weights(n, min(k, n - 1), seed)
    block = np.random.default_rng(seed).standard_normal((n, columns))
    with Operator.from_weights(weights) as operator:
        for precision, bound in ((np.float64, 1e-12), (np.float32, 1e-3)):
            image = operator.multiply(np.ascontiguousarray(block[operator.order], dtype=precision))
            assert image.dtype == precision
            exact = dense_m(weights) @ block
            scale = np.abs(dense_m(weights)).sum(axis=1).max() * np.abs(block).max()
            np.testing.assert_allclose(operator.restore(image), exact, atol=bound * scale / 10)


@pytest.mark.parametrize("width", [NARROW, WIDTH, WIDE])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_block_of_any_width_is_multiplied_as_its_columns_are(
    with_hubs: sp.csr_array, width: int, precision: type
) -> None:
    m = dense_m(with_hubs)
    with Operator.from_weights(with_hubs) as operator:
        m = m[np.ix_(operator.order, operator.order)]
        assert operator._damping is not None
        hubs = operator._damping.hubs
        damped = m - m[:, hubs] @ operator._damping.gamma[np.dtype(np.float64)] @ m[hubs]
        now, before = np.random.default_rng(0).standard_normal((2, 400, width)).astype(precision)
        out, scratch = (np.empty_like(now) for _ in range(2))
        for matrix, kind in ((m, False), (damped, True)):
            operator.recur(now, before, out, scratch, (0.5, -1.0, 0.25), damped=kind)
            # Rounding of sums of about 400 terms of size |M|.
            bound = 400 * np.finfo(precision).eps * np.abs(m).max()
            np.testing.assert_allclose(out, 0.5 * now - before + 0.25 * matrix @ now, atol=bound)
        assert operator.products == 2 * width


@pytest.mark.parametrize("columns", [1, 8, 9, 16, 17, 32, 33, 70])
def test_the_filter_is_the_same_in_blocks_of_all_widths(
    with_hubs: sp.csr_array, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = np.random.default_rng(0).standard_normal((400, columns))
    chosen = Filter(0.1, 30.0, 9)
    with Operator.from_weights(with_hubs, workers=1) as operator:
        usual = chosen.apply(operator, block)
        monkeypatch.setattr(product, "MANY", 400)
        assert (operator.few, operator.width) == (NARROW, WIDE)
        np.testing.assert_allclose(chosen.apply(operator, block), usual, rtol=0, atol=1e-11 * np.abs(usual).max())


def test_m_maps_the_constant_to_zero_and_the_trace_is_the_sum_of_squares() -> None:
    weights = random_weights(50, 6, 0)
    with Operator.from_weights(weights) as operator:
        assert np.abs(operator.multiply(np.ones((50, 1)))).max() < 1e-12
        np.testing.assert_allclose(operator.trace, np.trace(dense_m(weights)), rtol=1e-12)
        assert operator.products == WIDTH


def test_rows_come_back_in_the_order_of_the_sentences() -> None:
    with Operator.from_weights(random_weights(40, 3, 1)) as operator:
        rows = np.arange(40.0)[:, None]
        np.testing.assert_array_equal(operator.restore(rows[operator.order]), rows)


@pytest.fixture
def with_hubs() -> sp.csr_array:
    return random_weights(400, 8, 2, hubs=4)


def test_damping_is_the_formula_and_lowers_the_largest_eigenvalue(with_hubs: sp.csr_array) -> None:
    with Operator.from_weights(with_hubs) as operator:
        m = dense_m(with_hubs)[np.ix_(operator.order, operator.order)]
        assert operator._damping is not None
        hubs = operator._damping.hubs
        assert set(operator.order[hubs]) == set(np.argsort(-np.diag(dense_m(with_hubs)))[: len(hubs)])
        damped = m - m[:, hubs] @ operator._damping.gamma[np.dtype(np.float64)] @ m[hubs]
        block = np.ascontiguousarray(np.random.default_rng(0).standard_normal((400, WIDTH)))
        image = np.empty_like(block)
        operator.recur(block, block, image, np.empty_like(block), (0.0, 0.0, 1.0), damped=True)
        np.testing.assert_allclose(image, damped @ block, atol=1e-9 * np.abs(m).max())
        assert np.linalg.eigvalsh(damped)[-1] < 0.5 * np.linalg.eigvalsh(m)[-1]


def test_damping_moves_low_eigenvalues_by_no_more_than_their_square(with_hubs: sp.csr_array) -> None:
    with Operator.from_weights(with_hubs) as operator:
        m = dense_m(with_hubs)[np.ix_(operator.order, operator.order)]
        assert operator._damping is not None
        hubs, gamma = operator._damping.hubs, operator._damping.gamma[np.dtype(np.float64)]
        values, vectors = np.linalg.eigh(m)
        low = vectors[:, :20]
        coupling = low.T @ (m[:, hubs] @ gamma @ m[hubs]) @ low
        bound = np.outer(values[:20], values[:20]) * np.linalg.norm(gamma, 2)
        assert (np.abs(coupling) <= bound + 1e-12).all()


def test_a_graph_without_hubs_is_not_damped() -> None:
    n = 300
    rows = np.arange(n)
    ring = sp.csr_array((np.full(2 * n, 0.5), (np.tile(rows, 2), np.r_[(rows - 1) % n, (rows + 1) % n])), shape=(n, n))
    with Operator.from_weights(ring) as operator:
        assert operator._damping is None


@pytest.mark.parametrize("workers", [2, 3, 7])
def test_threads_do_not_change_a_bit(with_hubs: sp.csr_array, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "ROWS_PER_WORKER", 10)
    block = np.random.default_rng(0).standard_normal((400, 20)).astype(np.float32)
    chosen = Filter(0.1, 30.0, 9, damped=True)
    with (
        Operator.from_weights(with_hubs, workers=1) as alone,
        Operator.from_weights(with_hubs, workers=workers) as together,
    ):
        np.testing.assert_array_equal(chosen.apply(alone, block), chosen.apply(together, block))


def test_the_filter_is_its_polynomial_of_the_eigenvalues(with_hubs: sp.csr_array) -> None:
    with Operator.from_weights(with_hubs) as operator:
        m = dense_m(with_hubs)[np.ix_(operator.order, operator.order)]
        values, vectors = np.linalg.eigh(m)
        chosen = Filter(float(values[50]), float(values[-1]) * 1.01, 14)
        image = chosen.apply(operator, vectors)
        np.testing.assert_allclose(image, vectors * chosen.at(values), atol=1e-8 * chosen.at(values[:1])[0])
        assert np.abs(chosen.at(values[51:])).max() <= 1 + 1e-9
        grown = chosen.at(values[1:50])
        np.testing.assert_allclose(chosen.invert(grown), values[1:50], rtol=1e-6)
        step = 1e-6
        numeric = (chosen.at(values[1:50] - step) - chosen.at(values[1:50] + step)) / (2 * step)
        np.testing.assert_allclose(chosen.slope(grown), numeric, rtol=1e-3)


@pytest.mark.parametrize("width", [NARROW, WIDTH, WIDE])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_the_loops_written_as_instructions_agree_with_plain_ones(
    with_hubs: sp.csr_array, width: int, precision: type
) -> None:
    kind, rng = np.dtype(precision), np.random.default_rng(0)
    with Operator.from_weights(with_hubs) as operator:
        n, kernels = operator.n, product._kernels(width)
        y, now, before, out, plain_out = (product.empty_block(n, kind, width=width) for _ in range(5))
        for block in (y, now, before):
            block[:] = rng.standard_normal((n, width))
        factors = np.array([1.5, -1.0, 0.25], dtype=kind)
        for lists in (operator._forward, operator._backward):
            given = (lists.starts, lists.columns, lists.weights[kind])
            # A sum of m terms may differ by m eps times the sum of their sizes, in any order and fused or not.
            longest = int(np.diff(lists.starts).max()) + 3
            sums = np.add.reduceat(
                np.append(np.abs(given[2]), 0), lists.starts[:-1]
            )  # of an empty row: another's first
            bound = longest * np.finfo(kind).eps * (1 + float(sums.max())) * float(np.abs(y).max())
            kernels.difference(*given, y.reshape(-1), out.reshape(-1), 0, n)
            plain.difference(*given, y, plain_out)
            np.testing.assert_allclose(out, plain_out, rtol=0, atol=bound)
            kernels.recur(*given, *(block.reshape(-1) for block in (y, now, before)), factors, out.reshape(-1), 0, n)
            plain.recur(*given, y, now, before, factors, plain_out)
            np.testing.assert_allclose(out, plain_out, rtol=0, atol=2 * bound)
