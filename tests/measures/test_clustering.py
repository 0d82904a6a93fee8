"""Agreement of clusters with classes against scikit-learn, on resamples written out."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    adjusted_rand_score,
    mutual_info_score,
    normalized_mutual_info_score,
    v_measure_score,
)

from sentfold.errors import ParameterError
from sentfold.measures.clustering import MEASURES, agreement, agreement_of, cluster, contingency, mean_over_starts


@given(seed=st.integers(0, 2**32 - 1), classes=st.integers(1, 5), clusters=st.integers(1, 5))
@settings(deadline=None, max_examples=60)
def test_every_measure_is_scikit_learns_on_the_resample_written_out(seed: int, classes: int, clusters: int) -> None:
    rng = np.random.default_rng(seed)
    labels, found = rng.integers(0, classes, 40), rng.integers(0, clusters, 40)
    weights = rng.multinomial(40, np.full(40, 1 / 40), size=2).astype(float)
    ours = agreement(contingency(labels, found, weights))
    assert set(ours) == set(MEASURES)
    for row, weight in enumerate(weights):
        drawn = np.repeat(np.arange(40), weight.astype(int))
        a, b = labels[drawn], found[drawn]
        theirs = {
            "mi": mutual_info_score(a, b),
            # scikit-learn calls two constant labellings a perfect match; no information is shared there.
            "nmi": normalized_mutual_info_score(a, b) if np.ptp(a) or np.ptp(b) else 0.0,
            "ari": adjusted_rand_score(a, b),
            "v-measure": v_measure_score(a, b),
            "purity": sum(np.bincount(a[b == each]).max() for each in set(b)) / 40,
        }
        for name, value in theirs.items():
            np.testing.assert_allclose(ours[name][row], value, atol=1e-12, err_msg=name)


def test_classes_as_clusters_agree_in_full_whatever_their_numbers() -> None:
    labels = np.repeat(np.arange(4), [5, 9, 3, 7])
    ours = agreement(contingency(labels, 3 - labels, np.ones((1, 24))))
    shares = np.array([5, 9, 3, 7]) / 24
    np.testing.assert_allclose(ours["mi"], -(shares * np.log(shares)).sum())
    for name in ("nmi", "ari", "purity", "v-measure"):
        np.testing.assert_allclose(ours[name], 1.0)


def test_random_clusters_have_an_adjusted_rand_index_around_zero() -> None:
    rng = np.random.default_rng(0)
    labels, found = rng.integers(0, 20, 5000), rng.integers(0, 20, 5000)
    assert abs(agreement(contingency(labels, found, np.ones((1, 5000))))["ari"][0]) < 0.005


def test_separated_groups_are_found_from_every_start_and_again_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 400)
    x = (20 * np.eye(4, 6)[labels] + rng.standard_normal((400, 6))).astype(np.float32)
    found = cluster(x, clusters=4, seeds=10, first_seed=0)
    assert found.shape == (10, 400)
    best = max(agreement(contingency(labels, row, np.ones((1, 400))))["ari"][0] for row in found)
    assert best == 1.0
    np.testing.assert_array_equal(found, cluster(x, clusters=4, seeds=10, first_seed=0))


def test_an_interval_over_starts_and_items_covers_the_mean_of_all_starts() -> None:
    # A start's score is the truth, what the start adds and what the sample of items adds to all of them alike.
    rng, hits, times = np.random.default_rng(2), 0, 600
    for trial in range(times):
        of_items, of_starts = 0.3 * rng.standard_normal(), rng.standard_normal(10)
        scores = 50 + of_starts + of_items
        # Resampled items add their noise once more, and a bias that all replicates share.
        replicates = scores[:, None] + 0.3 * rng.standard_normal(400) + 0.8
        low, high = np.quantile(mean_over_starts(scores, replicates, seed=trial), [0.025, 0.975])
        hits += low <= 50 <= high
    # Percentiles of ten draws are somewhat narrow; over items alone it would be about half.
    assert 0.87 <= hits / times <= 0.97


def test_starts_that_agree_add_nothing_and_the_mean_stays_the_score() -> None:
    noise = np.random.default_rng(3).standard_normal(1000)
    ours = mean_over_starts(np.full(4, 0.6), np.tile(0.7 + noise, (4, 1)), seed=0)
    np.testing.assert_allclose(ours, 0.6 + noise - noise.mean(), atol=1e-12)


def test_the_starts_of_two_spaces_are_drawn_alike() -> None:
    scores = np.arange(5.0)
    one, other = (mean_over_starts(scores + shift, np.tile(scores + shift, (200, 1)).T, seed=9) for shift in (0.0, 2.0))
    np.testing.assert_allclose(other - one, 2.0)


@pytest.mark.parametrize("factor", [1e-25, 1e-19, 1e18, 1e25])
def test_the_unit_of_the_vectors_does_not_matter_to_clusters(factor: float) -> None:
    rng = np.random.default_rng(4)
    x = (20 * np.eye(4, 6)[rng.integers(0, 4, 200)] + rng.standard_normal((200, 6))).astype(np.float32)
    found, other = (cluster(y, clusters=4, seeds=2, first_seed=0) for y in (x, x * np.float32(factor)))
    for one, two in zip(found, other, strict=True):
        assert agreement(contingency(one, two, np.ones((1, 200))))["ari"] == pytest.approx(1)


@pytest.mark.parametrize("cells", [1, 30, 100, 2**22])
def test_agreement_is_the_same_bit_for_bit_however_many_tables_are_made_at_a_time(cells: int) -> None:
    rng = np.random.default_rng(5)
    labels, found = rng.integers(0, 5, 90), rng.integers(0, 6, 90)
    weights = rng.multinomial(90, np.full(90, 1 / 90), size=50).astype(float)
    wanted, got = agreement(contingency(labels, found, weights)), agreement_of(labels, found, weights, cells=cells)
    for name in MEASURES:
        np.testing.assert_array_equal(got[name], wanted[name])


@pytest.mark.slow
def test_tables_of_many_classes_take_little_memory() -> None:
    labels = np.arange(1500)
    weights = np.ones((40, 1500))
    tracemalloc.start()
    agreement_of(labels, labels, weights)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e8  # all 40 tables at once and their copies: 3 GB


def test_more_classes_than_texts_are_refused() -> None:
    with pytest.raises(ParameterError, match="more classes than distinct texts"):
        cluster(np.eye(2), clusters=4, seeds=2, first_seed=0)
