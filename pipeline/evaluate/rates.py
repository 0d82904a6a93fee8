"""Shares of right predictions and F1, of a sample and of its resamples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def accuracies(labels: Ints, predicted: Ints, weights: Float64) -> Float64:
    """(b,) weighted share of right predictions; labels, predicted: (m,), weights: (b, m)."""
    shares: Float64 = (weights @ (labels == predicted).astype(np.float64)) / weights.sum(axis=1)
    return shares


def f1_scores(labels: Ints, predicted: Ints, weights: Float64) -> Float64:
    """(b,) weighted F1; labels, predicted: (m,) classes from 0, weights: (b, m).

    Of two classes it is the F1 of class 1, of more the plain mean of each class's. A class that is neither
    there nor predicted in a resample has an F1 of 0, as in scikit-learn.
    """
    classes = max(int(labels.max()), int(predicted.max())) + 1
    scores = [_f1_of(labels == label, predicted == label, weights) for label in range(classes)]
    mean: Float64 = scores[1] if classes == 2 else np.mean(scores, axis=0)
    return mean


def _f1_of(there: npt.NDArray[np.bool_], said: npt.NDArray[np.bool_], weights: Float64) -> Float64:
    right = weights @ (there & said).astype(np.float64)
    either = weights @ (there.astype(np.float64) + said)
    scores: Float64 = 2 * right / np.where(either > 0, either, 1.0)
    return scores
