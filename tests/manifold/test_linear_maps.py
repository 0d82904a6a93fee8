"""Linear maps against scikit-learn, dense eigenproblems, and what must hold whatever the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from sentfold.errors import ParameterError, SolverError
from sentfold.manifold.base.linear import principal_axes, principal_map
from sentfold.manifold.estimators.linear import (
    AllButTheTop,
    LocalityPreservingProjections,
    NeighborhoodPreservingEmbedding,
    PrincipalComponents,
    Whitening,
)
from sentfold.manifold.lpp import locality_preserving_map
from sentfold.manifold.npe import neighborhood_preserving_map
from sentfold.manifold.weights.weights import solve_weights
from sentfold.neighbors.neighbors import nearest_neighbors

GRAPH_MAPS = [
    NeighborhoodPreservingEmbedding(3, n_neighbors=8),
    LocalityPreservingProjections(3, n_neighbors=8),
    LocalityPreservingProjections(3, n_neighbors=8, heat=0.5),
]
ALL = [PrincipalComponents(3), Whitening(3), Whitening(3, power=0.5), AllButTheTop(2), *GRAPH_MAPS]


def cloud(n: int = 700, d: int = 12, *, seed: int = 0) -> np.ndarray:
    """Rows whose axes have well separated deviations, off the origin; more rows than a graph block holds."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return rng.standard_normal((n, d)) * 1.5 ** np.arange(d) @ rotation + 10 * rng.standard_normal(d)


def up_to_signs(ours: np.ndarray, theirs: np.ndarray, *, rtol: float = 1e-8) -> None:
    """The same columns, each up to its sign; rtol relative to the largest entry."""
    signs = np.sign(np.einsum("np,np->p", ours, theirs))
    np.testing.assert_allclose(ours, theirs * signs, rtol=0, atol=rtol * np.abs(theirs).max())


@parametrize_with_checks(
    [
        PrincipalComponents(),
        Whitening(),
        AllButTheTop(),
        NeighborhoodPreservingEmbedding(),
        LocalityPreservingProjections(),
    ]
)
def test_the_estimators_keep_every_convention_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        PrincipalComponents(1),
        Whitening(power=0.5),
        NeighborhoodPreservingEmbedding(1),
        LocalityPreservingProjections(heat=1.0),
    ]
)
def test_the_estimators_keep_them_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


# --- principal axes ---------------------------------------------------------------------------------


def test_principal_components_are_those_of_scikit_learn() -> None:
    x = cloud(2500)  # more than two blocks
    ours, theirs = PrincipalComponents(5), PCA(5, svd_solver="full")
    up_to_signs(ours.fit_transform(x), theirs.fit_transform(x))
    np.testing.assert_allclose(ours.eigenvalues_, theirs.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-13)


def test_whitening_is_that_of_scikit_learn() -> None:
    x, new = cloud(), cloud(50, seed=1)
    ours, theirs = Whitening(6).fit(x), PCA(6, whiten=True, svd_solver="full").fit(x)
    up_to_signs(ours.transform(x), theirs.transform(x))
    up_to_signs(ours.transform(new), theirs.transform(new))


def test_whitened_rows_have_the_identity_as_covariance() -> None:
    np.testing.assert_allclose(np.cov(Whitening().fit_transform(cloud()).T), np.eye(12), atol=1e-9)


@pytest.mark.parametrize("power", [0.25, 0.5])
def test_a_power_between_leaves_that_power_of_each_variance(power: float) -> None:
    covariance = np.cov(Whitening(power=power).fit_transform(cloud()).T)
    variances = np.linalg.eigvalsh(np.cov(cloud().T))[::-1]
    np.testing.assert_allclose(covariance, np.diag(variances ** (1 - power)), atol=1e-9 * variances[0])


def test_a_power_of_zero_is_principal_components() -> None:
    np.testing.assert_array_equal(
        Whitening(4, power=0.0).fit_transform(cloud()), PrincipalComponents(4).fit_transform(cloud())
    )


def test_full_whitening_does_not_see_an_invertible_linear_map_before_it() -> None:
    x = cloud(300, 6)
    mixed = x @ np.random.default_rng(1).standard_normal((6, 6)) + 3.0
    ours, theirs = Whitening().fit_transform(x), Whitening().fit_transform(mixed)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-9)


