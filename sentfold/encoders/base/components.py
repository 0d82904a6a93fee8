"""Directions that all sentences share, and their removal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

# Imported here, not in the functions: threadpool_limits limits only libraries that are loaded before it is entered.
from scipy.linalg import eigh
from scipy.sparse.linalg import svds

from sentfold.kernels.arrays import canonical_signs
from sentfold.kernels.compiled import fast

Float64 = npt.NDArray[np.float64]

# If at most this fraction of a vector's length remains after a removal, the remainder is rounding error: the vector
# is a combination of the removed directions. It becomes zero.
VANISHED = 1e-10

# A matrix with at most this many rows or columns is solved through its dense Gram matrix: seconds, and 32 MB.
LONG_SIDE = 2048


@dataclass(frozen=True)
class Components:
    """Directions to remove from sentence vectors.

    directions       (k, d) float64, orthonormal rows
    singular_values  (k,) float64 of the matrix of fitting sentences, descending
    strengths        (k,) float64 fraction of each projection that is removed, in [0, 1]
    """

    directions: Float64
    singular_values: Float64
    strengths: Float64

    def remove_from(self, vectors: Float64) -> int:
        """Remove the directions from (n, d) `vectors`, in place. Returns the number of vectors that became zero."""
        if len(self.directions) == 0:
            return 0
        vanished: int = _remove(vectors, self.directions, self.strengths, VANISHED)
        return vanished


def no_components(dimension: int) -> Components:
    """Components without a direction: they remove nothing from vectors of this dimension."""
    return Components(np.zeros((0, dimension)), np.zeros(0), np.zeros(0))


def find_components(blocks: Iterable[Float64], *, count: int, iterations: int | None, weighted: bool) -> Components:
    """The leading right singular directions of the uncentred matrix of sentence vectors.

    blocks      blocks of rows of the matrix, (n_b, d) float64; at least one block
    count       largest number of directions; if the rank of the matrix is lower, there are fewer; Lanczos finds one
                fewer than the shorter side
    iterations  None: exact. A number: scikit-learn's randomised solver with that many power iterations and
                seed 0, as the authors' code calls it
    weighted    True: the strength of direction j is s_j^2 / sum_i s_i^2 over the directions (uSIF); False: 1 (SIF)
    Cost of the exact directions: O(n d^2 + d^3) time and O(d^2) memory if d <= LONG_SIDE; else O(n^2 d + n^3) time and
    O(n d) memory if n <= LONG_SIDE. Cost of Lanczos and of the randomised solver: O(n d count iterations) time and
    O(n d) memory.
    """
    directions, values = (
        _exact_directions(blocks, count) if iterations is None else _released_directions(blocks, count, iterations)
    )
    # If a singular value is rounding error, its direction is arbitrary: its removal would change vectors at random.
    kept = values > (values[0] if len(values) else 0.0) * 1e-7
    directions, values = directions[kept], values[kept]
    strengths = values**2 / (values**2).sum() if weighted and len(values) else np.ones(len(values))
    return Components(np.ascontiguousarray(directions), values, strengths)


def _exact_directions(blocks: Iterable[Float64], count: int) -> tuple[Float64, Float64]:
    """Directions and singular values: by the Gram matrix of a short side, or by Lanczos if both sides are long."""
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
    if not matrix.any():  # Lanczos cannot start
        return np.zeros((0, matrix.shape[1])), np.zeros(0)
    short = min(matrix.shape)
    _, values, rows = svds(matrix, k=min(count, short - 1), tol=0, v0=np.ones(short))
    return canonical_signs(rows[::-1].T).T, np.asarray(values[::-1], dtype=np.float64)


def _released_directions(blocks: Iterable[Float64], count: int, iterations: int) -> tuple[Float64, Float64]:
    from sklearn.decomposition import TruncatedSVD

    matrix = np.vstack(list(blocks))
    count = min(count, *matrix.shape)
    if count == 0 or not matrix.any():
        return np.zeros((0, matrix.shape[1])), np.zeros(0)
    if 1 in matrix.shape:  # one direction; the solver refuses one column and warns about one row
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
