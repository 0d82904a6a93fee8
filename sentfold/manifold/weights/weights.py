"""Reconstruction weights: each sentence as an affine combination of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError, SolverError
from sentfold.kernels.threads import one_blas_thread, pool_of
from sentfold.manifold.weights.barycenters import BROKEN, EQUAL, solve_rows
from sentfold.neighbors.points import Float64, Rows, floating_rows


@dataclass(frozen=True)
class Weights:
    """Reconstruction weights, and facts about their computation.

    values      (n, k) float64, every row sums to 1 within 1e-12
    degenerate  rows that equal all their neighbours up to the rounding of the input; their weights are equal
    error       (n,) squared distance of each sentence to its reconstruction
    repaired    rows whose Cholesky factor broke down and that were solved by singular values
    """

    values: Float64
    degenerate: npt.NDArray[np.int64]
    error: Float64
    repaired: int


def solve_weights(
    x: npt.NDArray[np.floating[Any]],
    neighbors: npt.NDArray[np.integer[Any]],
    *,
    regularization: float,
    block: int = 512,
    workers: int = 2,
) -> Weights:
    """Reconstruction weights of each row from its neighbours (SBERT-LP eq. 9).

    x               (n, d) finite, one sentence per row; float32 is read in place, the arithmetic is float64
    neighbors       (n, k) rows of x, self excluded
    regularization  added to the Gram diagonal as a fraction of its trace, unitless, > 0
    block           rows per task; workers: tasks at a time. Neither changes a bit of the result.
    If the trace of a neighbourhood is at most k (eps |x|)^2, with the eps of the input's type, rounding alone can
    explain all differences. The row is then degenerate: its weights are equal.
    Raises ParameterError if regularization <= 0, a row is not finite or a neighbour is no row of x;
    SolverError if a row cannot be made to sum to 1.
    Cost O(n k^2 d + n k^3) time, O(k (k + d)) memory per worker.
    Source: Roweis & Saul 2000, doi:10.1126/science.290.5500.2323
    """
    return barycentric_weights(x, x, neighbors, regularization=regularization, block=block, workers=workers)


def barycentric_weights(
    queries: npt.NDArray[np.floating[Any]],
    x: npt.NDArray[np.floating[Any]],
    neighbors: npt.NDArray[np.integer[Any]],
    *,
    regularization: float,
    block: int = 512,
    workers: int = 2,
) -> Weights:
    """Weights of each query from its neighbours among the rows of x: `solve_weights` for rows that are not in x.

    queries    (m, d) finite
    neighbors  (m, k) rows of x
    The other arguments, the errors and the cost are those of `solve_weights`.
    """
    refuse_regularization(regularization)
    points, asked = _of_one_type(x, queries)
    if asked.shape[1] != points.shape[1]:
        raise ParameterError(
            "the queries have another dimension than the vectors",
            where="queries",
            expected=f"{points.shape[1]} numbers",
            got=str(asked.shape[1]),
        )
    chosen = _rows_of(neighbors, len(asked), len(points))
    return weights_of_checked(asked, points, chosen, regularization=regularization, block=block, workers=workers)


def weights_of_checked(
    asked: Rows,
    points: Rows,
    chosen: npt.NDArray[np.int32],
    *,
    regularization: float,
    block: int = 512,
    workers: int = 2,
    errors: bool = True,
) -> Weights:
    """`barycentric_weights` without its checks: rows are contiguous, finite and of one type, neighbours are valid.

    errors  False: `error` of the result is not computed and empty
    """
    values, error = np.empty(chosen.shape), np.empty(len(chosen) if errors else 0)
    outcome = np.empty(len(chosen), dtype=np.int8)
    floor = float(np.finfo(points.dtype).eps) ** 2

    def solve(start: int) -> None:
        part = slice(start, start + block)
        solve_rows(
            asked[part], points, chosen[part], float(regularization), floor, values[part], error[part], outcome[part]
        )

    with pool_of(workers) as pool:
        list(pool.map(solve, range(0, len(asked), block)))
    broken = np.flatnonzero(outcome == BROKEN)
    with one_blas_thread():
        for row in broken:
            differences = points[chosen[row]].astype(np.float64) - asked[row]
            values[row] = _weights_by_singular_values(differences, regularization)
            if errors:
                error[row] = np.square(values[row] @ differences).sum()
    _refuse_bad_sums(values)
    return Weights(values, np.flatnonzero(outcome == EQUAL), error, len(broken))


def refuse_regularization(regularization: float) -> None:
    """Raise ParameterError if the regularisation is not positive and finite."""
    if not 0 < regularization < np.inf:
        raise ParameterError(
            "the regularisation must be positive", where="regularization", expected="> 0", got=str(regularization)
        )


def _of_one_type(x: npt.NDArray[np.floating[Any]], queries: npt.NDArray[np.floating[Any]]) -> tuple[Rows, Rows]:
    points, _ = floating_rows(x)
    asked = points if queries is x else floating_rows(queries, name="query")[0]
    if asked.dtype == points.dtype:
        return points, asked
    return points.astype(np.float64, copy=False), asked.astype(np.float64, copy=False)


def _rows_of(neighbors: npt.NDArray[np.integer[Any]], m: int, n: int) -> npt.NDArray[np.int32]:
    """The neighbours as int32. They are checked to be rows of x, because the compiled loop does not check them."""
    whole = neighbors.ndim == 2 and neighbors.dtype.kind in "iu"  # NaN as an integer would be a row before the first
    bad = np.flatnonzero(~((neighbors >= 0) & (neighbors < n)).all(axis=1)) if whole else np.empty(0, dtype=np.int64)
    if not whole or len(neighbors) != m or len(bad):
        raise ParameterError(
            "the neighbours do not fit the vectors",
            where=f"neighbours of row {bad[0]}" if len(bad) else "neighbours",
            expected=f"{m} rows of numbers from 0 to {n - 1}",
            got=f"{neighbors[bad[0]].tolist()}" if len(bad) else f"{neighbors.dtype} of shape {neighbors.shape}",
            remedy="compute the graph again from these vectors",
        )
    return np.ascontiguousarray(neighbors, dtype=np.int32)


def _weights_by_singular_values(differences: Float64, regularization: float) -> Float64:
    """The weights from an SVD of the differences, whose condition number is the square root of the Gram matrix's.

    The weights are (G + R I)^-1 1, scaled to sum to 1. If the differences are linearly dependent up to rounding, the
    part of 1 outside their span is divided by R alone, and in the limit of a small R only this part matters.
    """
    k, eps = len(differences), float(np.finfo(np.float64).eps)
    left, singular, _ = np.linalg.svd(differences, full_matrices=False)
    added = regularization * float(np.square(singular).sum())
    reached = singular > max(differences.shape) * eps * singular[0]
    left, squares = left[:, reached], np.square(singular[reached])
    share = left.sum(axis=0)
    beyond = 1 - left @ share
    beyond -= left @ (left.T @ beyond)  # a second projection, because the first leaves rounding errors
    if np.linalg.norm(beyond) > 4 * k**1.5 * eps:
        weights = left @ (share * (added / (squares + added))) + beyond
    else:
        weights = left @ (share * (squares[-1] / (squares + added)))
    weights /= weights.sum()
    balanced: Float64 = weights + (1 - weights.sum()) / k
    return balanced


def _refuse_bad_sums(values: Float64) -> None:
    off = np.abs(values.sum(axis=1) - 1)
    bad = np.flatnonzero(~(off <= 1e-12))
    if len(bad):
        raise SolverError(
            "reconstruction weights do not sum to 1",
            where=f"row {bad[0]}",
            expected="within 1e-12",
            got=f"off by {off[bad[0]]:.1e}",
            remedy="raise `regularization` in params.yaml",
        )