def test_all_but_the_top_leaves_mean_zero_and_nothing_along_the_removed_directions() -> None:
    x = cloud()
    model = AllButTheTop(2).fit(x)
    rest = model.transform(x)
    theirs = PCA(2, svd_solver="full").fit(x)
    np.testing.assert_allclose(rest.mean(axis=0), 0.0, atol=1e-11)
    np.testing.assert_allclose(rest @ theirs.components_.T, 0.0, atol=1e-9)
    np.testing.assert_allclose(rest, x - theirs.inverse_transform(theirs.transform(x)), atol=1e-9)
    up_to_signs(model.components_.T, theirs.components_.T)
    variances = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    np.testing.assert_allclose(np.linalg.eigvalsh(np.cov(rest.T))[::-1][:10], variances[2:], rtol=1e-9)


def test_removing_nothing_centres() -> None:
    x = cloud()
    np.testing.assert_allclose(AllButTheTop(0).fit_transform(x), x - x.mean(axis=0), atol=1e-12)


@st.composite
def deficient_rows(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Rows whose centred rank is known: singular values from 1 to 100 and then none, anywhere in space."""
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 12))
    rank = draw(st.integers(0, min(n - 1, d)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    centred = rng.standard_normal((n, rank))
    left = np.linalg.qr(centred - centred.mean(axis=0))[0]
    right = np.linalg.qr(rng.standard_normal((d, rank)))[0]
    offset = draw(st.sampled_from([0.0, 1.0, 1e4])) * rng.standard_normal(d)
    return left * np.geomspace(1, 100, rank) @ right.T + offset, rank


@given(deficient_rows())
@settings(deadline=None)
def test_rows_of_any_shape_and_rank_are_whitened_as_far_as_their_rank_goes(rows: tuple[np.ndarray, int]) -> None:
    x, rank = rows
    model = Whitening().fit(x)
    assert model.rank_ == rank
    y = model.transform(x)
    wanted = np.diag((np.arange(y.shape[1]) < rank).astype(float))
    # Rounding of offset 1e4 against deviations around 1, squared by nothing: 1e4 eps, with room.
    np.testing.assert_allclose(y.T @ y / (len(x) - 1), wanted, atol=1e-8)


def test_a_new_row_off_the_fitted_plane_is_not_blown_up() -> None:
    rng = np.random.default_rng(0)
    plane = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 5))
    model = Whitening().fit(plane)
    off = model.transform(plane + 1e3 * rng.standard_normal((50, 5)))
    np.testing.assert_array_equal(off[:, 2:], 0.0)
    assert np.abs(off).max() < 1e5


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3])
def test_equal_rows_have_rank_zero_and_map_to_zero(value: float) -> None:
    x = np.full((77, 5), value)
    for model in (PrincipalComponents(), Whitening()):
        images = model.fit_transform(x)
        assert model.rank_ == 0
        np.testing.assert_allclose(images, 0.0, atol=1e-15 * max(value, 1))


# --- maps by a graph --------------------------------------------------------------------------------


def dense_pencil(x: np.ndarray, k: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, columns and the right-hand (n, n) matrix of NPE or LPP, everything dense."""
    n, centred = len(x), x - x.mean(axis=0)
    neighbors = np.argsort(cdist(x, x) + np.diag(np.full(n, np.inf)), axis=1)[:, :k]
    if kind == "npe":
        w = np.zeros((n, n))
        np.put_along_axis(w, neighbors, solve_weights(x, neighbors, regularization=1e-3).values, axis=1)
        left, right = (np.eye(n) - w).T @ (np.eye(n) - w), np.eye(n)
    else:
        chosen = np.zeros((n, n), dtype=bool)
        np.put_along_axis(chosen, neighbors, True, axis=1)
        joined = chosen | chosen.T
        squared = cdist(x, x, "sqeuclidean")
        s = joined * (1.0 if kind == "lpp" else np.exp(-squared / (0.5 * squared[joined].mean())))
        right = np.diag(s.sum(axis=1))
        left = right - s
    values, columns = scipy.linalg.eigh(centred.T @ left @ centred, centred.T @ right @ centred)
    return values, columns, right


@pytest.mark.parametrize(("estimator", "kind"), zip(GRAPH_MAPS, ["npe", "lpp", "heat"], strict=True))
def test_a_graph_map_solves_the_dense_generalised_eigenproblem(estimator: Any, kind: str) -> None:
    x = cloud()
    model = clone(estimator).set_params(n_components=12).fit(x)
    values, columns, right = dense_pencil(x, 8, kind)
    np.testing.assert_allclose(model.eigenvalues_, values, atol=1e-10)
    up_to_signs(model.components_.T, columns, rtol=1e-7)
    images = model.transform(x)
    np.testing.assert_allclose(images.T @ right @ images, np.eye(12), atol=1e-9)
    rows = np.abs(model.components_).argmax(axis=1)
    assert (model.components_[np.arange(12), rows] > 0).all()


@pytest.mark.parametrize("estimator", GRAPH_MAPS)
def test_as_many_dimensions_as_there_are_span_the_same_space(estimator: Any) -> None:
    x = cloud()
    images = clone(estimator).set_params(n_components=12).fit_transform(x)
    left, right = (np.linalg.qr(rows)[0] for rows in (images, x - x.mean(axis=0)))
    np.testing.assert_allclose(np.linalg.svd(left.T @ right)[1], 1.0, atol=1e-10)


def test_with_more_dimensions_than_rows_npe_is_lle_itself() -> None:
    # Every centred vector is then a linear function of the rows, so restricting to those restricts nothing.
    x = np.random.default_rng(0).standard_normal((60, 80))
    neighbors = nearest_neighbors(x, 10).indices
    weights = solve_weights(x, neighbors, regularization=1e-3).values
    images = neighborhood_preserving_map(x, neighbors, weights, 20).apply(x)
    w = np.zeros((60, 60))
    np.put_along_axis(w, neighbors, weights, axis=1)
    values, vectors = np.linalg.eigh((np.eye(60) - w).T @ (np.eye(60) - w))
    assert values[0] < 1e-14 < values[1]
    up_to_signs(images, vectors[:, 1:21], rtol=1e-7)


@pytest.mark.parametrize("estimator", GRAPH_MAPS)
def test_a_graph_map_drops_the_null_space_of_its_rows(estimator: Any) -> None:
    x = cloud()[:, :6]
    lifted = x @ np.linalg.qr(np.random.default_rng(2).standard_normal((20, 6)))[0].T
    plain, deficient = clone(estimator).fit(x), clone(estimator).fit(lifted)
    np.testing.assert_allclose(deficient.eigenvalues_, plain.eigenvalues_, atol=1e-9)
    up_to_signs(deficient.transform(lifted), plain.transform(x), rtol=1e-7)
    with pytest.raises(ParameterError, match="rank of the centred rows = 6"):
        clone(estimator).set_params(n_components=7).fit(lifted)


def test_twins_are_kept_together_at_any_heat() -> None:
    x = np.repeat(cloud(60, 4), 3, axis=0)
    images = LocalityPreservingProjections(2, n_neighbors=2, heat=1.0).fit_transform(x)
    np.testing.assert_array_equal(images[0::3], images[2::3])
    assert np.isfinite(images).all()


def test_a_heat_that_leaves_no_edge_any_weight_is_an_error_that_names_it() -> None:
    x = cloud(50, 4)
    with pytest.raises(SolverError, match="heat"):
        locality_preserving_map(x, nearest_neighbors(x, 3).indices, 2, heat=1e-9)


# --- what holds for all -----------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [model for model in ALL if not isinstance(model, AllButTheTop)])
def test_a_rotation_and_a_translation_change_no_image_but_its_sign(estimator: Any) -> None:
    x = cloud()
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((12, 12)))[0]
    moved = clone(estimator).fit_transform(x @ rotation - 7.0)
    up_to_signs(moved, clone(estimator).fit_transform(x), rtol=1e-7)


