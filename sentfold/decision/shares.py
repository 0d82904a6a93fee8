"""Exact intervals of shares where items come in groups, and cuts below which a share is certified to be small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

Float64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

CONFIDENCE = 0.95
CUTS = 20  # a band may end at each of these quantiles of the cosines


@dataclass(frozen=True)
class Share:
    """A share of items, from 0 to 1, with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Labelled:
    """Pairs with cosines, and whether each is a match.

    cosines   (m,)
    match     (m,) bool
    groups    (m,) number of the group of each pair: pairs of one group share texts
    base_rate share of matches where the threshold will be used; None: as among these pairs
    """

    cosines: Float64
    match: Flags
    groups: Ints
    base_rate: float | None = None

    @property
    def weights(self) -> Float64:
        """(m,) weight of each pair that gives the matches their base rate; 1 without one."""
        if self.base_rate is None:
            return np.ones(len(self.match))
        observed = self.match.mean()
        weights: Float64 = np.where(self.match, self.base_rate / observed, (1 - self.base_rate) / (1 - observed))
        return weights

    @property
    def matches_together(self) -> float:
        """How many matches the group of a match has, on average.

        The largest group is counted once more, as if of matches alone: where few matches were seen, the average of
        their groups is not known, and where many were, one group changes little.
        """
        sizes = np.append(np.bincount(self.groups[self.match]), np.bincount(self.groups).max()).astype(np.float64)
        return float((sizes**2).sum() / sizes.sum())

    def reversed(self) -> Labelled:
        """The same pairs with the sides exchanged: what is above is then below, and matches are the others."""
        return Labelled(-self.cosines, ~self.match, self.groups, None if self.base_rate is None else 1 - self.base_rate)


def bound_share(hits: Flags, groups: Ints, *, level: float, together: float = 1.0) -> tuple[float, float]:
    """Lower and upper bound of a share, each missed with a chance of at most `level`; (0, 1) for no items.

    hits      (m,) whether each item counts; groups: (m,) of each item
    together  how many hits come at a time, at the least: hits may come in larger groups than other items
    Exact (Clopper & Pearson) for independent items. The number of items is replaced by that of equally large groups of
    the same concentration, as if all items of a group told the same. Where hits, or the other items, come in larger
    groups than the rest, it is the number of groups of that size: few large groups then decide the share.
    Source: Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404; Korn & Graubard 1998, Survey Methodology 24:193-201
    """
    if not len(hits):
        return 0.0, 1.0
    together = max(together, *(_size_of_groups(side, groups) for side in (hits, ~hits)))
    n = min(independent_items(groups), len(groups) / together)
    k = float(hits.mean()) * n
    low = float(beta.ppf(level, k, n - k + 1)) if k > 0 else 0.0
    return low, float(beta.ppf(1 - level, k + 1, n - k)) if k < n else 1.0


def _size_of_groups(chosen: Flags, groups: Ints) -> float:
    """How many chosen items the group of a chosen item has, on average.

    One more group is counted, of the average size of all groups. Few chosen items do not show how large the groups of
    chosen items are; this group then decides.
    """
    usual = len(groups) / independent_items(groups)
    sizes = np.append(np.bincount(groups[chosen]), usual)
    return float((sizes**2).sum() / sizes.sum())


def independent_items(groups: Ints) -> float:
    """The number of equally large groups that have the same concentration as these: m^2 / sum of squared sizes."""
    sizes = np.unique(groups, return_counts=True)[1]
    return float(len(groups)) ** 2 / float((sizes.astype(np.float64) ** 2).sum())


def bound_matches(pairs: Labelled, chosen: Flags, *, level: float, together: float = 1.0) -> tuple[float, float]:
    """Bounds of the share of matches among chosen pairs, each missed with a chance of at most `level`.

    With a base rate p, the share is p t / (p t + (1 - p) f) for t, f the shares of matches and of other pairs that are
    chosen. Both get bounds at half the level, so that together they hold at the level.
    """
    if pairs.base_rate is None:
        return bound_share(pairs.match[chosen], pairs.groups[chosen], level=level, together=together)
    t, f = (bound_share(chosen[side], pairs.groups[side], level=level / 2) for side in (pairs.match, ~pairs.match))
    return mix(t[0], f[1], pairs.base_rate), mix(t[1], f[0], pairs.base_rate)


