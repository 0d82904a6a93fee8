"""Classification: what two plain classifiers predict on the vectors of a space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.evaluate.logistic import prepare_features
from pipeline.evaluate.nested import predict_nested, predict_with_dev, stratified_folds
from pipeline.manifold.neighbors import nearest_among

Floating = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Predictions:
    """What a classifier said of some items.

    items      (m,) which items were predicted; predicted: (m,) their classes
    strengths  of each fit's regularisation that was chosen, in order; empty for nearest neighbours
    """

    items: Ints
    predicted: Ints
    strengths: tuple[float, ...] = ()


def scheme_of(splits: list[str], folds: int) -> str:
    """How the items of a corpus are told apart into those fitted on and those scored."""
    if not _given(splits):
        return f"{folds}-fold cross-validation"
    return f"given train{', dev' if 'dev' in splits else ''} and test"


def predict_by_neighbors(x: Floating, labels: Ints, splits: list[str], *, k: int, folds: int, seed: int) -> Predictions:
    """The class of most of the k nearest items by Euclidean distance, ties to the lower class.

    x  (n, d); labels: (n,) classes from 0. Where splits `train` and `test` are given, neighbours are sought
       among all that is not test; otherwise among the other folds. Equal distances go by row.
    Cost O(n^2 d).
    """
    items, predicted = [], []
    for train, test in _parts(labels, splits, folds=folds, seed=seed):
        items.append(test)
        predicted.append(_vote(x[test], x[train], labels[train], k))
    order = np.argsort(np.concatenate(items), kind="stable")
    return Predictions(np.concatenate(items)[order], np.concatenate(predicted)[order])


def predict_training_set(x: Floating, labels: Ints, splits: list[str], *, k: int) -> Predictions:
    """The same rule scored on the very items it was fitted on: each is its own nearest neighbour.

    No measure of anything; it shows what a table that looks like it was made this way would mean.
    """
    fitted = np.flatnonzero(np.array(splits) != "test") if _given(splits) else np.arange(len(labels))
    return Predictions(fitted, _vote(x[fitted], x[fitted], labels[fitted], k))


def predict_by_logistic(
    x: Floating,
    labels: Ints,
    splits: list[str],
    *,
    folds: int,
    inner_folds: int,
    strengths: Sequence[float],
    seed: int,
) -> Predictions:
    """Logistic regression on raw vectors, its strength chosen apart from what is scored, as SentEval does.

    Given splits with dev: chosen on dev, fitted on train. Given splits without: chosen by `inner_folds`-fold
    cross-validation inside train. No splits: `folds` outer folds, in each the same inside the others.
    Cost: see fit_logistic.
    """
    features, names = prepare_features(x), np.array(splits)
    if _given(splits):
        train, test = np.flatnonzero(names == "train"), np.flatnonzero(names == "test")
        dev = np.flatnonzero(names == "dev")
        if len(dev):
            predicted, chosen = predict_with_dev(features, labels, train, dev, test, strengths=strengths)
        else:
            predicted, chosen = predict_nested(
                features, labels, train, test, folds=inner_folds, strengths=strengths, seed=seed
            )
        return Predictions(test, predicted, (chosen,))
    everything, found = np.empty(len(labels), dtype=np.int64), []
    for train, test in _parts(labels, splits, folds=folds, seed=seed):
        everything[test], chosen = predict_nested(
            features, labels, train, test, folds=inner_folds, strengths=strengths, seed=seed
        )
        found.append(chosen)
    return Predictions(np.arange(len(labels)), everything, tuple(found))


def pair_features(vectors: Floating, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
    """(m, 2 d) SentEval's features of pairs of rows, (m, 2): |u - v| beside u * v."""
    left, right = vectors[rows[:, 0]], vectors[rows[:, 1]]
    return np.hstack([np.abs(left - right), left * right]).astype(np.float32, copy=False)


def _given(splits: list[str]) -> bool:
    return {"train", "test"} <= set(splits)


def _parts(labels: Ints, splits: list[str], *, folds: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Rows fitted on and rows predicted, one pair per fit."""
    if _given(splits):
        scored = np.array(splits) == "test"
        yield np.flatnonzero(~scored), np.flatnonzero(scored)
        return
    numbers = stratified_folds(labels, folds=folds, seed=seed)
    for fold in range(folds):
        yield np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)


def _vote(queries: Floating, fitted: Floating, labels: Ints, k: int) -> Ints:
    near = labels[nearest_among(queries, fitted, k).indices]
    votes = (near[:, :, None] == np.arange(labels.max() + 1)).sum(axis=1)
    chosen: Ints = votes.argmax(axis=1)
    return chosen
