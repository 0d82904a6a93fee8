"""The out-of-sample map against affine algebra and scikit-learn, and what must not change it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.manifold import LocallyLinearEmbedding

from sentfold.errors import ParameterError
from sentfold.manifold.base.local import map_out_of_sample
from sentfold.manifold.estimators.embedding import LocalityPreservingEmbedding

SETTINGS: dict[str, Any] = {"n_neighbors": 8, "regularization": 1e-3}


def cloud(n: int, d: int = 5, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def test_a_row_in_the_affine_hull_of_its_neighbours_goes_where_an_affine_embedding_sends_it() -> None:
    # Eight neighbours in five dimensions span them all, and their weights sum to one.
    fitted, queries = cloud(200), cloud(300, seed=1)
    a, b = cloud(5, 3, seed=2), cloud(1, 3, seed=3)
    images = map_out_of_sample(queries, fitted, fitted @ a + b, n_neighbors=8, regularization=1e-10)
    np.testing.assert_allclose(images, queries @ a + b, atol=1e-6)


def test_a_constant_embedding_stays_constant_at_any_regularisation() -> None:
    images = map_out_of_sample(cloud(50, seed=1), cloud(40), np.full((40, 2), 3.5), n_neighbors=8, regularization=10.0)
    np.testing.assert_allclose(images, 3.5, rtol=1e-11)


def test_new_rows_go_where_scikit_learn_maps_them() -> None:
    fitted, queries = cloud(400, 8), cloud(100, 8, seed=1)
    theirs = LocallyLinearEmbedding(
        n_neighbors=12, n_components=4, reg=1e-3, eigen_solver="dense", neighbors_algorithm="brute"
    ).fit(fitted)
    images = map_out_of_sample(queries, fitted, theirs.embedding_, n_neighbors=12, regularization=1e-3)
    # scikit-learn's weights solve the same systems by another factorisation, of condition below 1e4.
    np.testing.assert_allclose(images, theirs.transform(queries), rtol=0, atol=1e-10)


@given(
    m=st.integers(1, 60),
    block=st.integers(1, 70),
    seed=st.integers(0, 99),
    metric=st.sampled_from(["euclidean", "cosine"]),
)
@settings(deadline=None, max_examples=40)
def test_blocks_and_workers_change_no_bit(m: int, block: int, seed: int, metric: Any) -> None:
    fitted, queries = cloud(50, 4, seed=seed), cloud(m, 4, seed=seed + 1)
    queries[::7] = 0.0  # under the cosine a zero vector is as far from all
    queries[3::7] = fitted[5]
    embedding = cloud(50, 3, seed=seed + 2)
    whole = map_out_of_sample(queries, fitted, embedding, metric=metric, workers=1, **SETTINGS)
    parts = map_out_of_sample(queries, fitted, embedding, metric=metric, workers=2, block=block, **SETTINGS)
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_that_equals_a_fitted_one_gets_its_coordinates_exactly(metric: Any, dtype: Any) -> None:
    fitted, embedding = cloud(60).astype(dtype), cloud(60, 3, seed=1)
    images = map_out_of_sample(fitted[::-1], fitted, embedding, metric=metric, **SETTINGS)
    np.testing.assert_array_equal(images, embedding[::-1])


def test_of_equal_fitted_rows_the_first_gives_its_coordinates() -> None:
    fitted, embedding = np.repeat(cloud(30), 2, axis=0), cloud(60, 3, seed=1)
    images = map_out_of_sample(fitted, fitted, embedding, **SETTINGS)
    np.testing.assert_array_equal(images, np.repeat(embedding[::2], 2, axis=0))


def test_a_multiple_of_a_row_is_another_row_under_the_cosine_too() -> None:
    fitted, embedding = cloud(60), cloud(60, 3, seed=1)
    doubled = np.vstack([2 * fitted[:1], fitted])  # at distance 0 of the row that it is twice of, and before it
    coordinates = np.vstack([cloud(1, 3, seed=5), embedding])
    images = map_out_of_sample(fitted[:1], doubled, coordinates, metric="cosine", **SETTINGS)
    np.testing.assert_array_equal(images, embedding[:1])
    images = map_out_of_sample(4 * fitted[:1], fitted, embedding, metric="cosine", **SETTINGS)
    assert np.abs(images - embedding[:1]).max() > 1e-3


def test_a_row_beside_a_fitted_one_is_drawn_off_by_its_other_neighbours_as_far_as_regularised_weights_say() -> None:
    # The documented jump: weights at distance 1e-9 solve (G + R I) w = 1 with a first row and column of 0.
    fitted, embedding = cloud(200), cloud(200, 3, seed=1)
    image = map_out_of_sample(fitted[:1] + 1e-9, fitted, embedding, **SETTINGS)[0]
    nearest = np.argsort(np.square(fitted - fitted[0]).sum(axis=1))[:8]
    differences = fitted[nearest] - fitted[0]
    gram = differences @ differences.T
    weights = np.linalg.solve(gram + 1e-3 * np.trace(gram) * np.eye(8), np.ones(8))
    np.testing.assert_allclose(image, weights / weights.sum() @ embedding[nearest], atol=1e-6)
    assert np.abs(image - embedding[0]).max() > 1e-3


def test_memory_beside_the_answer_does_not_grow_with_the_number_of_rows() -> None:
    fitted, embedding = cloud(500, 32).astype(np.float32), cloud(500, 4)
    queries = cloud(40_000, 32).astype(np.float32)
    peaks = []
    for m in (4_000, 4_000, 40_000):  # the first run loads libraries
        tracemalloc.start()
        # One thread: how many blocks two of them hold at a moment is chance.
        images = map_out_of_sample(queries[:m], fitted, embedding, block=1000, workers=1, **SETTINGS)
        peaks.append(tracemalloc.get_traced_memory()[1] - images.nbytes)
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]


def test_progress_adds_up_to_the_rows() -> None:
    steps: list[int] = []
    map_out_of_sample(cloud(25), cloud(20, seed=1), cloud(20, 2), block=10, progress=steps.append, **SETTINGS)
    assert steps == [10, 10, 5]


def test_no_rows_give_no_coordinates() -> None:
    assert map_out_of_sample(cloud(0), cloud(20), cloud(20, 2), **SETTINGS).shape == (0, 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_neighbors": 21}, "k <= n = 20"),
        ({"n_neighbors": 0}, "k = 0"),
        ({"regularization": 0.0}, "positive"),
        ({"queries": cloud(5, 4)}, "width"),
        ({"queries": np.full((2, 5), np.nan)}, "query 0"),
        ({"fitted": np.full((20, 5), np.inf)}, "row 0"),
        ({"embedding": cloud(19, 2)}, "not that of the fitted rows"),
    ],
    ids=repr,
)
def test_what_does_not_fit_is_refused_with_what_would(change: dict[str, Any], said: str) -> None:
    call = {"queries": cloud(5, seed=1), "fitted": cloud(20), "embedding": cloud(20, 2), **SETTINGS, **change}
    with pytest.raises(ParameterError) as caught:
        map_out_of_sample(call.pop("queries"), call.pop("fitted"), call.pop("embedding"), **call)
    assert said in str(caught.value)


def test_a_row_that_is_not_finite_is_named_with_its_block() -> None:
    queries = cloud(25)
    queries[17, 2] = np.nan
    with pytest.raises(ParameterError, match="rows from 10 on: query 7"):
        map_out_of_sample(queries, cloud(20), cloud(20, 2), block=10, **SETTINGS)


def test_the_estimator_maps_new_rows_by_this_map() -> None:
    fitted, queries = cloud(150), cloud(40, seed=1)
    model = LocalityPreservingEmbedding(8, 3).fit(fitted)
    np.testing.assert_array_equal(
        model.transform(queries), map_out_of_sample(queries, fitted, model.embedding_, **SETTINGS)
    )
