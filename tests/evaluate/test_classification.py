"""Classifiers: what is scored, on what they were fitted, and against a nearest neighbour done by hand."""

from __future__ import annotations

import numpy as np

from pipeline.evaluate.classification import correct_items

SETTINGS = {"folds": 5, "knn_neighbors": 3, "logistic_c": 1.0, "seed": 0}


def test_labels_without_any_signal_are_not_learnt() -> None:
    # A classifier scored on its own training set would exceed 70% here: each point is its own neighbour.
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((1000, 10)), rng.integers(0, 2, 1000)
    right, scored, scheme = correct_items(x, labels, ["all"] * 1000, **SETTINGS)
    assert scheme == "5-fold cross-validation"
    assert len(scored) == 1000
    for values in right.values():
        # 1,000 fair coins: four standard errors are 6.3 points.
        assert abs(values.mean() - 0.5) < 0.065


def test_separated_classes_are_learnt() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 150)
    x = 10 * np.eye(3)[labels] + rng.standard_normal((150, 3))
    right, _, _ = correct_items(x, labels, ["all"] * 150, **SETTINGS)
    assert all(values.mean() == 1.0 for values in right.values())


def test_given_splits_are_fitted_on_all_but_test_and_scored_on_test_only() -> None:
    rng = np.random.default_rng(2)
    x, labels = rng.standard_normal((90, 4)), rng.integers(0, 3, 90)
    splits = ["train"] * 50 + ["test"] * 25 + ["dev"] * 15
    right, scored, scheme = correct_items(x, labels, splits, **SETTINGS)
    assert scheme == "given train and test"
    np.testing.assert_array_equal(scored, np.arange(50, 75))
    fitted = np.r_[0:50, 75:90]
    for place, item in enumerate(scored):
        near = fitted[np.argsort(((x[fitted] - x[item]) ** 2).sum(axis=1))[:3]]
        votes = np.bincount(labels[near], minlength=3)
        # scikit-learn breaks a three-way tie by the smallest label, as argmax does.
        assert right["accuracy.3nn-euclidean"][place] == (votes.argmax() == labels[item])
