"""Bootstrap replicates by what recurs: items, connected groups of items, or texts.

A replicate is a vector of whole-number weights over items: how often each item is in the resample.
Two spaces scored with the same design and seed see the same replicates, so the spread of their
difference needs nothing but the two columns of replicate scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pipeline.errors import ParameterError
from pipeline.evaluate.kernels import count_draws, linear_correlations, rank_correlations

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
    the same rows, whatever the chunk. Cost O(resamples units) time, O(chunk n) memory.
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
    """A seed of its own for each corpus, so that the replicates of two corpora have nothing in common."""
    return int.from_bytes(hashlib.sha256(f"{seed} {corpus}".encode()).digest()[:8], "big")


# --- statistics of weighted items, one row of weights per replicate -------------------------------


@dataclass(frozen=True)
class Ranked:
    """Some items in the order of one variable, sorted once for all resamples.

    order  (m,) items by ascending value; runs: (m,) where the run of equal values of each place ends
    """

    order: Ints
    runs: Ints


def sort_once(values: Float64, items: Ints | None = None) -> Ranked:
    """`items` (all of them by default) by ascending values, (n,). Cost O(m log m)."""
    chosen = np.arange(len(values)) if items is None else items
    order = chosen[np.argsort(values[chosen], kind="stable")]
    ordered = values[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(order))
    return Ranked(order, np.repeat(ends, np.diff(ends, prepend=0)))


def weighted_spearman(variables: Sequence[Ranked], y: Ranked, weights: Float64) -> Float64:
    """(s, b) Spearman of each variable with y on each row of (b, n) weights; NaN where one is constant.

    All are of the same items. Equal to ranking each resample written out. Cost O(s b m).
    """
    out = np.empty((len(variables), len(weights)))
    orders, runs = (np.array([getattr(variable, part) for variable in variables]) for part in ("order", "runs"))
    rank_correlations(orders, runs, y.order, y.runs, weights, out)
    return out


def weighted_pearson(x: Float64, y: Float64, weights: Float64, items: Ints | None = None) -> Float64:
    """(b,) Pearson of x and y, (n,), over `items`, per row of (b, n) weights; NaN if one is constant."""
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
