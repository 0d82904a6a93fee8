"""Exact k nearest neighbours: float32 products choose candidates, float64 distances decide."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pipeline.errors import ParameterError

Metric = Literal["euclidean", "cosine"]
Float64 = npt.NDArray[np.float64]

# Candidates beyond k that float32 hands to float64: enough that rounding seldom forces a full row.
SPARE = 16


@dataclass(frozen=True)
class Neighbors:
    """A directed k-nearest-neighbour graph.

    indices    (n, k) int32, nearest first, self excluded, ties by row number
    distances  (n, k) float64, in units of the metric
    recomputed rows whose candidates float32 could not certify and that were done in float64 whole
    """

    indices: npt.NDArray[np.int32]
    distances: Float64
    recomputed: int


def nearest_neighbors(
    x: npt.NDArray[np.floating[Any]], k: int, *, metric: Metric = "euclidean", block: int = 1024, workers: int = 2
) -> Neighbors:
    """The k nearest other rows of each row, exactly, ordered by (distance, row).

    x        (n, d) finite, one sentence per row
    k        neighbours, 1 <= k < n; the answer for a smaller k is a prefix of this one
    metric   euclidean, or cosine: 1 - cos, a zero vector being at distance 1 from everything
    block    rows per matrix product; workers: blocks at a time. Neither changes a bit of the result,
             because float32 products only choose candidates and a rounding bound certifies the choice.
    Raises ParameterError if k is out of range.
    Cost O(n^2 d) time, O(block n) memory per worker.
    """
    n = len(x)
    if not 1 <= k < n:
        raise ParameterError(
            "k does not fit the number of sentences",
            where="neighbors",
            expected=f"1 <= k < n = {n} distinct sentences",
            got=f"k = {k}",
            remedy="lower `neighbors` in params.yaml, or leave this corpus out of the suite",
        )
    points = _unit_rows(x) if metric == "cosine" else np.ascontiguousarray(x, dtype=np.float64)
    single = points.astype(np.float32)
    norms = np.einsum("ij,ij->i", points, points)
    starts = range(0, n, block)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        parts = list(
            pool.map(
                lambda start: _neighbors_of_block(points, single, norms, slice(start, min(n, start + block)), k), starts
            )
        )
    indices = np.concatenate([part[0] for part in parts])
    squared = np.concatenate([part[1] for part in parts])
    distances = squared / 2 if metric == "cosine" else np.sqrt(squared)
    return Neighbors(indices.astype(np.int32), distances, recomputed=sum(part[2] for part in parts))


def _unit_rows(x: npt.NDArray[np.floating[Any]]) -> Float64:
    points = np.ascontiguousarray(x, dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", points, points))
    unit = points / np.where(lengths > 0, lengths, 1.0)[:, None]
    if (lengths > 0).all():
        return unit
    # A zero vector gets an axis of its own: orthogonal to everything, so 1 - cos = 1, and equal to
    # the other zero vectors.
    return np.hstack([unit, (lengths == 0).astype(np.float64)[:, None]])


def _neighbors_of_block(
    points: Float64, single: npt.NDArray[np.float32], norms: Float64, rows: slice, k: int
) -> tuple[npt.NDArray[np.int64], Float64, int]:
    """Indices, squared distances and number of uncertified rows of one block."""
    n, d = points.shape
    here = np.arange(rows.start, rows.stop)
    rough = norms[rows, None].astype(np.float32) + norms.astype(np.float32) - 2 * (single[rows] @ single.T)
    rough[np.arange(len(here)), here] = np.inf
    count = min(k + SPARE, n - 1)
    if count < n - 1:
        parted = np.argpartition(rough, count, axis=1)[:, : count + 1]
        values = np.take_along_axis(rough, parted, axis=1)
        outside = values.max(axis=1).astype(np.float64)
        inside = np.argsort(values, axis=1, kind="stable")[:, :count]
        candidates = np.take_along_axis(parted, inside, axis=1)
    else:
        outside = np.full(len(here), np.inf)
        candidates = np.array([np.delete(np.arange(n), row) for row in here])
    indices, squared = _order_exactly(points, here, candidates, k)
    # |rough - exact| <= 2 (d + 4) eps32 (|x|^2 + |y|^2), the standard bound on a float32 product.
    bound = 2 * (d + 4) * float(np.finfo(np.float32).eps) * (norms[rows] + float(norms.max()))
    doubtful = np.flatnonzero(squared[:, -1] + bound > outside)
    for row in doubtful:
        others = np.delete(np.arange(n), here[row])[None, :]
        indices[row], squared[row] = (part[0] for part in _order_exactly(points, here[row : row + 1], others, k))
    return indices, squared, len(doubtful)


def _order_exactly(
    points: Float64, here: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64], k: int
) -> tuple[npt.NDArray[np.int64], Float64]:
    """The k nearest of each row's candidates by float64 distance, ties by row number."""
    indices = np.empty((len(here), k), dtype=np.int64)
    squared = np.empty((len(here), k))
    step = max(1, 8_000_000 // (candidates.shape[1] * points.shape[1]))
    for start in range(0, len(here), step):
        part = slice(start, start + step)
        difference = points[candidates[part]] - points[here[part], None, :]
        # Differences, not norms and products: near-duplicates would otherwise cancel to noise.
        exact = np.einsum("bmd,bmd->bm", difference, difference)
        order = np.lexsort((candidates[part], exact), axis=1)[:, :k]
        indices[part] = np.take_along_axis(candidates[part], order, axis=1)
        squared[part] = np.take_along_axis(exact, order, axis=1)
    return indices, squared


def in_degrees(indices: npt.NDArray[np.integer[Any]], n: int) -> npt.NDArray[np.int64]:
    """How many rows each row is a neighbour of; large values are hubs."""
    return np.bincount(indices.ravel(), minlength=n)
