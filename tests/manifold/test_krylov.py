"""The growing Krylov space, and the estimate of a spectrum, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from sentfold.manifold.solver import product
from sentfold.manifold.solver.krylov import Filter, KrylovSpace, orthonormalize
from sentfold.manifold.solver.product import WIDE, WIDTH, Operator
from sentfold.manifold.solver.spectrum import closed_classes, estimate_spectrum
from tests.manifold.test_product import dense_m, random_weights


def grown(operator: Operator, chosen: Filter, steps: int, *, without: np.ndarray | None = None) -> KrylovSpace:
    space = KrylovSpace(
        operator, chosen, np.random.default_rng(0), capacity=20 * WIDTH, precision=np.float64, without=without
    )
    for _ in range(steps):
        space.extend()
    return space


@pytest.fixture(scope="module")
def weights() -> sp.csr_array:
    return random_weights(500, 8, 3)


@pytest.fixture(params=[WIDTH, WIDE])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Of the blocks: what problems of few rows and of many take."""
    monkeypatch.setattr(product, "MANY", 0 if request.param == WIDE else 10**9)
    return int(request.param)


@pytest.fixture(scope="module")
def chosen(weights: sp.csr_array) -> Filter:
    values = np.linalg.eigvalsh(dense_m(weights))
    return Filter(float(values[60]), 1.01 * float(values[-1]), 12)


def test_the_basis_is_orthonormal_and_the_projection_is_that_of_the_filter(
    weights: sp.csr_array, chosen: Filter, width: int
) -> None:
    with Operator.from_weights(weights, workers=1) as operator:
        space = grown(operator, chosen, 6)
        basis = space._basis[:, : space.size]
        np.testing.assert_allclose(basis.T @ basis, np.eye(space.size), atol=1e-12)
        images = chosen.apply(operator, np.ascontiguousarray(basis[:, : space.applied]))
        exact = basis.T @ images
        held = space._projection[: space.size, : space.applied]
        # A column is projected on what there was when the filter met it: on all but the later blocks.
        known = np.arange(space.size)[:, None] < (np.arange(space.applied)[None, :] // width + 2) * width
        np.testing.assert_allclose(held, np.where(known, exact, 0), atol=1e-10 * np.abs(exact).max())
        assert np.abs(exact[~known]).max() < 1e-10 * np.abs(exact).max()


def test_the_promised_residuals_are_the_residuals(weights: sp.csr_array, chosen: Filter, width: int) -> None:
    with Operator.from_weights(weights, workers=1) as operator:
        space = grown(operator, chosen, 7)
        assert space.applied == 7 * width
        ritz = space.ritz(20)
        vectors = space.vectors(ritz)
        residuals = np.linalg.norm(chosen.apply(operator, vectors) - vectors * ritz.values, axis=0)
        np.testing.assert_allclose(ritz.residuals, residuals, atol=1e-10 * ritz.values[0])


def test_vectors_that_are_left_out_stay_out(weights: sp.csr_array, chosen: Filter) -> None:
    with Operator.from_weights(weights, workers=1) as operator:
        out, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((500, 9)))
        space = grown(operator, chosen, 5, without=out)
        assert np.abs(out.T @ space._basis[:, : space.size]).max() < 1e-12


def test_an_invariant_subspace_is_no_end(width: int) -> None:
    # Cliques rebuild themselves, and M has four eigenvalues in all: a plain Krylov space would stop at once.
    size, count = 10, 30
    clique = (np.ones((size, size)) - np.eye(size)) / (size - 1)
    weights = sp.csr_array(sp.block_diag([clique] * count))
    chosen = Filter(0.4, 1.5, 8)
    with Operator.from_weights(weights, workers=1) as operator:
        space = grown(operator, chosen, 6)
        basis = space._basis[:, : space.size]
        np.testing.assert_allclose(basis.T @ basis, np.eye(space.size), atol=1e-10)
        # Each clique gives one null vector; the space must be able to hold more of them than one block.
        found = space.ritz(min(width + 8, 30)).values
        np.testing.assert_allclose(found, chosen.at(np.zeros(1))[0], rtol=1e-8)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e9, 1e40])
def test_any_block_becomes_orthonormal(precision: type, condition: float) -> None:
    rng = np.random.default_rng(0)
    block = (rng.standard_normal((300, WIDTH)) * np.geomspace(1, 1 / condition, WIDTH)).astype(precision)
    q, r = orthonormalize(block)
    eps = np.finfo(precision).eps
    np.testing.assert_allclose(q.T @ q, np.eye(WIDTH), atol=100 * eps)
    np.testing.assert_allclose(q @ r, block, atol=100 * eps)
    np.testing.assert_array_equal(np.tril(r, -1), 0)


def test_the_estimate_bounds_the_largest_eigenvalue_and_counts_the_low_ones() -> None:
    weights = random_weights(600, 8, 4, hubs=5)
    values = np.linalg.eigvalsh(dense_m(weights))
    with Operator.from_weights(weights, workers=1) as operator:
        spectrum = estimate_spectrum(operator, 60, np.random.default_rng(0))
    assert values[-1] <= spectrum.largest <= 1.1 * values[-1]
    assert spectrum.damped < spectrum.largest
    # Sixteen probes leave a count of c eigenvalues uncertain by about sqrt(2 c / 16).
    below = int((values < spectrum.cut_above(60)).sum())
    assert 35 <= below <= 90


def test_closed_classes_count_what_rebuilds_itself_alone() -> None:
    ring = np.roll(np.eye(5), 1, axis=1)
    weights = np.zeros((12, 12))
    weights[:5, :5], weights[5:10, 5:10] = ring, ring
    weights[10, 0], weights[11, 10] = 1, 1  # two that lean on the first ring and are leant on by none of it
    assert closed_classes(sp.csr_array(weights)) == 2
