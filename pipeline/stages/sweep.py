"""Stage `sweep`: score a whole grid on development data and choose; apart from it, on the test sets, as `oracle`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import absence, corpus_path, kind_of, read_table
from pipeline.base.cases import load_case, task_of
from pipeline.base.params import load_parameters
from pipeline.base.suite import Suite
from pipeline.manifolds import inputs_of, load_grid, load_solver, read_source, sweep_folder
from sentfold.compare.bootstrap import corpus_seed, make_design
from sentfold.errors import SuiteError, located
from sentfold.files import write_json
from sentfold.forms import forms
from sentfold.manifold.base.grid import Grid
from sentfold.manifold.base.protocol import SolverSettings, Source
from sentfold.measures.base.case import Case
from sentfold.measures.base.classifiers import has_splits
from sentfold.measures.base.pairs import varies
from sentfold.selection.surface import (
    PROTOCOL,
    Classes,
    Draws,
    Material,
    Surface,
    best_place,
    lead_shares,
    score_classes,
    score_surface,
)
from sentfold.settings import Parameters

ORACLE = "best on the test set itself: shown as the inflation that such a choice buys, and never made into a space"
Mask = npt.NDArray[np.bool_]
UNSCORED = ("train", "dev")
LEAST = 10  # pairs that choose
RULES = ("residual_variance", "procrustes")


class SweepParameters(Parameters):
    """What a sweep needs of the block `evaluate`."""

    model_config = ConfigDict(extra="ignore")

    knn_neighbors: int = Field(ge=1, le=1000)
    folds: int = Field(ge=2, le=100)
    seed: int = Field(ge=0, lt=2**32)
    resamples: int = Field(ge=1)

    def draws(self, corpus: str) -> Draws:
        """The resamples of a corpus, drawn with the seed that its scores are resampled with."""
        return Draws(self.resamples, corpus_seed(self.seed, corpus))


@dataclass(frozen=True)
class Sweep:
    """What is swept: one grid over one encoder of one suite."""

    suite: Suite
    encoder: str
    name: str
    grid: Grid
    solver: SolverSettings

    def source(self, corpus: str) -> Source:
        """The vectors of a corpus, and its neighbours where the method reads them."""
        return read_source(inputs_of(self.suite.suite, self.encoder, corpus, self.grid.module), self.solver)

    def case(self, corpus: str, task: str) -> Case | str:
        """The items of a corpus, or why it cannot be scored as `task`."""
        found = task_of(corpus_path(self.suite.suite, corpus, "items"))
        return load_case(self.suite.suite, self.encoder, corpus) if found == task else f"its task is {found}"

    def material(self, case: Case, kept: Mask) -> Material:
        """The pairs of a similarity corpus that `kept` marks, in the encoder's space."""
        subsets = [subset for subset, is_kept in zip(case.items["subset"], kept, strict=True) if is_kept]
        pairs, human = case.pairs[kept], np.array(case.items["score"], dtype=np.float64)[kept]
        return Material(self.source(case.corpus), pairs, human, make_design(case.notes["resample"], pairs, subsets))

    def classes(self, corpus: str) -> Classes | str:
        """A classification corpus in the encoder's space, or why it is none."""
        case = self.case(corpus, "classification")
        if isinstance(case, str):
            return case
        return Classes(self.source(corpus), np.array(case.items["row"]), case.labels, case.items["split"])


