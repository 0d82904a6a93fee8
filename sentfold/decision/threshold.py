"""From which cosine on two texts match: chosen by F1, with what it is worth and certified bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from sentfold.compare.bootstrap import Design, draw_weights, group_design
from sentfold.data.tables import DataError, shorten
from sentfold.data.vectors import as_array, refuse_masked, refuse_other_order
from sentfold.decision.folds import LEAST_GROUPS, effective_groups, show_groups
from sentfold.decision.inputs import kin_of
from sentfold.decision.progress import counted
from sentfold.decision.shares import (
    CONFIDENCE,
    Band,
    Flags,
    Labelled,
    Share,
    bound_matches,
    bound_share,
    certify_above,
    certify_below,
    mix,
)

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FOLDS = 5
RESAMPLES = 1_000
CELLS = 4_000_000  # numbers of one block of resamples


@dataclass(frozen=True)
class Threshold:
    """A cosine from which on pairs count as matches, and what it is worth.

    cut         chosen on all pairs by F1; low, high: the middle 95% of the cuts that resampled data choose, which is
                their spread and no interval of a true cut: a best F1 has none that a bootstrap covers
    precision, recall, f1   each pair is judged by a cut that other pairs chose, in 5 folds of groups; the intervals
                hold for `cut` too
    below       the widest band of low cosines of which at most `few` are matches; above: of high cosines of which at
                least `most` are; None where the data bear no such band. Each holds at 95%
    pairs, groups, matches  how many; base_rate: share of matches that all shares refer to
    """

    cut: float
    low: float
    high: float
    precision: Share
    recall: Share
    f1: Share
    below: Band | None
    above: Band | None
    few: float
    most: float
    pairs: int
    groups: int
    matches: int
    base_rate: float

    def describe(self) -> str:
        """At most 12 lines."""
        lines = [
            f"From cosine {show_cut(self.cut)} on it is a match (best F1; resampled data choose {show_cut(self.low)} "
            f"to {show_cut(self.high)}).",
            f"  precision {show(self.precision)}, recall {show(self.recall)}, F1 {show(self.f1)}",
            f"  {self.pairs:,} pairs in {self.groups:,} independent groups, {self.matches:,} of them matches; "
            f"precision and F1 hold where {100 * self.base_rate:.3g}% of the pairs are matches",
            *self._bands(),
            "  Each pair was judged by a cosine that other pairs chose; the 95% intervals hold for the cosine above "
            "too.",
        ]
        return "\n".join(lines)

    def _bands(self) -> list[str]:
        few, most = f"at most {100 * self.few:.3g}% are matches", f"at least {100 * self.most:.3g}% are matches"
        missing = "these pairs are too few or too mixed to say"
        below, above = self.below, self.above
        lines = [
            f"  below {show_cut(below.cut)} {few} ({percent(below.share)} of the pairs)"
            if below
            else f"  {missing} below which cosine {few}",
            f"  from {show_cut(above.cut)} on {most} ({percent(above.share)} of the pairs)"
            if above
            else f"  {missing} from which cosine on {most}",
        ]
        if below and above and (rest := 1 - below.share - above.share) > 1e-9:
            lines.append(f"  between: ask ({percent(rest)} of the pairs)")
        return lines

    def to_json(self) -> dict[str, Any]:
        """All numbers."""
        return asdict(self)


def _flags(match: npt.ArrayLike) -> Flags:
    """`match` as bool. Raises DataError for other values: as bool, a missing one and a grade of -1 would be matches."""
    cells = np.asarray(match, dtype=object)
    for row, cell in enumerate(cells.ravel().tolist()):
        if isinstance(cell, str) or str(cell) not in ("True", "False", "1", "0", "1.0", "0.0"):
            raise DataError(
                "a pair is neither a match nor none", where=f"match, row {row} (from 0)",
                expected="True and False, or 1 and 0", got=shorten(cell),
                remedy="leave out the pairs that nobody judged; say which grades are matches: grades >= 3",
            )  # fmt: skip
    return cells.astype(bool)


def show_cut(cut: float) -> str:
    """`0.303`, or with all digits of a cut that was rounded to more."""
    return f"{cut:.3f}" if round(cut, 3) == cut else f"{cut:.12g}"


def round_cut(cut: float, cosines: Float64, to_whole: Callable[[float], int] = round) -> float:
    """The cut with three digits, or as many more as leave all but a thousandth of the pairs on their side.

    to_whole  round, floor or ceil
    """
    for digits in range(3, 13):
        rounded = float(to_whole(cut * 10**digits) / 10**digits)
        if abs(np.count_nonzero(cosines >= rounded) - np.count_nonzero(cosines >= cut)) <= len(cosines) / 1000:
            return rounded
    return cut


def percent(share: float) -> str:
    """`31%`."""
    return f"{100 * share:.0f}%"


def show(share: Share) -> str:
    """`84.1 [80.2, 87.7]`."""
    return f"{100 * share.value:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _is_missing(cell: object) -> bool:
    try:
        return cell is None or bool(cell != cell)
    except TypeError:  # pandas.NA is neither equal to itself nor unequal
        return True


def _numbers_of(rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """(2 m,) a number for each text, the same for all forms of a text. Raises DataError."""
    cells = rows.ravel().tolist()
    for cell in cells:
        if _is_missing(cell):
            raise DataError("a text is missing", where="rows", expected="a text or its number", got=repr(cell))
    place = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
    kin = np.arange(len(place))
    if all(isinstance(cell, str) for cell in place):
        kin = kin_of(kin, list(place))
    return kin[[place[cell] for cell in cells]]


def find_threshold(
    cosines: npt.ArrayLike,
    match: npt.ArrayLike,
    *,
    rows: npt.ArrayLike | None = None,
    base_rate: float | None = None,
    few: float = 0.02,
    most: float = 0.95,
    seed: int = 0,
) -> Threshold:
    """The threshold of pairs, chosen and judged by cross-fitting.

    cosines    (m,); match: (m,) bool, or 0 and 1
    rows       (m, 2) texts of each pair, or their numbers: pairs that share one stay in one fold, also where texts
               differ in case, punctuation and blanks alone; None: all pairs are independent
    base_rate  share of matches where the threshold will be used; None: as among these pairs
    few, most  largest share of matches in the lower band, least share in the upper one
    Raises DataError for arrays that do not fit, without both kinds of pairs, with fewer than 20 independent groups, or
    where matches have lower cosines than other pairs.
    Cost O(resamples m), O(m log m) besides.
    """
    refuse_masked(cosines=cosines, match=match, rows=rows)
    refuse_other_order(cosines=cosines, match=match, rows=rows)
    values, flags = np.asarray(as_array(cosines), dtype=np.float64), _flags(match)
    rows = None if rows is None else np.asarray(rows)
    shapes = (values.shape, flags.shape, None if rows is None else rows.shape)
    if values.ndim != 1 or shapes[1] != values.shape or shapes[2] not in (None, (len(values), 2)):
        raise DataError(
            "arrays of pairs do not fit each other", where="cosines, match, rows", expected="shapes (m,), (m,), (m, 2)",
            got=", ".join(str(shape) for shape in shapes),
        )  # fmt: skip
    if not np.isfinite(values).all():
        raise DataError(
            "a cosine is not finite", where=f"cosines, row {int(np.flatnonzero(~np.isfinite(values))[0])} (from 0)",
            expected="finite numbers", got=str(values[~np.isfinite(values)][0]),
        )  # fmt: skip
    texts = np.arange(2 * len(values)) if rows is None else _numbers_of(rows)
    design = group_design(texts.reshape(-1, 2), [""] * len(values))
    pairs = Labelled(values, flags, design.members, base_rate)
    _check(pairs, design, few, most)
    ends = np.quantile(resampled_cuts(pairs, design, seed=seed), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    cut, low, high = (round_cut(float(one), values) for one in (best_cut(pairs, np.ones((1, len(values))))[0], *ends))
    precision, recall, f1 = judge_procedure(pairs, crossfit(pairs, seed=seed), cut)
    # No cosine is in both bands: the first ends at the cut, and the second begins there.
    below, above = certify_below(pairs, few, until=cut), certify_above(pairs, most, until=cut)
    return Threshold(
        cut=cut,
        low=low,
        high=high,
        precision=precision,
        recall=recall,
        f1=f1,
        below=below and replace(below, cut=round_cut(below.cut, values, floor)),
        above=above and replace(above, cut=round_cut(above.cut, values, ceil)),
        few=few,
        most=most,
        pairs=len(values),
        groups=design.units,
        matches=int(flags.sum()),
        base_rate=float(flags.mean()) if base_rate is None else base_rate,
    )


def matches_from(scores: Float64, match_from: float | None) -> Flags:
    """Which scores are matches: those from `match_from` on, or the larger of two values. Raises DataError."""
    values = np.unique(scores)
    if match_from is None and len(values) > 2:
        low, high = values[0], values[-1]
        raise DataError(
            "scores are graded, so it must be said what a match is",
            where="--match-from",
            expected="the least score of a match",
            got=f"{len(values)} different scores, {low:g} to {high:g}",
            remedy=f"for example --match-from {high - (high - low) / 4:g}",
        )
    if match_from is None:
        return np.asarray(scores == values[-1])
    with np.errstate(over="ignore"):
        return np.asarray(scores.astype(np.float32) >= np.float32(match_from))  # float32 3.8 is below 3.8 as float64


def _check(pairs: Labelled, design: Design, few: float, most: float) -> None:
    matches, number = int(pairs.match.sum()), len(pairs.match)
    if not all(0 < rate < 1 for rate in (few, most, 0.5 if pairs.base_rate is None else pairs.base_rate)):
        raise DataError("a rate is no share", where="--few, --most, --base-rate", expected="numbers between 0 and 1")
    if few >= most:
        raise DataError("the bands overlap", where="--few, --most", expected="few < most", got=f"{few:g}, {most:g}")
    if not 0 < matches < number:
        raise DataError(
            "there is one kind of pairs alone",
            where="match",
            expected="matches and other pairs",
            got=f"{matches} matches of {number}",
            remedy="correct --match-from",
        )
    require_groups(design, number)
    others, effective = number - matches, design.effective_units
    # The share of matches and other pairs of which the match has the higher cosine (Mann & Whitney 1947), and its
    # standard deviation where the two kinds do not differ and groups are as good as so many pairs.
    above = (rankdata(pairs.cosines)[pairs.match].mean() - (matches + 1) / 2) / others
    plain = np.sqrt((number + 1) / (12 * matches * others))
    deviation = plain * np.sqrt(number / effective)
    # Few matches are no reason to refuse cosines that tell these from all others.
    if 0.5 - 1.96 * deviation <= above <= 0.5 + min(1.96 * plain, 0.2):
        raise DataError(
            "matches have no higher cosines than other pairs", where="vectors", expected="cosines that tell matches",
            got=f"of a match and another pair, the match has the higher cosine in {100 * above:.0f}%",
            remedy="are the vectors those of the texts, in their order? If so, give more pairs or another encoder",
        )  # fmt: skip
    if above < 0.5:
        raise DataError(
            "matches have lower cosines than other pairs", where="scores",
            expected="larger scores for pairs that are more alike",
            got=f"of a match and another pair, the match has the higher cosine in {100 * above:.0f}%",
            remedy="are these distances, or the codes of labels? Turn them round, so that larger means more alike",
        )  # fmt: skip


def require_groups(design: Design, number: int) -> None:
    """Raise DataError where too few of so many pairs are independent of each other."""
    effective = effective_groups(design)
    if effective < LEAST_GROUPS:
        raise DataError(
            "too few pairs are independent of each other",
            where="pairs",
            expected=f"pairs that are as good as {LEAST_GROUPS} without a text in common",
            got=f"{number} pairs in {design.units} groups of shared texts, the largest of "
            f"{np.bincount(design.members).max()}, as good as {show_groups(effective)}",
            remedy="add pairs of other texts, or leave out pairs that join large groups",
        )


# --- choosing -----------------------------------------------------------------------------------------


def best_cut(pairs: Labelled, weights: Float64) -> list[float]:
    """The cut of largest F1 under each of (b, m) weights: half-way between two cosines, the higher of equal cuts."""
    order = np.argsort(-pairs.cosines, kind="stable")
    ordered = pairs.cosines[order]
    ends = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True))
    w = (weights * pairs.weights)[:, order]
    hits = np.cumsum(w * pairs.match[order], axis=1)
    called = np.cumsum(w, axis=1)
    with np.errstate(invalid="ignore"):  # a resample may hold no match: every cut is then as bad
        f1 = np.nan_to_num(2 * hits[:, ends] / (hits[:, -1:] + called[:, ends]))
    chosen = ends[f1.argmax(axis=1)]
    # The next cosine of a pair that has a weight: one that is held out, or not drawn, chooses nothing.
    following = [np.flatnonzero(row[place + 1 :]) for row, place in zip(w, chosen, strict=True)]
    after = [place + 1 + next_[0] if len(next_) else place for place, next_ in zip(chosen, following, strict=True)]
    return [float(cut) for cut in (ordered[chosen] + ordered[np.array(after)]) / 2]


def resampled_cuts(pairs: Labelled, design: Design, *, seed: int) -> Float64:
    """(RESAMPLES,) the cuts that resampled groups choose."""
    chunk = max(1, min(200, CELLS // len(pairs.match)))
    draws = draw_weights(design, resamples=RESAMPLES, seed=seed, chunk=chunk)
    return np.concatenate([best_cut(pairs, w) for w in counted(draws, RESAMPLES, "resample", len)])


def crossfit(pairs: Labelled, *, seed: int) -> Float64:
    """(m,) for each pair the cut that the pairs of the other folds choose. Groups stay in one fold."""
    folds = divide(pairs.groups, FOLDS, np.random.default_rng(seed))
    cuts = np.empty(len(folds))
    for fold in range(FOLDS):
        known = (folds != fold).astype(np.float64)
        cuts[folds == fold] = best_cut(pairs, known[None])[0]
    return cuts


def divide(groups: Ints, count: int, rng: np.random.Generator) -> Ints:
    """(m,) the fold of each item: groups in random order, large ones first, each to the fold with the fewest items."""
    sizes = np.bincount(groups)
    shuffled = rng.permutation(len(sizes))
    filled, fold_of = [0] * count, np.zeros(len(sizes), dtype=np.int64)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of[group] = fold = filled.index(min(filled))
        filled[fold] += int(sizes[group])
    return fold_of[groups]


# --- judging ------------------------------------------------------------------------------------------


def judge_procedure(pairs: Labelled, cuts: Float64, cut: float) -> tuple[Share, Share, Share]:
    """Precision, recall and F1 by the cuts that other pairs chose; their intervals joined with those of the final cut.

    The best F1 is flat, so the final cut is another one than those of the folds. Their intervals alone miss the true
    values of the final cut too often; see test_intervals_hold_the_values_of_the_printed_cut.
    """
    crossed, final = judge_cuts(pairs, cuts), judge_cuts(pairs, cut)
    precision, recall, f1 = (
        Share(one.value, min(one.low, other.low), max(one.high, other.high))
        for one, other in zip(crossed, final, strict=True)
    )
    return precision, recall, f1


def judge_cuts(pairs: Labelled, cuts: Float64 | float) -> tuple[Share, Share, Share]:
    """Precision, recall and F1 of calling each pair from its cut on a match, with 95% intervals.

    F1 is 2 j / (1 + j) for j, the share of hits among the pairs that are matches or called so, and therefore has the
    exact interval of a share. With a base rate, j follows from recall and from the share of other pairs called matches.
    """
    level = (1 - CONFIDENCE) / 2
    called = pairs.cosines >= cuts
    hits = called & pairs.match
    w = pairs.weights
    precision, recall, joint = (
        float(w[hits].sum() / w[part].sum()) if part.any() else 0.0
        for part in (called, pairs.match, called | pairs.match)
    )
    precise = bound_matches(pairs, called, level=level)
    recalled = bound_share(called[pairs.match], pairs.groups[pairs.match], level=level)
    both = _bound_joint(pairs, called, level=level)
    f1 = Share(*(2 * j / (1 + j) for j in (joint, *both)))
    return Share(precision, *precise), Share(recall, *recalled), f1


def _bound_joint(pairs: Labelled, called: Flags, *, level: float) -> tuple[float, float]:
    """Bounds of the share of hits among the pairs that are matches or called so."""
    if pairs.base_rate is None:
        part = called | pairs.match
        return bound_share((called & pairs.match)[part], pairs.groups[part], level=level)
    t, f = (bound_share(called[side], pairs.groups[side], level=level / 2) for side in (pairs.match, ~pairs.match))
    low, high = ((rate, mix(1.0, other, pairs.base_rate)) for rate, other in ((t[0], f[1]), (t[1], f[0])))
    return low[0] * low[1], high[0] * high[1]
