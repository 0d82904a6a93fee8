"""95% intervals on data whose truth is known: Pearson, a paired difference of accuracies, a difference of MAP."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from sentfold.compare.bootstrap import draw_weights, item_design, percentile_interval, weighted_means
from sentfold.measures.base.rating import accuracies
from sentfold.measures.ranking import average_precisions
from sentfold.measures.similarity import resample_similarity

SIMULATIONS = 400
RESAMPLES = 400
CONFIDENCE = 0.95


def accept(hits: int) -> None:
    """Hits that a true coverage of 95% gives but in one run of 10,000 on either side: 363 to 395 of 400.

    The bound is for the Monte Carlo error of the simulations alone. It is wide enough to let pass the half point that a
    percentile interval of some hundred items loses, and fails one that covers 85% or 99.9%.
    """
    low, high = binom.ppf([1e-4, 1 - 1e-4], SIMULATIONS, CONFIDENCE)
    assert low <= hits <= high, f"{hits} of {SIMULATIONS} intervals hold the truth, expected {low:.0f} to {high:.0f}"


def holds(replicates: np.ndarray, truth: float) -> bool:
    interval = percentile_interval(replicates, confidence=CONFIDENCE)
    assert interval is not None
    return interval[0] <= truth <= interval[1]


def test_the_bound_fails_intervals_that_are_too_short_or_too_long() -> None:
    for hits in (round(0.85 * SIMULATIONS), round(0.999 * SIMULATIONS)):
        with pytest.raises(AssertionError, match="expected"):
            accept(hits)
    accept(round(0.945 * SIMULATIONS))


@pytest.mark.slow
def test_intervals_of_pearson_cover_the_correlation_that_normal_pairs_were_drawn_with() -> None:
    hits, design = 0, item_design([""] * 250)
    for number in range(SIMULATIONS):
        rng = np.random.default_rng([30, number])
        human = rng.standard_normal(250)
        cosine = 0.7 * human + np.sqrt(1 - 0.49) * rng.standard_normal(250)
        replicates = resample_similarity(
            {"cosine": cosine}, human, [""] * 250, design, resamples=RESAMPLES, seed=number
        )
        hits += holds(replicates["pearson.all.cosine"], 0.7)
    accept(hits)


def test_intervals_of_a_difference_of_accuracies_cover_it_where_both_are_right_on_much_the_same_items() -> None:
    # Both right, one alone, the other alone, neither: a true difference of 5 points.
    shares = np.array([0.60, 0.15, 0.10, 0.15])
    hits, n = 0, 300
    for number in range(SIMULATIONS):
        kind = np.random.default_rng([31, number]).choice(4, size=n, p=shares)
        labels = np.ones(n, dtype=np.int64)
        ours, theirs = (np.isin(kind, right).astype(np.int64) for right in ((0, 1), (0, 2)))
        drawn = draw_weights(item_design([""] * n), resamples=RESAMPLES, seed=number)
        paired = [accuracies(labels, ours, weights) - accuracies(labels, theirs, weights) for weights in drawn]
        hits += holds(np.concatenate(paired), shares[1] - shares[2])
    accept(hits)


CANDIDATES = 10
UNANSWERED = 0.2  # share of queries without a relevant candidate, which count 0


def ranked(ranks: np.ndarray) -> np.ndarray:
    """(queries x 10,) values that put each query's first candidate, the only one that may be relevant, at its rank."""
    values = np.tile(np.concatenate([[0.0], np.arange(CANDIDATES - 1.0, 0.0, -1.0)]), (len(ranks), 1))
    values[:, 0] = CANDIDATES - ranks + 0.5
    return values.ravel()


@pytest.mark.slow
def test_intervals_of_a_difference_of_map_cover_the_one_that_the_ranks_were_drawn_with() -> None:
    # The average precision of one relevant candidate is 1 / rank. Theirs is uniform; ours is 1 in half of the queries
    # and otherwise the same as theirs, so that the two are paired and their expected difference is known exactly.
    chance = float(np.mean(1 / np.arange(1, CANDIDATES + 1)))
    truth = (1 - UNANSWERED) * 0.5 * (1 - chance)
    hits, queries = 0, 80
    names = [f"q{query}" for query in range(queries) for _ in range(CANDIDATES)]
    ties = [str(place) for place in range(queries * CANDIDATES)]
    for number in range(SIMULATIONS):
        rng = np.random.default_rng([32, number])
        theirs = rng.integers(1, CANDIDATES + 1, queries)
        ours = np.where(rng.random(queries) < 0.5, 1, theirs)
        relevant = np.zeros((queries, CANDIDATES), dtype=np.int64)
        relevant[:, 0] = rng.random(queries) >= UNANSWERED
        found = [average_precisions(names, ranked(ranks), relevant.ravel(), ties) for ranks in (ours, theirs)]
        drawn = draw_weights(item_design([""] * queries), resamples=RESAMPLES, seed=number)
        hits += holds(np.concatenate([weighted_means(found[0] - found[1], weights) for weights in drawn]), truth)
    accept(hits)
