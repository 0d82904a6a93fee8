"""Stage `selected`: the space of the parameters that a sweep chose on development data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from pipeline.artifacts import (
    Vectors,
    absence,
    graph_path,
    read_lists,
    read_table,
    read_vectors,
    space_path,
    write_absence,
    write_vectors,
)
from pipeline.errors import ArtifactError, located
from pipeline.manifold.certificate import certificate
from pipeline.manifold.locally_linear import embed_locally
from pipeline.manifold.manifolds import LleParameters
from pipeline.manifold.pool import DISCARDED
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.params import load_parameters, validate
from pipeline.selection.grids import MODELS, Point
from pipeline.selection.paths import sweep_folder
from pipeline.selection.spaces import fits, space_of


def selected(suite: str, encoder: str, selection: str, corpora: tuple[str, ...]) -> Point:
    """Write the space `<encoder>-<selection>` of every corpus. Returns the parameters it was made with.

    Of the sweep it reads selected.json and nothing else. A corpus too small for the chosen k or p is
    blank with its reason: nobody chose them for it.
    """
    source_of_choice = sweep_folder(suite, encoder, selection) / "selected.json"
    choice = read_choice(source_of_choice)
    point: Point = validate(
        MODELS[choice["method"]], {"method": choice["method"], **choice["parameters"]}, where=str(source_of_choice)
    )
    solver = load_parameters(SolverParameters, "eigensolve")
    made_with = {**point.model_dump(), "chosen_on": choice["corpus"]}
    if point.method == "lle":
        made_with["eigensolve"] = solver.model_dump()
    for corpus in corpora:
        graph, source = graph_path(suite, encoder, corpus), space_path(suite, encoder, corpus)
        target, inputs = space_path(suite, f"{encoder}-{selection}", corpus), [graph, source]
        reason = absence(graph, kind="graph")
        if reason:
            write_absence(target, reason, kind="vectors", inputs=inputs)
            continue
        x, neighbors = read_vectors(source), read_lists(read_table(graph, kind="graph"), "neighbor", path=graph)
        if not fits(point, x.shape, neighbors.shape[1]):
            reason = f"{len(x)} sentences are too few for the parameters chosen on {choice['corpus']}"
            write_absence(target, reason, kind="vectors", inputs=inputs)
            continue
        with threadpool_limits(1), located(f"corpus {corpus}, {source_of_choice}", state=DISCARDED):
            vectors, notes = make_space(x, neighbors, point, solver)
        notes["sentences"] = len(vectors)
        write_vectors(target, vectors, parameters=made_with, inputs=inputs, notes=notes)
    return point


def make_space(
    x: Vectors, neighbors: npt.NDArray[np.integer[Any]], point: Point, solver: SolverParameters
) -> tuple[Vectors, dict[str, Any]]:
    """The (n, p) float32 space of one point, and the certificate of its eigensolve where it has one."""
    if not isinstance(point, LleParameters):
        return space_of(x, neighbors, point, solver).astype(np.float32), {}
    made = embed_locally(
        x,
        np.ascontiguousarray(neighbors[:, : point.neighbors]),
        point.components,
        regularization=point.regularization,
        scaling=point.scaling,
        workers=2,
        **solver.model_dump(),
    )
    return made.coordinates.astype(np.float32), certificate(made.pairs)


def read_choice(path: Path) -> dict[str, Any]:
    """The content of selected.json. Raises ArtifactError if it is missing or is not what a sweep writes."""
    try:
        choice = json.loads(path.read_text(encoding="utf-8"))
        if choice["method"] in MODELS and isinstance(choice["parameters"], dict) and isinstance(choice["corpus"], str):
            return dict(choice)
        got = f"method {choice['method']}"
    except (OSError, ValueError, TypeError, KeyError) as error:
        got = str(error)
    raise ArtifactError(
        "the choice of a sweep cannot be read",
        where=str(path),
        expected="corpus, method and parameters",
        got=got,
        remedy="run `dvc repro`, which makes it",
    )
