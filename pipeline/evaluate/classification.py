"""Classification by logistic regression, and the features of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.evaluate.folds import has_splits, split_parts
from pipeline.evaluate.logistic import prepare_features
from pipeline.evaluate.nearest import Predictions
from pipeline.evaluate.nested import predict_nested, predict_with_dev

Floating = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]


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
    """Logistic regression on vectors as given, its strength chosen apart from what is scored, as SentEval does.

    Given splits with dev: chosen on dev, fitted on train. Given splits without: chosen by `inner_folds`-fold
    cross-validation inside train. No splits: `folds` outer folds, in each the same inside the others.
    Cost: see fit_logistic.
    """
    features, names = prepare_features(x), np.array(splits)
    if has_splits(splits):
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
    for train, test in split_parts(labels, splits, folds=folds, seed=seed):
        everything[test], chosen = predict_nested(
            features, labels, train, test, folds=inner_folds, strengths=strengths, seed=seed
        )
        found.append(chosen)
    return Predictions(np.arange(len(labels)), everything, tuple(found))


def pair_features(vectors: Floating, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
    """(m, 2 d) SentEval's features of pairs of rows, (m, 2): |u - v| beside u * v."""
    left, right = vectors[rows[:, 0]], vectors[rows[:, 1]]
    return np.hstack([np.abs(left - right), left * right]).astype(np.float32, copy=False)
