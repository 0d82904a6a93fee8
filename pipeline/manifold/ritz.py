"""Ritz pairs of M in a given space, and the look for what that space has missed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from pipeline.manifold.chebyshev import Filter
from pipeline.manifold.krylov import KrylovSpace
from pipeline.manifold.product import WIDTH, Operator

Float64 = npt.NDArray[np.float64]

ROWS = 4096  # rotated at a time


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


def rayleigh_ritz(operator: Operator, vectors: Float64) -> Candidates:
    """The Ritz pairs of M in the span of (n, m) independent vectors, which need not be orthonormal.

    The vectors are overwritten by the Ritz vectors: many of them are what fills the memory.
    """
    projection = np.empty((vectors.shape[1],) * 2)
    for columns, image in operator.images(vectors):
        projection[:, columns] = vectors.T @ image
    values, rotation = eigh((projection + projection.T) / 2, vectors.T @ vectors)
    for start in range(0, len(vectors), ROWS):
        vectors[start : start + ROWS] = vectors[start : start + ROWS] @ rotation
    residuals = np.empty(len(values))
    for columns, image in operator.images(vectors):
        residuals[columns] = np.linalg.norm(image - vectors[:, columns] * values[columns], axis=0)
    return Candidates(values, vectors, residuals)


def smallest_outside(
    operator: Operator,
    vectors: Float64,
    chosen: Filter,
    rng: np.random.Generator,
    *,
    steps: int,
    precision: str = "float64",
    polish: Filter | None = None,
) -> tuple[float, Float64]:
    """The smallest Ritz value of M in a fresh Krylov space orthogonal to invariant `vectors`, and its Ritz vectors.

    A Ritz value bounds an eigenvalue from above, so one below the last value found proves that an
    eigenvector was left out. The other way round it is evidence: after `steps` steps (see
    steps_to_notice) a vector that was left out would stand out of the random start.
    """
    space = KrylovSpace(operator, chosen, rng, capacity=(steps + 2) * WIDTH, precision=precision, without=vectors)
    for _ in range(steps):
        space.extend()
    found = space.vectors(space.ritz(WIDTH))
    if polish is not None:
        found = polish.apply(operator, found)
    candidates = rayleigh_ritz(operator, found - vectors @ (vectors.T @ found))
    return float(candidates.values[0]), candidates.vectors


def steps_to_notice(n: int, gap: float, chosen: Filter) -> int:
    """Krylov steps after which an eigenvector `gap` below all others stands out of a random start in n dimensions."""
    rate = 2 * chosen.degree * np.sqrt(max(gap, 1e-300) / chosen.largest)
    return int(np.clip(np.ceil(np.log(10 * np.sqrt(n / WIDTH)) / rate), 4, 16))
