"""Nested cross-fitting: each family is fitted and tuned inside of each outer fold, and judged outside of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.decision.families import Family, Points, Rows
from sentfold.decision.folds import Fold, FoldPlan
from sentfold.decision.progress import open_bar
from sentfold.decision.spaces import Space, Unchanged
from sentfold.decision.tasks import Task
from sentfold.errors import SentfoldError
from sentfold.kernels.threads import one_blas_thread, pool_of

Floating = npt.NDArray[np.floating[Any]]
Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ENOUGH = 4  # vectors without labels per labelled one, from which on label-free maps are fitted on these alone, once
MOST = 20_000  # rows that a map is fitted on
Measure = Callable[[Ints, Ints], Float64]


@dataclass
class Outcome:
    """One family in one outer fold: its best point by the inner folds.

    gain    inner score minus that of the unchanged space, x1; minus infinity if no point could be fitted
    values  (t,) values of the test items in the space of that point
    point   its name; space: the space, of the fold that fits what is handed out; of others None, as it can be large
    """

    gain: float
    values: Float64
    point: str
    space: Space | None


@dataclass(frozen=True)
class Fitted:
    """The outcomes of a decision: by family and by fold of FoldPlan.folds. cosine: (t,) values by fold."""

    families: tuple[Family, ...]
    cosine: list[Float64]
    outcomes: list[list[Outcome]]
    reasons: dict[str, str] = field(default_factory=dict)

    def automatic(self, fold: int) -> Outcome:
        """The family with the largest inner gain, the first of equals; the unchanged space if none gains."""
        plain = Outcome(0.0, self.cosine[fold], "cosine", Unchanged())
        return max([plain, *(outcomes[fold] for outcomes in self.outcomes)], key=lambda outcome: outcome.gain)

    def choices(self, family: int | None, folds: Sequence[int]) -> Counter[str]:
        """How often each point was chosen; of the automatic choice (None), each family."""
        if family is not None:
            return Counter(self.outcomes[family][fold].point for fold in folds)
        return Counter(self.name_of(fold) for fold in folds)

    def name_of(self, fold: int) -> str:
        """The family that the automatic choice takes in a fold."""
        chosen = self.automatic(fold)
        named = zip(self.families, self.outcomes, strict=True)
        return next((family.name for family, outcomes in named if outcomes[fold] is chosen), "cosine")


@dataclass(frozen=True)
class Material:
    """The vectors of a decision.

    vectors  (N, d); needed: (n,) the rows that the task measures, in the order of the task's own rows
    free     rows without labels, which any map may be fitted on
    """

    vectors: Floating
    needed: Ints
    free: Ints
    task: Task
    plan: FoldPlan

    @cached_property
    def own(self) -> Floating:
        """(n, d) the vectors that the task measures."""
        return self.vectors[self.needed]

    @cached_property
    def plain(self) -> Measure:
        """The values in the unchanged space."""
        return measurer(self.task, self.own)


def fit_families(material: Material, families: tuple[Family, ...], *, workers: int = 2) -> Fitted:
    """Every family in every fold.

    Label-free maps are fitted once per fold and point, or once for all folds where vectors without labels abound.
    Cost: that of the fits; in parallel, which changes no bit.
    """
    folds, jobs = material.plan.folds, list(_jobs(material, families))
    with one_blas_thread(), pool_of(workers) as pool, open_bar(len(jobs), "fit") as bar:

        def run(job: Job) -> list[Outcome | str]:
            done = _run_job(job, material, folds)
            bar.update()
            return done

        done = list(pool.map(run, jobs))
    cosine = [material.plain(fold.train, fold.test) for fold in folds]
    return _collect(families, jobs, done, cosine)


@dataclass(frozen=True)
class Job:
    """A family, the folds that one fit of it serves, what it is fitted on, and the items that choose (None: all)."""

    family: Family
    places: list[int]
    rows: Rows | None = None
    choosing: Ints | None = None


def _jobs(material: Material, families: tuple[Family, ...]) -> Iterator[Job]:
    """Fold by fold, so that the families of a fold share its axes and neighbours."""
    folds = material.plan.folds
    once = len(material.free) >= ENOUGH * len(np.unique(material.task.keys))
    for place, fold in enumerate(folds):
        if not (once and place):
            rows, choosing = label_free_rows(material, fold, once=once)
            served = list(range(len(folds))) if once else [place]
            yield from (Job(family, served, rows, choosing) for family in families if not family.supervised)
        yield from (Job(family, [place]) for family in families if family.supervised)


def _run_job(job: Job, material: Material, folds: list[Fold]) -> list[Outcome | str]:
    """The outcome of a family in each fold of a job, or the reason why it has none."""
    served = [folds[place] for place in job.places]
    if job.rows is not None and not len(job.rows.local if job.family.local else job.rows.x):
        return ["too few texts or dimensions to fit them on"] * len(served)
    try:
        if job.rows is None:
            return [_supervised(material, job.family, fold) for fold in served]
        points = list(job.family.spaces(job.rows))
    except (SentfoldError, np.linalg.LinAlgError) as error:
        return [str(error).partition("\n")[0]] * len(served)
    if not points:
        return ["too few texts or dimensions to fit them on"] * len(served)
    best: list[Outcome | str] = ["no point could be scored"] * len(served)
    allowed = job.choosing if job.family.local else None
    for point in points:
        images = point.space.transform(material.own)
        for name, dimensions in point.names.items():
            mapped = measurer(material.task, images[:, :dimensions] if dimensions else images)
            space = point.space.cut(dimensions) if dimensions else point.space
            for place, fold in enumerate(served):
                inner = [(train, _among(test, allowed)) for train, test in fold.inner]
                gain = _mean_gain([part for train, test in inner for part in _gain_in(material, train, test, mapped)])
                before = best[place]
                if isinstance(before, str) or gain > before.gain:
                    kept = space if fold is material.plan.final else None
                    best[place] = Outcome(gain, mapped(fold.train, fold.test), name, kept)
    return best


def _supervised(material: Material, family: Family, fold: Fold) -> Outcome | str:
    """A family that learns from labels: refitted inside each inner fold."""
    final = _points_by_labels(material, family, fold.train)
    if not final:
        return "too few labels to learn from"
    parts: list[list[tuple[float, int]]] = [[] for _ in final]
    for train, test in fold.inner:
        tried = _points_by_labels(material, family, train)
        if len(tried) != len(final):
            return "too few labels to learn from"
        for part, points in zip(parts, tried, strict=True):
            part.extend(_gain_in(material, train, test, images_of(material, points.space)))
    gains = [_mean_gain(part) for part in parts]
    best = int(np.argmax(gains))
    chosen = final[best]
    values = images_of(material, chosen.space)(fold.train, fold.test)
    kept = chosen.space if fold is material.plan.final else None
    return Outcome(gains[best], values, next(iter(chosen.names)), kept)


def _points_by_labels(material: Material, family: Family, train: Ints) -> list[Points]:
    if not len(train):
        return []
    left, right, weights = material.task.alike(train)
    apart = (material.own[left].astype(np.float64) - material.own[right]) * np.sqrt(weights)[:, None]
    return list(family.spaces(Rows(material.own, material.own, apart)))


def images_of(material: Material, space: Space) -> Measure:
    """A measure that maps the texts it looks at, and no others."""

    def measure(train: Ints, test: Ints) -> Float64:
        rows = material.task.texts(train, test)
        images = space.transform(material.own[rows])
        whole = np.zeros((len(material.own), images.shape[1]), dtype=np.float32)
        whole[rows] = images
        return material.task.measure(whole, train, test)

    return measure


def label_free_rows(material: Material, fold: Fold, *, once: bool) -> tuple[Rows, Ints | None]:
    """What a label-free map is fitted on, and the items that choose the parameters of a local one (None: all).

    Held-out texts are in none of it. Where vectors without labels are few, half of the train texts (those of the first
    inner folds) are what local maps hold, and the other half chooses.
    """
    free = thin(material.free, MOST)
    if once:
        x = material.vectors[free]
        return Rows(x, x, x[:0]), None
    keys, needed = material.task.keys, material.needed
    held_out = np.unique(keys[fold.test])
    train = np.setdiff1d(np.unique(keys[fold.train]), held_out)
    half = [test for _, test in fold.inner[: max(1, len(fold.inner) // 2)]]
    choosing = np.concatenate(half)
    local = np.setdiff1d(train, np.unique(keys[choosing]))
    x, held = material.vectors[np.concatenate([free, needed[train]])], np.concatenate([free, needed[local]])
    return Rows(x, material.vectors[held], x[:0]), choosing


def space_of_all(material: Material, family: Family, point: str) -> Space | None:
    """A label-free family at one point of its grid, fitted on all texts; None if the point does not fit them."""
    x = material.vectors[np.union1d(thin(material.free, MOST), material.needed)]
    with one_blas_thread():
        for points in family.spaces(Rows(x, x, x[:0])):
            if point in points.names:
                return points.space.cut(points.names[point]) if points.names[point] else points.space
    return None


def thin(rows: Ints, most: int) -> Ints:
    """At most that many of the rows, evenly spread."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


