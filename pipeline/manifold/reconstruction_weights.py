"""Stage `reconstruction_weights`: every sentence as an affine combination of its neighbours."""

from __future__ import annotations

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
from pipeline.errors import located
from pipeline.manifold.manifolds import LleParameters, load_manifold, nearest_of
from pipeline.manifold.pool import DISCARDED
from pipeline.manifold.weights import solve_weights

NAMED = 20  # degenerate rows that a record names


def reconstruction_weights(suite: str, encoder: str, manifold: str, corpora: tuple[str, ...]) -> None:
    """Write the reconstruction weights of every corpus for one manifold over one encoder."""
    parameters = load_manifold(manifold, LleParameters)
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
                "first_degenerate_rows": weights.degenerate[:NAMED].tolist(),
                "negative_share": round(float((weights.values < 0).mean()), 4),
                "repaired_rows": weights.repaired,
                "sentences": len(neighbors),
            },
        )
