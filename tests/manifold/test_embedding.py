"""The estimator against known manifolds, scikit-learn, and the conventions that it promises."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.manifold import LocallyLinearEmbedding, trustworthiness
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from sentfold.errors import ParameterError
from sentfold.manifold.estimators import embedding
from sentfold.manifold.estimators.embedding import LocalityPreservingEmbedding
from sentfold.manifold.estimators.linear import PrincipalComponents
from sentfold.manifold.solver.eigensolver import weight_matrix
from sentfold.manifold.weights.weights import solve_weights
from sentfold.neighbors.neighbors import Neighbors


def cloud(n: int = 300, d: int = 8, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


# The checks' data have 10 to 50 rows, too few for 30 neighbours and 128 dimensions; no check is expected to fail.
@parametrize_with_checks([LocalityPreservingEmbedding(5, 2)])
def test_the_estimator_keeps_every_convention_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        LocalityPreservingEmbedding(5, 2, metric="cosine", scaling="half"),
        LocalityPreservingEmbedding(3, 1, scaling="quarter", workers=1),
    ]
)
def test_the_estimator_keeps_them_with_other_settings(estimator: Any, check: Any) -> None:
    check(estimator)


# --- known manifolds --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_swiss_roll_is_unrolled(seed: int) -> None:
    x, t = make_swiss_roll(1500, random_state=seed)
    along = (t * np.sqrt(1 + t**2) + np.arcsinh(t)) / 2  # arc length of the spiral
    true = np.column_stack([along, x[:, 1]])
    flat = LocalityPreservingEmbedding(12, 2).fit_transform(x)
    trust = trustworthiness(true, flat, n_neighbors=10)
    assert trust > 0.99
    assert 1 - trust < (1 - trustworthiness(true, PCA(2).fit_transform(x), n_neighbors=10)) / 3
    assert trustworthiness(flat, true, n_neighbors=10) > 0.99  # nothing is torn either


def test_a_cap_of_a_sphere_is_laid_flat() -> None:
    rng = np.random.default_rng(0)
    polar, azimuth = 0.6 * np.sqrt(rng.random(1000)), 2 * np.pi * rng.random(1000)
    true = polar[:, None] * np.column_stack([np.cos(azimuth), np.sin(azimuth)])
    x = np.column_stack([np.sin(polar)[:, None] * true / polar[:, None], np.cos(polar)])
    flat = LocalityPreservingEmbedding(20, 2).fit_transform(x)
    # A uniform disc has equal variance along any two axes, so unit variance distorts nothing.
    assert procrustes(true, flat)[2] < 1e-3


# --- the same from scikit-learn and from dense algebra ----------------------------------------------


def test_small_data_are_embedded_as_by_scikit_learn_up_to_sign_and_scale() -> None:
    x = cloud()
    model = LocalityPreservingEmbedding(12, 4, tol=1e-8).fit(x)
    theirs = LocallyLinearEmbedding(
        n_neighbors=12, n_components=4, reg=1e-3, eigen_solver="dense", neighbors_algorithm="brute"
    ).fit(x)
    ours = model.embedding_ / np.sqrt(len(x))
    signs = np.sign(np.einsum("np,np->p", ours, theirs.embedding_))
    np.testing.assert_allclose(ours, theirs.embedding_ * signs, atol=1e-8)
    new = cloud(50, seed=1)
    np.testing.assert_allclose(model.transform(new) / np.sqrt(len(x)), theirs.transform(new) * signs, atol=1e-8)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_more_rows_than_lapack_is_given_span_the_bottom_of_the_dense_spectrum(metric: Any) -> None:
    x = cloud(1250, 12)
    model = LocalityPreservingEmbedding(15, 20, metric=metric, tol=1e-6).fit(x)
    assert model.certificate_["precision"] != "dense"
    neighbors = np.argsort(cdist(x, x, metric) + np.diag(np.full(1250, np.inf)), axis=1)[:, :15]
    np.testing.assert_array_equal(model.neighbors_, neighbors)
    w = weight_matrix(neighbors, solve_weights(x, neighbors, regularization=1e-3).values).toarray()
    values, vectors = np.linalg.eigh((np.eye(1250) - w).T @ (np.eye(1250) - w))
    np.testing.assert_allclose(model.eigenvalues_, values[1:21], rtol=1e-6)
    cosines = np.linalg.svd(vectors[:, 1:21].T @ model.embedding_ / np.sqrt(1250))[1]
    # An angle is at most residual over gap.
    worst = 1e-6 * values[20] / (values[21] - values[20])
    assert cosines.min() > np.sqrt(max(0.0, 1 - worst**2)) - 1e-9


def test_two_parts_have_two_null_vectors_and_neither_is_a_coordinate() -> None:
    x = np.vstack([cloud(100), cloud(100, seed=1) + 1e3])
    model = LocalityPreservingEmbedding(10, 5).fit(x)
    assert model.nullity_ == 2
    # Orthogonal to both indicators: no coordinate only tells the parts apart.
    np.testing.assert_allclose([model.embedding_[:100].sum(axis=0), model.embedding_[100:].sum(axis=0)], 0.0, atol=1e-6)


def test_the_scaling_changes_the_scale_of_a_dimension_and_nothing_else() -> None:
    unit, half = (LocalityPreservingEmbedding(12, 6, scaling=s).fit(cloud()) for s in ("unit", "half"))
    np.testing.assert_array_equal(unit.eigenvalues_, half.eigenvalues_)
    powers = np.sqrt(unit.eigenvalues_[-1] / unit.eigenvalues_)
    np.testing.assert_allclose(half.embedding_, unit.embedding_ * powers, rtol=1e-12)


# --- what is promised -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [300, 1500])
def test_threads_change_no_bit(n: int) -> None:
    x, new, found = cloud(n, 20), cloud(100, 20, seed=1), []
    for workers in (1, 2, 3):
        with threadpool_limits(workers):
            model = LocalityPreservingEmbedding(10, 6, workers=workers).fit(x)
            found.append([model.embedding_, model.eigenvalues_, model.transform(new)])
    for other in found[1:]:
        for ours, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_seed_gives_the_same_bits_again_and_another_the_same_space() -> None:
    x = cloud(1250, 20)
    first, again, other = (LocalityPreservingEmbedding(10, 6, seed=s, tol=1e-6).fit_transform(x) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_allclose(first @ first.T, other @ other.T, atol=1e-3)


def test_fitted_rows_are_mapped_to_their_embedding_exactly() -> None:
    x = cloud()
    model = LocalityPreservingEmbedding(12, 4)
    np.testing.assert_array_equal(model.fit_transform(x), model.transform(x))


def test_the_embedding_is_certified_to_the_tolerance_and_the_certificate_is_json() -> None:
    model = LocalityPreservingEmbedding(12, 20, tol=1e-4).fit(cloud(1500, 20))
    assert model.residuals_.max() <= 1e-4 * model.eigenvalues_[-1]
    kept = json.loads(json.dumps(model.certificate_))
    assert kept["residuals"] == model.residuals_.tolist()
    assert kept["outside"] > model.eigenvalues_[-1] * (1 - 1e-4)
    np.testing.assert_allclose(model.embedding_.T @ model.embedding_ / 1500, np.eye(20), atol=1e-6)


@pytest.mark.slow  # pynndescent compiles for half a minute
def test_approximate_neighbours_tell_their_recall() -> None:
    x = cloud(1500, 30)
    model = LocalityPreservingEmbedding(10, 4, neighbors="approximate").fit(x)
    exact = LocalityPreservingEmbedding(10, 4).fit(x)
    assert exact.graph_recall_ == 1.0
    shared = [len(np.intersect1d(a, b)) for a, b in zip(model.neighbors_, exact.neighbors_, strict=True)]
    assert model.graph_recall_ == pytest.approx(np.mean(shared) / 10, abs=0.02)


@pytest.mark.parametrize(("method", "limit"), [("approximate", 10**6), ("auto", 299)])
def test_neighbours_are_approximate_where_they_are_asked_for_or_the_rows_are_many(
    monkeypatch: pytest.MonkeyPatch, method: Any, limit: int
) -> None:
    # The farthest: no search would find them.
    farthest = np.argsort(-cdist(cloud(), cloud()), axis=1)[:, :10].astype(np.int32)
    made = Neighbors(farthest, np.zeros(farthest.shape), recomputed=0)
    monkeypatch.setattr(embedding, "approximate_neighbors", lambda *_, **__: (made, 0.875))
    monkeypatch.setattr(embedding, "EXACT_UP_TO", limit)
    model = LocalityPreservingEmbedding(10, 4, neighbors=method).fit(cloud())
    np.testing.assert_array_equal(model.neighbors_, farthest)
    assert model.graph_recall_ == 0.875
    assert LocalityPreservingEmbedding(10, 4, neighbors="exact").fit(cloud()).graph_recall_ == 1.0


def test_float32_rows_are_embedded_near_their_float64_copies() -> None:
    x = cloud().astype(np.float32)
    single, double = (LocalityPreservingEmbedding(12, 3).fit_transform(rows) for rows in (x, x.astype(np.float64)))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, double, atol=1e-5)


def test_rows_that_equal_all_of_their_neighbours_are_counted() -> None:
    x = np.vstack([cloud(), np.repeat(cloud(1, seed=2), 6, axis=0)])
    assert LocalityPreservingEmbedding(5, 2).fit(x).degenerate_rows_ == 6


ROWS = np.random.default_rng(5).normal(size=(60, 4))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.ones((40, 4)), "all rows are equal"),
        (np.concatenate([ROWS, ROWS[:3]]), "6 of 63 rows are at distance 0"),
        (np.concatenate([ROWS, ROWS + 1e4]), "2 parts"),
    ],
    ids=["constant", "repeated", "two clouds"],
)
def test_rows_that_cannot_be_told_apart_or_fall_into_parts_are_warned_of(rows: Any, said: str) -> None:
    with pytest.warns(UserWarning, match=said):
        LocalityPreservingEmbedding(5, 2).fit(rows)


def test_a_linear_map_warns_of_rows_that_are_all_equal_and_nothing_warns_of_others() -> None:
    with pytest.warns(UserWarning, match="all rows are equal"):
        PrincipalComponents(2).fit(np.ones((40, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrincipalComponents(2).fit(ROWS)
        LocalityPreservingEmbedding(5, 2).fit(ROWS)


def test_a_clone_is_unfitted_and_equal_in_its_parameters() -> None:
    model = LocalityPreservingEmbedding(12, 4, scaling="half", workers=1).fit(cloud())
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "embedding_")
    assert list(model.get_feature_names_out()) == [f"localitypreservingembedding{i}" for i in range(4)]


def test_progress_is_shown_only_to_who_asks(capfd: pytest.CaptureFixture[str]) -> None:
    x = cloud(1500, 12)
    LocalityPreservingEmbedding(10, 4).fit(x).transform(x[:5])
    assert capfd.readouterr() == ("", "")
    LocalityPreservingEmbedding(10, 4, verbose=True).fit(x).transform(x[:5])
    shown = capfd.readouterr().err
    assert "eigenvectors" in shown
    assert "mapping" in shown


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"n_neighbors": 300}, "n - 1 = 299"),
        ({"n_neighbors": 0}, "k = 0"),
        ({"n_neighbors": 5.0}, "whole number"),
        ({"n_components": 299}, "n - 2 = 298"),
        ({"n_components": 0}, "p = 0"),
        ({"metric": "manhattan"}, "euclidean, cosine"),
        ({"neighbors": "some"}, "auto, exact, approximate"),
        ({"scaling": "third"}, "unit, quarter, half"),
        ({"regularization": 0.0}, "regularization"),
        ({"tol": 0.0}, "tolerance"),
        ({"tol": 1.0}, "tolerance"),
        ({"null_tolerance": -1.0}, "tolerance"),
        ({"seed": -1}, "seed"),
        ({"workers": 0}, "workers"),
    ],
    ids=repr,
)
def test_a_parameter_that_does_not_fit_is_refused_with_what_is_allowed(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        LocalityPreservingEmbedding(**{"n_neighbors": 10, "n_components": 3, **parameters}).fit(cloud())
    assert said in str(caught.value)


def test_rows_of_another_width_are_refused() -> None:
    model = LocalityPreservingEmbedding(10, 3).fit(cloud())
    with pytest.raises(ValueError, match="8 features"):
        model.transform(cloud(5, 9))
