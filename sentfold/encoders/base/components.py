"""Directions that all sentences share, and their removal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

# Here and not where they are called: threadpool_limits reaches only libraries that are loaded when it is entered.
from scipy.linalg import eigh
from scipy.sparse.linalg import svds

from sentfold.kernels.arrays import canonical_signs
from sentfold.kernels.compiled import fast

Float64 = npt.NDArray[np.float64]

# What is left of a vector below this fraction of it is rounding: the vector lay in the removed directions.
VANISHED = 1e-10

# Up to this many rows or columns a Gram matrix is formed and solved densely: seconds, and 32 MB.
LONG_SIDE = 2048


@dataclass(frozen=True)
class Components:
    """Directions to take out of sentence vectors.

    directions       (k, d) float64, orthonormal rows
    singular_values  (k,) float64 of the fitting sentences, descending
    strengths        (k,) float64 fraction of each projection that is removed, in [0, 1]
    """

    directions: Float64
    singular_values: Float64
    strengths: Float64

    def remove_from(self, vectors: Float64) -> int:
        """Take the directions out of (n, d) `vectors`, in place. Returns how many vectors vanished."""
        if len(self.directions) == 0:
            return 0
        vanished: int = _remove(vectors, self.directions, self.strengths, VANISHED)
        return vanished


def no_components(dimension: int) -> Components:
    """Nothing to remove."""
    return Components(np.zeros((0, dimension)), np.zeros(0), np.zeros(0))


def find_components(blocks: Iterable[Float64], *, count: int, iterations: int | None, weighted: bool) -> Components:
    """The leading right singular directions of the uncentred matrix of sentence vectors.

    blocks      the (n_b, d) float64 row blocks of the matrix, one at least
    count       directions wanted; fewer come back where the rank is lower
    iterations  None: exact. A number: scikit-learn's randomised solver with that many power iterations and
                seed 0, as the authors' code calls it
    weighted    strengths are the shares s_j^2 / sum_j s_j^2 (uSIF) instead of 1 (SIF)
    Cost O(n d min(n, d)) time and O(d^2) memory where a side is short, else O(n d count iterations) time and
    O(n d) memory.
    """
    directions, values = (
        _exact_directions(blocks, count) if iterations is None else _released_directions(blocks, count, iterations)
    )
    # A direction whose singular value is rounding is arbitrary: removing it would remove noise.
    kept = values > (values[0] if len(values) else 0.0) * 1e-7
    directions, values = directions[kept], values[kept]
    strengths = values**2 / (values**2).sum() if weighted and len(values) else np.ones(len(values))
    return Components(np.ascontiguousarray(directions), values, strengths)


def _exact_directions(blocks: Iterable[Float64], count: int) -> tuple[Float64, Float64]:
    """By the Gram matrix of the shorter side, or by Lanczos where both sides are long."""
    ahead = iter(blocks)
    first = next(ahead)
    n, d = 0, first.shape[1]
    if d <= LONG_SIDE:
        gram = np.zeros((d, d))
        for block in chain([first], ahead):
            gram += block.T @ block
            n += len(block)
        squares, vectors = eigh(gram, subset_by_index=(d - min(count, n, d), d - 1))
        return canonical_signs(vectors[:, ::-1]).T, np.sqrt(np.maximum(squares[::-1], 0))
    matrix = np.vstack([first, *ahead])
    n = len(matrix)
    if n <= LONG_SIDE:
        squares, left = eigh(matrix @ matrix.T, subset_by_index=(n - min(count, n), n - 1))
        values = np.sqrt(np.maximum(squares[::-1], 0))
        rows = (matrix.T @ left[:, ::-1] / np.where(values > 0, values, 1)).T
        return canonical_signs(rows.T).T, values
    _, values, rows = svds(matrix, k=count, tol=0, v0=np.ones(min(matrix.shape)))
    return canonical_signs(rows[::-1].T).T, np.asarray(values[::-1], dtype=np.float64)


def _released_directions(blocks: Iterable[Float64], count: int, iterations: int) -> tuple[Float64, Float64]:
    from sklearn.decomposition import TruncatedSVD

    matrix = np.vstack(list(blocks))
    count = min(count, *matrix.shape)
    if count == 0 or not matrix.any():
        return np.zeros((0, matrix.shape[1])), np.zeros(0)
    if 1 in matrix.shape:  # which has one direction; the solver refuses a column, and warns of a single row
        value = float(np.linalg.norm(matrix))
        return (np.ones((1, 1)) if matrix.shape[1] == 1 else matrix / value), np.array([value])
    solved = TruncatedSVD(n_components=count, n_iter=iterations, random_state=0).fit(matrix)
    return solved.components_, solved.singular_values_


@fast
def _remove(vectors: Float64, directions: Float64, strengths: Float64, vanished: float) -> int:
    gone = 0
    for s in range(len(vectors)):
        row = vectors[s]
        before = 0.0
        for j in range(len(row)):
            before += row[j] * row[j]
        for k in range(len(directions)):
            projection = 0.0
            for j in range(len(row)):
                projection += row[j] * directions[k, j]
            projection *= strengths[k]
            for j in range(len(row)):
                row[j] -= projection * directions[k, j]
        after = 0.0
        for j in range(len(row)):
            after += row[j] * row[j]
        if before > 0 and after <= before * vanished * vanished:
            row[:] = 0.0
            gone += 1
    return gone