def sweep(chosen: Suite, encoder: str, selection: str) -> dict[str, Any]:
    """Write surface.json, selected.json and oracle.json of one grid over one encoder. Returns the selected.

    Development pairs that another corpus of the suite scores choose nothing. Of the other corpora, the choice reads
    the texts of pairs alone, and is written before their scores are read.
    Raises SuiteError if the suite names no development corpus, or one that cannot be scored, or with too few pairs of
    its own.
    """
    swept = Sweep(chosen, encoder, selection, load_grid(selection), load_solver())
    points, folder = swept.grid.points, sweep_folder(chosen.suite, encoder, selection)
    development = _development_of(chosen)
    case = swept.case(development, "similarity")
    if isinstance(case, str):
        raise SuiteError(
            "the development corpus cannot be scored",
            where=f"{chosen.file}: development",
            expected="a similarity corpus that the source holds",
            got=f"{development}: {case}",
            remedy="name another corpus",
        )
    own = ~scored_elsewhere(chosen, development)
    material, every = swept.material(case, own), swept.material(case, np.ones_like(own))
    if own.sum() < LEAST or not varies(material.human):
        raise SuiteError(
            "too few pairs of the development corpus are its own, or all of these have one score",
            where=f"{chosen.file}: development",
            expected=f"a corpus with {LEAST} pairs or more that no other corpus of the suite scores",
            got=f"{development}: {own.sum()} of {len(own)} pairs",
            remedy="name another corpus",
        )
    with threadpool_limits(1), located(f"corpus {development}, params.yaml: manifolds.{selection}"):
        draws = load_parameters(SweepParameters, "evaluate").draws(development)
        choosing = score_surface(swept.grid, material, rules=False, draws=draws)
        best = best_place(choosing.values)
        # Tables show these beside scores of whole corpora.
        surface = replace(score_surface(swept.grid, every, rules=True), leaders=choosing.leaders)
    selected = {
        "corpus": development,
        "left_out": int((~own).sum()),
        "method": swept.grid.method,
        "pairs": int(own.sum()),
        "parameters": points[best].model_dump(),
        "points": len(points),
        "protocol": PROTOCOL,
        "value": choosing.values[best],
    }
    write_json(folder / "surface.json", describe_surface(surface, points, development, choosing=choosing.values))
    write_json(folder / "selected.json", selected)
    write_json(folder / "oracle.json", _oracle(swept, best, development))
    return selected


def scored_elsewhere(chosen: Suite, development: str) -> Mask:
    """(n,) whether another corpus scores a pair of the development corpus, case, punctuation and blanks aside.

    Both orders of two texts are one pair. A corpus with parts called train and test is scored on what is in neither
    train nor dev, but similarity is scored on all parts.
    """
    scored: set[frozenset[str]] = set()
    for corpus in chosen.corpora:
        if corpus != development:
            scored.update(pair for pair, is_scored in _pairs_of(chosen.suite, corpus) if is_scored)
    return np.array([pair in scored for pair, _ in _pairs_of(chosen.suite, development)])


def _pairs_of(suite: str, corpus: str) -> Iterator[tuple[frozenset[str], bool]]:
    """The forms of the two texts of each pair, and whether the pair is scored; nothing of a corpus without pairs."""
    sentences, path = corpus_path(suite, corpus, "sentences"), corpus_path(suite, corpus, "items")
    if absence(sentences, kind="sentences") is not None:
        return
    items = read_table(path, kind=kind_of(path))
    if "row1" not in items.column_names:
        return
    found = list(forms(read_table(sentences, kind="sentences")["text"].to_pylist()))
    lefts, rights, parts = (items[name].to_pylist() for name in ("row1", "row2", "split"))
    whole = task_of(path) == "similarity" or not has_splits(parts)
    for left, right, part in zip(lefts, rights, parts, strict=True):
        yield frozenset((found[left], found[right])), whole or part not in UNSCORED


def describe_surface(
    surface: Surface, points: Sequence[Parameters], corpus: str, *, choosing: Sequence[float | None] = ()
) -> dict[str, Any]:
    """Every point with its score, and what each of the two rules would have chosen.

    choosing  the scores that made the choice, where it was made by some of the corpus's pairs
    """
    columns = {"value": surface.values, **{rule: getattr(surface, rule) for rule in RULES}, "choosing": choosing}
    held = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    rows = [
        {"parameters": point.model_dump(), **{name: values[place] for name, values in held.items()}}
        for place, point in enumerate(points)
    ]
    leads = lead_shares(points, surface.leaders)
    content: dict[str, Any] = {"corpus": corpus, "leads": leads, "points": rows, "protocol": PROTOCOL}
    for rule in set(RULES) & set(held):
        misfits = held[rule]
        place = misfits.index(min(misfit for misfit in misfits if misfit is not None))
        content.setdefault("rules", {})[rule] = {
            "parameters": points[place].model_dump(),
            rule: misfits[place],
            "value": surface.values[place],
        }
    return content


