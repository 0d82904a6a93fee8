"""Folds of cross-validation, and which items are fitted on and which are scored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold

from pipeline.errors import ParameterError

Ints = npt.NDArray[np.int64]


def stratified_folds(labels: Ints, *, folds: int, seed: int) -> Ints:
    """(n,) number of the fold of each item, shares of the classes being kept.

    Raises ParameterError if a class has fewer items than there are folds.
    """
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if folds > smallest:
        raise ParameterError(
            "more folds than the smallest class has items",
            where="params.yaml: evaluate.folds, evaluate.inner_folds",
            expected=f"<= {smallest}",
            got=str(folds),
            remedy="lower it, or leave this corpus out of the suite",
        )
    numbers = np.empty(len(labels), dtype=np.int64)
    splitter = StratifiedKFold(n_splits=folds, shuffle=True, random_state=seed)
    for number, (_, test) in enumerate(splitter.split(np.zeros(len(labels)), labels)):
        numbers[test] = number
    return numbers


def has_splits(splits: list[str]) -> bool:
    """Whether the items have a given train and test split."""
    return {"train", "test"} <= set(splits)


def split_parts(labels: Ints, splits: list[str], *, folds: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Rows fitted on and rows predicted, one pair per fit."""
    if has_splits(splits):
        scored = np.array(splits) == "test"
        yield np.flatnonzero(~scored), np.flatnonzero(scored)
        return
    numbers = stratified_folds(labels, folds=folds, seed=seed)
    for fold in range(folds):
        yield np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)


def scheme_of(splits: list[str], folds: int) -> str:
    """How the items of a corpus are told apart into those fitted on and those scored."""
    if not has_splits(splits):
        return f"{folds}-fold cross-validation"
    return f"given train{', dev' if 'dev' in splits else ''} and test"
