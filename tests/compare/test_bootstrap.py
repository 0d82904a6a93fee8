"""The bootstrap against resamples written out, closed-form spreads, and simulated coverage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from sentfold.compare.bootstrap import (
    Design,
    corpus_seed,
    draw_weights,
    group_design,
    item_design,
    make_design,
    percentile_interval,
    sort_once,
    text_design,
    weighted_pearson,
    weighted_spearman,
)
from sentfold.errors import ParameterError
from sentfold.measures.similarity import resample_similarity

Simulation = tuple[np.ndarray, np.ndarray, Design]


@given(
    values=st.lists(st.integers(0, 6), min_size=3, max_size=30),
    others=st.lists(st.integers(0, 6), min_size=30, max_size=30),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=100)
def test_weighted_spearman_and_pearson_equal_scipy_on_the_resample_written_out(
    values: list[int], others: list[int], seed: int
) -> None:
    x, y = np.array(values, dtype=float), np.array(others[: len(values)], dtype=float)
    counts = np.random.default_rng(seed).multinomial(len(x), np.full(len(x), 1 / len(x)), size=3)
    weights = counts.astype(float)
    spearman = weighted_spearman([sort_once(y), sort_once(x)], sort_once(y), weights)[1]
    pearson = weighted_pearson(x, y, weights)
    for row, count in enumerate(counts):
        long_x, long_y = np.repeat(x, count), np.repeat(y, count)
        if np.ptp(long_x) == 0 or np.ptp(long_y) == 0:
            assert np.isnan(spearman[row])
            assert np.isnan(pearson[row])
        else:
            # Both sides sum at most 30 terms in float64.
            np.testing.assert_allclose(spearman[row], spearmanr(long_x, long_y).statistic, atol=1e-12)
            np.testing.assert_allclose(pearson[row], pearsonr(long_x, long_y).statistic, atol=1e-12)


@given(constant=st.floats(-1e6, 1e6), other=st.floats(-1e6, 1e6), n=st.integers(2, 40))
@settings(deadline=None)
def test_a_replicate_that_draws_one_value_only_is_undefined_and_not_rounding_noise(
    constant: float, other: float, n: int
) -> None:
    x = np.array([constant] * n + [other])
    weights = np.array([[1.0] * n + [0.0]])
    assert np.isnan(weighted_pearson(x, np.arange(n + 1.0), weights)).all()


def test_effective_units_count_equal_groups_whole_and_a_giant_as_few() -> None:
    equal = Design("groups", np.repeat(np.arange(20), 5), np.zeros(20, dtype=np.int64))
    giant = Design("groups", np.array([0] * 90 + list(range(1, 11))), np.zeros(11, dtype=np.int64))
    assert equal.effective_units == pytest.approx(20)
    assert giant.effective_units == pytest.approx(1 / (0.81 + 10 * 0.0001))


def test_weights_are_whole_numbers_with_the_sizes_of_their_strata() -> None:
    design = item_design(["a"] * 30 + ["b"] * 12)
    weights = np.vstack(list(draw_weights(design, resamples=450, seed=0, chunk=200)))
    assert weights.shape == (450, 42)
    np.testing.assert_array_equal(weights, np.round(weights))
    np.testing.assert_array_equal(weights[:, :30].sum(axis=1), 30)
    np.testing.assert_array_equal(weights[:, 30:].sum(axis=1), 12)


@pytest.mark.parametrize("subsets", [[""] * 25, ["a"] * 10 + ["b"] * 15])
def test_chunks_do_not_change_the_replicates(subsets: list[str]) -> None:
    design = item_design(subsets)
    first, second = (np.vstack(list(draw_weights(design, resamples=90, seed=4, chunk=chunk))) for chunk in (90, 7))
    np.testing.assert_array_equal(first, second)


def test_pairs_that_share_a_text_directly_or_through_others_are_drawn_together() -> None:
    rows = np.array([[0, 1], [1, 2], [5, 6], [2, 3], [8, 9], [6, 7]])
    design = group_design(rows, [""] * 6)
    assert design.units == 3
    weights = next(draw_weights(design, resamples=50, seed=0))
    for together in ([0, 1, 3], [2, 5]):
        assert (weights[:, together] == weights[:, together[:1]]).all()
    assert (weights[:, 0] != weights[:, 2]).any()


def test_a_group_over_two_subsets_is_drawn_apart_from_groups_within_one() -> None:
    rows = np.array([[0, 1], [2, 3], [4, 5], [5, 6], [7, 8]])
    design = group_design(rows, ["a", "a", "a", "b", "b"])
    assert len(np.unique(design.strata)) == 3


def test_a_pair_of_drawn_texts_counts_as_often_as_the_product_of_their_draws() -> None:
    rows = np.array([[10, 20], [10, 30], [20, 30]])
    for a, b, c in np.vstack(list(draw_weights(text_design(rows), resamples=100, seed=1))):
        counts = {(x, y, z) for x in range(4) for y in range(4) for z in range(4) if x + y + z == 3}
        assert any((x * y, x * z, y * z) == (a, b, c) for x, y, z in counts)


def test_the_spread_of_a_mean_is_the_textbook_standard_error() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(400)
    means = np.concatenate(
        [weights @ values / 400 for weights in draw_weights(item_design([""] * 400), resamples=4000, seed=0)]
    )
    # The standard deviation of 4,000 draws is known to about 1.1%; allow four of those.
    assert means.std() == pytest.approx(values.std() / 20, rel=0.045)


def test_an_interval_with_an_undefined_replicate_is_no_interval() -> None:
    assert percentile_interval(np.array([0.1, np.nan, 0.3]), confidence=0.95) is None


def test_statistics_of_a_part_are_those_of_its_items_alone() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 9, 40).astype(float), rng.integers(0, 9, 40).astype(float)
    weights = rng.integers(0, 3, (6, 40)).astype(float)
    part = np.array([3, 4, 9, 17, 18, 25, 30, 31, 38])
    np.testing.assert_array_equal(
        weighted_spearman([sort_once(x, part)], sort_once(y, part), weights)[0],
        weighted_spearman([sort_once(x[part])], sort_once(y[part]), weights[:, part])[0],
    )
    np.testing.assert_array_equal(
        weighted_pearson(x, y, weights, part), weighted_pearson(x[part], y[part], weights[:, part])
    )


def test_two_corpora_of_one_size_are_resampled_apart() -> None:
    design = item_design([""] * 50)
    first, second = (next(draw_weights(design, resamples=200, seed=corpus_seed(0, name))) for name in ("mr", "subj"))
    # 10,000 pairs of independent counts: their correlation has a standard error of 1%.
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.05


def test_a_bootstrap_by_texts_needs_pairs() -> None:
    with pytest.raises(ParameterError, match="pairs"):
        make_design("texts", np.arange(5), [""] * 5)


# --- coverage -------------------------------------------------------------------------------------


def independent_items(rng: np.random.Generator) -> Simulation:
    """300 independent normal pairs with correlation 0.7."""
    y = rng.standard_normal(300)
    x = 0.7 * y + np.sqrt(1 - 0.49) * rng.standard_normal(300)
    return x, y, item_design([""] * 300)


def grouped_items(rng: np.random.Generator) -> Simulation:
    """400 groups of 1 to 12 pairs; half of the variance of either score belongs to the group."""
    sizes = np.minimum(rng.geometric(0.35, 400), 12)
    members = np.repeat(np.arange(400), sizes)
    a = rng.standard_normal(400)
    b = 0.8 * a + 0.6 * rng.standard_normal(400)
    e = rng.standard_normal(len(members))
    f = 0.4 * e + np.sqrt(1 - 0.16) * rng.standard_normal(len(members))
    return a[members] + e, b[members] + f, Design("groups", members, np.zeros(400, dtype=np.int64))


def all_pairs_of_texts(rng: np.random.Generator, texts: int = 50) -> Simulation:
    """Every pair of 50 texts: cosines of noisy features against noisy cosines of true ones."""
    true = rng.standard_normal((texts, 5))
    seen = true + 0.7 * rng.standard_normal((texts, 5))
    i, j = np.triu_indices(texts, 1)

    def cosine(z: np.ndarray) -> np.ndarray:
        unit = z / np.linalg.norm(z, axis=1, keepdims=True)
        return (unit[i] * unit[j]).sum(axis=1)

    noisy = cosine(true) + 0.3 * rng.standard_normal(len(i))
    return cosine(seen), noisy, text_design(np.column_stack([i, j]))


def spearman_of_normal(correlation: float) -> float:
    """Spearman of a bivariate normal with that Pearson correlation (Kruskal 1958)."""
    return float(6 / np.pi * np.arcsin(correlation / 2))


def spearman_of_many_texts() -> float:
    """The all-pairs score of 3,000 texts, whose own sampling error is far below the intervals'."""
    x, y, _ = all_pairs_of_texts(np.random.default_rng(99), texts=3000)
    return float(spearmanr(x, y).statistic)