def test_a_rotation_and_a_translation_only_rotate_what_all_but_the_top_leaves() -> None:
    x = cloud()
    rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((12, 12)))[0]
    moved = AllButTheTop(2).fit_transform(x @ rotation - 7.0)
    np.testing.assert_allclose(moved, AllButTheTop(2).fit_transform(x) @ rotation, atol=1e-8)


@pytest.mark.parametrize("estimator", ALL)
def test_the_image_of_a_mean_is_the_mean_of_the_images(estimator: Any) -> None:
    model, new = clone(estimator).fit(cloud()), cloud(40, seed=5)
    middle = model.transform(new.mean(axis=0, keepdims=True))[0]
    np.testing.assert_allclose(middle, model.transform(new).mean(axis=0), atol=1e-11)


@pytest.mark.parametrize("estimator", ALL)
def test_float32_rows_are_computed_in_float64(estimator: Any) -> None:
    x = cloud().astype(np.float32)
    single, double = clone(estimator).fit_transform(x), clone(estimator).fit_transform(x.astype(np.float64))
    assert single.dtype == np.float64
    np.testing.assert_array_equal(single, double)


@pytest.mark.parametrize("estimator", ALL)
def test_the_threads_that_blas_may_use_change_no_bit(estimator: Any) -> None:
    # At this size the BLAS sums in another order on two threads than on one.
    x = np.random.default_rng(0).standard_normal((1500, 130))
    images = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            images.append(clone(estimator).fit_transform(x))
    np.testing.assert_array_equal(*images)


