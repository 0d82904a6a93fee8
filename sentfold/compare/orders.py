"""Counts of the pairs of sentence pairs whose order a space repairs or breaks, as in table 4 of SBERT-LP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import Design, draw_weights, percentile_interval

Float64 = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]

BLOCK = 512  # rows of the table of all pairs of items that are compared at a time


@dataclass(frozen=True)
class Orders:
    """How many pairs of items an old and a new space put in the order of the people's ratings.

    comparable     number of pairs of items that people rate differently
    before, after  number of comparable pairs in the people's order by the old and by the new space
    repaired       number of pairs that are wrong in the old and right in the new space
    broken         number of pairs that are right in the old and wrong in the new space
    net            100 (repaired - broken) / comparable
    low, high      bootstrap interval of `net`; None if `net` is undefined in a resample
    """

    comparable: int
    before: int
    after: int
    repaired: int
    broken: int
    net: float
    low: float | None
    high: float | None


def about_many(number: int) -> str:
    """A count to three digits. Further digits would differ between processors that computed the spaces."""
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
) -> Orders:
    """Count the pairs of items whose order is wrong in `old` and right in `new`, and the reverse.

    human, old, new  (n,) rating of each item, its similarity in the old and in the new space. A pair whose
                     items have equal similarities is neither right nor wrong
    design           what is resampled for the interval; the weight of a pair is the product of its items' weights
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
    net = 100 * (repaired - broken) / comparable if comparable else 0.0
    return Orders(comparable, before // 2, after // 2, repaired, broken, net, low, high)


def blocks(n: int) -> Iterator[slice]:
    """Rows 0..n in slices of at most BLOCK."""
    for start in range(0, n, BLOCK):
        yield slice(start, min(n, start + BLOCK))


def _signs(values: Float64, rows: slice) -> Signs:
    return np.sign(values[rows, None] - values[None, :]).astype(np.int8)


def _net_interval(
    change: Signs, rated: Signs, design: Design, *, resamples: int, confidence: float, seed: int
) -> tuple[float, float] | tuple[None, None]:
    # float32 sums of whole numbers are exact below 2^24, so the products are the same on any processor.
    gain, total = change.astype(np.float32), rated.astype(np.float32)
    draws = []
    for weights in draw_weights(design, resamples=resamples, seed=seed):
        w = weights.astype(np.float32)
        both = [np.einsum("bn,bn->b", (w @ table).astype(np.float64), weights) for table in (gain, total)]
        with np.errstate(invalid="ignore"):  # 0 / 0 where all items of a resample have one rating
            draws.append(both[0] / both[1])
    interval = percentile_interval(np.concatenate(draws), confidence=confidence)
    return (None, None) if interval is None else (100 * interval[0], 100 * interval[1])
