"""Truncated Newton steps for many regularised logistic regressions on the rows of one matrix at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pipeline.evaluate.kernels import cross_entropies, curve_products

Float64 = npt.NDArray[np.float64]
Float32 = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Array = TypeVar("Array", Float64, Float32)

STEPS = 100  # of Newton at most; some ten are usual
PRODUCTS = 250  # with the second derivatives within a step, at most
FEW = 32  # products that no problem is called hard for
BLOCKS = 40_000_000  # numbers in the matrices of the problems that are solved together
HALVINGS = 40
ENOUGH = 0.3  # a step's linear system is left at this share of its residual, at less where the end is near
DESCENT = 1e-4  # share of the decrease that the slope promises (Armijo)
ROUNDING = 1e-13  # of a loss: differences below it decide nothing


@dataclass(frozen=True)
class Problems:
    """q regressions with c outputs on the same n rows.

    z        (n, d) rows; coarse: the same in float32, for products with the second derivatives, which only
             choose a direction
    targets  (n, 1) in [0, 1] for one logit, or (n, c) rows summing to 1 for a softmax
    shares   (n, q) weight of each row in each problem
    penalty  (q,) of half the squared length of the coefficients, the last of which is the intercept and free
    unit     (q, d + 1) lengths in whose units all second derivatives are about 1
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
        """The problems that are `kept`, (q,)."""
        shares = np.ascontiguousarray(self.shares[:, kept])
        return replace(self, shares=shares, penalty=self.penalty[kept], unit=self.unit[kept])

    def evaluate(self, w: Float64) -> tuple[Float64, Float64, Float32]:
        """(q,) losses at the (q, d + 1, c) coefficients, their gradient, and the (n, q, c) chances there."""
        slopes = forward(self.z, w)
        chances = np.empty(slopes.shape, dtype=np.float32)
        losses = 0.5 * self.penalty * np.square(w[:, :-1]).sum(axis=(1, 2))
        cross_entropies(slopes, self.targets, self.shares, chances, losses)
        return losses, self._back(self.z, slopes, w), chances

    def curve(self, v: Float32, chances: Float32) -> Float32:
        """(q, d + 1, c) product of the second derivatives, where the chances are these, with v."""
        products = forward(self.coarse, v)
        curve_products(products, chances, self.shares)
        return self._back(self.coarse, products, v)

    def _back(self, z: Array, slopes: Array, w: Array) -> Array:
        q, width, c = w.shape
        found = np.empty_like(w)
        found[:, :-1] = (z.T @ slopes.reshape(len(z), -1)).reshape(width - 1, q, c).transpose(1, 0, 2)
        found[:, :-1] += self.penalty.astype(w.dtype)[:, None, None] * w[:, :-1]
        found[:, -1] = slopes.sum(axis=0)
        return found


def forward(z: Array, w: Array) -> Array:
    """(n, q, c) logits of rows z, (n, d), under (q, d + 1, c) coefficients."""
    q, width, c = w.shape
    flat = np.ascontiguousarray(w.transpose(1, 0, 2)).reshape(width, q * c)
    logits = z @ flat[:-1]
    logits += flat[-1]
    return logits.reshape(len(z), q, c)


