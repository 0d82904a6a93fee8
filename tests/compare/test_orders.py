"""Repairs and breaks against a count by hand, a naive count, and Kendall's tau."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from sentfold.compare.bootstrap import item_design
from sentfold.compare.orders import Orders, compare_orders


def compare(human: list[float], old: list[float], new: list[float], *, resamples: int = 50) -> Orders:
    arrays = [np.array(values, dtype=np.float64) for values in (human, old, new)]
    design = item_design([""] * len(human))
    return compare_orders(*arrays, design, resamples=resamples, confidence=0.95, seed=0)


def test_three_pairs_by_hand() -> None:
    # People: c > b > a. Before: a > b wrong, c right of both. After: b > a right, c > b broken, c > a right.
    orders = compare([1, 2, 3], [0.2, 0.1, 0.9], [0.1, 0.8, 0.7])
    assert (orders.comparable, orders.before, orders.after, orders.repaired, orders.broken) == (3, 2, 2, 1, 1)
    assert orders.net == 0


NUMBERS = st.lists(st.tuples(*[st.integers(0, 6)] * 3), min_size=2, max_size=40)


@given(NUMBERS)
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_a_double_loop(rows: list[tuple[int, int, int]]) -> None:
    repaired = broken = comparable = 0
    for i, (h, a, b) in enumerate(rows):
        for other_h, other_a, other_b in rows[:i]:
            truth = np.sign(h - other_h)
            comparable += truth != 0
            repaired += truth * np.sign(a - other_a) == -1 and truth * np.sign(b - other_b) == 1
            broken += truth * np.sign(a - other_a) == 1 and truth * np.sign(b - other_b) == -1
    orders = compare(*(list(map(float, column)) for column in zip(*rows, strict=True)))
    assert (orders.repaired, orders.broken, orders.comparable) == (repaired, broken, comparable)


def test_without_ties_the_net_repair_is_half_the_gain_in_kendalls_tau() -> None:
    rng = np.random.default_rng(5)
    human, old, new = rng.standard_normal((3, 300))
    orders = compare(list(human), list(old), list(new))
    gain = kendalltau(human, new).statistic - kendalltau(human, old).statistic
    assert orders.net / 100 == pytest.approx(gain / 2, abs=1e-12)


def test_a_space_that_orders_alike_repairs_and_breaks_nothing() -> None:
    orders = compare([1, 2, 3, 4], [0.4, 0.1, 0.3, 0.2], [8.0, 2.0, 6.0, 4.0])
    assert (orders.repaired, orders.broken) == (0, 0)
    assert (orders.low, orders.high) == (0, 0)


def test_the_interval_holds_the_count_and_narrows_with_more_items() -> None:
    rng = np.random.default_rng(9)
    widths = []
    for n in (100, 400):
        human = rng.standard_normal(n)
        old, new = human + rng.standard_normal(n), human + 0.5 * rng.standard_normal(n)
        orders = compare(list(human), list(old), list(new), resamples=400)
        assert orders.low is not None and orders.high is not None
        assert 0 < orders.low < orders.net < orders.high
        widths.append(orders.high - orders.low)
    # Four times the items halve the standard error; 400 resamples leave widths uncertain by some 10%.
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.35)
