"""Reconstruction weights: each sentence as an affine combination of its neighbours."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ParameterError, SolverError

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Weights:
    """Reconstruction weights and what was met on the way.

    values      (n, k) float64, every row sums to 1 within 1e-12
    degenerate  rows all of whose neighbours equal the sentence itself; their weights are equal
    error       (n,) squared distance of each sentence to its reconstruction
    """

    values: Float64
    degenerate: npt.NDArray[np.int64]
    error: Float64


def solve_weights(
    x: npt.NDArray[np.floating[Any]],
    neighbors: npt.NDArray[np.integer[Any]],
    *,
    regularization: float,
    block: int = 512,
    workers: int = 2,
) -> Weights:
    """Reconstruction weights of each row from its neighbours (SBERT-LP eq. 9).

    x               (n, d), one sentence per row
    neighbors       (n, k) rows of x, self excluded
    regularization  added to the Gram diagonal as a fraction of its trace, > 0; where the trace is 0
                    it is added as it is, which makes the weights equal
    Raises ParameterError if regularization <= 0, SolverError if a row fails to sum to 1.
    Cost O(n k^2 d + n k^3) time, O(block k (k + d)) memory per worker.
    Source: Roweis & Saul 2000, doi:10.1126/science.290.5500.2323
    """
    if not regularization > 0:
        raise ParameterError(
            "the regularisation must be positive", where="regularization", expected="> 0", got=str(regularization)
        )
    points = np.ascontiguousarray(x, dtype=np.float64)
    starts = range(0, len(points), block)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        parts = list(
            pool.map(lambda start: _solve_block(points, neighbors, slice(start, start + block), regularization), starts)
        )
    values = np.concatenate([part[0] for part in parts])
    traces = np.concatenate([part[1] for part in parts])
    error = np.concatenate([part[2] for part in parts])
    worst = float(np.abs(values.sum(axis=1) - 1).max(initial=0.0))
    if not worst <= 1e-12:
        raise SolverError(
            "reconstruction weights do not sum to 1",
            where=f"row {int(np.abs(values.sum(axis=1) - 1).argmax())}",
            expected="within 1e-12",
            got=f"{worst:.1e}",
            remedy="raise `regularization` in params.yaml",
        )
    return Weights(values, np.flatnonzero(traces == 0), error)


def _solve_block(
    points: Float64, neighbors: npt.NDArray[np.integer[Any]], rows: slice, regularization: float
) -> tuple[Float64, Float64, Float64]:
    """Weights, traces and reconstruction errors of one block of rows."""
    difference = points[neighbors[rows]] - points[rows, None, :]
    gram = difference @ difference.transpose(0, 2, 1)
    traces = np.trace(gram, axis1=1, axis2=2)
    diagonal = np.arange(gram.shape[1])
    gram[:, diagonal, diagonal] += np.where(traces > 0, regularization * traces, regularization)[:, None]
    values = np.linalg.solve(gram, np.ones((*gram.shape[:2], 1)))[:, :, 0]
    values /= values.sum(axis=1, keepdims=True)
    rebuilt = np.einsum("bk,bkd->bd", values, difference)
    return values, traces, np.einsum("bd,bd->b", rebuilt, rebuilt)
