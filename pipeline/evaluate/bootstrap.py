"""Bootstrap replicates by what recurs: items, connected groups of items, or texts.

A replicate is a vector of whole-number weights over items: how often each item is in the resample.
Two spaces scored with the same design and seed see the same replicates, so the spread of their
difference needs nothing but the two columns of replicate scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pipeline.errors import ParameterError

Unit = Literal["items", "groups", "texts"]
Ints = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Design:
    """What is drawn with replacement, and which items each draw brings along.

    unit     items; groups (items connected through shared texts are drawn together); or texts
             (texts are drawn, and a pair counts as often as the product of its texts' draws)
    members  (n,) unit of each item, or (n, 2) the two texts of each pair
    strata   (units,) units are drawn within their stratum, so each keeps its number of units
    """

    unit: Unit
    members: Ints
    strata: Ints

    @property
    def units(self) -> int:
        """Number of things that can be drawn."""
        return len(self.strata)

    @property
    def effective_units(self) -> float:
        """Number of equally large units that would weigh as these do: 1 / sum of squared shares of the items."""
        shares = np.bincount(self.members.ravel()) / self.members.size
        return float(1 / (shares**2).sum())


def item_design(subsets: list[str]) -> Design:
    """Every item is drawn for itself, within its subset."""
    return Design("items", np.arange(len(subsets)), np.unique(subsets, return_inverse=True)[1])


def group_design(rows: Ints, subsets: list[str]) -> Design:
    """Pairs that share a text, directly or through others, are drawn together.

    rows  (n, 2) texts of each pair. A group's stratum is the set of subsets that it touches.
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
    """Texts are drawn; a pair of one text with itself, which the data never hold, stays out."""
    texts, members = np.unique(rows, return_inverse=True)
    return Design("texts", members.reshape(rows.shape), np.zeros(len(texts), dtype=np.int64))


def make_design(unit: Unit, rows: Ints, subsets: list[str]) -> Design:
    """The design of a corpus. rows: (n, 2) for pairs; anything else is drawn by items."""
    if unit != "items" and (rows.ndim != 2 or rows.shape[1] != 2):
        raise ParameterError(f"a bootstrap by {unit} needs pairs", where="resample", got=f"rows of shape {rows.shape}")
    if unit == "texts":
        return text_design(rows)
    return group_design(rows, subsets) if unit == "groups" else item_design(subsets)


def draw_weights(design: Design, *, resamples: int, seed: int, chunk: int = 200) -> Iterator[Float64]:
    """Weights of the items in each replicate, `chunk` replicates at a time.

    Yields (b, n) float64 of whole numbers, `resamples` rows in all; the same design and seed give
    the same rows. Memory O(chunk n).
    """
    rng = np.random.default_rng(seed)
    strata = [np.flatnonzero(design.strata == stratum) for stratum in np.unique(design.strata)]
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        counts = np.zeros((size, design.units))
        for units in strata:
            counts[:, units] = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), size=size)
        if design.unit == "texts":
            yield counts[:, design.members[:, 0]] * counts[:, design.members[:, 1]]
        else:
            yield counts[:, design.members]


# --- weighted statistics, one row of weights per replicate ----------------------------------------


class Ranker:
    """Mid-ranks of one variable in weighted resamples, from a single sort.

    Cost O(n log n) once and O(n) per replicate; equal to ranking each resample written out.
    """

    def __init__(self, values: npt.NDArray[np.floating[Any]]) -> None:
        self.order = np.argsort(values, kind="stable")
        ordered = np.asarray(values)[self.order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        self.tie = np.zeros(len(ordered), dtype=np.int64)
        self.tie[starts] = 1
        self.tie = np.cumsum(self.tie) - 1
        self.ends = np.concatenate([starts[1:], [len(ordered)]]) - 1
        self.place = np.empty_like(self.order)
        self.place[self.order] = np.arange(len(ordered))

    def ranks(self, weights: Float64) -> Float64:
        """(b, n) mid-ranks under (b, n) weights; an item of weight 0 gets a rank that counts for nothing."""
        upto = np.cumsum(weights[:, self.order], axis=1)[:, self.ends]
        before = np.concatenate([np.zeros((len(upto), 1)), upto[:, :-1]], axis=1)
        middle = (before + upto + 1) / 2
        ranks: Float64 = middle[:, self.tie][:, self.place]
        return ranks


def weighted_pearson(x: Float64, y: Float64, weights: Float64) -> Float64:
    """Pearson correlation per row of (b, n) weights; x and y are (n,) or (b, n). NaN if one is constant."""
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        dx = x - (weights * x).sum(axis=1, keepdims=True) / total
        dy = y - (weights * y).sum(axis=1, keepdims=True) / total
    spreads = [_spread(values, deviations, weights) for values, deviations in ((x, dx), (y, dy))]
    correlation: Float64 = (weights * dx * dy).sum(axis=1) / np.sqrt(spreads[0] * spreads[1])
    return correlation


def _spread(values: Float64, deviations: Float64, weights: Float64) -> Float64:
    """Weighted sum of squared deviations; NaN where it is no more than the rounding of the mean."""
    spread = (weights * deviations * deviations).sum(axis=1)
    rounding = (16 * np.finfo(np.float64).eps * np.abs(values).max()) ** 2 * weights.sum(axis=1)
    kept: Float64 = np.where(spread > rounding, spread, np.nan)
    return kept


def percentile_interval(replicates: Float64, *, confidence: float) -> tuple[float, float] | None:
    """The central percentile interval of replicate scores; None if any replicate is undefined."""
    if not np.isfinite(replicates).all():
        return None
    tail = (1 - confidence) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)
