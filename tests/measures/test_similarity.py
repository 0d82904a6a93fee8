"""Similarity protocols against scipy, and facts that hold for any vectors."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from sentfold.compare.bootstrap import item_design
from sentfold.measures.base.pairs import cosines
from sentfold.measures.similarity import resample_similarity, score_similarity, subset_scores


def scores_of(seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    human = rng.integers(0, 6, n).astype(float)
    return np.tanh(human / 5 + rng.standard_normal(n)), human, ["a"] * 10 + ["b"] * 20 + ["c"] * (n - 30)


def test_each_aggregation_is_what_its_name_says() -> None:
    cosine, human, subsets = scores_of(0)
    scores = score_similarity({"cosine": cosine}, human, subsets)
    parts = [slice(0, 10), slice(10, 30), slice(30, 60)]
    for name, correlate in (("spearman", spearmanr), ("pearson", pearsonr)):
        each = [correlate(cosine[part], human[part]).statistic for part in parts]
        np.testing.assert_allclose(scores[f"{name}.all.cosine"], correlate(cosine, human).statistic, atol=1e-12)
        np.testing.assert_allclose(scores[f"{name}.mean.cosine"], sum(each) / 3, atol=1e-12)
        weighted = (10 * each[0] + 20 * each[1] + 30 * each[2]) / 60
        np.testing.assert_allclose(scores[f"{name}.wmean.cosine"], weighted, atol=1e-12)


def test_without_subsets_only_the_protocol_over_all_pairs_exists() -> None:
    cosine, human, _ = scores_of(1)
    assert set(score_similarity({"cosine": cosine}, human, [""] * 60)) == {"spearman.all.cosine", "pearson.all.cosine"}


def test_a_subset_without_variation_leaves_the_mean_blank_rather_than_averaging_the_rest() -> None:
    cosine, human, subsets = scores_of(2)
    human[:10] = 3.0
    scores = score_similarity({"cosine": cosine}, human, subsets)
    assert scores["spearman.mean.cosine"] is None
    assert scores["spearman.all.cosine"] is not None
    assert set(subset_scores(cosine, human, subsets)) == {"b", "c"}


def test_replicates_of_the_sample_itself_reproduce_its_scores() -> None:
    # A bootstrap centred on the sample: the mean replicate is near the score, never a different statistic.
    cosine, human, subsets = scores_of(3)
    scores = score_similarity({"cosine": cosine}, human, subsets)
    replicates = resample_similarity({"cosine": cosine}, human, subsets, item_design(subsets), resamples=600, seed=0)
    assert set(replicates) == set(scores)
    for name, values in replicates.items():
        assert values.shape == (600,)
        score = scores[name]
        assert score is not None
        # The mean of 600 draws is known to 0.04 standard deviations; the statistic's own bias is of that order.
        assert abs(values.mean() - score) < 0.3 * values.std()


@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_cosines_are_bounded_symmetric_and_blind_to_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((12, 5)).astype(np.float32)
    rows = rng.integers(0, 12, (30, 2))
    values, undefined = cosines(vectors, rows)
    assert undefined == 0
    assert np.abs(values).max() <= 1
    np.testing.assert_array_equal(values[rows[:, 0] == rows[:, 1]], 1.0)
    np.testing.assert_allclose(cosines(vectors, rows[:, ::-1])[0], values, atol=1e-15)
    scale = 2.0 ** rng.integers(-3, 4, (12, 1))
    np.testing.assert_allclose(cosines((vectors * scale).astype(np.float32), rows)[0], values, atol=1e-12)


def test_a_zero_vector_gives_cosine_zero_and_is_counted() -> None:
    vectors = np.array([[0.0, 0.0], [1.0, 0.0]], dtype=np.float32)
    values, undefined = cosines(vectors, np.array([[0, 1], [0, 0], [1, 1]]))
    np.testing.assert_array_equal(values, [0.0, 0.0, 1.0])
    assert undefined == 2


def test_cosines_of_one_direction_have_no_correlation() -> None:
    rng = np.random.default_rng(0)
    vectors = np.outer(rng.random(40) + 0.1, rng.standard_normal(5)).astype(np.float32)
    cosine, _ = cosines(vectors, np.arange(40).reshape(20, 2))
    assert np.ptp(cosine) > 0  # by rounding alone
    scores = score_similarity({"cosine": cosine}, rng.random(20), [""] * 20)
    assert scores == {"spearman.all.cosine": None, "pearson.all.cosine": None}
