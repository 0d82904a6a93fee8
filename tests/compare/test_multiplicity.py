"""Simultaneous intervals against simulations and against the cases that theory answers."""

from __future__ import annotations

import numpy as np
import pytest

from sentfold.compare.multiplicity import Contrast, adjust
from sentfold.errors import ParameterError

RNG = np.random.default_rng(7)


def contrast(value: float, data: str, *, spread: float = 1.0, shared: np.ndarray | None = None) -> Contrast:
    noise = RNG.standard_normal(4000) if shared is None else shared
    return Contrast(value, value + spread * noise, data)


def test_one_contrast_alone_has_its_own_normal_interval() -> None:
    (only,) = adjust([contrast(5.0, "a", spread=2.0)], confidence=0.95)
    # 4000 replicates leave the 97.5% point of a normal uncertain by about 2%.
    assert only.high - only.value == pytest.approx(1.96 * 2.0, rel=0.05)
    assert only.sign == 1


def test_independent_contrasts_need_the_sidak_quantile_and_identical_ones_need_nothing_more() -> None:
    many = adjust([contrast(0.0, str(i)) for i in range(20)], confidence=0.95)
    # 1 - (1 - 0.95^(1/20)) / 2 of the normal: 3.02.
    assert many[0].high == pytest.approx(3.02, rel=0.05)
    same = RNG.standard_normal(4000)
    alike = adjust([contrast(0.0, "a", shared=same) for _ in range(20)], confidence=0.95)
    assert alike[0].high == pytest.approx(1.96, rel=0.05)


def test_data_sets_are_independent_even_when_their_replicates_were_drawn_with_one_seed() -> None:
    same = RNG.standard_normal(4000)
    apart = adjust([contrast(0.0, str(i), shared=same) for i in range(20)], confidence=0.95)
    assert apart[0].high == pytest.approx(3.02, rel=0.05)


def test_a_true_null_family_raises_a_false_alarm_at_the_rate_promised() -> None:
    rng, alarms, trials = np.random.default_rng(1), 0, 400
    for _ in range(trials):
        shared = rng.standard_normal((3, 600))
        family = []
        for i in range(9):
            # Replicates scatter about the estimate, and the estimate about zero, with one spread.
            mixed = (shared[i % 3] + rng.standard_normal(600)) / np.sqrt(2)
            value = float(rng.standard_normal())
            family.append(Contrast(value, value + mixed, str(i % 3)))
        alarms += any(result.sign for result in adjust(family, confidence=0.95))
    # Estimates here are independent, replicates half shared, so the rate is at most a little over 5%: three
    # standard errors of 400 trials are 3.3 points.
    assert alarms / trials < 0.05 + 0.033 + 0.01


def test_a_difference_of_the_detectable_size_is_found_four_times_in_five() -> None:
    (one,) = adjust([contrast(0.0, "a")], confidence=0.95)
    rng = np.random.default_rng(3)
    found = [abs(one.detectable + rng.standard_normal()) > one.high for _ in range(4000)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03)


def test_p_values_order_as_the_studentised_differences_and_agree_with_the_intervals() -> None:
    results = adjust([contrast(value, str(value)) for value in (0.5, 2.0, 3.5, 6.0)], confidence=0.95)
    assert [result.p for result in results] == sorted((result.p for result in results), reverse=True)
    assert all((result.p < 0.05) == (result.sign != 0) for result in results)


def test_two_spaces_that_never_differ_are_no_comparison() -> None:
    still = Contrast(0.0, np.zeros(4000), "a")
    alone, beside = adjust([still, contrast(3.0, "b")], confidence=0.95)
    assert (alone.low, alone.high, alone.p, alone.sign) == (0.0, 0.0, 1.0, 0)
    assert beside.high - beside.value == pytest.approx(1.96, rel=0.05)


def test_replicates_that_cannot_be_paired_are_refused() -> None:
    with pytest.raises(ParameterError, match="judged together"):
        adjust([contrast(0.0, "a"), Contrast(0.0, np.zeros(10), "b")], confidence=0.95)
    with pytest.raises(ParameterError, match="judged together"):
        adjust([Contrast(0.0, np.full(10, np.nan), "b")], confidence=0.95)
    assert adjust([], confidence=0.95) == ()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_difference_that_is_not_finite_has_no_p(value: float) -> None:
    with pytest.raises(ParameterError, match="judged together"):
        adjust([contrast(1.0, "a"), Contrast(value, contrast(1.0, "a").replicates, "a")], confidence=0.95)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_replicates_have_no_spread_and_are_refused(count: int) -> None:
    with pytest.raises(ParameterError, match="at least 2"):
        adjust([Contrast(1.0, np.zeros(count), "a")], confidence=0.95)
