"""What is counted about a graph, on graphs small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skew

from sentfold.errors import ParameterError
from sentfold.neighbors.graph_report import count_twins, describe_graph
from sentfold.neighbors.neighbors import in_degrees, nearest_neighbors


def test_a_star_and_a_pair_apart_are_counted() -> None:
    # Rows 1 to 3 choose 0, which chooses 1; rows 4 and 5 choose each other.
    indices = np.array([[1], [0], [0], [0], [5], [4]])
    report = describe_graph(indices, np.ones((6, 1)), np.eye(6))
    assert report.components == 2
    assert report.largest_in_degree == 3
    assert report.unchosen == 2
    np.testing.assert_allclose(report.in_degree_skewness, skew([3, 1, 0, 0, 1, 1]), rtol=1e-12)
    assert report.tied_rows == 0


def test_islands_are_components_and_equal_in_degrees_have_no_skewness() -> None:
    corners = np.vstack([np.eye(4) + 100 * island for island in range(3)])
    graph = nearest_neighbors(corners, 3)
    report = describe_graph(graph.indices, graph.distances, corners)
    assert (report.components, report.unchosen, report.in_degree_skewness) == (3, 0, 0.0)
    assert report.tied_rows == 12


def test_skewness_is_that_of_scipy_on_random_points() -> None:
    x = np.random.default_rng(0).standard_normal((400, 10))
    graph = nearest_neighbors(x, 7)
    report = describe_graph(graph.indices, graph.distances, x)
    np.testing.assert_allclose(report.in_degree_skewness, skew(in_degrees(graph.indices, 400)), rtol=1e-12)
    assert report.components == 1


def test_zero_vectors_and_twins_are_counted_and_minus_zero_is_zero() -> None:
    x = np.array([[0.0, 0.0], [-0.0, 0.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [2.0, 1.0]], dtype=np.float32)
    assert count_twins(x) == 3 == len(x) - len(np.unique(x, axis=0))
    report = describe_graph(np.array([[1], [0], [3], [2], [2], [2]]), np.zeros((6, 1)), x)
    assert (report.zero_vectors, report.identical_vectors) == (2, 3)


@pytest.mark.parametrize("row", [-1, 12, 2_000_000_000])
def test_a_neighbor_that_is_no_row_is_refused_and_not_looked_up(row: int) -> None:
    x = np.random.default_rng(0).standard_normal((12, 3))
    graph = nearest_neighbors(x, 2)
    graph.indices[5, 1] = row
    with pytest.raises(ParameterError, match="do not fit the vectors"):
        describe_graph(graph.indices, graph.distances, x)
