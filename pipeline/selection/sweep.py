"""Stage `sweep`: score a whole grid on development data and choose; apart from it, on the test sets, as `oracle`."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import ConfigDict, Field
from threadpoolctl import threadpool_limits

from pipeline.artifacts import corpus_path, graph_path, read_lists, read_table, write_json
from pipeline.errors import SuiteError, located
from pipeline.evaluate.case import load_case, task_of
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.params import Parameters, load_parameters
from pipeline.selection.grids import Grid, Point, load_grid
from pipeline.selection.paths import sweep_folder
from pipeline.selection.surface import PROTOCOL, Classes, Material, Surface, best_place, score_classes, score_surface
from pipeline.suite import Suite

ORACLE = "best on the test set itself: shown as the inflation that such a choice buys, and never made into a space"
RULES = ("residual_variance", "procrustes")


class NeighborParameters(Parameters):
    """What a sweep needs of the block `evaluate`."""

    model_config = ConfigDict(extra="ignore")

    knn_neighbors: int = Field(ge=1, le=1000)
    folds: int = Field(ge=2, le=100)
    seed: int = Field(ge=0, lt=2**32)


def sweep(chosen: Suite, encoder: str, selection: str) -> dict[str, Any]:
    """Write surface.json, selected.json and oracle.json of one grid over one encoder. Returns the selected.

    The choice is made and written before any test corpus is read.
    Raises SuiteError if the suite names no development corpus, or one that cannot be scored.
    """
    grid, solver = load_grid(selection), load_parameters(SolverParameters, "eigensolve")
    points: list[Point] = list(grid.points())
    folder = sweep_folder(chosen.suite, encoder, selection)
    development = _development_of(chosen)
    material = load_material(chosen.suite, encoder, development)
    if isinstance(material, str):
        raise SuiteError(
            "the development corpus cannot be scored",
            where=f"{chosen.file}: development",
            expected="a similarity corpus that the source holds",
            got=f"{development}: {material}",
            remedy="name another corpus",
        )
    with threadpool_limits(1), located(f"corpus {development}, params.yaml: manifolds.{selection}"):
        surface = score_surface(material, points, solver, rules=True)
        place = best_place(surface.values)
    selected = {
        "corpus": development,
        "method": points[place].method,
        "parameters": _settings(points[place]),
        "points": len(points),
        "protocol": PROTOCOL,
        "value": surface.values[place],
    }
    write_json(folder / "surface.json", describe_surface(surface, points, development))
    write_json(folder / "selected.json", selected)
    write_json(folder / "oracle.json", _oracle(chosen, encoder, grid, solver, place, development))
    return selected


def load_material(suite: str, encoder: str, corpus: str) -> Material | str:
    """A similarity corpus in an encoder's space with its neighbour graph, or why it is none."""
    task = task_of(corpus_path(suite, corpus, "items"))
    if task != "similarity":
        return f"its task is {task}"
    case = load_case(suite, encoder, corpus)
    graph = graph_path(suite, encoder, corpus)
    if isinstance(case, str):
        return case
    neighbors = read_lists(read_table(graph, kind="graph"), "neighbor", path=graph)
    return Material(case.vectors, neighbors, case.pairs, np.array(case.items["score"], dtype=np.float64))


def describe_surface(surface: Surface, points: list[Point], corpus: str) -> dict[str, Any]:
    """Every point with its score, and what each of the two rules would have chosen."""
    columns = {"value": surface.values, **{rule: getattr(surface, rule) for rule in RULES}}
    held = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    rows = [
        {"parameters": _settings(point), **{name: values[place] for name, values in held.items()}}
        for place, point in enumerate(points)
    ]
    content: dict[str, Any] = {"corpus": corpus, "points": rows, "protocol": PROTOCOL}
    for rule in set(RULES) & set(held):
        misfits = held[rule]
        known = [misfit for misfit in misfits if misfit is not None]
        place = misfits.index(min(known))
        content.setdefault("rules", {})[rule] = {
            "parameters": _settings(points[place]),
            rule: misfits[place],
            "value": surface.values[place],
        }
    return content


