"""The bootstrap: resamples of items, of connected groups of items, or of texts, and statistics of the resamples.

A resample is a vector of whole-number weights over items: how often each item is drawn. Two spaces that are scored
with the same design and seed are scored on the same resamples. The spread of the difference between the two spaces is
therefore that of the differences of their replicate scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from sentfold.errors import ParameterError
from sentfold.kernels.compiled import exact

Unit = Literal["items", "groups", "texts"]
Ints = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """Which units are drawn with replacement, and which items belong to each unit.

    unit     items; groups (items connected through shared texts are drawn together); or texts
             (the weight of a pair is the product of the numbers of draws of its two texts)
    members  (n,) unit of each item, or (n, 2) the two texts of each pair
    strata   (units,) the stratum of each unit. Each stratum is resampled separately and keeps its number of units
    """

    unit: Unit
    members: Ints
    strata: Ints

    @property
    def units(self) -> int:
        """Number of units that can be drawn."""
        return len(self.strata)

    @property
    def effective_units(self) -> float:
        """1 / the sum of the squared shares of the units in all items: the number of units if all are equally large."""
        shares = np.bincount(self.members.ravel()) / self.members.size
        return float(1 / (shares**2).sum())


def item_design(subsets: list[str]) -> Design:
    """Each item is a unit of its own; each subset is a stratum."""
    return Design("items", np.arange(len(subsets)), np.unique(subsets, return_inverse=True)[1])


def group_design(rows: Ints, subsets: list[str]) -> Design:
    """Pairs that share a text, directly or through other pairs, are one unit.

    rows  (n, 2) texts of each pair. The stratum of a group is the set of subsets of its pairs.
    """
    texts = int(rows.max()) + 1
    links = coo_array((np.ones(len(rows)), (rows[:, 0], rows[:, 1])), shape=(texts, texts))
    _, label = connected_components(links, directed=False)
    _, members = np.unique(label[rows[:, 0]], return_inverse=True)
    touched: list[set[str]] = [set() for _ in range(int(members.max()) + 1)]
    for member, subset in zip(members, subsets, strict=True):
        touched[member].add(subset)
    names = ["\n".join(sorted(group)) for group in touched]
    return Design("groups", members, np.unique(names, return_inverse=True)[1])


def text_design(rows: Ints) -> Design:
    """Each text is a unit. rows: (n, 2) texts of each pair; no text is paired with itself."""
    texts, members = np.unique(rows, return_inverse=True)
    return Design("texts", members.reshape(rows.shape), np.zeros(len(texts), dtype=np.int64))


def make_design(unit: Unit, rows: Ints, subsets: list[str]) -> Design:
    """The design of a corpus.

    rows  (n, 2) texts of each pair; any other shape is allowed for the unit `items` alone
    Raises ParameterError for another unit without pairs.
    """
    if unit != "items" and (rows.ndim != 2 or rows.shape[1] != 2):
        raise ParameterError(f"a bootstrap by {unit} needs pairs", where="resample", got=f"rows of shape {rows.shape}")
    if unit == "texts":
        return text_design(rows)
    return group_design(rows, subsets) if unit == "groups" else item_design(subsets)


def draw_weights(design: Design, *, resamples: int, seed: int, chunk: int = 200) -> Iterator[Float64]:
    """Weights of the items in each replicate, `chunk` replicates at a time.

    Yields (b, n) float64 of whole numbers, `resamples` rows in all. The same design and seed give the same rows for
    every size of chunk. Cost O(resamples units) time, O(chunk n) memory.
    """
    strata = [np.flatnonzero(design.strata == stratum) for stratum in np.unique(design.strata)]
    streams = [np.random.default_rng([seed, stratum]) for stratum in range(len(strata))]
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        counts = np.zeros((size, design.units))
        for units, rng in zip(strata, streams, strict=True):
            count_draws(rng.integers(0, len(units), size=(size, len(units))), units, counts)
        if design.unit == "texts":
            yield counts[:, design.members[:, 0]] * counts[:, design.members[:, 1]]
        elif design.unit == "items":
            yield counts
        else:
            yield counts[:, design.members]


def corpus_seed(seed: int, corpus: str) -> int:
    """A seed from the suite's seed and a corpus's name, so that the replicates of two corpora are independent."""
    return int.from_bytes(hashlib.sha256(f"{seed} {corpus}".encode()).digest()[:8], "big")


# --- statistics of weighted items, one row of weights per replicate -------------------------------


@dataclass(frozen=True)
class Ranked:
    """Items in the order of one variable, sorted once for all resamples.

    order  (m,) items by ascending value
    runs   (m,) for each position in `order`, the end (exclusive) of its run of equal values
    """

    order: Ints
    runs: Ints


def sort_once(values: Float64, items: Ints | None = None) -> Ranked:
    """Sort `items` (by default all) by their values, (n,), ascending. Cost O(m log m)."""
    chosen = np.arange(len(values)) if items is None else items
    order = chosen[np.argsort(values[chosen], kind="stable")]
    ordered = values[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(order))
    return Ranked(order, np.repeat(ends, np.diff(ends, prepend=0)))


def weighted_spearman(variables: Sequence[Ranked], y: Ranked, weights: Float64) -> Float64:
    """(s, b) Spearman correlation of each variable with y on each row of (b, n) weights; NaN if either is constant.

    All variables are of the same items. The result is the same as if each resample were written out, every item as
    often as its weight says, and ranked. Cost O(s b m).
    """
    out = np.empty((len(variables), len(weights)))
    orders, runs = (np.array([getattr(variable, part) for variable in variables]) for part in ("order", "runs"))
    rank_correlations(orders, runs, y.order, y.runs, weights, out)
    return out


def weighted_pearson(x: Float64, y: Float64, weights: Float64, items: Ints | None = None) -> Float64:
    """(b,) Pearson correlation of x and y, (n,), over `items`, per row of (b, n) weights; NaN if either is constant."""
    chosen = np.arange(len(x)) if items is None else items
    floor = np.array([(16 * np.finfo(np.float64).eps * np.abs(values[chosen]).max()) ** 2 for values in (x, y)])
    out = np.empty(len(weights))
    linear_correlations(x, y, chosen, weights, floor, out)
    return out


def weighted_means(values: Float64, weights: Float64) -> Float64:
    """(b,) mean of (n,) values per row of (b, n) weights."""
    means: Float64 = (weights @ values) / weights.sum(axis=1)
    return means


def percentile_interval(replicates: Float64, *, confidence: float) -> tuple[float, float] | None:
    """The central percentile interval of replicate scores; None if any replicate is undefined."""
    if not np.isfinite(replicates).all():
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)


# --- compiled loops ------------------------------------------------------------------------------


@exact
def count_draws(drawn: Any, units: Any, counts: Any) -> None:
    """Add to each row of counts (b, all units) how often each of `units` was drawn.

    drawn  (b, m) indices into `units`, (m,)
    """
    for row in range(drawn.shape[0]):
        for place in range(drawn.shape[1]):
            counts[row, units[drawn[row, place]]] += 1.0


@exact
def rank_correlations(orders: Any, runs: Any, y_order: Any, y_runs: Any, weights: Any, out: Any) -> None:
    """Spearman correlation of each of s variables with y, on each of b resamples.

    orders   (s, m) items by ascending value; runs: (s, m) for each position, the end (exclusive) of its run of
             equal values. y_order, y_runs: (m,), the same of y. An item is a column of `weights`.
    weights  (b, n) whole numbers, how often each item is in the resample
    out      (s, b), filled; NaN where a variable is constant in the resample

    Mid-ranks and their mean are multiples of one half and therefore exact, so the spread of a constant variable is
    exactly 0.
    """
    variables, m = orders.shape
    weighted = np.zeros(weights.shape[1])  # (rank of y - its mean) x weight, by item
    for row in range(weights.shape[0]):
        weight = weights[row]
        total = 0.0
        for place in range(m):
            total += weight[y_order[place]]
        middle = (total + 1.0) / 2.0
        below, spread_y, place = 0.0, 0.0, 0
        while place < m:
            end, here = y_runs[place], 0.0
            for tied in range(place, end):
                here += weight[y_order[tied]]
            deviation = below + (here + 1.0) / 2.0 - middle
            for tied in range(place, end):
                weighted[y_order[tied]] = weight[y_order[tied]] * deviation
            spread_y += here * deviation * deviation
            below += here
            place = end
        for variable in range(variables):
            below, spread, shared, place = 0.0, 0.0, 0.0, 0
            while place < m:
                end, here, other = runs[variable, place], 0.0, 0.0
                for tied in range(place, end):
                    here += weight[orders[variable, tied]]
                    other += weighted[orders[variable, tied]]
                deviation = below + (here + 1.0) / 2.0 - middle
                spread += here * deviation * deviation
                shared += deviation * other
                below += here
                place = end
            product = spread * spread_y
            out[variable, row] = shared / np.sqrt(product) if product > 0.0 else np.nan


@exact
def linear_correlations(x: Any, y: Any, items: Any, weights: Any, floor: Any, out: Any) -> None:
    """Pearson correlation of x and y, (n,), over `items`, (m,), on each of b resamples.

    floor  (2,) for x and for y, the squared deviation per unit of weight that the rounding of the mean can cause.
           Where the variance is at most that, the variable counts as constant and the correlation is NaN.
    out    (b,), filled
    """
    for row in range(weights.shape[0]):
        weight = weights[row]
        total, sum_x, sum_y = 0.0, 0.0, 0.0
        for place in range(items.shape[0]):
            item = items[place]
            total += weight[item]
            sum_x += weight[item] * x[item]
            sum_y += weight[item] * y[item]
        mean_x, mean_y = sum_x / total, sum_y / total
        spread_x, spread_y, shared = 0.0, 0.0, 0.0
        for place in range(items.shape[0]):
            item = items[place]
            dx, dy = x[item] - mean_x, y[item] - mean_y
            spread_x += weight[item] * dx * dx
            spread_y += weight[item] * dy * dy
            shared += weight[item] * dx * dy
        varies = spread_x > floor[0] * total and spread_y > floor[1] * total
        out[row] = shared / np.sqrt(spread_x * spread_y) if varies else np.nan
