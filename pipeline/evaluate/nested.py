"""Logistic regression as SentEval runs it: the strength is chosen on data that no score is computed on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline.evaluate.folds import stratified_folds
from pipeline.evaluate.logistic import Features, decide, fit_logistic

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def predict_nested(
    features: Features, labels: Ints, train: Ints, test: Ints, *, folds: int, strengths: Sequence[float], seed: int
) -> tuple[Ints, float]:
    """Predictions for `test` after `folds`-fold cross-validation inside `train` has chosen the strength.

    labels  (n,) classes 0 to c - 1 of all rows of the features; train, test: rows
    Returns the (m,) predicted classes, and the chosen strength: the smallest of the best.
    Cost: folds x strengths + 1 fits, all but one solved together.
    """
    numbers = np.full(len(labels), -1)
    numbers[train] = stratified_folds(labels[train], folds=folds, seed=seed)
    included = np.array([(numbers >= 0) & (numbers != fold) for fold in range(folds)], dtype=np.float64).T
    wanted = _targets(labels)
    coefficients = fit_logistic(features, wanted, included, strengths)
    right = np.empty((len(strengths), folds))
    for fold in range(folds):
        held = np.flatnonzero(numbers == fold)
        right[:, fold] = (decide(features, held, coefficients[:, fold]) == labels[held, None]).mean(axis=0)
    # Rounded as SentEval does, so that a last digit does not decide between equals.
    chosen = float(strengths[int(np.round(100 * right.mean(axis=1), 2).argmax())])
    return _fit_and_predict(features, wanted, train, test, chosen), chosen


def predict_with_dev(
    features: Features, labels: Ints, train: Ints, dev: Ints, test: Ints, *, strengths: Sequence[float]
) -> tuple[Ints, float]:
    """Predictions for `test` of the fit on `train` whose strength does best on `dev`; as predict_nested else."""
    fitted = Features(features.z[train], features.scale)
    everyone = np.ones((len(train), 1))
    coefficients = fit_logistic(fitted, _targets(labels)[train], everyone, strengths)[:, 0]
    right = (decide(features, dev, coefficients) == labels[dev, None]).mean(axis=0)
    best = int(np.round(100 * right, 2).argmax())
    return decide(features, test, coefficients[best : best + 1])[:, 0], float(strengths[best])


def _fit_and_predict(features: Features, wanted: Float64, train: Ints, test: Ints, strength: float) -> Ints:
    included = np.zeros((len(wanted), 1))
    included[train] = 1.0
    return decide(features, test, fit_logistic(features, wanted, included, [strength])[0])[:, 0]


def _targets(labels: Ints) -> Float64:
    """One column for two classes, else one per class."""
    classes = int(labels.max()) + 1
    return labels[:, None].astype(np.float64) if classes <= 2 else np.eye(classes)[labels]