def _oracle(
    chosen: Suite, encoder: str, grid: Grid, solver: SolverParameters, selected: int, development: str
) -> dict[str, Any]:
    """Surfaces of the test sets: similarity by the protocol of the choice, classification by its neighbours."""
    points: list[Point] = list(grid.points())
    corpora: dict[str, Any] = {}
    for corpus in chosen.corpora:
        if corpus == development:
            continue
        with threadpool_limits(1), located(f"corpus {corpus}"):
            values, protocol = _test_surface(chosen.suite, encoder, corpus, points, selected, solver)
        if any(value is not None for value in values):
            corpora[corpus] = {"protocol": protocol, **describe_oracle(values, points, selected)}
    return {"corpora": corpora, "label": ORACLE, "points": [_settings(point) for point in points]}


def describe_oracle(values: list[float | None], points: list[Point], selected: int) -> dict[str, Any]:
    """The best of a test set beside what was selected without it, and the whole surface."""
    best = best_place(values)
    ours, theirs = values[selected], values[best]
    return {
        "inflation": None if ours is None or theirs is None else round(theirs - ours, 3),
        "oracle": {"parameters": _settings(points[best]), "value": theirs},
        "selected": {"parameters": _settings(points[selected]), "value": ours},
        "surface": values,
    }


def _test_surface(
    suite: str, encoder: str, corpus: str, points: list[Point], selected: int, solver: SolverParameters
) -> tuple[list[float | None], str]:
    """The values of a test set and their protocol; none of a corpus of another task, or one that the source lacks."""
    task = task_of(corpus_path(suite, corpus, "items"))
    if task == "similarity":
        material = load_material(suite, encoder, corpus)
        if not isinstance(material, str):
            return score_surface(material, points, solver, rules=False).values, PROTOCOL
    if task == "classification":
        classes = load_classes(suite, encoder, corpus)
        if not isinstance(classes, str):
            judged = load_parameters(NeighborParameters, "evaluate")
            kept = [place for place, point in enumerate(points) if _differs_in_size(point, points[selected])]
            scored = score_classes(
                classes, [points[place] for place in kept], solver,
                k=judged.knn_neighbors, folds=judged.folds, seed=judged.seed,
            )  # fmt: skip
            values: list[float | None] = [None] * len(points)
            for place, value in zip(kept, scored, strict=True):
                values[place] = value
            return values, f"accuracy.{judged.knn_neighbors}nn-euclidean"
    return [], ""


def load_classes(suite: str, encoder: str, corpus: str) -> Classes | str:
    """A classification corpus in an encoder's space with its neighbour graph, or why it is none."""
    case = load_case(suite, encoder, corpus)
    if isinstance(case, str):
        return case
    graph = graph_path(suite, encoder, corpus)
    neighbors = read_lists(read_table(graph, kind="graph"), "neighbor", path=graph)
    return Classes(case.vectors, neighbors, np.array(case.items["row"]), case.labels, case.items["split"])


def _differs_in_size(point: Point, selected: Point) -> bool:
    """Whether a point is the selected one but for k and p: these are drawn, and classification corpora are large."""
    sizes = {"neighbors", "components"}
    return {n: v for n, v in point if n not in sizes} == {n: v for n, v in selected if n not in sizes}


def _settings(point: Point) -> dict[str, Any]:
    return {name: value for name, value in point.model_dump().items() if name != "method"}


def _development_of(chosen: Suite) -> str:
    if chosen.development is None:
        raise SuiteError(
            "the suite names no development corpus",
            where=f"{chosen.file}: development",
            expected="a similarity corpus of the suite",
            got="nothing",
            remedy="add a line `development: CORPUS`",
        )
    return chosen.development
