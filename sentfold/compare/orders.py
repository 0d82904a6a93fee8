"""Pairs of sentence pairs whose order a space repairs or breaks: SBERT-LP's table 4, found and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import Design, draw_weights, percentile_interval

Float64 = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]

BLOCK = 512  # rows of the table of all pairs of pairs that are in memory at a time
FIELD = 50_000  # candidates of largest margin that distinct examples are picked from


@dataclass(frozen=True)
class Order:
    """Two pairs that people order and one space orders otherwise than the other.

    higher, lower  rows of the corpus's items, the higher rated first
    margin         smallest of the three gaps (rating, one space, the other), in ranks as a share of all items
    """

    higher: int
    lower: int
    margin: float


@dataclass(frozen=True)
class Orders:
    """How a space changes the order of pairs that another puts in.

    comparable      pairs of items that people rate differently
    before, after   of them, put in the people's order by the old and by the new space
    repaired        wrong before and right after; broken: right before and wrong after
    net             (repaired - broken) / comparable, x100, with its interval over resampled texts
    best, worst     the repairs and breaks of largest margin, no item in two of them
    """

    comparable: int
    before: int
    after: int
    repaired: int
    broken: int
    net: float
    low: float | None
    high: float | None
    best: tuple[Order, ...]
    worst: tuple[Order, ...]


def about_many(number: int) -> str:
    """A count to three digits: more of them would change with the processor that made the spaces."""
    return f"{int(float(f'{number:.3g}')):,}"


def compare_orders(
    human: Float64,
    old: Float64,
    new: Float64,
    design: Design,
    *,
    resamples: int,
    confidence: float,
    seed: int,
    shown: int = 5,
) -> Orders:
    """Count and find the pairs of items whose order `new` repairs or breaks against `old`.

    human, old, new  (n,) rating of each item and its similarity in either space; a tie in a space is no order
    design           what is resampled for the interval; a pair of items weighs as the product of their draws
    Cost O(n^2) for the counts and O(resamples n^2) for the interval; memory O(n^2) bytes.
    """
    n = len(human)
    change = np.zeros((n, n), dtype=np.int8)
    rated = np.zeros((n, n), dtype=np.int8)
    before = after = 0
    for rows in blocks(n):
        truth, first, second = (_signs(values, rows) for values in (human, old, new))
        right_before, right_after = (truth * order == 1 for order in (first, second))
        before, after = before + int(right_before.sum()), after + int(right_after.sum())
        wrong_before, wrong_after = (truth * order == -1 for order in (first, second))
        change[rows] = (wrong_before & right_after).astype(np.int8) - (right_before & wrong_after).astype(np.int8)
        rated[rows] = truth != 0
    repaired, broken, comparable = (
        int((change == 1).sum()) // 2,
        int((change == -1).sum()) // 2,
        int(rated.sum()) // 2,
    )
    low, high = _net_interval(change, rated, design, resamples=resamples, confidence=confidence, seed=seed)
    ranks = [_ranks(values) for values in (human, old, new)]
    best, worst = (_largest(change == sign, ranks, shown) for sign in (1, -1))
    net = 100 * (repaired - broken) / comparable if comparable else 0.0
    return Orders(comparable, before // 2, after // 2, repaired, broken, net, low, high, best, worst)


def blocks(n: int) -> Iterator[slice]:
    """Rows 0..n in slices of at most BLOCK."""
    for start in range(0, n, BLOCK):
        yield slice(start, min(n, start + BLOCK))


def _signs(values: Float64, rows: slice) -> Signs:
    return np.sign(values[rows, None] - values[None, :]).astype(np.int8)


def _net_interval(
    change: Signs, rated: Signs, design: Design, *, resamples: int, confidence: float, seed: int
) -> tuple[float, float] | tuple[None, None]:
    # Whole numbers far below 2^24 in float32 sums are exact, so the products are the same on any processor.
    gain, total = change.astype(np.float32), rated.astype(np.float32)
    draws = []
    for weights in draw_weights(design, resamples=resamples, seed=seed):
        w = weights.astype(np.float32)
        both = [np.einsum("bn,bn->b", (w @ table).astype(np.float64), weights) for table in (gain, total)]
        with np.errstate(invalid="ignore"):  # a resample of one rating alone orders nothing: its share is undefined
            draws.append(both[0] / both[1])
    interval = percentile_interval(np.concatenate(draws), confidence=confidence)
    return (None, None) if interval is None else (100 * interval[0], 100 * interval[1])


def _ranks(values: Float64) -> Float64:
    """Mid-ranks as shares of n, so that gaps of unlike scales can be compared."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    ranks: Float64 = middle[inverse] / len(values)
    return ranks


def _largest(where: npt.NDArray[np.bool_], ranks: Sequence[Float64], shown: int) -> tuple[Order, ...]:
    """The marked pairs of largest margin, each item in one of them at most; ties in the order of rows."""
    above, below = np.nonzero(where & (ranks[0][:, None] > ranks[0][None, :]))
    margins = np.min([np.abs(rank[above] - rank[below]) for rank in ranks], axis=0) if len(above) else np.zeros(0)
    order = np.lexsort((below, above, -margins))[:FIELD]
    found: list[Order] = []
    used: set[int] = set()
    for place in order.tolist():
        pair = {int(above[place]), int(below[place])}
        if not pair & used:
            used |= pair
            found.append(Order(int(above[place]), int(below[place]), float(margins[place])))
        if len(found) == shown:
            break
    return tuple(found)
