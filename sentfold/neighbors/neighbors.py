"""Exact k nearest neighbours: float32 products choose candidates, float64 distances decide."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError
from sentfold.kernels.threads import one_blas_thread, pool_of
from sentfold.neighbors.candidates import Candidates, Quota, offer_tile, quota_after
from sentfold.neighbors.exact import Found, order_candidates, search_whole_rows
from sentfold.neighbors.points import Float64, Frame, Metric, Points, floating_rows

# Candidates beyond k that are measured in float64: enough that rounding seldom forces a search among all rows.
SPARE = 8

LARGE = 16_384  # rows


@dataclass(frozen=True)
class Neighbors:
    """A directed k-nearest-neighbour graph.

    indices    (n, k) int32, nearest first, self excluded, ties by row number
    distances  (n, k) float64, in units of the metric
    recomputed number of rows whose candidates could not be certified, so that all rows were searched again
    """

    indices: npt.NDArray[np.int32]
    distances: Float64
    recomputed: int


def nearest_neighbors(
    x: npt.NDArray[np.floating[Any]],
    k: int,
    *,
    metric: Metric = "euclidean",
    block: int | None = None,
    workers: int = 2,
) -> Neighbors:
    """The k nearest other rows of each row, exactly, ordered by (distance, row).

    x        (n, d) finite, one sentence per row; float32 and float64 are read in place
    k        neighbours, 1 <= k < n; the answer for a smaller k is a prefix of the answer for k
    metric   euclidean, or cosine: 1 - cos, with distance 1 between a zero vector and every row that is not zero,
             and 0 between two zero vectors
    block    rows and columns of one matrix product, by default 1024, or 1536 from 16,384 rows on
    workers  matrix products at a time. Block and workers do not change a bit of the result, because float32 products
             only choose candidates and a rounding bound certifies the choice. BLAS uses one thread.
    Raises ParameterError if k is out of range, or a row is not finite or cannot be squared; see squared_lengths.
    Cost n^2 d flops in float32, since each pair is multiplied once for both of its rows, and O(n k d) in
    float64; memory one float32 copy of x, 16 n (k + 12) bytes, and block^2 floats per worker.
    Rows that are all equally far from each other cost n^2 d in float64.
    """
    rows, squared = floating_rows(x)
    refuse_k(k, len(rows), self_excluded=True)
    block = block or (1024 if len(rows) < LARGE else 1536)
    frame = Frame.around(metric, squared)
    points = Points.place(rows, squared, frame, shuffled=True)
    with one_blas_thread(), pool_of(workers) as pool:
        candidates = _candidates_of_all_pairs(points, k + SPARE, block, pool)
        found = Found.nothing_yet(len(rows), k)
        parts = [
            pool.submit(order_candidates, points, points, candidates, part, found) for part in _slices(len(rows), block)
        ]
        doubtful = np.concatenate([part.result() for part in parts])
        again = [
            pool.submit(search_whole_rows, points, points, doubtful[part], found, block=block, within=True)
            for part in _slices(len(doubtful), block)
        ]
        for done in again:
            done.result()
    return Neighbors(found.indices, frame.distances(found.squared), recomputed=len(doubtful))


@dataclass(frozen=True)
class Searched:
    """Rows to search for neighbours, prepared once for many calls of `nearest_among`.

    points   the rows in `frame`; squared: (n,) their squared lengths. Memory: one float32 copy of the rows.
    """

    points: Points
    squared: Float64
    frame: Frame

    @classmethod
    def prepare(cls, x: npt.NDArray[np.floating[Any]], *, metric: Metric = "euclidean") -> Searched:
        """Raises ParameterError if a row of x, (n, d), is not finite or cannot be squared. Cost O(n d)."""
        rows, squared = floating_rows(x)
        frame = Frame.around(metric, squared)
        return cls(Points.place(rows, squared, frame, shuffled=True), squared, frame)

    @property
    def rows(self) -> npt.NDArray[np.floating[Any]]:
        """(n, d) contiguous float32 or float64, in the given order."""
        return self.points.rows

    def with_queries(self, lengths: Float64) -> Searched:
        """The same rows in a frame that also fits queries of these squared lengths; self if the frame fits already."""
        frame = Frame.around(self.frame.metric, self.squared, lengths)
        if frame == self.frame:
            return self
        return Searched(Points.place(self.rows, self.squared, frame, shuffled=True), self.squared, frame)


def nearest_among(
    queries: npt.NDArray[np.floating[Any]],
    x: npt.NDArray[np.floating[Any]] | Searched,
    k: int,
    *,
    metric: Metric = "euclidean",
    block: int = 1024,
    workers: int = 2,
) -> Neighbors:
    """The k rows of x nearest to each query, exactly, ordered by (distance, row).

    queries  (m, d), finite
    x        (n, d), finite, or `Searched`, which saves the preparation; the metric of a Searched replaces `metric`.
             A row of x that equals a query is a neighbour of the query
    k        1 <= k <= n; metric, block, workers: as in `nearest_neighbors`
    Raises ParameterError if k is out of range, the widths differ, or a row is not finite or cannot be squared.
    Cost 2 m n d flops in float32; memory one float32 copy of x, and block (block + d + k) numbers per worker.
    """
    searched = x if isinstance(x, Searched) else Searched.prepare(x, metric=metric)
    asked, lengths = floating_rows(queries, name="query")
    refuse_k(k, len(searched.rows), self_excluded=False)
    if asked.shape[1] != searched.rows.shape[1]:
        raise ParameterError(
            "queries and rows differ in width",
            where="queries",
            expected=f"{searched.rows.shape[1]} numbers each",
            got=f"{asked.shape[1]}",
        )
    if asked.dtype != searched.rows.dtype:
        asked = asked.astype(np.float64, copy=False)
        searched = Searched.prepare(searched.rows.astype(np.float64, copy=False), metric=searched.frame.metric)
    searched = searched.with_queries(lengths)
    frame, points = searched.frame, searched.points
    found = Found.nothing_yet(len(asked), k)

    def seek(part: slice) -> int:
        here = Points.place(asked[part], lengths[part], frame, shuffled=False)
        return _seek_block(here, points, Found(found.indices[part], found.squared[part]), block)

    with one_blas_thread(), pool_of(workers) as pool:
        recomputed = sum(pool.map(seek, _slices(len(asked), block)))
    return Neighbors(found.indices, frame.distances(found.squared), recomputed)


def _seek_block(queries: Points, points: Points, found: Found, block: int) -> int:
    """Fill `found` for a block of queries; return the number of queries for which all rows were searched again."""
    m, n, wanted = len(queries.singles), len(points.singles), found.indices.shape[1] + SPARE
    candidates = Candidates.none_yet(m, wanted)
    products = np.empty(m * min(block, n), dtype=np.float32)
    for part in _slices(n, block):
        width = part.stop - part.start
        tile = products[: m * width].reshape(m, width)
        np.dot(queries.singles, points.singles[part].T, out=tile)
        halves = (queries.halves, points.halves[part])
        quota = quota_after(part.stop / n, wanted)
        offer_tile(tile, halves, (0, part.start), candidates, Candidates.unwanted(width), quota, diagonal=False)
    doubtful = order_candidates(queries, points, candidates, slice(0, m), found)
    search_whole_rows(queries, points, doubtful, found, block=block, within=False)
    return len(doubtful)


def _candidates_of_all_pairs(points: Points, wanted: int, block: int, pool: Executor) -> Candidates:
    """About `wanted` best-scoring other positions of each position, from one product per pair of blocks."""
    n = len(points.singles)
    parts = _slices(n, block)
    candidates = Candidates.none_yet(n, wanted)
    spaces: list[npt.NDArray[np.float32]] = []  # reused memory for products: fresh memory costs page faults

    def offer(pair: tuple[slice, slice], quota: Quota) -> None:
        first, second = pair
        space = spaces.pop() if spaces else np.empty(block * block, dtype=np.float32)
        height, width = first.stop - first.start, second.stop - second.start
        tile = space[: height * width].reshape(height, width)
        np.dot(points.singles[first], points.singles[second].T, out=tile)
        halves = (points.halves[first], points.halves[second])
        offer_tile(
            tile,
            halves,
            (first.start, second.start),
            candidates.part(first),
            candidates.part(second),
            quota,
            diagonal=first == second,
        )
        spaces.append(space)

    for number, pairs in enumerate(_tournament(parts), start=1):
        quota = quota_after(min(1.0, number / len(parts)), wanted)
        # No block is in two pairs of a round, so no two workers write the candidates of one row.
        list(pool.map(lambda pair, quota=quota: offer(pair, quota), pairs))
    return candidates


def _tournament(parts: list[slice]) -> Iterator[list[tuple[slice, slice]]]:
    """Rounds of pairs, as in a round-robin tournament; in the first round each part is paired with itself.

    The circle method: the last seat stays fixed and the other seats rotate by one.
    """
    yield [(part, part) for part in parts]
    seats: list[slice | None] = [*parts, None] if len(parts) % 2 else list(parts)
    turning = len(seats) - 1
    for turn in range(turning):
        pairs = [(seats[turn], seats[-1])]
        pairs += [(seats[(turn + i) % turning], seats[(turn - i) % turning]) for i in range(1, len(seats) // 2)]
        yield [(first, second) for first, second in pairs if first is not None and second is not None]


def _slices(n: int, block: int) -> list[slice]:
    """The range 0..n in the fewest parts of at most `block`, of nearly equal size."""
    edges = np.linspace(0, n, -(-n // block) + 1).astype(int)
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]


def refuse_k(k: int, n: int, *, self_excluded: bool) -> None:
    """ParameterError if n rows, or the n - 1 others of each, are fewer than k."""
    if not 1 <= k <= n - self_excluded:
        raise ParameterError(
            "k does not fit the number of sentences",
            where="neighbors",
            expected=f"1 <= k {'<' if self_excluded else '<='} n = {n} distinct sentences",
            got=f"k = {k}",
            remedy="lower `neighbors` in params.yaml, or leave this corpus out of the suite",
        )


def in_degrees(indices: npt.NDArray[np.integer[Any]], n: int) -> npt.NDArray[np.int64]:
    """How many rows each row is a neighbour of; large values are hubs."""
    return np.bincount(indices.ravel(), minlength=n)
