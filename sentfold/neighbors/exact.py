# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""The exact order of neighbours: float64 distances decide, and a rounding bound finds rows that need a full search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sentfold.kernels.compiled import exact, prefetch
from sentfold.neighbors.candidates import Candidates
from sentfold.neighbors.points import Float64, Points

AHEAD, LINE = 2, 64  # rows are prefetched two rows before their use, in cache lines of 64 bytes
LANES = 32  # partial sums of a squared distance, added in a fixed order; they fill a few vector registers


class Rounding(NamedTuple):
    """|float32 score - exact score| <= relative * (|x|^2 + |y|^2) + absolute."""

    relative: float
    absolute: float


def rounding_of_scores(dimensions: int) -> Rounding:
    """The bound for scores x.y - |x|^2/2 - |y|^2/2 of points rounded to float32, the longest of length about 1.

    An inner product of d terms summed in any order, fused or not, has an error of at most d u |x||y| / (1 - d u)
    (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1); rounding the points and
    their halves and the two subtractions add 7 u (|x|^2 + |y|^2) / 2, and 16 in place of 7 leaves room for
    float64's own rounding. A product that underflows or is flushed to 0 has an error below 2^-125.
    """
    unit = float(np.finfo(np.float32).eps) / 2
    return Rounding((dimensions + 16) / 2 * unit / (1 - dimensions * unit), (dimensions + 16) * 2.0**-120)


@dataclass(frozen=True)
class Found:
    """The neighbours of m rows, filled in during the search.

    indices  (m, k) int32 and squared (m, k) float64, ordered by (squared, index)
    """

    indices: npt.NDArray[np.int32]
    squared: Float64

    @classmethod
    def nothing_yet(cls, rows: int, k: int) -> Found:
        return cls(np.empty((rows, k), dtype=np.int32), np.empty((rows, k)))


def order_candidates(
    left: Points, right: Points, candidates: Candidates, part: slice, found: Found
) -> npt.NDArray[np.int64]:
    """Order the candidates of the positions `part` of `left` exactly; return the positions that are in doubt.

    A row is in doubt if it has fewer than k candidates, or if rounding could have dropped a candidate as near as the
    k-th neighbour. Cost O(part d) times the candidates per row.
    """
    doubtful = np.zeros(part.stop - part.start, dtype=np.bool_)
    held = candidates.part(part)
    _order(
        (left.rows, left.scales, left.order[part], left.halves[part]),
        (right.rows, right.scales, right.order),
        held.arrays(),
        rounding_of_scores(left.singles.shape[1]),
        (found.indices, found.squared),
        doubtful,
    )
    positions: npt.NDArray[np.int64] = part.start + np.flatnonzero(doubtful)
    return positions


def search_whole_rows(
    left: Points, right: Points, positions: npt.NDArray[np.int64], found: Found, *, block: int, within: bool
) -> None:
    """Find the exact neighbours of some positions of `left` among all rows of `right`.

    The float32 score excludes only rows that the bound proves to be too far; all other rows are measured in
    float64. `within`: the two sets are the same, and no row is its own neighbour.
    Cost O(positions n d), in float32 unless many rows are equally far; memory O(positions block).
    """
    rounding = rounding_of_scores(left.singles.shape[1])
    singles, halves, order = left.singles[positions], left.halves[positions], left.order[positions]
    held = np.zeros(len(positions), dtype=np.int64)
    lowest = np.full(len(positions), -np.inf)
    for start in range(0, len(right.singles), block):
        part = slice(start, start + block)
        _search(
            singles @ right.singles[part].T,
            (left.rows, left.scales, order, halves),
            (right.rows, right.scales, right.order[part], right.halves[part]),
            rounding,
            within,
            (found.indices, found.squared, held, lowest),
        )


