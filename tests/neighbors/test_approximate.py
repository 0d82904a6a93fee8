"""Approximate neighbours: what recall means, that it is high on clusters, and that distances are exact."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from sentfold.errors import ParameterError
from sentfold.neighbors.approximate import approximate_neighbors, find_neighbors, others_once, recall_of
from sentfold.neighbors.neighbors import Neighbors, nearest_neighbors

# pynndescent is compiled anew by every process that calls it, for half a minute to a minute.
descends = pytest.mark.slow


@pytest.fixture(scope="module")
def clustered() -> np.ndarray:
    """3000 points in 60 groups, with twins and zero vectors among them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 24))[rng.integers(0, 60, 3000)] + 0.5 * rng.standard_normal((3000, 24))
    x[100:140] = x[99]
    x[500:503] = 0
    return x.astype(np.float32)


def test_recall_counts_neighbors_that_are_as_near_as_the_kth_whichever_rows_they_are() -> None:
    # Points 0, 1, 2, 3 and 10 on a line. Row 1 has two others at distance 1, row 0 one at 1 and one at 2.
    x = np.array([[0.0], [1.0], [2.0], [3.0], [10.0]])
    indices = np.array([[1, 3], [0, 2], [3, 4], [4, 2], [3, 2]], dtype=np.int32)
    found = Neighbors(indices, np.abs(x[indices, 0] - x), recomputed=0)
    right = {0: 1, 1: 2, 2: 1, 3: 1, 4: 2}  # row 3: exact are 2 and 1 (distances 1, 2); 4 is at 7
    for row, count in right.items():
        assert recall_of(found, x, np.array([row])) == count / 2
    assert recall_of(found, x, np.arange(5)) == 7 / 10
    # Row 1 asked for one neighbour: row 2 is as near as row 0, so it counts.
    only = Neighbors(np.array([[2]] * 5, dtype=np.int32), np.abs(x[2] - x), recomputed=0)
    assert recall_of(only, x, np.array([1])) == 1.0


def test_of_what_the_descent_returns_the_row_itself_repeats_and_gaps_are_left_out() -> None:
    ids, counts = others_once(np.array([[0, 2, 1], [2, 2, -1], [-1, -1, 2]]))
    assert counts.tolist() == [2, 1, 0]
    assert (ids[0, :2].tolist(), ids[1, :1].tolist()) == ([1, 2], [2])


@descends
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_on_clusters_most_neighbors_are_the_true_ones_and_recall_says_how_many(
    clustered: np.ndarray, metric: str
) -> None:
    found, recall = approximate_neighbors(clustered, 15, metric=metric, seed=3, sample=3000)
    exact = nearest_neighbors(clustered, 15, metric=metric)
    assert recall == (found.distances <= exact.distances[:, -1:] * (1 + 1e-9)).mean()
    assert recall > 0.95
    by_sample = approximate_neighbors(clustered, 15, metric=metric, seed=3, sample=1000)[1]
    # 1000 of 3000 rows: the mean of their recalls, each between 0 and 1, is off by 0.02 at most in all likelihood.
    assert abs(by_sample - recall) < 0.02


@descends
def test_what_is_found_is_ordered_by_exact_distance_and_row_without_the_row_itself(clustered: np.ndarray) -> None:
    found, _ = approximate_neighbors(clustered, 15, seed=3)
    full = cdist(clustered.astype(np.float64), clustered.astype(np.float64))
    np.testing.assert_allclose(found.distances, np.take_along_axis(full, found.indices.astype(int), 1), atol=1e-12)
    steps = np.diff(found.distances)
    assert ((steps > 0) | ((steps == 0) & (np.diff(found.indices) > 0))).all()
    assert not (found.indices == np.arange(3000)[:, None]).any()


@descends
def test_one_seed_gives_the_same_bits_twice(clustered: np.ndarray) -> None:
    first, second = (approximate_neighbors(clustered, 10, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first[0].indices, second[0].indices)
    assert first[1] == second[1]


@descends
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 4), (40, 39)])
def test_rows_for_which_the_descent_finds_too_few_are_completed_exactly(n: int, k: int) -> None:
    x = np.random.default_rng(1).standard_normal((n, 3))
    found, recall = approximate_neighbors(x, k, seed=0)
    exact = nearest_neighbors(x, k)
    np.testing.assert_array_equal(found.indices, exact.indices)
    np.testing.assert_array_equal(found.distances, exact.distances)
    assert recall == 1.0


@descends
def test_the_method_is_exact_up_to_a_size_unless_it_is_named(clustered: np.ndarray) -> None:
    def ask(method: str, exact_up_to: int) -> tuple[Neighbors, float]:
        return find_neighbors(clustered, 5, metric="euclidean", method=method, exact_up_to=exact_up_to, seed=0)

    exact, near = nearest_neighbors(clustered, 5).indices, approximate_neighbors(clustered, 5, seed=0)[0].indices
    assert (exact != near).any()
    for method, size, expected in [("auto", 3000, exact), ("auto", 2999, near), ("exact", 0, exact)]:
        np.testing.assert_array_equal(ask(method, size)[0].indices, expected)
    assert ask("auto", 3000)[1] == 1.0
    np.testing.assert_array_equal(ask("approximate", 10_000)[0].indices, near)


def test_k_outside_the_data_is_refused_before_anything_is_sought() -> None:
    with pytest.raises(ParameterError, match="k does not fit"):
        approximate_neighbors(np.eye(4), 4, seed=0)
