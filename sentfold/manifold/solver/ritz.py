"""Ritz pairs of M in a given space, and the search for eigenvectors that the space lacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from sentfold.manifold.solver.krylov import SIDE_STEPS, Filter, KrylovSpace, Ritz
from sentfold.manifold.solver.product import WIDTH, Operator

Float64 = npt.NDArray[np.float64]

ROWS = 1024  # rotated at a time
FEWEST_STEPS = 4  # of a look elsewhere: the first ones see the bulk of the spectrum
SETTLED = 0.1  # of the way to the height looked for: a value that rises less in a step will not reach it


@dataclass(frozen=True)
class Demands:
    """How many vectors, how exactly, and what counts as null; see bottom_eigenvectors."""

    p: int
    tolerance: float
    null_tolerance: float


@dataclass(frozen=True)
class Candidates:
    """Ritz values of M (ascending), vectors and residuals, float64."""

    values: Float64
    vectors: Float64
    residuals: Float64

    def null(self, demands: Demands) -> int:
        """How many of them are null."""
        return int((self.values <= demands.null_tolerance).sum())


def rayleigh_ritz(operator: Operator, vectors: Float64, *, width: int = WIDTH) -> Candidates:
    """The Ritz pairs of M in the span of (n, m) independent vectors, which need not be orthonormal.

    The vectors are overwritten by the Ritz vectors: many of them are what fills the memory. Products are of
    `width` vectors at a time.
    """
    projection = np.empty((vectors.shape[1],) * 2)
    for columns, image in operator.images(vectors, width=width):
        projection[:, columns] = vectors.T @ image
    values, rotation = eigh((projection + projection.T) / 2, vectors.T @ vectors)
    for start in range(0, len(vectors), ROWS):
        vectors[start : start + ROWS] = vectors[start : start + ROWS] @ rotation
    residuals = np.empty(len(values))
    for columns, image in operator.images(vectors, width=width):
        residuals[columns] = np.linalg.norm(image - vectors[:, columns] * values[columns], axis=0)
    return Candidates(values, vectors, residuals)


def smallest_outside(
    space: KrylovSpace, known: Ritz, vectors: Float64, *, last: float, polish: Filter | None = None
) -> tuple[float, Float64]:
    """The smallest Ritz value of M orthogonal to what was found, after a look elsewhere, and the Ritz vectors there.

    A random block, orthogonal to the whole space, is grown next to that space until it would show an
    eigenvector of value `last` that the space had missed; then what both contain outside of the `known`
    pairs is taken apart. A Ritz value bounds an eigenvalue from above, so a value below `last` proves that
    an eigenvector was left out. A value above it is evidence, no proof.
    vectors  (n, m) float64, what became of the known pairs, orthonormal; last: the largest wanted value
    """
    operator, start = space.operator, space.applied
    height = float(space.filter.at(np.array([last]))[0])
    needed = np.log(10 * np.sqrt(operator.n / operator.few))
    with space.side_step():
        others, rise = -1.0, np.inf
        for step in range(1, SIDE_STEPS + 1):
            space.extend()
            (before, risen), others = (others, rise), space.largest_since(start)
            rise = others - before
            settled = rise <= min(risen, SETTLED * (height - others))
            if step >= FEWEST_STEPS and step * growth(height, others) >= needed and (settled or others > height):
                break
        found = space.vectors(space.ritz_outside(known, WIDTH))
    few = operator.few  # a narrow block at a time, because memory is fullest here
    if polish is not None:
        for start in range(0, found.shape[1], few):
            polish.apply(operator, found[:, start : start + few], in_place=True)
    found -= vectors @ (vectors.T @ found)
    candidates = rayleigh_ritz(operator, found, width=few)
    return float(candidates.values[0]), candidates.vectors


def growth(height: float, others: float) -> float:
    """Logarithm of what a Krylov step gains for an eigenvector of F's value `height` over values in [-1, others]."""
    return float(np.arccosh(1 + 2 * (height - others) / (others + 1))) if height > others else np.inf
