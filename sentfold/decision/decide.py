"""The decision: keep cosine, or use another space, with simultaneous intervals of all candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from scipy.stats import t as student

from sentfold.compare.bootstrap import draw_weights
from sentfold.compare.multiplicity import Adjusted, Contrast, adjust
from sentfold.data.datasets import Dataset
from sentfold.data.tables import DataError
from sentfold.data.vectors import SentenceEncoder
from sentfold.decision.families import FAMILIES, Family, refuse_wide
from sentfold.decision.folds import (
    LEAST_GROUPS,
    FoldPlan,
    are_apart,
    count_groups,
    group_count,
    plan_folds,
    unseen_loss,
    widening,
)
from sentfold.decision.inputs import (
    check_splits,
    copy_notes,
    embed_texts,
    first_copies,
    make_task,
    model_notes,
    refuse_one_cosine,
    task_of,
    value_notes,
)
from sentfold.decision.nested import Fitted, Material, fit_families, measurer, space_of_all
from sentfold.decision.progress import counted
from sentfold.decision.spaces import Space, Unchanged, save_space
from sentfold.decision.tasks import PairsTask, Task, chance_notes
from sentfold.decision.voters import spread_of_labels

Floats = npt.NDArray[np.float32]
Floating = npt.NDArray[np.floating[Any]]
Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Encoding = str | SentenceEncoder | Callable[[list[str]], Any]

RESAMPLES = 2_000
WEIGHTS, MOST_WEIGHTS = 4_000_000, 40_000_000  # of items in resamples, at a time
REVERSED = 4  # standard deviations below 0; scores that say nothing give such a cosine once in 30,000 times
CONFIDENCE = 0.95
SAME = 1e-6  # values of items that differ by less are those of cosine, where these range from 0 to 1
MANY_GROUPS = 200  # from which on Student's t is the normal distribution but for a hundredth
AUTOMATIC = "automatic choice"


@dataclass(frozen=True)
class Candidate:
    """A family, or the automatic choice among them, judged outside of the folds that tuned it.

    score, difference  x100; difference to cosine in the same folds
    low, high, p       simultaneous over all candidates; detectable: the smallest difference shown with 80% power
    chosen             point -> number of outer folds; identical: whether it gives the values of cosine everywhere
    """

    name: str
    score: float
    difference: float
    low: float
    high: float
    p: float
    detectable: float
    chosen: dict[str, int]
    identical: bool = False


@dataclass(frozen=True)
class Decision:
    """The outcome of `decide`.

    metric, item   what is scored and what is counted, in words
    items, groups  how many of them; groups are independent of each other
    effective_groups  how many groups tell as much; told: what these are, in words
    pooled         whether many items share texts: these do not tell how many others would show a difference
    cosine         score of cosine x100 in the same folds; overall: on all of them at once (differs for Spearman)
    candidates     the automatic choice first, then families by descending difference
    reasons        family -> why it could not be tried
    transductive   family -> score if it is fitted on the judged texts themselves; outside the verdict
    space          what to use: the recommended space, fitted on all items, or the unchanged one
    name           its name; recommended: whether it is another than cosine
    alternative    the space that the automatic choice picks on all items, recommended or not; alternative_name
    notes          what was done and what is odd, in words
    """

    metric: str
    item: str
    items: int
    groups: int
    effective_groups: float
    cosine: float
    overall: float
    candidates: tuple[Candidate, ...]
    reasons: dict[str, str]
    transductive: dict[str, float]
    space: Space
    name: str
    recommended: bool
    alternative: Space = field(default_factory=Unchanged)
    alternative_name: str = "cosine"
    notes: tuple[str, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)
    told: str = "equally large ones"
    pooled: bool = False

    @property
    def verdict(self) -> str:
        """One sentence."""
        from sentfold.decision.verdict import verdict_sentence

        return verdict_sentence(self)

    def describe(self) -> str:
        """At most 11 lines."""
        from sentfold.decision.verdict import describe_decision

        return describe_decision(self)

    def to_json(self) -> dict[str, Any]:
        """Everything but the space, JSON-able; the same data gives the same bytes."""
        from sentfold.decision.verdict import decision_record

        return decision_record(self)

    def save(self, folder: str | Path) -> None:
        """Write the space and verdict.json into a folder; an earlier decision is removed. Raises ArtifactError."""
        from sentfold.decision.use import renewed

        with renewed(Path(folder)) as fresh:
            self.write_files(fresh)

    def write_files(self, folder: str | Path) -> None:
        """Write the space and verdict.json next to the other files of this decision. Raises ArtifactError."""
        from sentfold.files import write_json

        save_space(self.space, Path(folder))
        write_json(Path(folder) / "verdict.json", self.to_json())


def decide(
    vectors: npt.ArrayLike | Encoding,
    *,
    pairs: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | None = None,
    labels: tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike | None = None,
    splits: Sequence[str] = (),
    families: tuple[Family, ...] = FAMILIES,
    seed: int = 0,
) -> Decision:
    """Which space of these vectors, if any, serves the data better than cosine.

    vectors  (n, d) finite; rows that no item names are used without labels. Or an encoder: a name, an object with
             `encode` such as a SentenceTransformer, or a function of a list; pairs and labels then hold texts, not rows
    pairs    (left, right, scores): rows of both texts, (m,) each, and (m,) scores, larger = more alike
    labels   (rows, classes), or the class of every vector
    splits   train, dev or test per item: honoured instead of folds
    seed     of folds and resamples
    What is judged is the procedure at this sample size: choosing and fitting on part of the data, used on the rest.
    Raises DataError (a ValueError) where arrays do not fit. Cost: about 16 fits of every family.
    """
    from sentfold.data.vectors import check_vectors

    array, pairs, labels, texts, counted = embed_texts(vectors, pairs, labels, splits)
    x, notes = check_vectors(array, "vectors")
    copies = first_copies(x, texts=texts)
    task, needed, free = make_task(copies, pairs, labels, texts)
    check_splits(splits, task)
    notes = [*value_notes(pairs, labels), *model_notes(vectors), *counted, *notes]
    material = Material(x, needed, free, task, plan_folds(task, splits, seed=seed))
    return decide_task(material, families, seed, (*notes, *copy_notes(copies, texts)))


def decide_task(material: Material, families: tuple[Family, ...], seed: int, notes: Sequence[str] = ()) -> Decision:
    """The decision on a task.

    Raises DataError where all pairs have one cosine, or cosine falls as the scores rise, and as refuse_wide does.
    """
    task, plan = material.task, material.plan
    refuse_wide(material.vectors.shape[1])
    refuse_one_cosine(task, material.plain(plan.final.train, plan.judged))
    outer = [fold for folds in plan.repeats for fold in folds]
    refuse_reversed(task, plan, [material.plain(fold.train, fold.test)[None] for fold in outer], seed)
    fitted = fit_families(material, families)
    spread = spread_of_labels(task, plan, material.own, seed=seed)
    candidates, cosine = judge(task, plan, fitted, seed, spread=spread)
    transductive = transductive_scores(material, fitted)
    effective, told = count_groups(task, plan)
    best = choose(candidates) if effective >= LEAST_GROUPS else None
    space, name = _space_of(fitted, plan, best)
    alternative = (space, name) if best else _space_of(fitted, plan, candidates[0])
    everything = np.ones((1, len(plan.judged)))
    train = plan.final.train
    overall = task.score(material.plain(train, plan.judged)[None], plan.judged, everything)[0, 0]
    return Decision(
        metric=task.metric,
        item=task.item,
        items=len(plan.judged),
        groups=group_count(plan.design),
        effective_groups=effective,
        told=told,
        pooled=not are_apart(plan),
        cosine=cosine,
        overall=100 * float(overall) if task.independent else cosine,
        candidates=candidates,
        reasons=fitted.reasons,
        transductive=transductive,
        space=space,
        name=name,
        recommended=best is not None and name != "cosine",
        alternative=alternative[0],
        alternative_name=alternative[1],
        notes=(*notes, *plan.notes, *chance_notes(task, cosine, effective)),
        record={
            "seed": seed,
            "resamples": RESAMPLES,
            "confidence": CONFIDENCE,
            "vectors": list(material.vectors.shape),
        },
    )


def decide_dataset(
    data: Dataset, vectors: Floats, *, families: tuple[Family, ...] = FAMILIES, seed: int = 0
) -> Decision:
    """The decision on a data set that was read, with vectors as read_vectors gives them. Raises DataError."""
    copies = first_copies(vectors, texts=data.texts)
    task, needed, free = task_of(data, copies)
    plan = plan_folds(task, data.splits, seed=seed)
    material = Material(vectors, needed, free, task, plan)
    return decide_task(material, families, seed, (*data.notes, *copy_notes(copies, data.texts)))


def refuse_reversed(task: Task, plan: FoldPlan, tables: Sequence[Float64], seed: int) -> None:
    """Raise DataError where a row of cosines falls as the scores of pairs rise, beyond chance; or all are equal.

    tables  as for resample_scores. A space that destroys such cosines would count as a better one, and so would a model
            whose cosines say nothing.
    """
    if not isinstance(task, PairsTask):
        return
    scores = task.scores[plan.judged]
    if (scores == scores[0]).all():
        raise DataError(
            "all scores that are judged are equal, so there is nothing to rank", where="scores",
            expected="at least two different scores, in the test part too", got=f"{len(scores):,} times {scores[0]:g}",
            remedy="make the parts anew, or leave the splits out: folds are then made instead",
        )  # fmt: skip
    observed, replicates = resample_scores(task, plan, tables, seed)
    if (observed + REVERSED * replicates.std(axis=1, ddof=1) < 0).any():
        raise DataError(
            "cosine falls as the scores rise", where="scores", expected="larger scores for pairs that are more alike",
            got=f"Spearman of cosine {', '.join(f'{score:.1f}' for score in observed)}",
            remedy="are these distances, or the codes of labels? Turn them round, so that larger means more alike",
        )  # fmt: skip


# --- judging -------------------------------------------------------------------------------------------


def judge(
    task: Task, plan: FoldPlan, fitted: Fitted, seed: int, *, spread: float = 0.0
) -> tuple[tuple[Candidate, ...], float]:
    """Every candidate with its simultaneous interval, and the score of cosine x100 in the same folds.

    spread  the standard deviation of the score of cosine, in points. Where resamples show less, they show as much less
            of the differences, too.
    """
    names = [AUTOMATIC, *(family.name for family in fitted.families)]
    outer = range(sum(len(folds) for folds in plan.repeats))
    tables = [
        np.stack([fitted.cosine[fold], fitted.automatic(fold).values, *(rows[fold].values for rows in fitted.outcomes)])
        for fold in outer
    ]  # by outer fold: (candidates + 1, t)
    observed, replicates = resample_scores(task, plan, tables, seed)
    apart = np.max([np.abs(table[1:] - table[0]).max(axis=1, initial=0.0) for table in tables], axis=0)
    # In a narrow cone cosines differ by millionths, and rounding moves them by the root of that.
    # Where all values are equal, as where every query is answered right, some last digits are no difference either.
    reach = float(np.ptp(np.concatenate([table[0] for table in tables])))
    same = max(1e-12, SAME * np.sqrt(min(1.0, reach)))
    moving = [place for place in range(len(names)) if apart[place] > same]
    seen = float(replicates[0].std(ddof=1))
    wider = max(1.0, spread / seen) if seen > 0 else 1.0
    drawn = replicates[1:] - replicates[0]
    # The intervals hold all at once, so each misses about as rarely as if the candidates shared the misses.
    factors = wider * few_groups_factor(plan, drawn, seed, tail=(1 - CONFIDENCE) / 2 / max(1, len(moving)))
    contrasts = [
        Contrast(
            float(observed[place + 1] - observed[0]),
            drawn[place].mean() + factors[place] * (drawn[place] - drawn[place].mean()),
            "own",
        )
        for place in moving
    ]
    adjusted = dict(zip(moving, adjust(contrasts, confidence=CONFIDENCE), strict=True))
    # Where no resample shows any difference, so many groups leave this open.
    least = unseen_loss(max(1.0, count_groups(task, plan)[0]), 1 - CONFIDENCE)
    for place, one in adjusted.items():
        if not one.detectable:
            adjusted[place] = replace(one, low=one.low - least, high=one.high + least)
    candidates = [
        _candidate(name, adjusted.get(place), observed[place + 1], fitted, place, list(outer))
        for place, name in enumerate(names)
    ]
    families = sorted(candidates[1:], key=lambda candidate: -candidate.difference)
    return (candidates[0], *families), float(observed[0])


def transductive_scores(material: Material, fitted: Fitted) -> dict[str, float]:
    """Score x100, in the outer folds, of each family that is `refitted`, when all texts fit it: outside the verdict.

    Its parameters are those that the outer folds chose most often.
    """
    scores = {}
    for place, family in enumerate(fitted.families):
        if family.refitted:
            outer = [fold for folds in material.plan.repeats for fold in folds]
            point = fitted.choices(place, range(len(outer))).most_common(1)[0][0]
            space = space_of_all(material, family, point)
            if space is not None:
                measure = measurer(material.task, space.transform(material.own))
                tables = [measure(fold.train, fold.test)[None] for fold in outer]
                everything = np.ones((1, len(material.plan.judged)))
                scores[family.name] = 100 * float(fold_means(material.task, material.plan, tables, everything)[0, 0])
    return scores


def resample_scores(task: Task, plan: FoldPlan, tables: Sequence[Float64], seed: int) -> tuple[Float64, Float64]:
    """(c,) scores x100 of the candidates of fold_means, and their (c, b) bootstrap replicates, spread by widening."""
    observed = fold_means(task, plan, tables, np.ones((1, len(plan.judged))))[:, 0]
    usual = max(200, WEIGHTS // len(plan.judged))  # values are sorted anew for each chunk
    chunk = chunk_size(len(plan.judged), usual)
    draws = draw_weights(plan.design, resamples=RESAMPLES, seed=seed, chunk=chunk)
    replicates = [fold_means(task, plan, tables, w) for w in counted(draws, RESAMPLES, "resample", len)]
    drawn, factor = 100 * np.concatenate(replicates, axis=1), widening(task, plan)
    if factor > 1:
        means = drawn.mean(axis=1, keepdims=True)
        drawn = means + factor * (drawn - means)
    return 100 * observed, drawn


def few_groups_factor(plan: FoldPlan, drawn: Float64, seed: int, *, tail: float) -> Float64:
    """(c,) by how much an interval has to be wider than resamples make it, where few groups bear the variance.

    drawn  (c, b) resampled differences by the draws of this seed; tail: the chance to miss on one side
    A group, a text where texts are drawn, or an item of its own bears what its weight and the difference have in common
    over the resamples. If that is as if fewer than MANY_GROUPS equal ones bore all, one less than their number, and at
    least one, is the degrees of freedom of Student's t; else 1. Cost O(c b groups) where sizes allow so few. Source:
    Satterthwaite 1946, doi:10.2307/3002019
    """
    sizes = np.bincount(plan.design.members.ravel()).astype(np.float64)
    alike = (sizes**2).sum() ** 2 / (sizes**4).sum()  # groups that bear all, if each bears as much as it has items
    if alike >= MANY_GROUPS:
        return np.ones(len(drawn))
    units = replace(plan.design, unit="groups", members=np.arange(plan.design.units))  # drawn as before, each once
    apart, borne, begin = drawn - drawn.mean(axis=1, keepdims=True), np.zeros((len(drawn), len(units.members))), 0
    for weights in draw_weights(units, resamples=drawn.shape[1], seed=seed, chunk=chunk_size(len(units.members))):
        borne += apart[:, begin : begin + len(weights)] @ weights
        begin += len(weights)
    # The variance over the resamples, and not the sum of the squares: a part of each of these is chance, and that of
    # thousands of units is more than all.
    whole, squares = drawn.shape[1] * (apart**2).sum(axis=1), borne**2
    number = np.divide(whole**2, (squares**2).sum(axis=1), out=np.full(len(drawn), np.inf), where=whole > 0)
    freedom = np.maximum(np.maximum(number, alike) - 1, 1.0)
    return np.where(freedom < MANY_GROUPS, student.isf(tail, freedom) / norm.isf(tail), 1.0)


def chunk_size(items: int, usual: int = 200) -> int:
    """How many resamples of so many items are held at once: the usual number, or fewer where the items are many."""
    return max(1, min(usual, MOST_WEIGHTS // items))


def fold_means(task: Task, plan: FoldPlan, tables: Sequence[Float64], weights: Float64) -> Float64:
    """(c, b) scores: the mean over repeats of the item-weighted mean over folds.

    tables   by outer fold, (c, t) values of its test items, the first row those of cosine
    weights  (b, items judged)
    A fold in which a resample leaves nothing to rank counts for none of the candidates.
    """
    place_of = np.full(int(plan.judged.max()) + 1, -1)
    place_of[plan.judged] = np.arange(len(plan.judged))
    total, number = np.zeros((len(tables[0]), len(weights))), 0
    for folds in plan.repeats:
        above, below = np.zeros_like(total), np.zeros(len(weights))
        for fold in folds:
            part = weights[:, place_of[fold.test]]
            if len(fold.test):
                scores = task.score(tables[number], fold.test, part)
                size = np.where(np.isnan(scores[0]), 0.0, part.sum(axis=1))
                above += np.nan_to_num(scores) * size
                below += size
            number += 1
        total += above / np.where(below > 0, below, 1.0)
    return total / len(plan.repeats)


def choose(candidates: Sequence[Candidate]) -> Candidate | None:
    """The automatic choice if its simultaneous lower bound is above 0, else the family with the highest such bound."""
    automatic, *families = candidates
    if automatic.low > 0:
        return automatic
    best = max(families, key=lambda candidate: candidate.low, default=None)
    return best if best is not None and best.low > 0 else None


def _candidate(
    name: str, judged: Adjusted | None, score: float, fitted: Fitted, place: int, folds: list[int]
) -> Candidate:
    """The candidate of one row of scores; without an interval it is the same as cosine."""
    chosen = sorted(
        fitted.choices(place - 1 if place else None, folds).items(), key=lambda entry: (-entry[1], entry[0])
    )
    shown = judged or Adjusted(0.0, 0.0, 0.0, 1.0, 0.0)
    return Candidate(
        name, float(score), shown.value, shown.low, shown.high, shown.p, shown.detectable, dict(chosen),
        judged is None,
    )  # fmt: skip


def _space_of(fitted: Fitted, plan: FoldPlan, best: Candidate | None) -> tuple[Space, str]:
    """The space to use, fitted on all items, and its name."""
    if best is None:
        return Unchanged(), "cosine"
    final = next(place for place, fold in enumerate(plan.folds) if fold is plan.final)
    if best.name == AUTOMATIC:
        outcome, name = fitted.automatic(final), fitted.name_of(final)
    else:
        names = [family.name for family in fitted.families]
        outcome, name = fitted.outcomes[names.index(best.name)][final], best.name
    space = Unchanged() if outcome.space is None else outcome.space
    return space, f"{name}, {outcome.point}" if outcome.point and name != "cosine" else name
