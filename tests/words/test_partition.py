"""Partitions: centroids by each paper's rule, worked out by hand, and controls of the same sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentfold.errors import ParameterError
from sentfold.words.partition import Partition, centroids_of, check_size, frequency_partition, random_partition

X = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 8.0]])
W = np.array([1.0, 3.0, 0.5])
# Words 0 and 1 together, word 2 alone, cluster 2 empty.
PARTITION = Partition(np.array([0, 0, 1], dtype=np.int32), 3)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("mean", [[2.0, 0.0], [0.0, 8.0], [0.0, 0.0]]),
        ("weighted-mean", [[10 / 4, 0.0], [0.0, 8.0], [0.0, 0.0]]),
        ("scaled-mean", [[10 / 2, 0.0], [0.0, 4.0], [0.0, 0.0]]),
    ],
)
def test_a_centroid_is_what_its_rule_says(rule: str, expected: list[list[float]]) -> None:
    np.testing.assert_array_equal(centroids_of(PARTITION, X, W, rule), expected)  # type: ignore[arg-type]


def test_a_models_own_centroids_are_taken_as_they_are_and_asked_for_in_vain_where_there_are_none() -> None:
    own = np.array([[5.0, 5.0]] * 3)
    assert centroids_of(Partition(PARTITION.labels, 3, own), X, W, "model") is own
    with pytest.raises(ParameterError, match="returns no centroids"):
        centroids_of(PARTITION, X, W, "model")


LABELS = st.lists(st.integers(0, 6), min_size=1, max_size=60)


@given(LABELS, st.integers(0, 2**32 - 1))
def test_a_random_control_has_the_same_sizes(labels: list[int], seed: int) -> None:
    like = Partition(np.array(labels, dtype=np.int32), 8)
    control = random_partition(like, seed=seed)
    assert np.bincount(control.labels, minlength=8).tolist() == np.bincount(like.labels, minlength=8).tolist()
    assert control.labels.dtype == np.int32
    assert control.labels.tolist() == random_partition(like, seed=seed).labels.tolist()


def test_a_random_control_does_not_know_the_words() -> None:
    # Over many seeds each word is in cluster 0 as often as its share says: 40 of 100, 2000 draws, 5 sigma.
    like = Partition(np.repeat(np.array([0, 1], dtype=np.int32), [40, 60]), 2)
    share = np.mean([random_partition(like, seed=seed).labels == 0 for seed in range(2000)], axis=0)
    assert np.abs(share - 0.4).max() < 5 * np.sqrt(0.24 / 2000)


@given(LABELS, st.randoms(use_true_random=False))
def test_a_frequency_control_has_the_same_sizes_in_blocks_of_rank(labels: list[int], random: object) -> None:
    like = Partition(np.array(labels, dtype=np.int32), 8)
    ranks = np.random.default_rng(len(labels)).permutation(len(labels))
    control = frequency_partition(like, ranks)
    assert np.bincount(control.labels, minlength=8).tolist() == np.bincount(like.labels, minlength=8).tolist()
    assert (np.diff(control.labels[np.argsort(ranks)]) >= 0).all()


@pytest.mark.parametrize("size", [0, 6, 100])
def test_more_clusters_than_words_are_refused(size: int) -> None:
    check_size(5, 5)
    with pytest.raises(ParameterError) as caught:
        check_size(size, 5)
    assert "5 words" in str(caught.value)
    assert str(size) in str(caught.value)
