"""Two models on one data set: the paired difference, its interval, and the smallest difference this data could show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import Design
from sentfold.compare.multiplicity import Contrast, adjust
from sentfold.data.datasets import Dataset
from sentfold.data.tables import DataError
from sentfold.decision.decide import CONFIDENCE, few_groups_factor, refuse_reversed, resample_scores
from sentfold.decision.folds import (
    LEAST_GROUPS,
    Fold,
    FoldPlan,
    count_groups,
    design_of,
    few_groups_advice,
    group_count,
    least_detectable,
    plan_folds,
    show_groups,
    show_reach,
)
from sentfold.decision.inputs import copy_notes, first_copies, refuse_one_cosine, task_of
from sentfold.decision.mteb import Predictions, item_values, keep_split, predicted_task
from sentfold.decision.nested import measurer
from sentfold.decision.progress import counted
from sentfold.decision.tasks import Task, chance_notes
from sentfold.decision.voters import spread_of_labels

Floating = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Comparison:
    """Scores x100 of two sets of vectors on the same items, and the second minus the first.

    low, high   95% interval; detectable: the smallest true difference that this data shows with 80% power, and no less
                than the bound for items that are all answered alike
    groups      independent groups of items, which are what is resampled; effective_groups: how many tell as much;
                told: what these are, in words
    """

    names: tuple[str, str]
    metric: str
    item: str
    items: int
    groups: int
    effective_groups: float
    scores: tuple[float, float]
    difference: float
    low: float
    high: float
    detectable: float
    notes: tuple[str, ...] = ()
    told: str = "equally large ones"

    def describe(self) -> str:
        """One sentence, and the two scores."""
        first, second = self.names
        amount = f"{abs(self.difference):+.1f}"
        ends = sorted((self.low, self.high) if self.difference >= 0 else (-self.low, -self.high))
        span = f"{amount} [{ends[0]:+.1f}, {ends[1]:+.1f}]"
        better, worse = (second, first) if self.difference >= 0 else (first, second)
        said_nothing = self.item == "texts" and not any(self.scores)  # as where each class has one text
        reach = show_reach(self.items, self.item, None if said_nothing else self.detectable)
        if self.effective_groups < LEAST_GROUPS:
            said = (
                f"No verdict: {self.groups} independent groups of {self.item}, as good as "
                f"{show_groups(self.effective_groups)} {self.told}, are fewer than {LEAST_GROUPS}."
                f"{few_groups_advice(self.item)}"
            )
        elif self.low > 0 or self.high < 0:
            said = f"{better} is better than {worse} by {span} points{reach}"
        elif amount == "+0.0":
            said = f"No difference is shown: {better} minus {worse} is {span} points{reach}"
        else:
            said = f"No difference is shown: {better} is above {worse} by {span} points{reach}"
        return f"{said}\n  {self.metric}: {first} {self.scores[0]:.1f}, {second} {self.scores[1]:.1f}"

    def to_json(self) -> dict[str, Any]:
        """All numbers, JSON-able."""
        numbers = {key: value for key, value in asdict(self).items() if key != "told"}  # which the verdict says
        rounded = {key: round(value, 6) if isinstance(value, float) else value for key, value in numbers.items()}
        return {**rounded, "scores": [round(score, 6) for score in self.scores], "verdict": self.describe()}


def compare_vectors(
    data: Dataset, first: Floating, second: Floating, *, names: tuple[str, str] = ("A", "B"), seed: int = 0
) -> Comparison:
    """The vectors `second` against the vectors `first` of the same texts, each as read_vectors gives them.

    Nothing is fitted, so all items are judged at once; items that need neighbours (labels) are judged in folds, and
    where there is a split column the test part is judged. Texts are copies where both have one vector for them.
    Raises DataError.
    """
    copies = first_copies(first, second, texts=data.texts)
    task, needed, _ = task_of(data, copies)
    plan = plan_comparison(task, data.splits, seed)
    plan = replace(plan, notes=(*copy_notes(copies, data.texts), *plan.notes))
    measures = [measurer(task, vectors[needed]) for vectors in (first, second)]
    folds = [fold for folds in plan.repeats for fold in folds]
    counted_folds = counted(folds, len(folds), "fold")
    tables = [np.stack([measure(fold.train, fold.test) for measure in measures]) for fold in counted_folds]
    least = spread_of_labels(task, plan, first[needed], second[needed], seed=seed)
    return _judge(task, plan, tables, names, seed, least_spread=least)


def compare_predictions(
    data: Dataset, first: Predictions, second: Predictions, *, names: tuple[str, str] | None = None, seed: int = 0
) -> Comparison:
    """Two models by what mteb saved of their predictions for these items. Nothing is encoded. Raises DataError."""
    if (first.subset, first.split) != (second.subset, second.split) or first.task != second.task:
        raise DataError(
            "these are predictions of two tasks", where="A, B", expected=first.part, got=second.part,
            remedy="name one: --task TASK/SUBSET/SPLIT",
        )  # fmt: skip
    data = keep_split(data, first.split)
    values = np.stack([item_values(found, data) for found in (first, second)])
    task, notes = predicted_task(data)
    plan = plan_comparison(task, (), seed)
    return _judge(task, replace(plan, notes=notes), [values], names or (first.model, second.model), seed)


def _judge(
    task: Task,
    plan: FoldPlan,
    tables: list[npt.NDArray[np.float64]],
    names: tuple[str, str],
    seed: int,
    *,
    least_spread: float = 0.0,
) -> Comparison:
    """The comparison of two rows of values, by fold.

    least_spread  the standard deviation of the difference, in points, where resamples show less

    Raises DataError where all pairs have one cosine, or both cosines fall as the scores rise.
    """
    for values in np.concatenate(tables, axis=1):
        refuse_one_cosine(task, values)
    refuse_reversed(task, plan, tables, seed)
    observed, replicates = resample_scores(task, plan, tables, seed)
    difference = float(observed[1] - observed[0])
    drawn = replicates[1] - replicates[0]
    if 0 < (spread := float(drawn.std(ddof=1))) < least_spread:
        drawn = drawn.mean() + (drawn - drawn.mean()) * least_spread / spread
    (few,) = few_groups_factor(plan, drawn[None], seed, tail=(1 - CONFIDENCE) / 2)
    drawn = drawn.mean() + few * (drawn - drawn.mean())
    (judged,) = adjust([Contrast(difference, drawn, "own")], confidence=CONFIDENCE)
    effective, told = count_groups(task, plan)
    # Items that are all answered alike show no more than that few others are answered differently.
    least = least_detectable(judged.detectable, group_count(plan.design), effective, 1 - CONFIDENCE)
    reach = 0.0 if judged.detectable else least
    scores = zip(names, observed.tolist(), strict=True)
    odd = [f"{name}: {note}" for name, score in scores for note in chance_notes(task, score, effective)]
    return Comparison(
        names, task.metric, task.item, len(plan.judged), group_count(plan.design), effective,
        (float(observed[0]), float(observed[1])), difference, judged.low - reach, judged.high + reach,
        least, (*plan.notes, *odd), told,
    )  # fmt: skip


def plan_comparison(task: Task, splits: Sequence[str], seed: int) -> FoldPlan:
    """One fold of all items, or of those of the test part; the folds of plan_folds where neighbours ask for them."""
    if not task.independent:
        return plan_folds(task, splits, seed=seed)
    every = np.arange(len(task.keys))
    if not splits:
        fold = Fold(every[:0], every, ())
        return FoldPlan(((fold,),), fold, every, design_of(task), ())
    test = np.flatnonzero(np.array(splits) == "test")
    fold = Fold(every[:0], test, ())
    groups = task.groups_among(test)
    design = Design("groups", groups, np.zeros(int(groups.max()) + 1, dtype=np.int64))
    return FoldPlan(((fold,),), fold, test, design, (f"judged on the test part, {len(test)}",))
