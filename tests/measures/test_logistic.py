"""Many regressions at once against scikit-learn one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from sentfold.errors import ParameterError
from sentfold.measures.base import logistic, newton
from sentfold.measures.base.classifiers import LogisticSettings, predict_nested, stratified_folds
from sentfold.measures.base.logistic import classify, fit_logistic, prepare_features
from sentfold.measures.base.newton import forward


def problem(classes: int, n: int = 240, d: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    # Columns of very unlike scale and a mean far from 0, as spaces have.
    x = (rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((classes, d))[y]) * np.geomspace(0.03, 3, d) + 2
    return x, y


def log_loss(y: np.ndarray, logits: np.ndarray) -> float:
    both = np.hstack([np.zeros_like(logits), logits]) if logits.shape[1] == 1 else logits
    return float((logsumexp(both, axis=1) - both[np.arange(len(y)), y]).mean())


def stretched(classes: int) -> tuple[np.ndarray, np.ndarray]:
    """A few rows a thousand times longer than the others, as eigenvectors that live on few sentences make them."""
    x, y = problem(classes, n=400, d=40)
    x[:12] *= np.geomspace(20, 2000, 12)[:, None]
    return x, y


@pytest.mark.parametrize("posed", [problem, stretched])
@pytest.mark.parametrize("classes", [2, 4])
def test_every_fit_is_scikit_learns_on_its_own_rows_and_strength(
    classes: int, posed: Callable[[int], tuple[np.ndarray, np.ndarray]]
) -> None:
    x, y = posed(classes)
    rng = np.random.default_rng(1)
    included = (rng.random((len(y), 3)) < 0.7).astype(float)
    strengths = [30.0, 0.05, 1.0]
    targets = y[:, None].astype(float) if classes == 2 else np.eye(classes)[y]
    features = prepare_features(x)
    fits = fit_logistic(features, targets, included, strengths)
    assert fits.shape == (3, 3, x.shape[1] + 1, targets.shape[1])
    for place, strength in enumerate(strengths):
        for choice in range(3):
            kept = included[:, choice] > 0
            theirs = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000, solver="newton-cholesky")
            theirs.fit(x[kept], y[kept])
            fit = fits[place, choice : choice + 1]
            ours = forward(features.z, fit)[:, 0]
            wanted = theirs.decision_function(x)
            if classes > 2:
                # A softmax knows its intercepts up to one constant.
                ours, wanted = ours - ours.mean(axis=1, keepdims=True), wanted - wanted.mean(axis=1, keepdims=True)
            # A small gradient leaves something of a logit, and of strong fits, whose logits are large, as a share.
            # Where a row is so long that its loss is 0 whatever its logit, nothing but the penalty knows that logit.
            short = np.linalg.norm(x, axis=1) < 100
            wanted = wanted.reshape(ours.shape)
            np.testing.assert_allclose(ours[short], wanted[short], rtol=2e-3, atol=1e-2)
            lengths = np.square(fit[0, :-1]).sum(), np.square(theirs.coef_).sum()
            losses = [
                0.5 * length + strength * kept.sum() * log_loss(y[kept], logits[kept])
                for length, logits in zip(lengths, (ours, wanted), strict=True)
            ]
            assert losses[0] <= losses[1] * (1 + 5e-5), "the minimum is one"
            assert (classify(features, np.arange(len(y)), fit)[:, 0] == theirs.predict(x)).mean() > 0.995


def test_rows_far_longer_than_others_are_solved_with_whole_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = stretched(3)
    features, targets, everyone = prepare_features(x), np.eye(3)[y], np.ones((len(y), 2))
    asked = []
    inverses = newton._inverses
    monkeypatch.setattr(newton, "_inverses", lambda *given: asked.append(1) or inverses(*given))
    usual = forward(features.z, fit_logistic(features, targets, everyone, [1.0])[0])
    assert asked, "the test's rows are not unlike enough"
    monkeypatch.setattr(newton, "BLOCKS", 1)  # one problem at a time
    np.testing.assert_allclose(
        forward(features.z, fit_logistic(features, targets, everyone, [1.0])[0]), usual, atol=1e-2
    )


def test_groups_of_fits_and_wide_features_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = problem(3)
    arguments = np.eye(3)[y], np.random.default_rng(2).integers(0, 3, (len(y), 4)).astype(float), [0.25, 8.0]
    together = forward(prepare_features(x).z, fit_logistic(prepare_features(x), *arguments)[1])
    monkeypatch.setattr(logistic, "SHARED", len(y) * 3 * 2)
    monkeypatch.setattr(logistic, "ROTATED", 4)  # these 12 features are then too many to turn
    features = prepare_features(x)
    apart = forward(features.z, fit_logistic(features, *arguments)[1])
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
    settings = LogisticSettings(inner_folds=4, strengths=(0.25, 1.0, 8.0))
    outcomes = [predict_nested(prepare_features(x), labels, train, test, settings) for labels in (y, shuffled)]
    np.testing.assert_array_equal(outcomes[0].predicted, outcomes[1].predicted)
    assert outcomes[0].strengths == outcomes[1].strengths
