# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Candidate neighbours by float32 scores: the best candidates of each row, and a bound on the scores of all others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sentfold.kernels.compiled import exact

Single = npt.NDArray[np.float32]

# A flag is one byte, so a word holds eight of them; ONES counts the bytes below a flag without a loop.
WORD = 8
ONES = 0x0101010101010101


class Quota(NamedTuple):
    """A row that has `full` candidates drops all but the best: at least `few` and at most `many` are kept."""

    few: int
    many: int
    full: int


def quota_after(share: float, wanted: int) -> Quota:
    """How many candidates to keep when `share` of all rows, in random order, has been offered.

    The expected number of the `wanted` best rows among those offered is `wanted * share`, with the standard
    deviation of the hypergeometric distribution. With four deviations and three more, about one row in ten
    thousand loses one of its best, and the certificate of that row fails. To always keep `wanted` candidates would
    cost twice the insertions.
    """
    expected = wanted * share
    few = min(wanted, math.ceil(expected + 4 * math.sqrt(expected * max(0.0, 1 - share))) + 3)
    return Quota(few, few + few // 4 + 1, 2 * few + 8)


@dataclass(frozen=True)
class Candidates:
    """The candidates of m rows.

    scores  (m, c) float32, about -1/2 times the squared distance
    ids     (m, c) int32, positions in the set that was offered
    counts  (m,) how many of the c columns are in use
    limits  (m,) float32; every position that was offered and is not kept has at most this score
    """

    scores: Single
    ids: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    limits: Single

    @classmethod
    def none_yet(cls, rows: int, wanted: int) -> Candidates:
        """No candidates yet, with space for `wanted` per row and for those that arrive before the next selection."""
        places = quota_after(1.0, wanted).full
        return cls(
            np.empty((rows, places), dtype=np.float32),
            np.empty((rows, places), dtype=np.int32),
            np.zeros(rows, dtype=np.int64),
            np.full(rows, -np.inf, dtype=np.float32),
        )

    @classmethod
    def unwanted(cls, rows: int) -> Candidates:
        """Candidates that accept nothing, for a tile whose columns collect nothing: every limit is infinity."""
        return cls(
            np.empty((rows, 1), dtype=np.float32),
            np.empty((rows, 1), dtype=np.int32),
            np.zeros(rows, dtype=np.int64),
            np.full(rows, np.inf, dtype=np.float32),
        )

    def part(self, rows: slice) -> Candidates:
        """A view of some rows."""
        return Candidates(self.scores[rows], self.ids[rows], self.counts[rows], self.limits[rows])

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.scores, self.ids, self.counts, self.limits


def offer_tile(
    products: Single,
    halves: tuple[Single, Single],
    firsts: tuple[int, int],
    rows: Candidates,
    columns: Candidates,
    quota: Quota,
    *,
    diagonal: bool,
) -> None:
    """Offer every pair of a tile to the candidates of its row and to the candidates of its column.

    products  (a, b) float32 inner products
    halves    half the squared length of the a and of the b points
    firsts    position of the first row and of the first column in the whole set
    diagonal  rows and columns are the same points: each pair is offered once and no point to itself
    Cost O(a b), about a tenth of the cost of the products at 256 dimensions.
    """
    flags = np.zeros(-(-products.shape[1] // WORD) * WORD, dtype=np.uint8)
    _offer_tile(products, *halves, *firsts, diagonal, rows.arrays(), columns.arrays(), quota, flags)


@exact
def _offer_tile(products, row_halves, column_halves, first_row, first_column, diagonal, rows, columns, quota, flags):
    scores, ids, counts, limits = rows
    other_scores, other_ids, other_counts, other_limits = columns
    few, many, full = quota
    width = products.shape[1]
    words = flags.view(np.int64)
    hits = np.empty(words.size, dtype=np.int64)
    for r in range(products.shape[0]):
        half, limit, count = row_halves[r], limits[r], counts[r]
        # One plain comparison per pair, which the compiler turns into vector instructions.
        for c in range(width):
            score = (products[r, c] - half) - column_halves[c]
            flags[c] = (score > limit) | (score > other_limits[c])
        if diagonal:
            flags[: r + 1] = 0
        # The few pairs that pass are found and stored without a branch on the data: a mispredicted branch
        # costs more than the store.
        found = 0
        for g in range(words.size):
            hits[found] = g
            found += words[g] != 0
        for f in range(found):
            word = words[hits[f]]
            while word != 0:
                c = WORD * hits[f] + (((((word & -word) - 1) & ONES) * ONES) >> 56)
                word &= word - 1
                score = (products[r, c] - half) - column_halves[c]
                scores[r, count] = score
                ids[r, count] = first_column + c
                count += score > limit
                if count == full:
                    count, limit = _keep_best(scores, ids, r, count, limit, few, many)
                other = other_counts[c]
                other_scores[c, other] = score
                other_ids[c, other] = first_row + r
                other += score > other_limits[c]
                if other == full:
                    other, other_limits[c] = _keep_best(other_scores, other_ids, c, other, other_limits[c], few, many)
                other_counts[c] = other
        limits[r], counts[r] = limit, count


@exact
def _keep_best(scores, ids, r, count, limit, few, many):
    """Keep the best candidates of row r, `few` to `many` of them; return their number and the new limit."""
    low, high = limit, np.float32(0.0)  # a score is -1/2 times a square, so it exceeds 0 only by rounding
    above = 0
    for e in range(count):
        above += scores[r, e] > high
    if above >= few or low == -np.inf:
        smallest = high
        for e in range(count):
            smallest, high = min(smallest, scores[r, e]), max(high, scores[r, e])
        if low == -np.inf:
            low = np.float32(2.0) * smallest - np.float32(1e-30)
    # Bisection needs no sorted candidates, only counts, which compile to vector instructions.
    while True:
        middle = (low + high) * np.float32(0.5)
        if not low < middle < high:
            return _keep_ties(scores, ids, r, count, high, few)
        above = 0
        for e in range(count):
            above += scores[r, e] > middle
        if above < few:
            high = middle
        else:
            low = middle
            if above <= many:
                break
    kept = 0
    for e in range(count):
        score, row = scores[r, e], ids[r, e]
        scores[r, kept], ids[r, kept] = score, row
        kept += score > low
    return kept, low


@exact
def _keep_ties(scores, ids, r, count, tie, few):
    """Keep the candidates above the score `tie`, and as many with exactly that score as it takes to reach `few`."""
    above = 0
    for e in range(count):
        above += scores[r, e] > tie
    kept, room = 0, few - above
    for e in range(count):
        score, row = scores[r, e], ids[r, e]
        if score > tie or (score == tie and room > 0):
            room -= score == tie
            scores[r, kept], ids[r, kept] = score, row
            kept += 1
    return kept, tie
