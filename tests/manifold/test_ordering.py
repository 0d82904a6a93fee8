"""The order of rows in memory: a permutation, the same every time, with neighbours near each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sentfold.manifold.solver import ordering
from sentfold.manifold.solver.ordering import cache_order


def graph(n: int, neighbors: npt.NDArray[np.integer]) -> sp.csr_array:
    rows = np.repeat(np.arange(n), neighbors.shape[1])
    return sp.csr_array((np.full(neighbors.size, 0.5), (rows, neighbors.ravel())), shape=(n, n))


def share_near(weights: sp.csr_array, order: npt.NDArray[np.int32], window: int) -> float:
    """Of all neighbours, those that lie at most `window` places from their row."""
    place = np.empty(len(order), int)
    place[order] = np.arange(len(order))
    rows, columns = weights.nonzero()
    return float((np.abs(place[rows] - place[columns]) <= window).mean())


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "MANY", 0)


@pytest.fixture(scope="module")
def groups() -> sp.csr_array:
    """40 groups of 100 rows in random places, nine of ten neighbours in a row's own group, one anywhere."""
    rng = np.random.default_rng(0)
    members = rng.permutation(4000).reshape(40, 100)
    neighbors = np.empty((4000, 10), int)
    for own in members:
        neighbors[own, :9] = rng.choice(own, (100, 9))
        neighbors[own, 9] = rng.integers(0, 4000, 100)
    return graph(4000, neighbors)


@pytest.mark.usefixtures("halves")
def test_groups_of_neighbours_come_together_where_levels_of_a_breadth_first_walk_mix_them(
    groups: sp.csr_array, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = share_near(groups, cache_order(groups), 400)
    monkeypatch.setattr(ordering, "MANY", 10**9)
    by_levels = share_near(groups, cache_order(groups), 400)
    assert by_levels < 0.5
    assert ours > 0.8  # 0.9 are in the group, which lies in one piece where no cut at the middle has split it


@pytest.mark.usefixtures("halves")
def test_the_order_is_the_same_every_time(groups: sp.csr_array) -> None:
    np.testing.assert_array_equal(cache_order(groups), cache_order(groups))


@given(st.integers(1, 300), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans())
def test_every_row_has_one_place(n: int, k: int, seed: int, many: bool) -> None:
    """Also in graphs of several parts, with rows that nobody has as a neighbour, and with equal rows."""
    rng = np.random.default_rng(seed)
    weights = graph(n, rng.integers(0, n, (n, k)) // 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "MANY", 0 if many else 10**9)
        order = cache_order(weights)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(np.sort(order), np.arange(n))


@pytest.mark.usefixtures("halves")
def test_rows_that_no_direction_tells_apart_are_halved_all_the_same() -> None:
    everyone_near_one = graph(1000, np.zeros((1000, 2), int))
    np.testing.assert_array_equal(np.sort(cache_order(everyone_near_one)), np.arange(1000))
