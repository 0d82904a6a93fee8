"""Stage `reconstruction_weights`: every sentence as an affine combination of its neighbours."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from pipeline.artifacts import (
    absence,
    fixed_lists,
    graph_path,
    read_lists,
    read_table,
    read_vectors,
    space_path,
    weights_path,
    write_absence,
    write_table,
)
from pipeline.errors import ParameterError, located
from pipeline.manifold.manifolds import ManifoldParameters
from pipeline.manifold.pool import DISCARDED
from pipeline.manifold.weights import solve_weights
from pipeline.params import load_parameters


def reconstruction_weights(suite: str, encoder: str, manifold: str, corpora: tuple[str, ...]) -> None:
    """Write the reconstruction weights of every corpus for one manifold over one encoder."""
    parameters = load_parameters(ManifoldParameters, f"manifolds.{manifold}")
    for corpus in corpora:
        graph, space = graph_path(suite, encoder, corpus), space_path(suite, encoder, corpus)
        target = weights_path(suite, f"{encoder}-{manifold}", corpus)
        reason = absence(graph, kind="graph")
        if reason:
            write_absence(target, reason, kind="weights", inputs=[graph])
            continue
        table = read_table(graph, kind="graph")
        neighbors = nearest_of(read_lists(table, "neighbor", path=graph), parameters.neighbors, manifold)
        with threadpool_limits(1), located(f"corpus {corpus}, params.yaml: manifolds.{manifold}", state=DISCARDED):
            weights = solve_weights(read_vectors(space), neighbors, regularization=parameters.regularization)
        write_table(
            target,
            pa.table({"neighbor": fixed_lists(neighbors), "weight": fixed_lists(weights.values)}),
            kind="weights",
            parameters={"neighbors": parameters.neighbors, "regularization": parameters.regularization},
            inputs=[graph, space],
            notes={
                "degenerate_rows": len(weights.degenerate),
                "negative_share": round(float((weights.values < 0).mean()), 4),
                "sentences": len(neighbors),
            },
        )


def nearest_of(neighbors: np.ndarray, k: int, manifold: str) -> np.ndarray:
    """The first k columns of a graph. Raises ParameterError if the graph holds fewer."""
    if k > neighbors.shape[1]:
        raise ParameterError(
            f"manifold '{manifold}' wants more neighbours than the graph holds",
            where=f"params.yaml: manifolds.{manifold}.neighbors",
            expected=f"<= knn_graph.neighbors = {neighbors.shape[1]}",
            got=str(k),
            remedy="raise knn_graph.neighbors, or lower this one",
        )
    return np.ascontiguousarray(neighbors[:, :k])
