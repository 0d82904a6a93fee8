"""Ritz pairs of M in a given space, and the search for eigenvectors that the space lacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from sentfold.manifold.solver.krylov import SIDE_STEPS, Filter, KrylovSpace, Ritz
from sentfold.manifold.solver.product import WIDTH, Operator

Float64 = npt.NDArray[np.float64]

ROWS = 1024  # rows multiplied by the rotation at a time
FEWEST_STEPS = 4  # of a side step: the first steps only show the bulk of the spectrum
SETTLED = 0.1  # a Ritz value that rises in a step by less than this share of its distance to `height` will not reach it


@dataclass(frozen=True)
class Demands:
    """Number of vectors, accuracy, and the limit for null eigenvalues; see bottom_eigenvectors."""

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
        """The number of null values."""
        return int((self.values <= demands.null_tolerance).sum())


def rayleigh_ritz(operator: Operator, vectors: Float64, *, width: int = WIDTH) -> Candidates:
    """The Ritz pairs of M in the span of (n, m) independent vectors, which need not be orthonormal.

    The vectors are overwritten by the Ritz vectors, to save memory. Products are of `width` vectors at a time.
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
    """The smallest Ritz value of M orthogonal to the found vectors, after a second search, and its Ritz vectors.

    A side step grows a second Krylov space from a random block orthogonal to the first space, until it would show
    an eigenvector of value `last` that the first space missed. Then the Ritz pairs of both spaces together,
    orthogonal to the `known` pairs, are computed. A Ritz value bounds an eigenvalue from above, so a value below
    `last` proves that an eigenvector was left out. A value above `last` is evidence that none was, not a proof.
    vectors  (n, m) float64, orthonormal, computed from the known pairs; last: the largest wanted eigenvalue
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
    few = operator.few  # narrow blocks, because the most memory is in use here
    if polish is not None:
        for start in range(0, found.shape[1], few):
            polish.apply(operator, found[:, start : start + few], in_place=True)
    found -= vectors @ (vectors.T @ found)
    candidates = rayleigh_ritz(operator, found, width=few)
    return float(candidates.values[0]), candidates.vectors


def growth(height: float, others: float) -> float:
    """Logarithm of the factor by which a Krylov step amplifies F's value `height` over values in [-1, others]."""
    return float(np.arccosh(1 + 2 * (height - others) / (others + 1))) if height > others else np.inf
