"""SentEval's trained similarity: a softmax regression over the bins of the human scale, and its expected value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import pearsonr

from pipeline.evaluate.logistic import Features, fit_logistic, prepare_features
from pipeline.evaluate.newton import forward

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Head:
    """Scores that a trained head gives to the test pairs.

    values    (m,) on the human scale; strength: the chosen regularisation; dev: its Pearson there
    """

    values: Float64
    strength: float
    dev: float


def train_head(x: npt.NDArray[np.float32], human: Float64, splits: list[str], *, strengths: Sequence[float]) -> Head:
    """Fit on `train`, choose the strength by Pearson on `dev`, predict `test`.

    x      (n, 2 d) pair features; human: (n,) scores; splits: (n,) train, dev or test
    A score between two whole numbers is a distribution over both, so that its mean is the score (Tai et
    al. 2015, eq. 15); the bins run from the lowest to the highest whole number of the train scores. The loss
    is the cross-entropy, Tai's; SentEval's code takes squared error and stops early on dev.
    """
    names = np.array(splits)
    train, dev, test = (np.flatnonzero(names == name) for name in ("train", "dev", "test"))
    bins = np.arange(np.floor(human[train].min()), np.ceil(human[train].max()) + 1)
    features = prepare_features(x)
    fitted = Features(features.z[train], features.scale)
    everyone = np.ones((len(train), 1))
    coefficients = fit_logistic(fitted, spread_over_bins(human[train], bins), everyone, strengths)[:, 0]
    tried = expected_values(forward(features.z[dev], coefficients), bins)
    pearson = [float(pearsonr(values, human[dev]).statistic) if np.ptp(values) > 0 else -1.0 for values in tried.T]
    best = int(np.round(pearson, 6).argmax())
    logits = forward(features.z[test], coefficients[best : best + 1])
    return Head(expected_values(logits, bins)[:, 0], float(strengths[best]), pearson[best])


def spread_over_bins(scores: Float64, bins: Float64) -> Float64:
    """(n, c) each score as shares of the two whole numbers around it, among c consecutive ones; rows sum to 1."""
    shares: Float64 = np.maximum(1.0 - np.abs(scores[:, None] - bins[None, :]), 0.0)
    return shares


def expected_values(logits: Float64, bins: Float64) -> Float64:
    """(m, q) mean of the bins under the softmax of (m, q, c) logits."""
    powers = np.exp(logits - logits.max(axis=2, keepdims=True))
    values: Float64 = (powers @ bins) / powers.sum(axis=2)
    return values
