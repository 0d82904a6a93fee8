"""Many L2-regularised logistic regressions on the rows of one matrix, solved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.errors import SolverError
from sentfold.measures.base import newton
from sentfold.measures.base.newton import Problems, forward, minimise

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROTATED = 1024  # rows with more features are not rotated: the eigenproblem would cost more time than it saves
SHARED = 16_000_000  # largest number of entries in one array of logits; more problems are solved in groups
# A fit ends when every derivative of its mean loss, in variables of unit expected curvature, is at most this. The
# loss is then within about 1e-12 of its minimum, and the logits within about 1e-3 of their limits; where some rows are
# a hundred times longer than others, the loss is within about 1e-7 of its minimum.
GRADIENT = 1e-6


@dataclass(frozen=True)
class Features:
    """Rows in coordinates in which logistic regressions on them are well conditioned.

    z      (n, d) float64: centred, and rotated to their principal axes if d <= 1024. Neither changes a prediction: a
           rotation keeps the lengths of coefficients, and the intercept, which is not penalised, absorbs the mean
    scale  (d,) mean square of each column of z
    """

    z: Float64
    scale: Float64


def prepare_features(x: npt.NDArray[np.floating[Any]]) -> Features:
    """(n, d) rows as Features. Cost O(n d^2 + d^3) time up to d = 1024, O(n d) above; memory O(n d)."""
    centred = np.asarray(x, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    if centred.shape[1] <= ROTATED:
        _, axes = np.linalg.eigh(centred.T @ centred)
        centred = centred @ axes
    return Features(centred, np.einsum("ij,ij->j", centred, centred) / max(len(centred), 1))


def fit_logistic(features: Features, targets: Float64, included: Float64, strengths: Sequence[float]) -> Float64:
    """Coefficients of f times s regressions: on each of f choices of rows, with each of s strengths.

    targets    (n, 1) in [0, 1]: one logit, as for two classes; or (n, c): softmax over c, rows summing to 1
    included   (n, f) how often each row counts in each choice, 0 for not at all
    strengths  values of C; a fit minimises |w|^2 / 2 + C sum of cross-entropies, without a penalty on the intercept, as
               scikit-learn's LogisticRegression(C=C) does
    Returns (s, f, d + 1, c), the intercept last. Raises SolverError if a fit does not converge.
    Method: truncated Newton steps on all choices at once, each variable in units of its expected curvature. The
    strengths are solved in ascending order, and each fit starts from the solution for the previous strength.
    Cost O(products n d f c) time with about 60 products for each strength; O(n f c) memory in groups of at most
    SHARED numbers.
    """
    n, outputs = targets.shape
    group = max(1, SHARED // max(1, n * outputs))
    parts = [slice(start, start + group) for start in range(0, included.shape[1], group)]
    return np.concatenate([_fit_group(features, targets, included[:, part], strengths) for part in parts], axis=1)


def classify(features: Features, rows: Ints, coefficients: Float64) -> Ints:
    """(m, q) the class that each of (q, d + 1, c) coefficients gives to rows; ties to the lower class."""
    logits = forward(features.z[rows], coefficients)
    chosen: Ints = (logits[:, :, 0] > 0).astype(np.int64) if logits.shape[2] == 1 else logits.argmax(axis=2)
    return chosen


def _fit_group(features: Features, targets: Float64, included: Float64, strengths: Sequence[float]) -> Float64:
    outputs = targets.shape[1]
    choices, d = included.shape[1], features.z.shape[1]
    totals = included.sum(axis=0)
    shares, coarse = included / totals, features.z.astype(np.float32)
    # The curvature of a mean of cross-entropies is at most 1/4 of the mean square, and about p (1 - p) of it.
    curvature = 0.25 if outputs == 1 else (1 - 1 / outputs) / outputs
    coefficients = np.empty((len(strengths), choices, d + 1, outputs))
    last = np.zeros((choices, d + 1, outputs))
    for place in np.argsort(strengths):
        penalty = 1.0 / (strengths[place] * totals)
        unit = np.full((choices, d + 1), 1.0 / np.sqrt(curvature))
        unit[:, :d] = 1.0 / np.sqrt(curvature * features.scale[None, :] + penalty[:, None])
        posed = Problems(features.z, coarse, targets, shares, penalty, unit)
        last, left = minimise(posed, last, gradient=GRADIENT)
        # Rounding of the loss can stop the steps early, so a gradient of up to 100 * GRADIENT counts as converged.
        if left.max() > 100 * GRADIENT:
            raise SolverError(
                "a logistic regression did not converge",
                where=f"evaluate: logistic regression, C = {strengths[place]:g}",
                expected=f"a gradient below {100 * GRADIENT:g} in at most {newton.STEPS} Newton steps",
                got=f"{left.max():.1e}",
                remedy="check the space: vectors of very different lengths can prevent convergence; "
                "or lower the largest strength",
            )
        coefficients[place] = last
    return coefficients
