"""Classification: which items two plain classifiers get right on the vectors of a space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pipeline.errors import ParameterError

Ints = npt.NDArray[np.int64]


def correct_items(
    vectors: npt.NDArray[np.floating[Any]],
    labels: Ints,
    splits: list[str],
    *,
    folds: int,
    knn_neighbors: int,
    logistic_c: float,
    seed: int,
) -> tuple[dict[str, npt.NDArray[np.float64]], Ints, str]:
    """For each classifier 1.0 where a scored item was predicted right, else 0.0.

    vectors  (n, d) of the items; labels (n,); splits (n,) names. Where a split `test` and a split
             `train` exist, the classifier is fitted on all that is not test and scored on test;
             otherwise every item is scored out of fold, in stratified shuffled folds.
    Returns {protocol: (m,)}, the m scored items, and a name of the scheme. A model is never scored
    on an item that it was fitted on. Cost: `folds` fits of each classifier.
    """
    scheme, parts = _schemes(labels, splits, folds=folds, seed=seed)
    models: dict[str, ClassifierMixin] = {
        f"accuracy.{knn_neighbors}nn-euclidean": KNeighborsClassifier(
            knn_neighbors, metric="euclidean", algorithm="brute"
        ),
        "accuracy.logistic": make_pipeline(StandardScaler(), LogisticRegression(C=logistic_c, max_iter=2000)),
    }
    x = np.asarray(vectors, dtype=np.float64)
    right: dict[str, npt.NDArray[np.float64]] = {name: np.full(len(labels), np.nan) for name in models}
    for train, test in parts:
        for name, model in models.items():
            right[name][test] = model.fit(x[train], labels[train]).predict(x[test]) == labels[test]
    scored = np.flatnonzero(np.isfinite(right["accuracy.logistic"]))
    return {name: values[scored] for name, values in right.items()}, scored, scheme


def _schemes(labels: Ints, splits: list[str], *, folds: int, seed: int) -> tuple[str, Iterator[tuple[Ints, Ints]]]:
    names = np.array(splits)
    if {"train", "test"} <= set(splits):
        return "given train and test", iter([(np.flatnonzero(names != "test"), np.flatnonzero(names == "test"))])
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if folds > smallest:
        raise ParameterError(
            "more folds than the smallest class has items",
            where="params.yaml: evaluate.folds",
            expected=f"<= {smallest}",
            got=str(folds),
            remedy="lower evaluate.folds, or leave this corpus out of the suite",
        )
    splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed)
    return f"{folds}-fold cross-validation", splitter.split(np.zeros(len(labels)), labels)