def _oracle(swept: Sweep, selected: int, development: str) -> dict[str, Any]:
    """Surfaces of the test sets: similarity by the protocol of the choice, classification by its neighbours."""
    points, corpora = swept.grid.points, dict[str, Any]()
    for corpus in swept.suite.corpora:
        if corpus == development:
            continue
        with threadpool_limits(1), located(f"corpus {corpus}"):
            surface, protocol = _test_surface(swept, corpus, selected)
        if surface is not None and any(value is not None for value in surface.values):
            leads = lead_shares(points, surface.leaders)
            found = describe_oracle(surface.values, points, selected)
            corpora[corpus] = {"leads": leads, "protocol": protocol, **found}
    return {"corpora": corpora, "label": ORACLE, "points": [point.model_dump() for point in points]}


def describe_oracle(values: list[float | None], points: Sequence[Parameters], selected: int) -> dict[str, Any]:
    """The best of a test set, what was selected without that set, and the whole surface."""
    best = best_place(values)
    chosen, highest = values[selected], values[best]
    return {
        "inflation": None if chosen is None or highest is None else round(highest - chosen, 3),
        "oracle": {"parameters": points[best].model_dump(), "value": highest},
        "selected": {"parameters": points[selected].model_dump(), "value": chosen},
        "surface": values,
    }


def _test_surface(swept: Sweep, corpus: str, selected: int) -> tuple[Surface | None, str]:
    """The surface of a test set and its protocol; None of a corpus of another task, or one that the source lacks."""
    judged = load_parameters(SweepParameters, "evaluate")
    draws, case = judged.draws(corpus), swept.case(corpus, "similarity")
    if not isinstance(case, str):
        material = swept.material(case, np.ones(len(case.pairs), dtype=np.bool_))
        return score_surface(swept.grid, material, rules=False, draws=draws), PROTOCOL
    classes = swept.classes(corpus)
    if isinstance(classes, str):
        return None, ""
    points = swept.grid.points
    kept = [number for number, point in enumerate(points) if _differs_in_size(point, points[selected])]
    some = replace(swept.grid, points=tuple(points[number] for number in kept))
    scored = score_classes(some, classes, k=judged.knn_neighbors, folds=judged.folds, seed=judged.seed, draws=draws)
    values: list[float | None] = [None] * len(points)
    for number, value in zip(kept, scored.values, strict=True):
        values[number] = value
    leaders = [kept[leader] for leader in scored.leaders]
    return replace(scored, values=values, leaders=leaders), f"accuracy.{judged.knn_neighbors}nn-euclidean"


def _differs_in_size(point: Parameters, selected: Parameters) -> bool:
    """Whether a point is the selected one but for k and p: these are drawn, and classification corpora are large."""
    sizes = {"neighbors", "components"}
    return point.model_dump(exclude=sizes) == selected.model_dump(exclude=sizes)


def describe_cost(encoder: str, selection: str, seconds: float) -> str:
    """CPU seconds that a sweep took, of its grid's budget, with a warning where it took more: a line for the log.

    Raises ParameterError if params.yaml has no such grid.
    """
    budget = load_grid(selection).budget_seconds
    spent = f"sweep {encoder}-{selection}: {seconds:.1f} s of CPU time"
    if budget is None:
        return f"{spent}, and no budget"
    if seconds <= budget:
        return f"{spent} of a budget of {budget:g} s"
    return (
        f"{spent} of a budget of {budget:g} s. Warning: over it by {seconds - budget:.1f} s; take points off the grid, "
        f"or raise manifolds.{selection}.budget_seconds in params.yaml"
    )


def _development_of(chosen: Suite) -> str:
    if chosen.development is None:
        raise SuiteError(
            "the suite names no development corpus",
            where=f"{chosen.written}: development",
            expected="a similarity corpus of the suite",
            got="nothing",
            remedy="add a line `development: CORPUS`",
        )
    return chosen.development
