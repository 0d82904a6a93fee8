"""Classification by the nearest neighbours, and what such a classifier says of its own training set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.evaluate.folds import has_splits, split_parts
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


def predict_by_neighbors(x: Floating, labels: Ints, splits: list[str], *, k: int, folds: int, seed: int) -> Predictions:
    """The class of most of the k nearest items by Euclidean distance, ties to the lower class.

    x  (n, d); labels: (n,) classes from 0. Where splits `train` and `test` are given, neighbours are sought
       among all that is not test; otherwise among the other folds. Equal distances go by row.
    Cost O(n^2 d).
    """
    items, predicted = [], []
    for train, test in split_parts(labels, splits, folds=folds, seed=seed):
        items.append(test)
        predicted.append(_vote(x[test], x[train], labels[train], k))
    order = np.argsort(np.concatenate(items), kind="stable")
    return Predictions(np.concatenate(items)[order], np.concatenate(predicted)[order])


def predict_training_set(x: Floating, labels: Ints, splits: list[str], *, k: int) -> Predictions:
    """The same rule scored on the very items it was fitted on: each is its own nearest neighbour.

    No measure of anything; it shows what a table that looks like it was made this way would mean.
    """
    fitted = np.flatnonzero(np.array(splits) != "test") if has_splits(splits) else np.arange(len(labels))
    return Predictions(fitted, _vote(x[fitted], x[fitted], labels[fitted], k))


def _vote(queries: Floating, fitted: Floating, labels: Ints, k: int) -> Ints:
    near = labels[nearest_among(queries, fitted, k).indices]
    votes = (near[:, :, None] == np.arange(labels.max() + 1)).sum(axis=1)
    chosen: Ints = votes.argmax(axis=1)
    return chosen