def mix(matches: float, others: float, base_rate: float) -> float:
    """The share of matches among chosen pairs, from the shares of matches and of other pairs that are chosen."""
    above = base_rate * matches
    total = above + (1 - base_rate) * others
    return above / total if total > 0 else 0.5


@dataclass(frozen=True)
class Band:
    """The pairs with a cosine below a cut (or from it on).

    cut    cosine
    wrong  share of pairs in the band that are on the wrong side, with the bound that was tested as `high`
    share  of all pairs that are in the band
    """

    cut: float
    wrong: Share
    share: float


def certify_below(pairs: Labelled, rate: float, *, until: float = np.inf) -> Band | None:
    """The widest band of low cosines of which at most `rate` are matches, at 95%; None where the data bear none.

    until  the band ends there at the latest: of many other pairs, few in sum are matches even where it reaches on. It
           takes the place of the first quantile above it. It may be the best threshold of the same pairs: simulations
           in the tests then keep the 5%
    The cuts are quantiles, chosen without a look at the labels. They are tested one after the other from the lowest
    on, each at 5%, until one fails. So the chance to certify a band whose true share of matches exceeds the rate is at
    most 5%. The first cut is the lowest that passes where no pair below it is a match.
    Source: fixed-sequence testing, Maurer, Hothorn & Lehmacher 1995; Angelopoulos et al. 2021, arXiv:2110.01052
    """
    widest, together = None, pairs.matches_together
    cuts = _cuts(pairs, rate)
    beyond = [cut for cut in cuts if cut > until]
    for cut in [cut for cut in cuts if cut <= until] + [until] * bool(beyond):
        chosen = pairs.cosines < cut
        low, high = bound_matches(pairs, chosen, level=1 - CONFIDENCE, together=together)
        if high > rate:
            break
        w = pairs.weights[chosen]
        wrong = Share(float(w @ pairs.match[chosen] / w.sum()), low, high)
        widest = Band(cut, wrong, float(w.sum() / pairs.weights.sum()))
    return widest


def certify_above(pairs: Labelled, rate: float, *, until: float = -np.inf) -> Band | None:
    """The widest band of high cosines of which at least `rate` are matches; see certify_below.

    until  the band begins there at the latest, and has the pairs at that cosine
    """
    found = certify_below(pairs.reversed(), 1 - rate, until=float(np.nextafter(-until, np.inf)))
    return found and Band(float(np.nextafter(-found.cut, np.inf)), found.wrong, found.share)


def _cuts(pairs: Labelled, rate: float) -> list[float]:
    """Ascending quantiles, from the first below which a band without a single match would pass."""
    ordered = np.sort(pairs.cosines)
    places = np.unique((np.arange(1, CUTS + 1) * (len(ordered) - 1)) // CUTS)
    cuts = [float(cut) for cut in np.unique(ordered[places]) if cut > ordered[0]]
    return [cut for cut in cuts if _may_pass(pairs, pairs.cosines < cut, rate)]


def _may_pass(pairs: Labelled, chosen: Flags, rate: float) -> bool:
    """Whether the chosen pairs would pass if none of them was a match; it depends on no pair's own label."""
    if pairs.base_rate is None:
        none, groups = np.zeros(int(chosen.sum()), bool), pairs.groups[chosen]
        return bound_share(none, groups, level=1 - CONFIDENCE, together=pairs.matches_together)[1] <= rate
    half = (1 - CONFIDENCE) / 2
    matches = bound_share(np.zeros(int(pairs.match.sum()), bool), pairs.groups[pairs.match], level=half)[1]
    groups = np.sort(pairs.groups[~pairs.match])
    others = bound_share(np.arange(len(groups)) < chosen.sum(), groups, level=half)[0]
    return mix(matches, others, pairs.base_rate) <= rate
