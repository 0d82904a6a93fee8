"""Accuracy and F1 of every classifier on one corpus, for any features of its items."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.compare.bootstrap import Design, item_design, make_design
from sentfold.errors import SolverError
from sentfold.measures.base.case import Case
from sentfold.measures.base.classifiers import (
    LogisticSettings,
    Predictions,
    describe_split,
    predict_by_logistic,
    predict_by_neighbors,
    predict_by_perceptron,
    predict_training_set,
)
from sentfold.measures.base.newton import STEPS
from sentfold.measures.base.scores import CaseScores, ScoreSettings, blank, resample

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

UNFITTED = "no regression is fitted on this space: params.yaml, evaluate.unfitted"
UNCONVERGED = f"the regression did not converge in {STEPS} Newton steps"
# The parts of a protocol's name in words, and short names of metrics, for the tables.
CLASSIFIER_WORDS = {
    "accuracy": "accuracy",
    "f1": "F1",
    "3nn-euclidean": "Euclidean 3-NN",
    "3nn-training-set": "Euclidean 3-NN, training-set scoring",
    "logistic": "logistic regression",
    "perceptron": "a perceptron with one hidden layer",
}
CLASSIFIER_SHORT = {"f1": "F1"}


class ClassifierSettings(ScoreSettings, LogisticSettings):
    """Settings of the classifiers. knn_neighbors: k of the nearest-neighbour classifier."""

    knn_neighbors: int = Field(default=3, ge=1, le=1000)


def rate_classifiers(
    x: npt.NDArray[np.float32], case: Case, settings: ClassifierSettings, *, with_f1: bool = False
) -> tuple[CaseScores, Ints]:
    """Accuracy, and F1 if `with_f1`, of every classifier on the items that the classifier predicts.

    x  (m, d) the features of each item
    The scores of the regression are None, with the reason, if the space has no regressions or the fit does not
    converge. The perceptron has no scores if it is not trained on this space.
    Returns the scores, and the items that the nearest neighbours predict.
    """
    neighbors, trained, logistic = _predict(x, case, settings)
    k, metrics = settings.knn_neighbors, ("accuracy", "f1") if with_f1 else ("accuracy",)
    if logistic is None:
        reason = UNCONVERGED if case.fitted else UNFITTED
        outcome = blank(tuple(f"{metric}.logistic" for metric in metrics), reason)
    else:
        outcome = _rate(case, logistic, "logistic", settings, metrics)
    outcome = outcome.joined(_rate(case, trained, f"{k}nn-training-set", settings, metrics))
    outcome = outcome.joined(_rate(case, neighbors, f"{k}nn-euclidean", settings, metrics))
    if case.perceptron:
        scheme = {"folds": settings.folds, "seed": settings.seed}
        trained_layer = predict_by_perceptron(x, case.labels, case.items["split"], **scheme)
        outcome = outcome.joined(_rate(case, trained_layer, "perceptron", settings, metrics))
    chosen = () if logistic is None else logistic.strengths
    described = outcome.with_facts(
        fitted_for_training_set=len(trained.items),
        majority=round(100 * float(np.bincount(case.labels[neighbors.items]).max() / len(neighbors.items)), 2),
        n=len(neighbors.items),
        scheme=describe_split(case.items["split"], settings.folds),
        strengths={f"{value:g}": chosen.count(value) for value in sorted(set(chosen))},
    )
    return described, neighbors.items


def _predict(
    x: npt.NDArray[np.float32], case: Case, settings: ClassifierSettings
) -> tuple[Predictions, Predictions, Predictions | None]:
    """Nearest neighbours, nearest neighbours on their training set, and logistic regression; None if not fitted."""
    labels, splits, k = case.labels, case.items["split"], settings.knn_neighbors
    neighbors = predict_by_neighbors(x, labels, splits, k=k, folds=settings.folds, seed=settings.seed)
    trained = predict_training_set(x, labels, splits, k=k)
    if case.fitted:
        with suppress(SolverError):
            return neighbors, trained, predict_by_logistic(x, labels, splits, settings)
    return neighbors, trained, None


def _rate(
    case: Case, predictions: Predictions, name: str, settings: ClassifierSettings, metrics: tuple[str, ...]
) -> CaseScores:
    labels, predicted = case.labels[predictions.items], predictions.predicted
    rate = {"accuracy": accuracies, "f1": f1_scores}

    def rates(weights: Float64) -> dict[str, Float64]:
        return {f"{metric}.{name}": rate[metric](labels, predicted, weights) for metric in metrics}

    return resample(case, settings, _design(case, predictions.items), rates)


def _design(case: Case, items: Ints) -> Design:
    subsets = [""] * len(items)
    if "row1" not in case.items:
        return item_design(subsets)
    return make_design(case.notes["resample"], case.pairs[items], subsets)


def accuracies(labels: Ints, predicted: Ints, weights: Float64) -> Float64:
    """(b,) weighted share of right predictions; labels, predicted: (m,), weights: (b, m)."""
    shares: Float64 = (weights @ (labels == predicted).astype(np.float64)) / weights.sum(axis=1)
    return shares


def f1_scores(labels: Ints, predicted: Ints, weights: Float64) -> Float64:
    """(b,) weighted F1; labels, predicted: (m,) classes from 0, weights: (b, m).

    For two classes, the F1 of class 1; for more, the unweighted mean of the classes' F1. A class that is neither
    present nor predicted in a resample has an F1 of 0, as in scikit-learn.
    """
    classes = max(int(labels.max()), int(predicted.max())) + 1
    scores = [_f1_of(labels == label, predicted == label, weights) for label in range(classes)]
    mean: Float64 = scores[1] if classes == 2 else np.mean(scores, axis=0)
    return mean


def _f1_of(present: npt.NDArray[np.bool_], predicted: npt.NDArray[np.bool_], weights: Float64) -> Float64:
    right = weights @ (present & predicted).astype(np.float64)
    either = weights @ (present.astype(np.float64) + predicted)
    scores: Float64 = 2 * right / np.where(either > 0, either, 1.0)
    return scores
