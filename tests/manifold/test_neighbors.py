"""Exact neighbours against scikit-learn's brute force, and the promises about order, ties and nesting."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import pairwise_distances

from pipeline.errors import ParameterError
from pipeline.manifold.neighbors import in_degrees, nearest_neighbors


def slow_neighbors(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Every distance in float64 by differences, sorted by (distance, row)."""
    x = x.astype(np.float64)
    squared = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    order = np.array([np.lexsort((np.arange(len(x)), row)) for row in squared])[:, :k]
    return order, np.sqrt(np.take_along_axis(squared, order, axis=1))


whole_numbers = arrays(
    np.float32, st.tuples(st.integers(3, 40), st.integers(1, 4)), elements=st.integers(-3, 3).map(float)
)


@given(x=whole_numbers, data=st.data())
@settings(deadline=None, max_examples=60)
def test_neighbors_on_a_grid_full_of_ties_are_the_slow_ones_in_the_same_order(
    x: np.ndarray, data: st.DataObject
) -> None:
    # Small whole numbers make every distance exact, and ties and duplicates plentiful.
    k = data.draw(st.integers(1, len(x) - 1))
    found = nearest_neighbors(x, k, block=data.draw(st.integers(1, 50)))
    indices, distances = slow_neighbors(x, k)
    np.testing.assert_array_equal(found.indices, indices)
    np.testing.assert_array_equal(found.distances, distances)


def test_neighbors_agree_with_scikit_learn_on_random_vectors() -> None:
    x = np.random.default_rng(0).standard_normal((400, 60)).astype(np.float32)
    found = nearest_neighbors(x, 12)
    full = pairwise_distances(x.astype(np.float64))
    np.fill_diagonal(full, np.inf)
    # Random real distances have no ties, so sorting by distance alone is the whole order.
    np.testing.assert_array_equal(found.indices, np.argsort(full, axis=1)[:, :12])
    np.testing.assert_allclose(found.distances, np.sort(full, axis=1)[:, :12], rtol=1e-7)


def test_a_smaller_k_is_a_prefix_of_a_larger_one() -> None:
    x = np.random.default_rng(1).standard_normal((300, 20)).astype(np.float32)
    np.testing.assert_array_equal(nearest_neighbors(x, 7).indices, nearest_neighbors(x, 40).indices[:, :7])


def test_many_copies_of_one_vector_defeat_float32_candidates_and_are_still_ordered_by_row() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((120, 30)).astype(np.float32)
    x[:60] = x[0]
    found = nearest_neighbors(x, 5)
    assert found.recomputed >= 60
    np.testing.assert_array_equal(found.indices[40], [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(found.distances[:60], 0.0)


def test_near_duplicates_far_below_float32_resolution_are_told_apart() -> None:
    # Around 1000, float32 products resolve squared distances to about 0.1; these differ by 1e-6.
    base = np.full((40, 8), 1000.0)
    base[:, 0] += np.arange(40) * 1e-3
    found = nearest_neighbors(base, 2)
    np.testing.assert_array_equal(found.indices[20], [19, 21])
    assert found.recomputed > 0


def test_cosine_neighbors_are_those_of_the_angles_and_a_zero_vector_is_at_distance_one() -> None:
    x = np.random.default_rng(3).standard_normal((80, 10)).astype(np.float32)
    x[5] = 0
    found = nearest_neighbors(x, 79, metric="cosine")
    with np.errstate(invalid="ignore"):
        unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    expected = 1 - unit[7] @ unit[found.indices[7]].T
    expected[found.indices[7] == 5] = 1.0
    np.testing.assert_allclose(found.distances[7], expected, atol=1e-12)
    np.testing.assert_allclose(found.distances[5], 1.0, atol=1e-12)


def test_no_row_is_its_own_neighbor_and_in_degrees_sum_to_all_edges() -> None:
    x = np.random.default_rng(4).standard_normal((150, 5)).astype(np.float32)
    indices = nearest_neighbors(x, 9).indices
    assert not (indices == np.arange(150)[:, None]).any()
    assert in_degrees(indices, 150).sum() == 150 * 9


@pytest.mark.parametrize("k", [0, 10, 11])
def test_k_outside_the_data_is_refused_with_the_range(k: int) -> None:
    with pytest.raises(ParameterError) as error:
        nearest_neighbors(np.eye(10, dtype=np.float32), k)
    assert "n = 10" in error.value.expected


SCRIPT = """
import sys, hashlib, numpy as np
from pipeline.manifold.neighbors import nearest_neighbors
x = np.random.default_rng(0).standard_normal((1500, 96)).astype(np.float32)
found = nearest_neighbors(x, 30, block=int(sys.argv[1]), workers=int(sys.argv[2]))
print(hashlib.sha256(found.indices.tobytes() + found.distances.tobytes()).hexdigest())
"""


def test_bits_do_not_depend_on_blas_threads_workers_or_blocks() -> None:
    digests = set()
    for threads, workers, block in (("1", "1", "1024"), ("2", "2", "1024"), ("2", "1", "97")):
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, block, workers],
            env={"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1
