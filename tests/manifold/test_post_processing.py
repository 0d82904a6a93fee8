"""Mean removal, soft ZCA, spectral tempering, coordinates and int8: what they must do whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from sentfold.errors import ParameterError
from sentfold.manifold import coordinates, int8, mean_removal, soft_zca, tempering, truncation
from sentfold.manifold.base.linear import PrincipalAxes, principal_axes
from sentfold.manifold.base.protocol import Source, find_method

RNG = np.random.default_rng(2)
X = (RNG.standard_normal((300, 12)) * 1.3 ** np.arange(12) + 3).astype(np.float32)


def spectrum(*variances: float) -> np.ndarray:
    """Rows with exactly these variances along the axes."""
    rows = RNG.standard_normal((400, len(variances)))
    basis = np.linalg.qr(rows - rows.mean(axis=0))[0]
    return basis * np.sqrt(399 * np.array(variances))


def test_a_projected_mean_is_gone_and_everything_orthogonal_to_it_stays() -> None:
    made = mean_removal.embed(Source(X), mean_removal.Settings(how="project")).vectors
    mean = X.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(made @ mean, 0, atol=1e-3)  # of products of about 600
    other = np.linalg.svd(mean[None])[2][1:]
    np.testing.assert_allclose(made @ other.T, X @ other.T, atol=1e-4)
    subtracted = mean_removal.embed(Source(X), mean_removal.Settings(how="subtract")).vectors
    np.testing.assert_allclose(subtracted, X - mean, atol=1e-5)


def test_rows_with_a_mean_of_zero_are_not_changed_by_its_projection() -> None:
    x = np.vstack([X, -X])
    np.testing.assert_array_equal(mean_removal.embed(Source(x), mean_removal.Settings()).vectors, x)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 10.0])
def test_soft_zca_is_the_inverse_root_of_the_held_covariance(epsilon: float) -> None:
    x = X.astype(np.float64)
    covariance = np.cov(x, rowvar=False)
    held = covariance + epsilon * np.trace(covariance) / 12 * np.eye(12)
    expected = (x - x.mean(axis=0)) @ np.linalg.inv(sqrtm(held).real)
    made = soft_zca.embed(Source(X), soft_zca.Settings(epsilon=epsilon)).vectors
    np.testing.assert_allclose(made, expected, atol=1e-4 * np.abs(expected).max())


def test_soft_zca_only_centres_and_scales_where_epsilon_is_large() -> None:
    made = soft_zca.embed(Source(X), soft_zca.Settings(epsilon=1e6)).vectors
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(made / made.std(), centred / centred.std(), atol=1e-4)


def axes_of(variances: np.ndarray) -> PrincipalAxes:
    return PrincipalAxes(np.zeros(len(variances)), np.eye(len(variances)), variances, len(variances), 1000)


@pytest.mark.parametrize(
    ("exponent", "powers"),
    [
        (-1, [1, 0.571419, 0.258225, 0.101628, 0.049429, 0.02333]),
        (-2, [0.315989, 0.07854, 0.019177, 0.004337, 0.001589, 0.000627]),
    ],
)
def test_the_tempered_power_is_that_of_the_authors_code(exponent: int, powers: list[float]) -> None:
    # Made with the authors' steps and version 0.9.0 of the package kneed, which their code calls.
    axes = axes_of(np.arange(1.0, 385.0) ** exponent)
    found = [tempering.tempered_power(axes, p) for p in (16, 32, 64, 128, 192, 256)]
    np.testing.assert_allclose(found, powers, atol=1e-6)


def test_the_knee_of_the_paper_that_proposes_kneedle_is_found() -> None:
    curve = 1 / (np.linspace(0, 1, 10) + 0.1)  # its figure 2, mirrored: the knee is at 0.22
    assert tempering.first_knee(curve) == 2
    assert tempering.first_knee(np.linspace(1, 0, 10)) is None, "a straight line has no knee"
    assert tempering.first_knee(np.ones(10)) is None


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=60), st.sampled_from([2.0**-9, 2.0**9]))
def test_the_tempered_power_falls_with_the_number_of_components_and_not_with_the_scale(
    values: list[float], scale: float
) -> None:
    variances = np.sort(values)[::-1]
    powers = [tempering.tempered_power(axes_of(variances), p) for p in range(1, len(values) + 1)]
    assert all(0 <= power <= 1 for power in powers)
    assert powers == [tempering.tempered_power(axes_of(scale * variances), p) for p in range(1, len(values) + 1)]
    kept = int(len(values) * 0.9)
    if tempering.first_knee(np.maximum(0, variances[:kept] / variances[kept:].mean() - 1)) is not None:
        assert powers == sorted(powers, reverse=True)


def test_a_tempered_space_has_each_variance_to_the_complement_of_the_power() -> None:
    variances = np.arange(1.0, 31.0) ** -2
    made = tempering.embed(Source(spectrum(*variances)), tempering.Settings(components=15))
    assert 0 < made.notes["power"] < 1
    np.testing.assert_allclose(made.vectors.var(axis=0, ddof=1), variances[:15] ** (1 - made.notes["power"]), rtol=1e-3)


def test_the_tempered_power_counts_no_axis_beyond_the_rank() -> None:
    wide = np.hstack([spectrum(*(np.arange(1.0, 31.0) ** -2)), np.zeros((400, 5))])
    full, held = principal_axes(wide), principal_axes(wide[:, :30])
    assert tempering.tempered_power(full, 10) == pytest.approx(tempering.tempered_power(held, 10))


def test_coordinates_are_the_first_ones_or_a_random_choice_that_grows() -> None:
    np.testing.assert_array_equal(truncation.embed(Source(X), truncation.Settings(components=5)).vectors, X[:, :5])
    many, few = (coordinates.embed(Source(X), coordinates.Settings(components=p, seed=1)).vectors for p in (12, 5))
    np.testing.assert_array_equal(np.sort(many, axis=1), np.sort(X, axis=1))
    np.testing.assert_array_equal(few, many[:, :5])
    assert not np.array_equal(few, X[:, :5])
    for method in (truncation, coordinates):
        with pytest.raises(ParameterError, match=r"1 <= p <= d = 12"):
            method.embed(Source(X), method.Settings(components=13))


def test_int8_keeps_256_values_and_errs_by_half_a_step_at_most() -> None:
    made = int8.embed(Source(X), int8.Settings()).vectors
    assert max(len(np.unique(column)) for column in made.T) <= 256
    step = (X.max(axis=0) - X.min(axis=0)) / 255
    assert (np.abs(made - X) <= 0.501 * step).all()
    outside = int8.decode_int8(np.array([[-9.0], [9.0]]), np.array([[0.0], [1.0]]))
    assert outside.ravel().tolist() == [0, 1]


def test_int8_of_ranges_that_the_type_of_the_vectors_does_not_hold_is_finite() -> None:
    for unit, kind in ((1e-44, np.float32), (1.5e38, np.float32), (1e-6, np.float16), (3e4, np.float16)):
        x = np.clip(X, -2, 2).astype(np.float64)
        x = (x * unit).astype(kind)
        made = int8.decode_int8(x, x)
        step = np.ptp(x.astype(np.float64), axis=0) / 255
        assert (np.abs(made - x.astype(np.float64)) <= 0.501 * step + 1e-45 + 1e-6 * np.abs(x)).all()


@pytest.mark.parametrize("name", ["pca", "coordinates", "int8"])
def test_a_space_whose_numbers_float32_does_not_hold_is_refused_with_the_row(name: str) -> None:
    method, x = find_method(name), np.array(X, dtype=np.float64)
    x[7] *= 1e100
    settings = method.Settings() if name == "int8" else method.Settings(components=12)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ParameterError, match="not finite in float32"):
        method.embed(Source(x), settings)
