"""Stage `graph_transform`: maps of an encoder's space by its neighbour graph, without an n x n eigenproblem."""

from __future__ import annotations

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
from pipeline.errors import located
from pipeline.manifold.graph_maps import locality_preserving_map, neighborhood_preserving_map, smooth
from pipeline.manifold.manifolds import LppParameters, NpeParameters, SmoothParameters, load_manifold, nearest_of
from pipeline.manifold.pool import DISCARDED
from pipeline.manifold.weights import solve_weights

GraphMapParameters = NpeParameters | LppParameters | SmoothParameters


def graph_transform(suite: str, encoder: str, name: str, corpora: tuple[str, ...]) -> None:
    """Write the space `<encoder>-<name>` of every corpus, each fitted on that corpus's own sentences."""
    parameters: GraphMapParameters = load_manifold(name, NpeParameters, LppParameters, SmoothParameters)
    for corpus in corpora:
        graph, source = graph_path(suite, encoder, corpus), space_path(suite, encoder, corpus)
        target = space_path(suite, f"{encoder}-{name}", corpus)
        reason = absence(graph, kind="graph")
        if reason:
            write_absence(target, reason, kind="vectors", inputs=[graph, source])
            continue
        held = read_lists(read_table(graph, kind="graph"), "neighbor", path=graph)
        neighbors = nearest_of(held, parameters.neighbors, name)
        with threadpool_limits(1), located(f"corpus {corpus}, params.yaml: manifolds.{name}", state=DISCARDED):
            vectors, notes = map_over_graph(read_vectors(source), neighbors, parameters)
        write_vectors(
            target,
            vectors,
            parameters=parameters.model_dump(),
            inputs=[graph, source],
            notes={**notes, "sentences": len(vectors)},
        )


def map_over_graph(
    x: Vectors, neighbors: npt.NDArray[np.integer[Any]], parameters: GraphMapParameters
) -> tuple[Vectors, dict[str, Any]]:
    """The images of (n, d) rows with (n, k) neighbours under the map that the parameters ask for.

    Notes: the eigenvalues of a linear map; for NPE also the rows whose neighbours all equal them.
    Raises ParameterError if p does not fit, SolverError if the eigenproblem cannot be solved.
    """
    match parameters:
        case NpeParameters(regularization=regularization, components=p):
            weights = solve_weights(x, neighbors, regularization=regularization)
            chosen = neighborhood_preserving_map(x, neighbors, weights.values, p)
            notes = {"degenerate_rows": len(weights.degenerate), "eigenvalues": chosen.eigenvalues.tolist()}
        case LppParameters(components=p, heat=heat):
            chosen = locality_preserving_map(x, neighbors, p, heat=heat)
            notes = {"eigenvalues": chosen.eigenvalues.tolist()}
        case SmoothParameters(amount=amount):
            return smooth(x, neighbors, amount=amount, dtype=np.float32), {}
    return chosen.apply(x, dtype=np.float32), notes
