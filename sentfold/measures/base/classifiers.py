"""Classifiers: nearest neighbours; logistic regression and a perceptron, fitted as SentEval fits them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BeforeValidator, Field

from sentfold.errors import ParameterError
from sentfold.measures.base.logistic import Features, classify, fit_logistic, prepare_features
from sentfold.neighbors.neighbors import nearest_among
from sentfold.settings import Parameters

Floating = npt.NDArray[np.floating[Any]]
Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def _ascending_and_positive(value: tuple[float, ...]) -> tuple[float, ...]:
    if min(value) <= 0 or list(value) != sorted(set(value)):
        raise ValueError("positive numbers in ascending order, without repeats")
    return value


Strengths = Annotated[
    tuple[float, ...],
    BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
    Field(min_length=1),
    AfterValidator(_ascending_and_positive),
]


class LogisticSettings(Parameters):
    """Settings of logistic regression.

    folds        number of outer folds, used if a corpus has no test split
    inner_folds  number of folds inside the fitted items; they choose the strength
    strengths    candidate values of C, ascending; each fit chooses one of them; the default is SentEval's
    seed         of the folds
    """

    folds: int = Field(default=10, ge=2, le=100)
    inner_folds: int = Field(default=10, ge=2, le=100)
    strengths: Strengths = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    seed: int = Field(default=0, ge=0, lt=2**32)


@dataclass(frozen=True)
class Predictions:
    """The classes that a classifier predicts for some items.

    items      (m,) row numbers of the items; predicted: (m,) their predicted classes
    strengths  the chosen regularisation of each fit, in order; empty for nearest neighbours
    """

    items: Ints
    predicted: Ints
    strengths: tuple[float, ...] = ()


# --- which items are fitted and which are scored -------------------------------------------------


def has_splits(splits: list[str]) -> bool:
    """Whether the items have a given train and test split."""
    return {"train", "test"} <= set(splits)


def stratified_folds(labels: Ints, *, folds: int, seed: int) -> Ints:
    """(n,) the number of each item's fold; every fold has the same shares of the classes.

    Raises ParameterError if a class has fewer items than there are folds.
    """
    # Imported here because the import is slow and a check of parameters does not need it.
    from sklearn.model_selection import StratifiedKFold

    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if folds > smallest:
        raise ParameterError(
            "more folds than the smallest class has items",
            where="params.yaml: evaluate.folds, evaluate.inner_folds",
            expected=f"<= {smallest}",
            got=str(folds),
            remedy="lower the number of folds, or leave this corpus out of the suite",
        )
    numbers = np.empty(len(labels), dtype=np.int64)
    splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed)
    for number, (_, test) in enumerate(splitter.split(np.zeros(len(labels)), labels)):
        numbers[test] = number
    return numbers


def split_parts(labels: Ints, splits: list[str], *, folds: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the rows to fit on and the rows to predict, once for each fit."""
    if has_splits(splits):
        scored = np.array(splits) == "test"
        yield np.flatnonzero(~scored), np.flatnonzero(scored)
        return
    numbers = stratified_folds(labels, folds=folds, seed=seed)
    for fold in range(folds):
        yield np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)


def describe_split(splits: list[str], folds: int) -> str:
    """How the items of a corpus are divided into fitted and scored ones, in words."""
    if not has_splits(splits):
        return f"{folds}-fold cross-validation"
    return f"given train{', dev' if 'dev' in splits else ''} and test"


# --- nearest neighbours --------------------------------------------------------------------------


def predict_by_neighbors(x: Floating, labels: Ints, splits: list[str], *, k: int, folds: int, seed: int) -> Predictions:
    """The most frequent class of the k nearest items by Euclidean distance; ties go to the lower class.

    x       (n, d); labels: (n,) classes from 0
    splits  (n,); with a train and a test split, neighbours are searched among all items outside test; otherwise
            among the items of the other folds
    Items at equal distances are ordered by row. Cost O(n^2 d).
    """
    items, predicted = [], []
    for train, test in split_parts(labels, splits, folds=folds, seed=seed):
        items.append(test)
        predicted.append(_vote(x[test], x[train], labels[train], k))
    return _in_order(items, predicted)


def _in_order(items: Sequence[Ints], predicted: Sequence[Ints]) -> Predictions:
    """The predictions of all fits, ordered by item."""
    order = np.argsort(np.concatenate(items), kind="stable")
    return Predictions(np.concatenate(items)[order], np.concatenate(predicted)[order])


def predict_training_set(x: Floating, labels: Ints, splits: list[str], *, k: int) -> Predictions:
    """Nearest neighbours scored on the items that they are fitted on: each item is its own nearest neighbour.

    This score does not measure generalisation. It serves to compare with published tables that may have been
    computed in this way.
    """
    fitted = np.flatnonzero(np.array(splits) != "test") if has_splits(splits) else np.arange(len(labels))
    return Predictions(fitted, _vote(x[fitted], x[fitted], labels[fitted], k))


def _vote(queries: Floating, fitted: Floating, labels: Ints, k: int) -> Ints:
    near = np.sort(labels[nearest_among(queries, fitted, k).indices], axis=1)
    # Votes for the class of each neighbour: a column for every class would take gigabytes where there are many. The
    # classes ascend, so the first of the largest numbers of votes is that of the lowest class.
    votes = sum((near == near[:, place : place + 1]).astype(np.int64) for place in range(near.shape[1]))
    chosen: Ints = near[np.arange(len(near)), np.argmax(votes, axis=1)]
    return chosen


# --- logistic regression -------------------------------------------------------------------------


