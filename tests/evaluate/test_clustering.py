"""Agreement of clusters with classes against scikit-learn, on resamples written out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    adjusted_rand_score,
    mutual_info_score,
    normalized_mutual_info_score,
    v_measure_score,
)

from pipeline.evaluate.clustering import MEASURES, agreement, cluster, contingency


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
