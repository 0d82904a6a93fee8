"""Inference pairs: how well one threshold on the cosine tells entailment from contradiction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

THRESHOLDS = np.arange(100) / 100  # 0.00 to 0.99: below 0 nothing but trivial decisions is left (METHODS 17)


def mean_f1(cosine: Float64, entailed: Bools, weights: Float64) -> Float64:
    """(b,) F1 of `cosine >= t`, averaged over the thresholds t = 0.00, 0.01 ... 0.99.

    cosine, entailed  (m,); weights: (b, m)
    Where nothing is entailed and nothing said to be, F1 is 0. It rewards cosines that are all large: see best_f1.
    """
    place = np.searchsorted(THRESHOLDS, cosine, side="right")  # number of thresholds that are passed
    passed = [_tails(place, weights * side) for side in (entailed, ~entailed)]
    positives = (weights * entailed).sum(axis=1, keepdims=True)
    f1: Float64 = _f1(passed[0], passed[1], positives).mean(axis=1)
    return f1


def best_f1(cosine: Float64, entailed: Bools, weights: Float64) -> tuple[Float64, Float64]:
    """(b,) the largest F1 that any threshold gives on these very pairs, and (b,) that threshold.

    The threshold is the smallest cosine still said to be entailed. Chosen anew in each resample, because the
    score is that of the best threshold, with its optimism.
    """
    order = np.argsort(-cosine, kind="stable")
    ordered = cosine[order]
    last = np.append(ordered[1:] != ordered[:-1], True)  # a threshold cannot part equal cosines
    said = weights[:, order]
    right = np.cumsum(said * entailed[order], axis=1)
    wrong = np.cumsum(said * ~entailed[order], axis=1)
    f1 = _f1(right[:, last], wrong[:, last], right[:, -1:])
    best = f1.argmax(axis=1)
    return f1[np.arange(len(f1)), best], ordered[last][best]


def _tails(place: npt.NDArray[np.int64], weights: Float64) -> Float64:
    """(b, 100) weight of the pairs that pass each threshold."""
    bins = len(THRESHOLDS) + 1
    counts = np.array([np.bincount(place, weights=row, minlength=bins) for row in weights])
    tails: Float64 = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return tails


def _f1(right: Float64, wrong: Float64, positives: Float64) -> Float64:
    size = right + wrong + positives
    f1: Float64 = 2 * right / np.where(size > 0, size, 1.0)
    return f1