DESIGNS: dict[str, tuple[Callable[[np.random.Generator], Simulation], Callable[[], float]]] = {
    "items": (independent_items, lambda: spearman_of_normal(0.7)),
    "groups": (grouped_items, lambda: spearman_of_normal((0.8 + 0.4) / 2)),
    "texts": (all_pairs_of_texts, spearman_of_many_texts),
}


def coverage(unit: str, simulations: int) -> float:
    """Share of simulated data sets whose 95% interval holds the population's Spearman."""
    draw, truth = DESIGNS[unit]
    target, hits = truth(), 0
    for number in range(simulations):
        x, y, design = draw(np.random.default_rng([20, number]))
        replicates = resample_similarity({"cosine": x}, y, [""] * len(x), design, resamples=400, seed=number)
        interval = percentile_interval(replicates["spearman.all.cosine"], confidence=0.95)
        assert interval is not None
        hits += interval[0] <= target <= interval[1]
    return hits / simulations


@pytest.mark.slow
@pytest.mark.parametrize("unit", list(DESIGNS))
def test_a_95_percent_interval_covers_the_truth_in_93_to_97_percent_of_simulations(unit: str) -> None:
    # 1,500 simulations know a coverage of 95% to a standard error of 0.6 points. Drawing texts counts the
    # noise of single pairs more than once (Owen 2007, the pigeonhole bootstrap), so it may lie above 97.
    assert 0.93 <= coverage(unit, 1500) <= (0.985 if unit == "texts" else 0.97)


@pytest.mark.slow
def test_items_that_hang_together_but_are_drawn_one_by_one_get_intervals_that_are_too_short() -> None:
    # Why the unit matters: the same texts data, resampled by pairs as if they were independent.
    target, hits = spearman_of_many_texts(), 0
    for number in range(120):
        x, y, _ = all_pairs_of_texts(np.random.default_rng([21, number]))
        wrong = item_design([""] * len(x))
        replicates = resample_similarity({"cosine": x}, y, [""] * len(x), wrong, resamples=200, seed=number)
        interval = percentile_interval(replicates["spearman.all.cosine"], confidence=0.95)
        assert interval is not None
        hits += interval[0] <= target <= interval[1]
    assert hits / 120 < 0.8
