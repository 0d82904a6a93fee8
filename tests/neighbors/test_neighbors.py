"""Exact neighbours against brute force, and the promises about order, ties, nesting, bits and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from sentfold.errors import ParameterError
from sentfold.neighbors.neighbors import in_degrees, nearest_among, nearest_neighbors
from sentfold.neighbors.points import Metric, squared_lengths


def sorted_by_distance_and_row(distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(distances, order, axis=1)


def slow_neighbors(x: np.ndarray, k: int, metric: str = "euclidean") -> tuple[np.ndarray, np.ndarray]:
    """Every distance in float64 by scipy, sorted by (distance, row)."""
    distances = cdist(x.astype(np.float64), x.astype(np.float64), metric)
    np.fill_diagonal(distances, np.inf)
    return sorted_by_distance_and_row(distances, k)


@st.composite
def awkward_points(draw: st.DrawFn) -> np.ndarray:
    """Small whole numbers, so that distances are exact: full of ties, duplicates, zero rows and collinear points."""
    shape = st.tuples(st.integers(3, 40), st.integers(1, 4))
    x = draw(arrays(np.float32, shape, elements=st.integers(-3, 3).map(float)))
    shape_of_all = draw(st.sampled_from(["scattered", "collinear", "equal", "one zero row"]))
    if shape_of_all == "collinear":
        x = np.outer(x[:, 0], np.arange(1, x.shape[1] + 1)).astype(np.float32)
    elif shape_of_all == "equal":
        x[:] = x[0]
    elif shape_of_all == "one zero row":
        x[len(x) // 2] = 0
    return x


@given(x=awkward_points(), double=st.booleans(), data=st.data())
@settings(deadline=None, max_examples=150)
def test_neighbors_on_a_grid_full_of_ties_are_the_slow_ones_in_the_same_order(
    x: np.ndarray, double: bool, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(x) - 1))
    x = x.astype(np.float64) if double else x
    found = nearest_neighbors(x, k, block=data.draw(st.integers(1, 50)), workers=data.draw(st.integers(1, 3)))
    indices, distances = slow_neighbors(x, k)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.distances, distances)


@pytest.mark.slow
@given(x=awkward_points(), queries=awkward_points(), data=st.data())
@settings(deadline=None, max_examples=100)
def test_neighbors_of_queries_on_that_grid_are_the_slow_ones_too(
    x: np.ndarray, queries: np.ndarray, data: st.DataObject
) -> None:
    width = min(x.shape[1], queries.shape[1])
    x, queries = x[:, :width], queries[:, :width].astype(data.draw(st.sampled_from([np.float32, np.float64])))
    k = data.draw(st.integers(1, len(x)))
    found = nearest_among(queries, x, k, block=data.draw(st.integers(1, 50)))
    indices, distances = sorted_by_distance_and_row(cdist(queries.astype(np.float64), x.astype(np.float64)), k)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.distances, distances)


@given(x=awkward_points(), data=st.data())
@settings(deadline=None, max_examples=100)
def test_cosine_distances_on_that_grid_are_the_smallest_ones_in_order(x: np.ndarray, data: st.DataObject) -> None:
    # Angles are irrational, so ties of the slow distances are ties up to rounding only: values are compared.
    k = data.draw(st.integers(1, len(x) - 1))
    found = nearest_neighbors(x, k, metric="cosine", block=data.draw(st.integers(1, 50)))
    lengths = np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    unit = x / np.where(lengths > 0, lengths, 1)
    zero = lengths[:, 0] == 0
    full = 1 - unit @ unit.T
    full[np.ix_(zero, zero)] = 0.0  # equal to each other, and at distance 1 from everything else
    np.testing.assert_allclose(found.distances, np.take_along_axis(full, found.indices.astype(int), 1), atol=1e-14)
    np.fill_diagonal(full, np.inf)
    np.testing.assert_allclose(found.distances, np.sort(full, axis=1)[:, :k], atol=1e-14)
    ordered = (np.diff(found.distances) > 0) | ((np.diff(found.distances) == 0) & (np.diff(found.indices) > 0))
    assert ordered.all()
    assert not (found.indices == np.arange(len(x))[:, None]).any()


@pytest.mark.parametrize("k", [3, 40])
def test_a_large_grid_full_of_ties_is_ordered_by_row_across_blocks(k: int) -> None:
    # 343 places for 1500 rows, many candidates per row and several rounds of choosing among them.
    x = np.random.default_rng(8).integers(-3, 4, (1500, 3)).astype(np.float32)
    found = nearest_neighbors(x, k, block=200)
    indices, distances = slow_neighbors(x, k)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.distances, distances)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_neighbors_agree_with_scikit_learns_brute_force_on_random_vectors(metric: str) -> None:
    x = np.random.default_rng(0).standard_normal((1500, 60))
    theirs = NearestNeighbors(n_neighbors=12, algorithm="brute", metric=metric).fit(x)
    distances, indices = theirs.kneighbors()
    found = nearest_neighbors(x, 12, metric=metric, block=200)
    # Random real distances have no ties, so sorting by distance alone is the whole order.
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)
    assert found.recomputed == 0


def test_neighbors_of_queries_agree_with_scikit_learns_brute_force() -> None:
    rng = np.random.default_rng(1)
    x, queries = rng.standard_normal((1300, 33)), rng.standard_normal((700, 33)) * 50
    distances, indices = NearestNeighbors(n_neighbors=9, algorithm="brute").fit(x).kneighbors(queries)
    found = nearest_among(queries, x, 9, block=128)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_allclose(found.distances, distances, rtol=1e-12)


@given(x=awkward_points(), data=st.data())
@settings(deadline=None, max_examples=50)
def test_a_smaller_k_is_a_prefix_of_a_larger_one(x: np.ndarray, data: st.DataObject) -> None:
    small, large = sorted(data.draw(st.tuples(*[st.integers(1, len(x) - 1)] * 2)))
    np.testing.assert_array_equal(nearest_neighbors(x, small).indices, nearest_neighbors(x, large).indices[:, :small])


def test_a_permutation_of_the_rows_permutes_the_neighbors() -> None:
    rng = np.random.default_rng(2)
    x, order = rng.standard_normal((700, 20)).astype(np.float32), rng.permutation(700)
    plain, permuted = nearest_neighbors(x, 9, block=100), nearest_neighbors(x[order], 9, block=100)
    np.testing.assert_array_equal(order[permuted.indices], plain.indices[order])
    np.testing.assert_array_equal(permuted.distances, plain.distances[order])


def test_many_copies_of_one_vector_defeat_float32_candidates_and_are_still_ordered_by_row() -> None:
    x = np.random.default_rng(2).standard_normal((1200, 30)).astype(np.float32)
    x[:600] = x[0]
    found = nearest_neighbors(x, 5, block=256)
    assert found.recomputed >= 600
    np.testing.assert_array_equal(found.indices[400], [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(found.distances[:600], 0.0)


def test_under_cosine_the_zero_vectors_are_each_others_nearest_in_order_of_rows() -> None:
    x = np.random.default_rng(9).standard_normal((600, 12)).astype(np.float32)
    x[::2] = 0
    found = nearest_neighbors(x, 5, metric="cosine", block=100)
    np.testing.assert_array_equal(found.indices[100], [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(found.distances[::2], 0)
    np.testing.assert_array_equal(found.indices[1::2] % 2, 1)


def test_near_duplicates_far_below_float32_resolution_are_told_apart() -> None:
    # Around 1000, float32 products resolve squared distances to about 0.1; these differ by 1e-6.
    base = np.full((400, 8), 1000.0)
    base[:, 0] += np.arange(400) * 1e-3
    found = nearest_neighbors(base, 2)
    np.testing.assert_array_equal(found.indices[20], [19, 21])
    assert found.recomputed > 0


@pytest.mark.parametrize("factor", [2.0**-400, 2.0**-70, 2.0**60, 2.0**400])
def test_scaling_by_a_power_of_two_scales_the_distances_and_changes_nothing_else(factor: float) -> None:
    # float32 alone would overflow or underflow at each of these; only the squares of the last fit float64.
    x = np.random.default_rng(5).standard_normal((300, 7))
    plain, scaled = nearest_neighbors(x, 6), nearest_neighbors(x * factor, 6)
    np.testing.assert_array_equal(scaled.indices, plain.indices)
    np.testing.assert_array_equal(scaled.distances, plain.distances * factor)


def test_rows_of_very_different_lengths_have_their_own_neighbors() -> None:
    # The short rows are below what float32 products of the long ones can resolve.
    x = np.random.default_rng(6).standard_normal((400, 5)) * np.where(np.arange(400) % 2, 1e-12, 1e6)[:, None]
    found = nearest_neighbors(x, 4)
    np.testing.assert_array_equal(found.indices, slow_neighbors(x, 4)[0])


def test_no_row_is_its_own_neighbor_and_in_degrees_sum_to_all_edges() -> None:
    x = np.random.default_rng(4).standard_normal((150, 5)).astype(np.float32)
    indices = nearest_neighbors(x, 9).indices
    assert not (indices == np.arange(150)[:, None]).any()
    assert in_degrees(indices, 150).sum() == 150 * 9


@pytest.mark.parametrize("k", [0, 10, 11])
def test_k_outside_the_data_is_refused_with_the_range(k: int) -> None:
    with pytest.raises(ParameterError) as error:
        nearest_neighbors(np.eye(10, dtype=np.float32), k)
    assert "k < n = 10" in error.value.expected


def test_a_query_may_have_every_row_as_its_neighbor_and_no_more() -> None:
    assert nearest_among(np.ones((2, 3)), np.eye(3), 3).indices.shape == (2, 3)
    with pytest.raises(ParameterError) as error:
        nearest_among(np.ones((2, 3)), np.eye(3), 4)
    assert "k <= n = 3" in error.value.expected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_row_that_is_not_finite_is_refused_by_its_number(bad: float) -> None:
    x = np.ones((20, 3))
    x[7, 1] = bad
    with pytest.raises(ParameterError) as error:
        nearest_neighbors(x, 2)
    assert error.value.where == "row 7"
    with pytest.raises(ParameterError) as error:
        nearest_among(x, np.eye(3), 2)
    assert error.value.where == "query 7"


def test_queries_of_another_width_are_refused_with_both_widths() -> None:
    with pytest.raises(ParameterError) as error:
        nearest_among(np.ones((2, 4)), np.eye(3), 1)
    assert ("3" in error.value.expected, "4" in error.value.got) == (True, True)


SCRIPT = """
import sys, hashlib, numpy as np
from sentfold.neighbors.neighbors import nearest_among, nearest_neighbors
x = np.random.default_rng(0).standard_normal((1500, 96)).astype(np.float32)
x[:200] = x[0]
sizes = {"block": int(sys.argv[1]), "workers": int(sys.argv[2])}
for found in (nearest_neighbors(x, 30, **sizes), nearest_among(x[::3] * 2, x, 30, metric="cosine", **sizes)):
    print(hashlib.sha256(found.indices.tobytes() + found.distances.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_bits_do_not_depend_on_blas_threads_workers_or_blocks() -> None:
    digests = set()
    for threads, workers, block in (("1", "1", "1024"), ("2", "2", "1024"), ("2", "1", "97"), ("1", "3", "250")):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, block, workers],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1


def test_ten_thousand_rows_take_thirty_megabytes_beyond_input_and_output() -> None:
    x = np.random.default_rng(7).standard_normal((10_000, 256)).astype(np.float32)
    nearest_neighbors(x[:100], 30)
    tracemalloc.start()
    found = nearest_neighbors(x, 30)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - found.indices.nbytes - found.distances.nbytes < 30e6


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("factor", [1e-170, 1e160])
def test_rows_whose_squares_leave_float64_are_refused_and_not_called_equal(factor: float, metric: Metric) -> None:
    x = np.random.default_rng(5).standard_normal((50, 7))
    x[3] = 0
    np.testing.assert_array_equal(nearest_neighbors(x, 3).distances > 0, True)
    with pytest.raises(ParameterError) as error:
        nearest_neighbors(x * factor, 3, metric=metric)
    assert error.value.where == "row 0"
    x[9] *= factor
    with pytest.raises(ParameterError) as error:
        nearest_among(x, x[:5], 3, metric=metric)
    assert error.value.where == "query 9"


def test_squared_lengths_take_no_copy_of_all_rows() -> None:
    x = np.ones((60_000, 64), dtype=np.float32)
    x[::2] = 0
    tracemalloc.start()
    np.testing.assert_array_equal(squared_lengths(x), np.tile([0.0, 64.0], 30_000))
    assert tracemalloc.get_traced_memory()[1] < x.nbytes / 2
    tracemalloc.stop()


def test_an_unknown_metric_is_refused_and_not_taken_for_another() -> None:
    x = np.random.default_rng(0).standard_normal((20, 3))
    for search in (lambda: nearest_neighbors(x, 3, metric="Cosine"), lambda: nearest_among(x, x, 3, metric="dot")):
        with pytest.raises(ParameterError, match="no such metric"):
            search()
