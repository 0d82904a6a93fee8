"""SentEval's two classifiers written again from its description, one scikit-learn fit at a time."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

STRENGTHS = [2.0**power for power in range(-2, 4)]


def nested_accuracy(x: np.ndarray, y: np.ndarray, *, folds: int, seed: int) -> float:
    """InnerKFoldClassifier: mean accuracy of outer folds, each with C from k folds of its training part."""
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return float(np.mean([split_accuracy(x[a], y[a], x[b], y[b], folds, seed) for a, b in splitter.split(x, y)]))


def split_accuracy(
    x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, folds: int, seed: int
) -> float:
    """KFoldClassifier: C from k folds of the training part, accuracy on the test part."""
    inner = StratifiedKFold(folds, shuffle=True, random_state=seed)
    means = [100 * cross_val_score(LogisticRegression(C=c, max_iter=5000), x, y, cv=inner).mean() for c in STRENGTHS]
    chosen = STRENGTHS[int(np.round(means, 2).argmax())]
    return float(LogisticRegression(C=chosen, max_iter=5000).fit(x, y).score(x_test, y_test))
