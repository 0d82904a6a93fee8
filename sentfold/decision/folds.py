"""Outer and inner folds: which items a space is fitted on, chosen by, and judged on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, sqrt

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import Design, text_design
from sentfold.data.tables import DataError
from sentfold.decision.tasks import LabelsTask, PairsTask, QueriesTask, Task

Ints = npt.NDArray[np.int64]

FOLDS, INNER, REPEATS = 5, 4, 2
# How items have to be for each to be a group of its own.
MOST = 2 / 3  # of the items; where fewer tell as much as all, a planned number would be far too large
APART = {"pairs": "no two share a text", "texts": "no two are copies", "queries": "no two share a relevant document"}
LEAST_GROUPS = 20  # equally large ones; below, no verdict is given
# What to do where queries form too few groups.
PART_QUERIES = (
    "keep the best document of each query, as queries that share a relevant document, directly or through others, are "
    "one group"
)
# Where two items can vote for each other in different folds, their values go together, and a resample of single items
# shows too little spread. At most the variance of a difference was seen to double, in simulations of unlike spaces.
MUTUAL = sqrt(2)


@dataclass(frozen=True)
class Fold:
    """Items that a space is fitted on (train) and judged on (test), and inner parts of train that choose it."""

    train: Ints
    test: Ints
    inner: tuple[tuple[Ints, Ints], ...]


@dataclass(frozen=True)
class FoldPlan:
    """All folds of a decision.

    repeats  each a partition of the judged items
    final    the fold whose train items fit the space that is handed out
    judged   the items that are judged in each repeat, at least by one; design: of the resamples of these items
    notes    what was decided about the folds, in words
    """

    repeats: tuple[tuple[Fold, ...], ...]
    final: Fold
    judged: Ints
    design: Design
    notes: tuple[str, ...]

    @property
    def folds(self) -> list[Fold]:
        """All outer folds, then the final one where it is another."""
        outer = [fold for folds in self.repeats for fold in folds]
        return outer if any(fold is self.final for fold in outer) else [*outer, self.final]


def plan_folds(task: Task, splits: Sequence[str], *, seed: int, repeats: int = REPEATS) -> FoldPlan:
    """The folds of a task: those of a split column, else folds of groups, else folds of texts.

    Groups are kept whole. If one holds more than 1 / FOLDS of the pairs, texts are divided instead, and pairs across
    two folds of all repeats are not judged. Raises DataError where a split column leaves nothing to fit on.
    """
    items = np.arange(len(task.keys))
    if len(splits):
        return _given_folds(task, np.array(splits), seed)
    by_texts = has_large_group(task)
    parts = [_divide(task, items, FOLDS, [seed, repeat], by_texts) for repeat in range(repeats)]
    made = tuple(
        tuple(_fold(task, *part, [seed, repeat, place], by_texts) for place, part in enumerate(folds))
        for repeat, folds in enumerate(parts)
    )
    final = _fold(task, items, np.empty(0, dtype=np.int64), [seed, repeats], by_texts)
    notes = [f"{repeats} times {FOLDS} folds"]
    if not by_texts:
        return FoldPlan(made, final, items, design_of(task), tuple(notes))
    judged = np.unique(np.concatenate([test for folds in parts for _, test in folds]))
    if not len(judged):
        raise DataError(
            "no pair is in one fold of texts, so none can be judged", where="pairs",
            expected="pairs of which many share no text", got=f"{len(items)} pairs", remedy="add pairs of other texts",
        )  # fmt: skip
    notes.append(
        f"one group of pairs that share texts holds over 1/{FOLDS} of them: texts are divided, and "
        f"{len(items) - len(judged)} of {len(items)} pairs, which cross two folds, are left out"
    )
    return FoldPlan(made, final, judged, text_design(task.keys[judged]), tuple(notes))


def has_large_group(task: Task) -> bool:
    """Whether one group of pairs holds more than 1 / FOLDS of them, so that texts have to be divided instead."""
    return task.keys.shape[1] == 2 and int(np.bincount(task.groups).max()) * FOLDS > len(task.keys)


def design_of(task: Task) -> Design:
    """How all items of a task are resampled: groups are drawn, or texts where a group is too large."""
    if has_large_group(task):
        return text_design(task.keys)
    return Design("groups", task.groups, _one_stratum(task.groups))


def effective_groups(design: Design) -> float:
    """How many equally large groups tell as much as these; whole numbers are exact.

    Of texts half as many as of texts that are equally common: each pair has two, and is lost with either.
    """
    return round(design.effective_units / (2 if design.unit == "texts" else 1), 9)


def group_count(design: Design) -> int:
    """How many groups are drawn; of texts half as many, since each pair has two."""
    return int(design.units) // (2 if design.unit == "texts" else 1)


def are_apart(plan: FoldPlan) -> bool:
    """Whether so few of the judged items share a text that their number tells how many others would be needed."""
    return effective_groups(plan.design) >= MOST * len(plan.judged)


def count_groups(task: Task, plan: FoldPlan) -> tuple[float, str]:
    """How many groups the judged items are as good as, and what these are, in words.

    Where most pairs have one score, the ranking depends on the other pairs alone: so these are counted, if they tell
    less than all pairs do.
    """
    every = effective_groups(plan.design), "equally large ones"
    if not isinstance(task, PairsTask):
        return every
    scores, counts = np.unique(task.scores[plan.judged], return_counts=True)
    if 2 * counts.max() <= len(plan.judged):
        return every
    others = task.scores[plan.judged] != scores[counts.argmax()]
    if not others.any():
        return 0.0, "groups whose score is not the commonest"
    rare = effective_groups(replace(plan.design, members=plan.design.members[others]))
    return min(every, (rare, "groups whose score is not the commonest"))


def widening(task: Task, plan: FoldPlan) -> float:
    """By how much the spread of resampled differences is too small: 1, but for items that vote for each other."""
    return 1.0 if task.independent or len(plan.repeats[0]) == 1 else MUTUAL


def few_groups_advice(item: str) -> str:
    """The sentence behind "No verdict" that says what to do; "" for items other than queries."""
    return f" Where queries have several documents each, {PART_QUERIES}." if item == "queries" else ""


def show_groups(effective: float) -> str:
    """`19.9`: rounded down, so that too few groups never read as enough."""
    return f"{floor(10 * effective) / 10:g}"


def unseen_loss(groups: float, level: float) -> float:
    """Points that can be lost although none of so many groups shows any loss, at a confidence of 1 - level.

    The share p of groups that lose is then at most 1 - level^(1 / groups), and a score that is a mean over items falls
    by at most p. Spearman falls by p of itself where these pairs are ranked at random, which is what a form that tells
    nothing about them does: the other pairs keep their places on the whole scale, and so all that they add. Only pairs
    that are ranked from one end to the other on purpose would lose more, up to 6 p; this is not counted.
    """
    return lost_at_most(0.0, groups, level)


def lost_at_most(seen: float, groups: float, level: float) -> float:
    """Upper bound of the points that are truly lost, at a confidence of 1 - level.

    seen    points that were lost in the data, 0 to 100; groups: how many independent groups of items there are
    Exact for items that are lost as a whole. A normal interval is too short where few items are lost.
    Source: Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404
    """
    from scipy.stats import beta

    lost = min(max(seen, 0.0) / 100 * groups, groups)
    return 100.0 if lost >= groups else float(100 * beta.ppf(1 - level, lost + 1, groups - lost))


def least_detectable(shown: float, groups: int, effective: float, level: float) -> float:
    """The detectable difference that resamples show, and no less than unseen_loss of all groups.

    Where no resample shows any change, unseen_loss of the effective groups, which can be fewer.
    """
    return max(shown, unseen_loss(groups, level)) if shown else unseen_loss(effective, level)


def show_reach(items: int, item: str, points: float | None) -> str:
    """`; with 120 pairs, ...`: what may go unseen, no less than one digit after the point can say; a stop for None."""
    if points is None:
        return "."
    return f"; with {items:,} {item}, a difference below {max(0.1, points):.1f} points may go unseen."


def _given_folds(task: Task, splits: npt.NDArray[np.str_], seed: int) -> FoldPlan:
    """Fit on train (and dev), choose on dev if there is one that can tell spaces apart, judge on test.

    What shares a text with test is not fitted on, and what shares a text with dev is not fitted on to choose.
    """
    parts = [np.flatnonzero(splits == part) for part in ("train", "dev", "test")]
    test = parts[2]
    train, dev = (_apart(task, part, test) for part in parts[:2])
    known = np.sort(np.concatenate([train, dev]))
    left_out = len(splits) - len(known) - len(test)
    if len(known) < 2:
        raise DataError(
            "the train part has nothing that the test part does not have", where="splits",
            expected=f"{task.item} of other texts", got=f"{left_out} {task.item} that share a text with the test part",
            remedy="make the parts anew, or leave the splits out: folds then keep shared texts together",
        )  # fmt: skip
    choosing = _apart(task, train, dev)
    one_group = len(np.unique(task.groups[known])) < 2
    told = len(dev) > 1 and not (isinstance(task, PairsTask) and np.ptp(task.scores[dev]) == 0)
    inner = ((choosing, dev),) if told and len(choosing) else _divide(task, known, INNER, [seed], one_group)
    fold = Fold(known, test, tuple(inner))
    groups = task.groups_among(test)  # nothing joins them through the other parts, as what shares a text is left out
    notes = [f"judged on the test part, {len(test)} {task.item}; {len(known)} are in the other parts"]
    if isinstance(task, LabelsTask):
        notes.append(
            f"the {len(known)} texts of the other parts vote: the verdict is for these. If they are few, or fewer than "
            "the test texts, others could change it"
        )
    if len(dev) and not told:
        notes.append("the dev part has no two values to choose by: folds of the train and the dev part choose instead")
    if left_out:
        notes.append(f"{left_out} {task.item} of the other parts share a text with the test part: nothing learns them")
    if isinstance(task, QueriesTask):
        met = set(task.answers_of(known).tolist())
        if shared := sum(not met.isdisjoint(task.answers_of([query]).tolist()) for query in test.tolist()):
            notes.append(
                f"{shared} test queries have a relevant document that queries of the other parts have too: the verdict "
                "holds for queries to such known documents"
            )
    return FoldPlan(((fold,),), fold, test, Design("groups", groups, _one_stratum(groups)), tuple(notes))


def _apart(task: Task, items: Ints, others: Ints) -> Ints:
    """The items that share no text with the others.

    Queries may share a relevant document, but none is the relevant document of another: among questions that are
    duplicates of each other, a pair of the train part would be one of the test part the other way round. A query with
    the words of its own relevant document does not count: this document is one that queries share.
    """
    keys = task.keys
    apart = items[~np.isin(keys[items], keys[others]).any(axis=1)]
    if not isinstance(task, QueriesTask):
        return apart
    apart = apart[~np.isin(keys[apart, 0], task.answers_of(others))]
    asked = {keys[query, 0] for query in others if keys[query, 0] not in task.answers_of([query])}
    return np.array([query for query in apart if asked.isdisjoint(task.answers_of([query]).tolist())], dtype=np.int64)


def _fold(task: Task, train: Ints, test: Ints, seeds: list[int], by_texts: bool) -> Fold:
    return Fold(train, test, tuple(_divide(task, train, INNER, [*seeds, 1], by_texts)))


def _divide(task: Task, items: Ints, count: int, seeds: list[int], by_texts: bool) -> list[tuple[Ints, Ints]]:
    """(train, test) of each of `count` folds of some items."""
    rng = np.random.default_rng(seeds)
    if by_texts:
        texts, places = np.unique(task.keys[items], return_inverse=True)
        fold_of = rng.permutation(np.arange(len(texts)) % count)[places.reshape(-1, task.keys.shape[1])]
        return [(items[(fold_of != fold).all(axis=1)], items[(fold_of == fold).all(axis=1)]) for fold in range(count)]
    numbers = divide_groups(task.groups[items], count, rng)
    return [(items[numbers != fold], items[numbers == fold]) for fold in range(count)]


def divide_groups(groups: Ints, count: int, rng: np.random.Generator) -> Ints:
    """(m,) fold of each item: groups in random order, large ones first, each to the fold with the fewest items."""
    sizes = np.bincount(groups)
    shuffled = rng.permutation(len(sizes))
    filled = np.zeros(count, dtype=np.int64)
    fold_of = np.zeros(len(sizes), dtype=np.int64)
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        fold_of[group] = filled.argmin()
        filled[fold_of[group]] += sizes[group]
    return fold_of[groups]


def _one_stratum(groups: Ints) -> Ints:
    return np.zeros(int(groups.max()) + 1, dtype=np.int64)