def minimise(problems: Problems, start: Float64, *, gradient: float) -> tuple[Float64, Float64]:
    """Coefficients, (q, d + 1, c), and the largest derivative left in each problem, (q,), in units of `unit`.

    start     coefficients to begin with
    A problem ends when that is at most `gradient`; the rest go on without it. One that cannot be improved any
    more, or not in STEPS steps, is returned with what is left: the caller judges.
    Cost: some 8 steps of some 10 products of O(n d c) each, in float32, for each problem. Where rows are of
    very unlike lengths, some 30 steps of O(n d^2 c).
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
    """About -H^-1 of the slopes, and which problems were hard.

    Conjugate gradients in units of the expected curvature. Where they take as many products as one whole matrix
    of second derivatives costs, it is formed, for each output alone, and preconditions: rows far longer than
    the others then no longer hide them. A problem that was hard once is taken for hard afterwards.
    """
    found = np.zeros_like(slopes)
    width, outputs = slopes.shape[1:]
    limit = max(FEW, width // 4)
    easy = np.flatnonzero(~hard)
    if len(easy):
        plain = _diagonal(problems.unit[easy])
        found[easy], done = _solve(problems.only(easy), slopes[easy], _columns(chances, easy), plain, limit)
        hard = hard.copy()
        hard[easy[~done]] = limit < PRODUCTS
    left = np.flatnonzero(hard)
    group = max(1, BLOCKS // (outputs * width * width))
    for part in (left[start : start + group] for start in range(0, len(left), group)):
        some, here = problems.only(part), _columns(chances, part)
        found[part], _ = _solve(some, slopes[part], here, _inverses(some, here), PRODUCTS)
    return found, hard


def _solve(
    problems: Problems, slopes: Float64, chances: Float32, inverses: Float64, limit: int
) -> tuple[Float64, Flags]:
    """Preconditioned conjugate gradients on all problems at once, each for as long as it needs, and which ended.

    inverses  (q, 1, d + 1, 1) of a diagonal, or (q, c, d + 1, d + 1) of a matrix for each output
    """
    found = np.zeros_like(slopes)
    residual = -slopes
    scaled = _applied(inverses, residual)
    search = scaled.copy()
    size = _dots(residual, scaled)
    wanted = np.square(np.minimum(ENOUGH, size**0.25)) * size
    places, here = np.arange(len(slopes)), problems
    ended = np.zeros(len(slopes), dtype=bool)
    for _ in range(limit):
        # In units near its own length, so that float32 loses nothing to tiny numbers.
        length = np.sqrt(_dots(search / here.unit[:, :, None], search / here.unit[:, :, None]))[:, None, None]
        bent = here.curve((search / length).astype(np.float32), chances).astype(np.float64) * length
        curvature = _dots(search, bent)
        fine = curvature > 0
        rate = np.where(fine, size / np.where(fine, curvature, 1.0), 0.0)[:, None, None]
        found[places] += rate * search
        residual -= rate * bent
        scaled = _applied(inverses, residual)
        before, size = size, _dots(residual, scaled)
        search = scaled + (size / before)[:, None, None] * search
        going = fine & (size > wanted)
        ended[places[~going]] = True
        if not going.any():
            break
        if not going.all():
            places, here, wanted, size = places[going], here.only(going), wanted[going], size[going]
            residual, search, inverses = residual[going], search[going], inverses[going]
            chances = _columns(chances, going)
    return found, ended


def _diagonal(unit: Float64) -> Float64:
    """(q, 1, d + 1, 1) inverses of the expected curvatures."""
    return np.square(unit)[:, None, :, None]


def _inverses(problems: Problems, chances: Float32) -> Float64:
    """(q, c, d + 1, d + 1) inverses of the second derivatives by the coefficients of each output alone."""
    q, width, c = problems.shape
    found = np.empty((q, c, width, width))
    for problem, unit in enumerate(problems.unit):
        rows = np.hstack([problems.coarse, np.ones((len(problems.z), 1), dtype=np.float32)]) * unit.astype(np.float32)
        penalty = problems.penalty[problem] * np.square(unit)
        penalty[-1] = 0.0
        for output in range(c):
            chance = chances[:, problem, output]
            weighted = rows * np.sqrt(problems.shares[:, problem] * chance * (1 - chance)).astype(np.float32)[:, None]
            # In these units a diagonal is about 1 or less, and float32 leaves some 1e-6 of error.
            matrix = (weighted.T @ weighted).astype(np.float64)
            matrix[np.diag_indices(width)] += penalty + 1e-6 * matrix.trace() / width + ROUNDING
            found[problem, output] = np.linalg.inv(matrix) * np.outer(unit, unit)
    return found


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
    """Go along the steps, half as far again and again where that does not lower the loss as the slope promises.

    Returns the coefficients, losses, gradients and chances there, and which problems moved.
    """
    promised = _dots(slopes, step)
    rate = np.ones(len(w))
    for _ in range(HALVINGS):
        there = w + rate[:, None, None] * step
        found = problems.evaluate(there)
        short = ~(found[0] <= losses + DESCENT * rate * promised + ROUNDING * np.abs(losses))
        if not short.any():
            break
        rate[short] *= 0.5
    else:
        rate[short] = 0.0
        there = w + rate[:, None, None] * step
        found = problems.evaluate(there)
    return there, *found, rate > 0


def _dots(x: Float64, y: Float64) -> Float64:
    found: Float64 = np.einsum("qdc,qdc->q", x, y)
    return found
