"""Families of differences: error rates by simulation, closed forms, and what must hold of any family."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from pipeline.errors import ParameterError
from pipeline.evaluate.bootstrap import draw_weights, item_design, weighted_means
from pipeline.evaluate.significance import compare_all, smallest_detectable


def family(seed: int, truth: np.ndarray, n: int = 150, resamples: int = 300) -> tuple[dict, dict]:
    """Mean differences of cells that hang together: half of each item's noise is shared by all cells."""
    rng = np.random.default_rng(seed)
    values = truth + rng.standard_normal((n, 1)) + rng.standard_normal((n, len(truth)))
    weights = list(draw_weights(item_design([""] * n), resamples=resamples, seed=seed))
    cells = {f"c{place}": column for place, column in enumerate(values.T)}
    return {name: float(column.mean()) for name, column in cells.items()}, {
        name: np.concatenate([weighted_means(column, drawn) for drawn in weights]) for name, column in cells.items()
    }


def test_of_twelve_true_zeros_one_is_called_real_in_about_a_twentieth_of_tables() -> None:
    alone, together, covered = 0, 0, 0
    for seed in range(400):
        found = compare_all(*family(seed, np.zeros(12)), confidence=0.95).values()
        alone += any(abs(cell.difference) > 1.96 * cell.error for cell in found)
        together += any(cell.adjusted_p <= 0.05 for cell in found)
        covered += all(cell.low <= 0 <= cell.high for cell in found)
    # 400 tables know 5% to a standard error of 1.1 points; unadjusted, a quarter of the tables claim something.
    assert 0.015 <= together / 400 <= 0.09
    assert 0.91 <= covered / 400 <= 0.985
    assert alone / 400 > 0.2


def test_a_real_difference_among_zeros_is_found() -> None:
    truth = np.zeros(8)
    truth[3] = 1.0  # five standard errors
    found = compare_all(*family(1, truth), confidence=0.95)
    assert found["c3"].adjusted_p < 0.01 < min(cell.adjusted_p for name, cell in found.items() if name != "c3")
    assert found["c3"].low > 0


@given(seed=st.integers(0, 2**32 - 1), cells=st.integers(1, 8))
@settings(deadline=None, max_examples=40)
def test_adjusting_never_helps_a_cell_and_keeps_the_order(seed: int, cells: int) -> None:
    sample, replicates = family(seed, np.random.default_rng(seed).uniform(-0.5, 0.5, cells), n=40, resamples=150)
    found = compare_all(sample, replicates, confidence=0.9)
    alone = {name: compare_all({name: sample[name]}, replicates, confidence=0.9)[name] for name in sample}
    for name, cell in found.items():
        assert cell.adjusted_p >= alone[name].adjusted_p
        assert cell.high - cell.low >= alone[name].high - alone[name].low - 1e-12
        assert cell.low <= cell.difference <= cell.high
    ordered = sorted(found.values(), key=lambda cell: abs(cell.difference) / cell.error)
    levels = [cell.adjusted_p for cell in ordered]
    assert levels == sorted(levels, reverse=True)


def test_two_equal_spaces_differ_by_nothing_and_disturb_no_other_cell() -> None:
    sample, replicates = family(2, np.zeros(3))
    with_twin = compare_all({**sample, "twin": 0.0}, {**replicates, "twin": np.zeros(300)}, confidence=0.95)
    without = compare_all(sample, replicates, confidence=0.95)
    assert (with_twin["twin"].low, with_twin["twin"].high, with_twin["twin"].adjusted_p) == (0, 0, 1)
    for name, cell in without.items():
        assert vars(with_twin[name]) == pytest.approx(vars(cell), rel=1e-12)
    assert compare_all({}, {}, confidence=0.95) == {}


def test_an_undefined_replicate_or_unequal_numbers_are_refused() -> None:
    sample, replicates = family(3, np.zeros(2))
    with pytest.raises(ParameterError, match="one family"):
        compare_all(sample, {**replicates, "c0": np.full(300, np.nan)}, confidence=0.95)
    with pytest.raises(ParameterError, match="one family"):
        compare_all(sample, {**replicates, "c0": np.zeros(7)}, confidence=0.95)


def test_a_difference_of_the_smallest_detectable_size_is_detected_as_often_as_the_power_says() -> None:
    assert smallest_detectable(1.0, confidence=0.95) == pytest.approx(1.959964 + 0.841621, abs=1e-5)
    for comparisons in (1, 10):
        size = smallest_detectable(2.0, confidence=0.9, power=0.7, comparisons=comparisons)
        cut = 2.0 * norm.ppf(1 - 0.1 / comparisons / 2)
        # The other tail adds what a normal of this mean has below -cut, less than 0.001 here.
        assert norm.sf(cut, loc=size, scale=2.0) == pytest.approx(0.7, abs=1e-9)
