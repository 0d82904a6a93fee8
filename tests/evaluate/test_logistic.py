"""Many regressions at once against scikit-learn one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from pipeline.errors import ParameterError
from pipeline.evaluate import logistic
from pipeline.evaluate.folds import stratified_folds
from pipeline.evaluate.logistic import decide, fit_logistic, logits_of, prepare_features
from pipeline.evaluate.nested import predict_nested


def problem(classes: int, n: int = 240, d: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    # Columns of very unlike scale and a mean far from 0, as spaces have.
    x = (rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((classes, d))[y]) * np.geomspace(0.03, 3, d) + 2
    return x, y


@pytest.mark.parametrize("classes", [2, 4])
def test_every_fit_is_scikit_learns_on_its_own_rows_and_strength(classes: int) -> None:
    x, y = problem(classes)
    rng = np.random.default_rng(1)
    included = (rng.random((len(y), 6)) < 0.7).astype(float)
    strengths = np.array([0.05, 0.25, 1.0, 2.0, 8.0, 30.0])
    targets = y[:, None].astype(float) if classes == 2 else np.eye(classes)[y]
    features = prepare_features(x)
    fits = fit_logistic(features, targets, included, strengths)
    for place, strength in enumerate(strengths):
        kept = included[:, place] > 0
        theirs = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(x[kept], y[kept])
        ours = logits_of(features.z, fits[place : place + 1])[:, 0]
        wanted = theirs.decision_function(x)
        if classes > 2:
            # A softmax knows its intercepts up to one constant.
            ours, wanted = ours - ours.mean(axis=1, keepdims=True), wanted - wanted.mean(axis=1, keepdims=True)
        # A gradient of 1e-6 leaves about 1e-3 of a logit, and of strong fits, whose logits are large, as a share.
        np.testing.assert_allclose(ours, wanted.reshape(ours.shape), rtol=1e-3, atol=2e-3)
        assert (decide(features, np.arange(len(y)), fits[place : place + 1])[:, 0] == theirs.predict(x)).mean() > 0.995


def test_groups_of_fits_and_wide_features_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = problem(3)
    arguments = np.eye(3)[y], np.ones((len(y), 4)), np.array([0.25, 1.0, 4.0, 8.0])
    together = logits_of(prepare_features(x).z, fit_logistic(prepare_features(x), *arguments))
    monkeypatch.setattr(logistic, "SHARED", len(y) * 3 * 2)
    monkeypatch.setattr(logistic, "ROTATED", 4)  # these 12 features are then too many to turn
    features = prepare_features(x)
    apart = logits_of(features.z, fit_logistic(features, *arguments))
    shifted = [values - values.mean(axis=2, keepdims=True) for values in (together, apart)]
    np.testing.assert_allclose(*shifted, rtol=1e-3, atol=5e-3)


def test_folds_keep_the_classes_shares_and_refuse_a_class_that_is_too_small() -> None:
    y = np.array([0] * 40 + [1] * 20)
    numbers = stratified_folds(y, folds=5, seed=0)
    for fold in range(5):
        assert np.bincount(y[numbers == fold]).tolist() == [8, 4]
    with pytest.raises(ParameterError, match="folds"):
        stratified_folds(np.array([0] * 40 + [1] * 3), folds=5, seed=0)


def test_what_is_predicted_has_no_part_in_choosing_the_strength() -> None:
    x, y = problem(2)
    train, test = np.arange(160), np.arange(160, 240)
    shuffled = y.copy()
    shuffled[test] = 1 - shuffled[test]
    outcomes = [
        predict_nested(prepare_features(x), labels, train, test, folds=4, strengths=(0.25, 1.0, 8.0), seed=0)
        for labels in (y, shuffled)
    ]
    np.testing.assert_array_equal(outcomes[0][0], outcomes[1][0])
    assert outcomes[0][1] == outcomes[1][1]