# --- scores inside of a fold ------------------------------------------------------------------------


def measurer(task: Task, space: Floating) -> Measure:
    """(train, test) -> values of the test items; computed once for all where items do not depend on each other."""
    if not task.independent:
        return lambda train, test: task.measure(space, train, test)
    whole = task.measure(space, np.empty(0, dtype=np.int64), np.arange(len(task.keys)))
    return lambda train, test: whole[test]


def _gain_in(material: Material, train: Ints, test: Ints, measure: Measure) -> list[tuple[float, int]]:
    """The score of a space minus the unchanged one's in an inner fold, and its items; nothing where none count."""
    if len(test) < 2 or not (len(train) or material.task.independent):
        return []
    values = np.stack([measure(train, test), material.plain(train, test)])
    scores = np.nan_to_num(material.task.score(values, test, np.ones((1, len(test))))[:, 0])
    return [(float(scores[0] - scores[1]), len(test))]


def _mean_gain(parts: list[tuple[float, int]]) -> float:
    """The mean over inner folds, weighted by their items; minus infinity where none counts."""
    gains, sizes = zip(*parts, strict=True) if parts else ((), ())
    return float(np.average(gains, weights=sizes)) if parts else -np.inf


def _among(items: Ints, allowed: Ints | None) -> Ints:
    return items if allowed is None else items[np.isin(items, allowed)]


def _collect(
    families: tuple[Family, ...],
    jobs: list[Job],
    done: list[list[Outcome | str]],
    cosine: list[Float64],
) -> Fitted:
    """The families that were fitted in every fold, and why others were not."""
    outcomes: dict[str, dict[int, Outcome]] = {family.name: {} for family in families}
    reasons: dict[str, str] = {}
    for job, answers in zip(jobs, done, strict=True):
        for place, answer in zip(job.places, answers, strict=True):
            if isinstance(answer, str):
                reasons.setdefault(job.family.name, answer)
            else:
                outcomes[job.family.name][place] = answer
    kept = tuple(family for family in families if family.name not in reasons)
    return Fitted(
        kept, cosine, [[outcomes[family.name][place] for place in range(len(cosine))] for family in kept], reasons
    )