@exact
def _order(left, right, candidates, rounding, found, doubtful):
    x, scales, order, halves = left
    others, other_scales, other_order = right
    scores, ids, counts, limits = candidates
    indices, squared = found
    k = indices.shape[1]
    y, sums = np.empty(x.shape[1]), np.empty(LANES)
    near = np.empty(ids.shape[1] + AHEAD, dtype=np.int64)
    for r in range(order.size):
        row, held, length = order[r], 0, 2.0 * halves[r]
        floor = _floor_of_best(scores, r, counts[r], k, limits[r], length, rounding)
        mine, mine_squared = indices[row], squared[row]
        for c in range(y.size):
            y[c] = scales[row] * x[row, c]
        count = 0
        for e in range(counts[r]):
            near[count] = other_order[ids[r, e]]
            count += scores[r, e] >= floor
        near[count : count + AHEAD] = near[0]
        for e in range(count):
            for c in range(0, y.size, LINE // x.itemsize):
                prefetch(others, near[e + AHEAD], c)
            other = near[e]
            distance = _squared_distance(y, scales[row], others, other, other_scales[other], sums)
            held = _insert(mine, mine_squared, held, other, distance)
        doubtful[r] = held < k or limits[r] >= _lowest_score(mine_squared[k - 1], length, rounding)


@exact
def _search(products, left, right, rounding, within, found):
    x, scales, order, halves = left
    others, other_scales, other_order, other_halves = right
    indices, squared, held, lowest = found
    k = indices.shape[1]
    y, sums = np.empty(x.shape[1]), np.empty(LANES)
    near = np.empty(other_order.size, dtype=np.bool_)
    for r in range(order.size):
        row, half, floor = order[r], halves[r], lowest[r]
        for c in range(near.size):
            near[c] = (products[r, c] - half) - other_halves[c] >= floor
        y[:] = scales[row] * x[row]
        for c in range(near.size):
            other = other_order[c]
            if not near[c] or (within and other == row):
                continue
            distance = _squared_distance(y, scales[row], others, other, other_scales[other], sums)
            held[r] = _insert(indices[row], squared[row], held[r], other, distance)
        if held[r] == k:
            lowest[r] = _lowest_score(squared[row, k - 1], 2.0 * half, rounding)


@exact
def _floor_of_best(scores, r, count, k, limit, length, rounding):
    """A score below which no candidate of row r can be among its k nearest; -inf if there are too few."""
    if count < k:
        return -np.inf
    low, high = limit, np.float32(0.0)
    if low == -np.inf:
        low = np.float32(0.0)
        for e in range(count):
            low = min(low, scores[r, e])
    # At least k candidates score `low` or more; bisection raises `low` towards the k-th score, roughly is enough.
    for _ in range(12):
        middle = (low + high) * np.float32(0.5)
        above = 0
        for e in range(count):
            above += scores[r, e] >= middle
        if above < k:
            high = middle
        else:
            low = middle
            if above == k:
                break
    # Those k are no farther than sqrt(reach + 6 error): the error there is below three times the error at -2 low.
    reach = max(-2.0 * low, 0.0)
    error = -0.5 * reach - _lowest_score(reach, length, rounding)
    return _lowest_score(reach + 6.0 * error, length, rounding)


@exact
def _squared_distance(y, y_scale, x, row, scale, sums):
    """|y - scale x[row]|^2 in float64; scale 0 marks a zero vector, which gets an axis orthogonal to all other rows."""
    for c in range(LANES):
        sums[c] = 0.0
    whole = y.size - y.size % LANES
    for start in range(0, whole, LANES):
        for c in range(start, start + LANES):
            difference = y[c] - scale * x[row, c]
            sums[c - start] += difference * difference
    for c in range(whole, y.size):
        difference = y[c] - scale * x[row, c]
        sums[c - whole] += difference * difference
    half = LANES // 2
    while half > 0:
        for c in range(half):
            sums[c] += sums[c + half]
        half //= 2
    return sums[0] + 1.0 if (y_scale == 0.0) != (scale == 0.0) else sums[0]


@exact
def _insert(indices, squared, held, row, distance):
    """Insert a neighbour in the order (distance, row); return the number of neighbours now."""
    k = indices.size
    if held == k:
        if distance > squared[k - 1] or (distance == squared[k - 1] and row > indices[k - 1]):
            return held
        held -= 1
    place = held
    while place > 0 and (
        squared[place - 1] > distance or (squared[place - 1] == distance and indices[place - 1] > row)
    ):
        squared[place], indices[place] = squared[place - 1], indices[place - 1]
        place -= 1
    squared[place], indices[place] = distance, row
    return held + 1


@exact
def _lowest_score(squared, length, rounding):
    """The lowest float32 score of any point within sqrt(squared) of a point with squared length `length`.

    The length of such a point is at most sqrt(length) + sqrt(squared), so the bound needs no maximum over all points.
    """
    reach = np.sqrt(length) + np.sqrt(squared)
    return -0.5 * squared - rounding.relative * (length + reach * reach) - rounding.absolute
