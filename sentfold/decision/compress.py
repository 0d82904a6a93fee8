"""How small vectors can get: forms of decreasing size, each held to a margin that was fixed beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import ceil, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import draw_weights
from sentfold.compare.multiplicity import POWER
from sentfold.data.datasets import Dataset
from sentfold.data.tables import DataError
from sentfold.decision.codes import CONTROL, FAMILIES, FLOAT, Code, coded_measures, linear_code, list_codes
from sentfold.decision.decide import Encoding, chunk_size, few_groups_factor, fold_means, refuse_reversed
from sentfold.decision.families import refuse_wide
from sentfold.decision.folds import (
    APART,
    LEAST_GROUPS,
    PART_QUERIES,
    are_apart,
    count_groups,
    group_count,
    lost_at_most,
    plan_folds,
    show_groups,
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
from sentfold.decision.nested import ENOUGH, Material, label_free_rows
from sentfold.decision.progress import counted, open_bar
from sentfold.decision.spaces import Space
from sentfold.decision.tasks import PairsTask, QueriesTask, chance
from sentfold.decision.voters import spread_of_labels
from sentfold.kernels.threads import one_blas_thread

Float64 = npt.NDArray[np.float64]

RESAMPLES = 2_000
MOST_TIMES = 1e6  # as many items as there are; nobody has more
LEVEL = 0.05 / len(FAMILIES)  # of each family, so that the smallest form over all families is right at 95%


@dataclass(frozen=True)
class Form:
    """A form of the vectors, and the difference of its score to that of whole vectors, in points.

    low, high  interval; each end is missed with a chance of LEVEL
    passed     whether it and all larger forms of its family lose less than the margin
    needed     items of different texts with which it, if it truly loses this much, and all larger forms of its family
               would pass, each with 80% power; None if one of these loses too much, or if many items share texts
    """

    code: Code
    difference: float
    low: float
    high: float
    passed: bool
    needed: int | None


@dataclass(frozen=True)
class Compression:
    """The outcome of `compress`.

    whole   score of whole vectors x100; bytes: per whole vector
    forms   by family, large forms first
    chosen  the smallest form that passed; space: its map, where it has one, fitted on all texts
    pooled  whether many items share texts: these do not tell how many others would do
    """

    metric: str
    item: str
    items: int
    groups: int
    margin: float
    whole: float
    bytes: int
    forms: tuple[Form, ...]
    chosen: Form | None
    space: Space | None
    notes: tuple[str, ...] = ()
    record: dict[str, Any] = field(default_factory=dict)
    pooled: bool = False

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.chosen:
            return (
                f"Store {self.chosen.code.name}: {self.chosen.code.bytes:,} bytes in place of {self.bytes:,} as "
                f"float32 lose less than {self.margin:g} points ({span(self.chosen)})."
            )
        needed = [(form.needed, form.code.name) for form in self.forms if form.code.family != CONTROL and form.needed]
        shown = any(form.difference > -self.margin for form in self.forms if form.code.family != CONTROL)
        if self.pooled and shown:
            return (
                f"Keep whole vectors: these {self.items:,} {self.item} cannot show that a smaller form loses less than "
                f"{self.margin:g} points. More {self.item} would, if {APART[self.item]}."
            )
        if not needed:
            return f"Keep whole vectors: every smaller form seems to lose more than {self.margin:g} points."
        count, name = min(needed)
        return (
            f"Keep whole vectors: these {self.items:,} {self.item} cannot show that a smaller form loses less than "
            f"{self.margin:g} points. For {name}, about {round_up(count):,} would"
            + (f", if {APART[self.item]}." if self.groups < self.items else ".")
        )

    def describe(self) -> str:
        """At most 12 lines."""
        lines = [self.verdict, f"  whole vectors: {self.metric} {self.whole:.1f}, {self.bytes:,} bytes each as float32"]
        for family in (*FAMILIES, CONTROL):
            forms = [form for form in self.forms if form.code.family == family]
            if forms:
                lines.append(f"  {family}{' (the control)' * (family == CONTROL)}: {_chain(forms)}")
        control = [form for form in self.forms if form.code.family == CONTROL]
        if control and all(form.passed for form in control):
            lines.append(
                f"  Even {control[-1].code.dimensions} coordinates drawn at random pass: these {self.item} hardly tell "
                "forms apart; try harder ones."
            )
        lines.append(
            f"  A form passes if its interval ends above -{self.margin:g} and all larger forms of its kind passed. The "
            "ends of all kinds hold together at 95%."
        )
        return "\n".join(lines[:12])

    def to_json(self) -> dict[str, Any]:
        """Everything but the map."""
        return {
            "verdict": self.verdict,
            "metric": self.metric,
            "items": {"unit": self.item, "number": self.items, "groups": self.groups},
            "margin": self.margin,
            "level": LEVEL,
            "whole": {"score": self.whole, "bytes": self.bytes},
            "forms": [asdict(form) for form in self.forms],
            "chosen": self.chosen and self.chosen.code.name,
            "notes": list(self.notes),
            **self.record,
        }

    def save(self, folder: str | Path) -> None:
        """Write verdict.json, and the map of the chosen form, or the unchanged space. Raises ArtifactError.

        Files of an earlier decision are removed.
        """
        from sentfold.decision.use import renewed

        with renewed(Path(folder)) as fresh:
            self.write_files(fresh)

    def write_files(self, folder: str | Path) -> None:
        """Write the map and verdict.json next to the other files of this decision. Raises ArtifactError."""
        from sentfold.decision.spaces import Unchanged, save_space
        from sentfold.files import write_json

        save_space(self.space or Unchanged(), Path(folder))
        write_json(Path(folder) / "verdict.json", self.to_json())


def span(form: Form) -> str:
    """`-0.4 [-1.1, +0.3]`."""
    return f"{form.difference:+z.1f} [{form.low:+z.1f}, {form.high:+z.1f}]"


def round_up(number: int) -> int:
    """Two digits: a planned number of items is known no better."""
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit


def _chain(forms: Sequence[Form]) -> str:
    """The smallest form that passed, and the first that did not."""
    passed, failed = ([form for form in forms if form.passed is wanted] for wanted in (True, False))
    named = [f"{_short(form)} {span(form)} passes" for form in passed[-1:]]
    return "; ".join([*named, *(f"{_short(form)} {span(form)} does not" for form in failed[:1])])


def _short(form: Form) -> str:
    """Its name without that of its family."""
    return form.code.name.removesuffix(f" {form.code.family}")


def compress(
    vectors: npt.ArrayLike | Encoding,
    *,
    pairs: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike] | None = None,
    labels: tuple[npt.ArrayLike, npt.ArrayLike] | npt.ArrayLike | None = None,
    splits: Sequence[str] = (),
    margin: float = 1.0,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Compression:
    """How small these vectors can get without losing `margin` points on the data.

    vectors, pairs, labels, splits  as for `decide`
    margin                          in points (hundredths of the score), > 0, to be fixed before the data are seen
    Raises DataError (a ValueError) where arrays do not fit. Cost: five fits of principal components.
    """
    from sentfold.data.vectors import check_vectors

    array, pairs, labels, texts, counted = embed_texts(vectors, pairs, labels, splits)
    x, notes = check_vectors(array, "vectors")
    copies = first_copies(x, texts=texts)
    task, needed, free = make_task(copies, pairs, labels, texts)
    check_splits(splits, task)
    notes = [*value_notes(pairs, labels), *model_notes(vectors), *counted, *notes]
    material = Material(x, needed, free, task, plan_folds(task, splits, seed=seed, repeats=1))
    told = (*notes, *copy_notes(copies, texts))
    return compress_material(material, margin, resamples=resamples, seed=seed, notes=told)


def compress_dataset(data: Dataset, vectors: npt.NDArray[np.float32], *, margin: float, seed: int) -> Compression:
    """As `compress`, for a data set that was read. Raises DataError."""
    copies = first_copies(vectors, texts=data.texts)
    task, needed, free = task_of(data, copies)
    material = Material(vectors, needed, free, task, plan_folds(task, data.splits, seed=seed, repeats=1))
    notes = (*data.notes, *copy_notes(copies, data.texts))
    return compress_material(material, margin, resamples=RESAMPLES, seed=seed, notes=notes)


def compress_material(
    material: Material, margin: float, *, resamples: int, seed: int, notes: tuple[str, ...] = ()
) -> Compression:
    """The outcome on a task. Raises DataError, as decide_task does."""
    task, plan = material.task, material.plan
    _check(material, margin)
    refuse_one_cosine(task, material.plain(plan.final.train, plan.judged))
    refuse_reversed(task, plan, [material.plain(fold.train, fold.test)[None] for fold in plan.repeats[0]], seed)
    with one_blas_thread():
        codes, tables = score_codes(material, seed=seed)
        draws = draw_weights(plan.design, resamples=resamples, seed=seed, chunk=chunk_size(len(plan.judged)))
        parts = [fold_means(task, plan, tables, w) for w in counted(draws, resamples, "resample", len)]
        replicates = np.concatenate(parts, axis=1)
        observed = 100 * fold_means(task, plan, tables, np.ones((1, len(plan.judged))))[:, 0]
        if observed[0] - chance(task) <= margin:
            raise DataError(
                "whole vectors score no more than the margin above chance, so no form can lose it", where=task.metric,
                expected=f"more than {chance(task) + margin:.1f}", got=f"{observed[0]:.1f}",
                remedy="give data that the vectors tell",
            )  # fmt: skip
        forms = judge_forms(material, codes, observed, 100 * replicates, margin, seed=seed)
        chosen = min(
            (form for form in forms if form.passed and form.code.family != CONTROL),
            key=lambda form: (form.code.bytes, -form.difference),
            default=None,
        )
        return Compression(
            metric=task.metric,
            item=task.item,
            items=len(plan.judged),
            groups=group_count(plan.design),
            margin=margin,
            whole=float(observed[0]),
            bytes=FLOAT * material.vectors.shape[1],
            forms=tuple(forms),
            chosen=chosen,
            space=_final_space(material, chosen.code, seed) if chosen else None,
            notes=(*notes, *plan.notes),
            record={"seed": seed, "resamples": resamples, "vectors": list(material.vectors.shape)},
            pooled=not are_apart(material.plan),
        )


def score_codes(material: Material, *, seed: int) -> tuple[list[Code], list[Float64]]:
    """The codes, and by outer fold (codes + 1, t) values of the test items, the first row those of whole vectors.

    Maps are fitted without the texts of the test items: on vectors without labels alone where these abound.
    """
    task, folds = material.task, material.plan.repeats[0]
    once = _once(material)
    fitted = [label_free_rows(material, fold, once=once)[0] for fold in (folds[:1] if once else folds)]
    codes = list_codes(material.vectors.shape[1], min(rows.axes.rank for rows in fitted))
    tables = [np.empty((len(codes) + 1, len(fold.test))) for fold in folds]
    with open_bar(len(fitted) * len(codes), "form") as bar:
        for place, rows in enumerate(fitted):
            served = range(len(folds)) if once else [place]
            for code, measure in coded_measures(task, material.own, rows, codes, seed=seed):
                for number in served:
                    tables[number][1 + codes.index(code)] = measure(folds[number].train, folds[number].test)
                bar.update()
    for table, fold in zip(tables, folds, strict=True):
        table[0] = material.plain(fold.train, fold.test)
    return codes, tables


def judge_forms(
    material: Material, codes: list[Code], observed: Float64, replicates: Float64, margin: float, *, seed: int = 0
) -> list[Form]:
    """Each form with its interval, tested against the margin from large forms to small ones until one fails.

    The lower end is no higher than an exact bound. For texts and queries, lost_at_most takes the loss as a number of
    items that are lost as a whole. It is above 0 even where no item was lost: a few hundred queries do not show that
    none ever is. For pairs, unseen_loss is added to the loss: the few pairs that cause a loss do not tell how common
    such pairs are.
    """
    wider, seen = widening(material.task, material.plan), float(replicates[0].std(ddof=1))
    if len(material.plan.repeats[0]) == 1 and seen > 0:  # a split, where other texts could have been in the train part
        wider = max(wider, spread_of_labels(material.task, material.plan, material.own, seed=seed) / seen)
    drawn = replicates[1:] - replicates[0]
    spread = drawn.std(axis=1, ddof=1) * wider * few_groups_factor(material.plan, drawn, seed, tail=LEVEL)
    z = NormalDist().inv_cdf(1 - LEVEL)
    units = material.plan.design.effective_units
    are_pairs, pooled = isinstance(material.task, PairsTask), not are_apart(material.plan)
    if are_pairs:
        units = count_groups(material.task, material.plan)[0]  # few matches among many pairs are few
    least = unseen_loss(units, LEVEL)
    forms: list[Form] = []
    for code, difference, se in zip(codes, observed[1:] - observed[0], spread, strict=True):
        low = lowest(difference, se, units, are_pairs=are_pairs)
        larger = [form for form in forms if form.code.family == code.family]
        passed = low > -margin and all(form.passed for form in larger)
        times = None if pooled else items_needed(difference, se, units, margin, are_pairs=are_pairs)
        counts = [None if times is None else ceil(len(material.plan.judged) * times), *(form.needed for form in larger)]
        needed = None if None in counts else max(count for count in counts if count)  # all larger forms have to pass
        high = max(difference + z * se, least)
        forms.append(Form(code, float(difference), low, float(high), bool(passed), needed))
    return forms


def lowest(difference: float, se: float, units: float, *, are_pairs: bool) -> float:
    """The lower end of the interval of a difference: the normal one, or the exact bound where that is lower."""
    exact = min(difference, 0.0) - unseen_loss(units, LEVEL) if are_pairs else -lost_at_most(-difference, units, LEVEL)
    return float(min(difference - NormalDist().inv_cdf(1 - LEVEL) * se, exact))


def items_needed(difference: float, se: float, units: float, margin: float, *, are_pairs: bool) -> float | None:
    """How many times as many items would let a form pass with POWER that truly loses what it lost here.

    None if it loses the margin or more. The difference in other data is planned as far below the one seen as it will
    fall with a chance of 1 - POWER, by their standard error.
    """
    seen, power = min(difference, 0.0), NormalDist().inv_cdf(POWER)
    if seen <= -margin:
        return None

    def passes(times: float) -> bool:
        spread = se / sqrt(times)
        return lowest(seen - power * spread, spread, units * times, are_pairs=are_pairs) > -margin

    few, many = 1e-9, 1.0
    while not passes(many):
        few, many = many, 2 * many
        if many > MOST_TIMES:
            return None
    while many > 1.001 * few:
        middle = sqrt(few * many)
        few, many = (few, middle) if passes(middle) else (middle, many)
    return many


def _once(material: Material) -> bool:
    return len(material.free) >= ENOUGH * len(np.unique(material.task.keys))


def _final_space(material: Material, code: Code, seed: int) -> Space | None:
    """The map of a code of fewer coordinates, fitted on all texts; None for codes of bits."""
    rows, _ = label_free_rows(material, material.plan.final, once=_once(material))
    return linear_code(code, rows, seed=seed) if code.family in FAMILIES[:2] else None


def _check(material: Material, margin: float) -> None:
    refuse_wide(material.vectors.shape[1])
    groups, (effective, told) = group_count(material.plan.design), count_groups(material.task, material.plan)
    if not 0 < margin < 100:
        raise DataError("a margin is no number of points", where="margin", expected="0 < margin < 100", got=f"{margin}")
    if effective < LEAST_GROUPS:
        several = isinstance(material.task, QueriesTask) and any(len(found) > 1 for found in material.task.relevant)
        raise DataError(
            "too few items are independent of each other", where=material.task.item,
            expected=f"at least {LEAST_GROUPS} equally large groups without a text in common",
            got=f"{groups} groups, as good as {show_groups(effective)} {told}",
            remedy="add items of other texts" + (f"; or {PART_QUERIES}" if several else ""),
        )  # fmt: skip
