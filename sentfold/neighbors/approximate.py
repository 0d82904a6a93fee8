"""Approximate neighbours for corpora too large for all pairs, with their recall measured on a sample of rows."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from sentfold.neighbors.candidates import Candidates
from sentfold.neighbors.exact import Found, order_candidates, search_whole_rows
from sentfold.neighbors.neighbors import Neighbors, nearest_among, nearest_neighbors, refuse_k
from sentfold.neighbors.points import Frame, Metric, Points, floating_rows

Method = Literal["auto", "exact", "approximate"]

# The descent returns this many neighbours more than k: they raise recall, and float64 distances order them again.
SPARE = 10


def find_neighbors(
    x: npt.NDArray[np.floating[Any]], k: int, *, metric: Metric, method: Method, exact_up_to: int, seed: int
) -> tuple[Neighbors, float]:
    """The k nearest other rows of each row and their recall, which is 1 if they are exact.

    method       exact, approximate, or auto: exact for at most `exact_up_to` rows
    seed         of the approximate method; the exact method does not use the seed
    Raises ParameterError as `nearest_neighbors` does. Cost: see nearest_neighbors and approximate_neighbors.
    """
    if method == "exact" or (method == "auto" and len(x) <= exact_up_to):
        return nearest_neighbors(x, k, metric=metric), 1.0
    return approximate_neighbors(x, k, metric=metric, seed=seed)


def approximate_neighbors(
    x: npt.NDArray[np.floating[Any]],
    k: int,
    *,
    metric: Metric = "euclidean",
    seed: int,
    sample: int = 1000,
    block: int = 1024,
) -> tuple[Neighbors, float]:
    """k near other rows of each row, ordered by exact (distance, row), and the share of true neighbours among them.

    x       (n, d) finite, one sentence per row
    k       1 <= k < n; the answer for a smaller k need not be a prefix of the answer for k
    seed    of the descent and of the sample
    sample  number of rows whose exact neighbours are computed to measure recall; see `recall_of`
    `recomputed` of the result counts the rows with fewer than k neighbours from the descent; these rows are exact.
    Raises ParameterError as `nearest_neighbors` does.
    Cost: the descent takes about O(n^1.2) time. At n = 117,000, d = 256, k = 30 it takes five sixths of the time
    of the exact method, in one thread, and half a gigabyte, for a recall of 0.98.
    One seed gives the same bits in every run, because the descent runs on one thread; on two threads its random
    choices differ.
    Source: Dong, Moses & Li 2011, doi:10.1145/1963405.1963487, as implemented by pynndescent
    """
    rows, squared = floating_rows(x)
    refuse_k(k, len(rows), self_excluded=True)
    frame = Frame.around(metric, squared)
    points = Points.place(rows, squared, frame, shuffled=False)
    candidates = _descend(points, k, seed)
    found = Found.nothing_yet(len(rows), k)
    with threadpool_limits(1, user_api="blas"):
        doubtful = order_candidates(points, points, candidates, slice(0, len(rows)), found)
        for start in range(0, len(doubtful), block):
            search_whole_rows(points, points, doubtful[start : start + block], found, block=block, within=True)
    neighbors = Neighbors(found.indices, frame.distances(found.squared), recomputed=len(doubtful))
    chosen = np.random.default_rng(seed).permutation(len(rows))[:sample]
    return neighbors, recall_of(neighbors, rows, np.sort(chosen), metric=metric)


def recall_of(
    neighbors: Neighbors,
    x: npt.NDArray[np.floating[Any]],
    chosen: npt.NDArray[np.integer[Any]],
    *,
    metric: Metric = "euclidean",
) -> float:
    """The share of the neighbours of `chosen` rows that are no farther than the exact k-th neighbour.

    Distances are compared, not row numbers: rows at equal distance are equally good. The factor 1 + 1e-9 allows
    for the rounding of a distance. Cost 2 len(chosen) n d flops.
    """
    k = neighbors.indices.shape[1]
    # Each row is among the rows itself, at distance 0: its k-th other neighbour is the (k + 1)-th.
    farthest = nearest_among(x[chosen], x, k + 1, metric=metric).distances[:, k]
    return float((neighbors.distances[chosen] <= farthest[:, None] * (1 + 1e-9)).mean())


def _descend(points: Points, k: int, seed: int) -> Candidates:
    """The candidates that nearest-neighbour descent finds for every row, without the row itself."""
    from pynndescent import NNDescent  # it compiles for half a minute in every process

    n = len(points.singles)
    asked = min(k + 1 + SPARE, n)
    with warnings.catch_warnings():
        # Rows with too few neighbours are searched exactly afterwards.
        warnings.filterwarnings("ignore", message="Failed to correctly find", category=UserWarning)
        graph, _ = NNDescent(points.singles, n_neighbors=asked, random_state=seed, n_jobs=1).neighbor_graph
    ids, counts = others_once(graph)
    # Scores and limits that exclude nothing: every candidate is measured, and rows that the descent missed are ignored.
    return Candidates(np.zeros(ids.shape, dtype=np.float32), ids, counts, np.full(n, -np.inf, dtype=np.float32))


def others_once(graph: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The ids with the distinct other rows of each row first, and their number; -1 (no neighbour) is not counted."""
    ids = np.sort(graph, axis=1).astype(np.int32)
    usable = (ids >= 0) & (ids != np.arange(len(ids), dtype=np.int32)[:, None])
    usable[:, 1:] &= ids[:, 1:] != ids[:, :-1]
    first = np.argsort(~usable, axis=1, kind="stable")
    return np.ascontiguousarray(np.take_along_axis(ids, first, axis=1)), usable.sum(axis=1)