def test_a_smaller_dimension_is_a_prefix_of_a_larger_one() -> None:
    axes = principal_axes(cloud())
    np.testing.assert_array_equal(principal_map(axes, 3).matrix, principal_map(axes, 9).matrix[:, :3])


def test_the_answer_comes_in_the_type_that_is_asked_for() -> None:
    x = cloud()
    map_ = principal_map(principal_axes(x), 3)
    single = map_.apply(x, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, map_.apply(x).astype(np.float32))


@pytest.mark.parametrize("estimator", ALL)
def test_the_names_of_the_columns_are_as_many_as_the_columns(estimator: Any) -> None:
    model = clone(estimator).fit(cloud())
    names = list(model.get_feature_names_out())
    assert len(names) == model.transform(cloud()).shape[1]
    assert names[0] == f"{type(model).__name__.lower()}0"


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (PrincipalComponents(0), "components"),
        (PrincipalComponents(13), "min(n, d) = 12"),
        (PrincipalComponents(True), "whole number"),
        (PrincipalComponents(2.0), "whole number"),
        (Whitening(13), "min(n, d) = 12"),
        (Whitening(power=-0.1), "0 (PCA) <= power <= 1"),
        (Whitening(power=1.1), "1.1"),
        (Whitening(power=float("nan")), "nan"),
        (AllButTheTop(-1), "removed"),
        (AllButTheTop(12), "rank of the centred rows - 1 = 11"),
        (NeighborhoodPreservingEmbedding(13), "rank of the centred rows = 12"),
        (NeighborhoodPreservingEmbedding(n_neighbors=700), "n = 700"),
        (NeighborhoodPreservingEmbedding(regularization=0.0), "> 0"),
        (LocalityPreservingProjections(13), "rank of the centred rows = 12"),
        (LocalityPreservingProjections(n_neighbors=0), "k = 0"),
        (LocalityPreservingProjections(heat=0.0), "heat"),
        (LocalityPreservingProjections(heat=float("inf")), "inf"),
    ],
    ids=repr,
)
def test_a_parameter_that_does_not_fit_is_refused_with_what_is_allowed(estimator: Any, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        clone(estimator).fit(cloud())
    assert said in str(caught.value)


def test_rows_without_any_variance_have_no_direction_to_remove_or_preserve() -> None:
    for estimator in (AllButTheTop(1), NeighborhoodPreservingEmbedding(n_neighbors=3)):
        with pytest.raises(ParameterError, match="rank"):
            estimator.fit(np.ones((10, 4)))


@pytest.mark.parametrize("estimator", [PrincipalComponents(), Whitening(), AllButTheTop(1)], ids=repr)
@pytest.mark.parametrize("factor", [1e-170, 1e200])
def test_rows_that_cannot_be_squared_have_no_axes_and_are_refused(estimator: Any, factor: float) -> None:
    with pytest.raises(ParameterError, match="cannot be squared"):
        clone(estimator).fit(cloud() * factor)