def predict_by_logistic(x: Floating, labels: Ints, splits: list[str], settings: LogisticSettings) -> Predictions:
    """Logistic regression on unscaled vectors; the strength is chosen without the scored items.

    x  (n, d); labels: (n,) classes from 0; splits: (n,)
    With train, dev and test splits: fitted on train, the strength chosen on dev. With train and test alone: the
    strength is chosen by `inner_folds`-fold cross-validation inside train. Without splits: `folds`-fold
    cross-validation; the fit for each fold chooses its strength by `inner_folds`-fold cross-validation in the others.
    Cost: see fit_logistic. Source: SentEval's classifiers (Conneau & Kiela 2018).
    """
    features, names = prepare_features(x), np.array(splits)
    if "dev" in splits and has_splits(splits):
        parts = (np.flatnonzero(names == name) for name in ("train", "dev", "test"))
        return predict_with_dev(features, labels, *parts, strengths=settings.strengths)
    fits = [
        predict_nested(features, labels, train, test, settings)
        for train, test in split_parts(labels, splits, folds=settings.folds, seed=settings.seed)
    ]
    items = np.concatenate([fit.items for fit in fits])
    order = np.argsort(items, kind="stable")
    predicted = np.concatenate([fit.predicted for fit in fits])[order]
    return Predictions(items[order], predicted, tuple(strength for fit in fits for strength in fit.strengths))


def predict_nested(
    features: Features, labels: Ints, train: Ints, test: Ints, settings: LogisticSettings
) -> Predictions:
    """Predictions for `test`, after `inner_folds`-fold cross-validation inside `train` has chosen the strength.

    labels  (n,) classes 0 to c - 1 of all rows of the features; train, test: rows
    If several strengths are equally good, the smallest is chosen.
    Cost: inner_folds x strengths + 1 fits; all but one are solved together.
    """
    folds, strengths = settings.inner_folds, settings.strengths
    numbers = np.full(len(labels), -1)
    numbers[train] = stratified_folds(labels[train], folds=folds, seed=settings.seed)
    included = np.array([(numbers >= 0) & (numbers != fold) for fold in range(folds)], dtype=np.float64).T
    targets = _targets(labels)
    coefficients = fit_logistic(features, targets, included, strengths)
    right = np.empty((len(strengths), folds))
    for fold in range(folds):
        left_out = np.flatnonzero(numbers == fold)
        predicted = classify(features, left_out, coefficients[:, fold])
        right[:, fold] = (predicted == labels[left_out, None]).mean(axis=0)
    # Rounded to two decimals, as in SentEval, so that a rounding error does not decide between equal strengths.
    chosen = float(strengths[int(np.round(100 * right.mean(axis=1), 2).argmax())])
    alone = np.zeros((len(targets), 1))
    alone[train] = 1.0
    predicted = classify(features, test, fit_logistic(features, targets, alone, [chosen])[0])[:, 0]
    return Predictions(test, predicted, (chosen,))


def predict_with_dev(
    features: Features, labels: Ints, train: Ints, dev: Ints, test: Ints, *, strengths: Sequence[float]
) -> Predictions:
    """Predictions for `test` of the fit on `train` whose strength is best on `dev`; see predict_nested."""
    fitted = Features(features.z[train], features.scale)
    everyone = np.ones((len(train), 1))
    coefficients = fit_logistic(fitted, _targets(labels)[train], everyone, strengths)[:, 0]
    right = (classify(features, dev, coefficients) == labels[dev, None]).mean(axis=0)
    best = int(np.round(100 * right, 2).argmax())
    predicted = classify(features, test, coefficients[best : best + 1])[:, 0]
    return Predictions(test, predicted, (float(strengths[best]),))


def _targets(labels: Ints) -> Float64:
    """One column for two classes, otherwise one per class. Raises ParameterError for more than 2 GB of columns."""
    classes = int(labels.max()) + 1
    if classes <= 2:
        return labels[:, None].astype(np.float64)
    if len(labels) * classes > 2**28:
        raise ParameterError(
            "there are too many classes for a regression",
            where="label",
            expected=f"at most {2**28 // len(labels)} classes of {len(labels)} items",
            got=f"{classes} classes",
        )
    targets = np.zeros((len(labels), classes))
    targets[np.arange(len(labels)), labels] = 1.0
    return targets


# --- a perceptron --------------------------------------------------------------------------------


def predict_by_perceptron(x: Floating, labels: Ints, splits: list[str], *, folds: int, seed: int) -> Predictions:
    """A perceptron with one hidden layer of 50 logistic units, trained as in SentEval's tables.

    x  (n, d); labels: (n,) classes from 0; splits: (n,), used as by predict_by_neighbors
    Adam in batches of 64 rows. A tenth of the fitted items, with the same shares of the classes, decides when training
    ends: after 20 epochs in which the accuracy on that tenth does not rise, or after 200; the best epoch is kept.
    Cost O(epochs n d) for each fit, in float32. Source: SentEval (Conneau & Kiela 2018), nhid 50
    """
    # Imported here because the imports are slow and a check of parameters does not need them.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    rows, items, predicted = np.asarray(x, dtype=np.float32), [], []
    for train, test in split_parts(labels, splits, folds=folds, seed=seed):
        model = MLPClassifier(
            (50,), activation="logistic", batch_size=max(1, min(64, len(train) // 2)), max_iter=200, random_state=seed,
            early_stopping=True, n_iter_no_change=20, tol=0.0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # training may end at the last epoch
            items.append(test)
            predicted.append(model.fit(rows[train], labels[train]).predict(rows[test]).astype(np.int64))
    return _in_order(items, predicted)
