"""Many L2-regularised logistic regressions on the rows of one matrix, solved together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from pipeline.errors import SolverError
from pipeline.evaluate.kernels import softmax_losses

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROTATED = 1024  # features beyond this many are only scaled, since an eigenproblem would cost more than it saves
SHARED = 16_000_000  # numbers in one array of logits: problems are solved in groups that keep below it
ITERATIONS = 1000
# Largest derivative at which a group of fits ends, of mean losses by variables of unit expected curvature: a
# loss is then within about 1e-12 of its minimum, and logits within about 1e-3 of theirs.
GRADIENT = 1e-6


@dataclass(frozen=True)
class Features:
    """Rows in coordinates in which logistic regressions on them are well conditioned.

    z      (n, d) float64: centred, and turned to their principal axes where d allows. Neither changes a
           prediction: lengths of coefficients stay, and the intercept, which is not penalised, takes the mean
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


def fit_logistic(features: Features, targets: Float64, included: Float64, strengths: Float64) -> Float64:
    """Coefficients of q regressions, each on its own rows and with its own strength.

    targets    (n, 1) in [0, 1]: one logit, as for two classes; or (n, c): softmax over c, rows summing to 1
    included   (n, q) how often each row counts in each regression, 0 for not at all
    strengths  (q,) C: minimises |w|^2 / 2 + C sum of cross-entropies, the intercept not penalised, which is
               scikit-learn's LogisticRegression(C=C)
    Returns (q, d + 1, c), the intercept last. Raises SolverError if a group of fits does not converge.
    Method: L-BFGS on all q together, each variable in units of its expected curvature.
    Cost O(iterations n d q c) time, O(n q c) memory in groups of at most SHARED numbers.
    """
    n, outputs = targets.shape
    group = max(1, SHARED // max(1, n * outputs))
    parts = [slice(start, start + group) for start in range(0, len(strengths), group)]
    return np.concatenate([_fit_group(features, targets, included[:, part], strengths[part]) for part in parts])


def decide(features: Features, rows: Ints, coefficients: Float64) -> Ints:
    """(m, q) the class that each of (q, d + 1, c) coefficients gives to rows; ties to the lower class."""
    logits = logits_of(features.z[rows], coefficients)
    chosen: Ints = (logits[:, :, 0] > 0).astype(np.int64) if logits.shape[2] == 1 else logits.argmax(axis=2)
    return chosen


def logits_of(z: Float64, coefficients: Float64) -> Float64:
    """(m, q, c) logits of rows z, (m, d), under (q, d + 1, c) coefficients."""
    problems, _, outputs = coefficients.shape
    flat = coefficients.transpose(1, 0, 2).reshape(-1, problems * outputs)
    logits: Float64 = z @ flat[:-1] + flat[-1]
    return logits.reshape(len(z), problems, outputs)


def _fit_group(features: Features, targets: Float64, included: Float64, strengths: Float64) -> Float64:
    n, outputs = targets.shape
    problems, d = len(strengths), features.z.shape[1]
    totals = included.sum(axis=0)
    penalty = 1.0 / (strengths * totals)
    # The curvature of a mean of cross-entropies is at most 1/4 of the mean square, and about p (1 - p) of it.
    curvature = 0.25 if outputs == 1 else (1 - 1 / outputs) / outputs
    unit = np.ones((problems, d + 1, outputs))
    unit[:, :d] = (1.0 / np.sqrt(curvature * features.scale[None, :] + penalty[:, None]))[:, :, None]
    unit[:, d] = 1.0 / np.sqrt(curvature)
    shares = included / totals

    def objective(flat: Float64) -> tuple[float, Float64]:
        w = flat.reshape(unit.shape) * unit
        loss, slopes = _cross_entropy(logits_of(features.z, w), targets, shares)
        gradient = np.empty_like(w)
        back = features.z.T @ slopes.reshape(n, -1)
        gradient[:, :d] = back.reshape(d, problems, outputs).transpose(1, 0, 2) + penalty[:, None, None] * w[:, :d]
        gradient[:, d] = slopes.sum(axis=0)
        value = loss + 0.5 * float((penalty[:, None, None] * np.square(w[:, :d])).sum())
        return value, (gradient * unit).ravel()

    found = minimize(
        objective,
        np.zeros(unit.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS, "gtol": GRADIENT, "ftol": 0.0, "maxcor": 10},
    )
    # Where the loss is flat to its last digit the line search ends first; that is converged too.
    if found.nit >= ITERATIONS or np.abs(found.jac).max() > 100 * GRADIENT:
        raise SolverError(
            "a logistic regression did not converge",
            where="evaluate: logistic regression",
            expected=f"a gradient below {100 * GRADIENT:g} in at most {ITERATIONS} iterations",
            got=f"{np.abs(found.jac).max():.1e} after {found.nit}",
            remedy="check the space: vectors of very unlike lengths make such a problem; or lower the largest strength",
        )
    return found.x.reshape(unit.shape) * unit


def _cross_entropy(logits: Float64, targets: Float64, shares: Float64) -> tuple[float, Float64]:
    """Sum over problems of the weighted mean cross-entropies, and its slope by each logit."""
    if logits.shape[2] == 1:
        t = logits[:, :, 0]
        slopes = (expit(t) - targets) * shares
        losses = np.maximum(t, 0.0) - t * targets + np.log1p(np.exp(-np.abs(t)))
        return float(np.vdot(losses, shares)), slopes[:, :, None]
    loss = softmax_losses(logits, targets, shares)
    return float(loss), logits
