"""Truncated Newton steps that solve many regularised logistic regressions on the rows of one matrix together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sentfold.kernels.compiled import exact

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Array = TypeVar("Array", Float64, Float32)

STEPS = 100  # largest number of Newton steps; about ten are usual
PRODUCTS = 250  # largest number of products with the Hessian in one step
FEW = 32  # a problem that needs at most this many products is never hard (see _direction)
BLOCKS = 40_000_000  # largest number of entries in the Hessians of the hard problems that are solved together
HALVINGS = 40  # largest number of halvings of one step
ENOUGH = 0.3  # the linear system of a step is solved to this relative residual, near the minimum to a smaller one
DESCENT = 1e-4  # share of the decrease predicted by the slope that a step must reach (Armijo)
ROUNDING = 1e-13  # relative rounding error of a loss; smaller differences are ignored


@dataclass(frozen=True)
class Problems:
    """q regressions with c outputs on the same n rows.

    z        (n, d) rows
    coarse   the same rows in float32, for products with the Hessian: these products only choose a direction
    targets  (n, 1) in [0, 1] for one logit, or (n, c) rows summing to 1 for a softmax
    shares   (n, q) weight of each row in each problem
    penalty  (q,) factor of half the squared length of the coefficients; the intercept, which is last, has no penalty
    unit     (q, d + 1) units of the coefficients in which all second derivatives are about 1
    """

    z: Float64
    coarse: Float32
    targets: Float64
    shares: Float64
    penalty: Float64
    unit: Float64

    @property
    def shape(self) -> tuple[int, int, int]:
        """(q, d + 1, c) of the coefficients."""
        return len(self.penalty), self.z.shape[1] + 1, self.targets.shape[1]

    def only(self, kept: Flags | Places) -> Problems:
        """The problems that `kept` selects: (q,) flags, or indices."""
        shares = np.ascontiguousarray(self.shares[:, kept])
        return replace(self, shares=shares, penalty=self.penalty[kept], unit=self.unit[kept])

    def evaluate(self, w: Float64) -> tuple[Float64, Float64, Float32]:
        """Losses (q,), gradients (q, d + 1, c) and class probabilities (n, q, c) at coefficients w, (q, d + 1, c)."""
        slopes = forward(self.z, w)
        chances = np.empty(slopes.shape, dtype=np.float32)
        losses = 0.5 * self.penalty * np.square(w[:, :-1]).sum(axis=(1, 2))
        cross_entropies(slopes, self.targets, self.shares, chances, losses)
        return losses, self._slopes_by_coefficients(self.z, slopes, w), chances

    def curve(self, v: Float32, chances: Float32) -> Float32:
        """(q, d + 1, c) product of the Hessian with v; the Hessian is taken at the class probabilities `chances`."""
        products = forward(self.coarse, v)
        curve_products(products, chances, self.shares)
        return self._slopes_by_coefficients(self.coarse, products, v)

    def _slopes_by_coefficients(self, z: Array, slopes: Array, w: Array) -> Array:
        q, width, c = w.shape
        gradient = np.empty_like(w)
        gradient[:, :-1] = (z.T @ slopes.reshape(len(z), -1)).reshape(width - 1, q, c).transpose(1, 0, 2)
        gradient[:, :-1] += self.penalty.astype(w.dtype)[:, None, None] * w[:, :-1]
        gradient[:, -1] = slopes.sum(axis=0)
        return gradient


def forward(z: Array, w: Array) -> Array:
    """(n, q, c) logits of rows z, (n, d), under (q, d + 1, c) coefficients."""
    q, width, c = w.shape
    flat = np.ascontiguousarray(w.transpose(1, 0, 2)).reshape(width, q * c)
    logits = z @ flat[:-1]
    logits += flat[-1]
    return logits.reshape(len(z), q, c)


def minimise(problems: Problems, start: Float64, *, gradient: float) -> tuple[Float64, Float64]:
    """Coefficients, (q, d + 1, c), and the largest remaining derivative of each problem, (q,), in units of `unit`.

    start     the first coefficients
    gradient  a problem ends when its largest derivative is at most this; the other problems continue without it
    A problem also ends when no step lowers its loss, or after STEPS steps; the caller has to check the derivative.
    Cost: about 8 steps of about 10 products of O(n d c) each, in float32, for each problem; about 30 steps of
    O(n d^2 c) where the lengths of the rows are very different.
    """
    w = start.copy()
    left = np.zeros(len(w))
    active = np.arange(len(w))
    here, now = problems, w.copy()
    losses, slopes, chances = here.evaluate(now)
    stuck, hard = np.zeros(len(w), dtype=bool), np.zeros(len(w), dtype=bool)
    for _ in range(STEPS):
        left[active] = np.abs(slopes * here.unit[:, :, None]).max(axis=(1, 2))
        going = (left[active] > gradient) & ~stuck
        w[active] = now
        if not going.all():
            active, here, now, hard = active[going], here.only(going), now[going], hard[going]
            losses, slopes, chances = losses[going], slopes[going], _columns(chances, going)
        if not len(active):
            break
        step, hard = _direction(here, slopes, chances, hard)
        now, losses, slopes, chances, moved = _descend(here, now, step, losses, slopes)
        stuck = ~moved
    return w, left


def _direction(problems: Problems, slopes: Float64, chances: Float32, hard: Flags) -> tuple[Float64, Flags]:
    """An approximation of -H^-1 times the slopes, and which problems are hard.

    The method is conjugate gradients in units of the expected curvature. A problem is hard when conjugate
    gradients need as many products as computing the Hessian costs. For a hard problem the Hessian of each output is
    computed and preconditions the conjugate gradients, which then converge even if a few rows are far longer than the
    others. A hard problem stays hard in later steps.
    """
    directions = np.zeros_like(slopes)
    width, outputs = slopes.shape[1:]
    limit = max(FEW, width // 4)
    easy = np.flatnonzero(~hard)
    if len(easy):
        plain = _diagonal(problems.unit[easy])
        directions[easy], ended = _solve(problems.only(easy), slopes[easy], _columns(chances, easy), plain, limit)
        hard = hard.copy()
        hard[easy[~ended]] = limit < PRODUCTS
    left = np.flatnonzero(hard)
    group = max(1, BLOCKS // (outputs * width * width))
    for part in (left[start : start + group] for start in range(0, len(left), group)):
        some, here = problems.only(part), _columns(chances, part)
        directions[part], _ = _solve(some, slopes[part], here, _inverses(some, here), PRODUCTS)
    return directions, hard


def _solve(
    problems: Problems, slopes: Float64, chances: Float32, inverses: Float64, limit: int
) -> tuple[Float64, Flags]:
    """Preconditioned conjugate gradients on all problems together: the solutions, and which of them converged.

    inverses  (q, 1, d + 1, 1) of a diagonal, or (q, c, d + 1, d + 1) of a matrix for each output
    """
    solutions = np.zeros_like(slopes)
    residual = -slopes
    scaled = _applied(inverses, residual)
    search = scaled.copy()
    size = _dots(residual, scaled)
    target = np.square(np.minimum(ENOUGH, size**0.25)) * size
    kept, active = np.arange(len(slopes)), problems
    ended = np.zeros(len(slopes), dtype=bool)
    for _ in range(limit):
        # Scaled to a length of about 1, so that float32 does not underflow.
        length = np.sqrt(_dots(search / active.unit[:, :, None], search / active.unit[:, :, None]))[:, None, None]
        bent = active.curve((search / length).astype(np.float32), chances).astype(np.float64) * length
        curvature = _dots(search, bent)
        convex = curvature > 0
        rate = np.where(convex, size / np.where(convex, curvature, 1.0), 0.0)[:, None, None]
        solutions[kept] += rate * search
        residual -= rate * bent
        scaled = _applied(inverses, residual)
        before, size = size, _dots(residual, scaled)
        search = scaled + (size / before)[:, None, None] * search
        unsolved = convex & (size > target)
        ended[kept[~unsolved]] = True
        if not unsolved.any():
            break
        if not unsolved.all():
            kept, active, target, size = kept[unsolved], active.only(unsolved), target[unsolved], size[unsolved]
            residual, search, inverses = residual[unsolved], search[unsolved], inverses[unsolved]
            chances = _columns(chances, unsolved)
    return solutions, ended


def _diagonal(unit: Float64) -> Float64:
    """(q, 1, d + 1, 1) inverses of the expected curvatures."""
    return np.square(unit)[:, None, :, None]


def _inverses(problems: Problems, chances: Float32) -> Float64:
    """(q, c, d + 1, d + 1) inverses of the Hessian of each output, taken separately."""
    q, width, c = problems.shape
    inverses = np.empty((q, c, width, width))
    for problem, unit in enumerate(problems.unit):
        rows = np.hstack([problems.coarse, np.ones((len(problems.z), 1), dtype=np.float32)]) * unit.astype(np.float32)
        penalty = problems.penalty[problem] * np.square(unit)
        penalty[-1] = 0.0
        for output in range(c):
            chance = chances[:, problem, output]
            weighted = rows * np.sqrt(problems.shares[:, problem] * chance * (1 - chance)).astype(np.float32)[:, None]
            # In these units the diagonal is about 1 or less, so float32 has an error of about 1e-6.
            matrix = (weighted.T @ weighted).astype(np.float64)
            matrix[np.diag_indices(width)] += penalty + 1e-6 * matrix.trace() / width + ROUNDING
            inverses[problem, output] = np.linalg.inv(matrix) * np.outer(unit, unit)
    return inverses


def _applied(inverses: Float64, residual: Float64) -> Float64:
    if inverses.shape[3] == 1:
        scaled: Float64 = inverses[:, 0] * residual
        return scaled
    return np.ascontiguousarray((inverses @ residual.transpose(0, 2, 1)[..., None])[..., 0].transpose(0, 2, 1))


def _columns(chances: Float32, kept: Flags | Places) -> Float32:
    return np.ascontiguousarray(chances[:, kept])


def _descend(
    problems: Problems, w: Float64, step: Float64, losses: Float64, slopes: Float64
) -> tuple[Float64, Float64, Float64, Float32, Flags]:
    """Take the steps; halve a step until it lowers the loss by the required share of what the slope predicts.

    Returns the new coefficients, losses, gradients and chances, and which problems moved.
    """
    predicted = _dots(slopes, step)
    rate = np.ones(len(w))
    for _ in range(HALVINGS):
        there = w + rate[:, None, None] * step
        tried = problems.evaluate(there)
        short = ~(tried[0] <= losses + DESCENT * rate * predicted + ROUNDING * np.abs(losses))
        if not short.any():
            break
        rate[short] *= 0.5
    else:
        rate[short] = 0.0
        there = w + rate[:, None, None] * step
        tried = problems.evaluate(there)
    return there, *tried, rate > 0


def _dots(x: Float64, y: Float64) -> Float64:
    products: Float64 = np.einsum("qdc,qdc->q", x, y)
    return products


# --- compiled loops ------------------------------------------------------------------------------


@exact
def cross_entropies(logits: Any, targets: Any, shares: Any, chances: Any, losses: Any) -> None:
    """Add the weighted cross-entropies of (n, q, c) logits to `losses`, (q,); replace each logit by its derivative.

    targets  (n, c) rows summing to 1, or for one logit (n, 1) chances of class 1
    shares   (n, q) weights. Rows of weight 0 are skipped
    chances  (n, q, c) filled with the probabilities
    """
    rows, problems, classes = logits.shape
    for row in range(rows):
        for problem in range(problems):
            share = shares[row, problem]
            here, chance = logits[row, problem], chances[row, problem]
            if share == 0.0:
                for label in range(classes):
                    here[label] = 0.0
                    chance[label] = 0.0
            elif classes == 1:
                logit = here[0]
                small = np.exp(-abs(logit))
                up = 1.0 / (1.0 + small) if logit > 0.0 else small / (1.0 + small)
                losses[problem] += share * (max(logit, 0.0) - logit * targets[row, 0] + np.log1p(small))
                chance[0] = up
                here[0] = (up - targets[row, 0]) * share
            else:
                top = here[0]
                for label in range(1, classes):
                    top = max(top, here[label])
                whole, wanted = 0.0, 0.0
                for label in range(classes):
                    wanted += (here[label] - top) * targets[row, label]
                    here[label] = np.exp(here[label] - top)
                    whole += here[label]
                losses[problem] += share * (np.log(whole) - wanted)
                for label in range(classes):
                    up = here[label] / whole
                    chance[label] = up
                    here[label] = (up - targets[row, label]) * share


@exact
def curve_products(products: Any, chances: Any, shares: Any) -> None:
    """Replace (n, q, c) changes of logits by the changes of the derivatives that `cross_entropies` writes."""
    rows, problems, classes = products.shape
    for row in range(rows):
        for problem in range(problems):
            share = shares[row, problem]
            here, chance = products[row, problem], chances[row, problem]
            if classes == 1:
                here[0] *= share * chance[0] * (1.0 - chance[0])
            else:
                mean = 0.0
                for label in range(classes):
                    mean += chance[label] * here[label]
                for label in range(classes):
                    here[label] = share * chance[label] * (here[label] - mean)
