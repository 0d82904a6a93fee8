"""Stage `knn_graph`: the nearest neighbours of every sentence in an encoder's space."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pyarrow as pa
from pydantic import Field

from pipeline.base.artifacts import (
    DISCARDED,
    absence,
    fixed_lists,
    graph_path,
    no_pool,
    read_vectors,
    space_path,
    write_absence,
    write_table,
)
from pipeline.base.params import load_parameters
from sentfold.errors import located
from sentfold.neighbors.approximate import Method, find_neighbors
from sentfold.neighbors.graph_report import describe_graph
from sentfold.neighbors.points import Metric
from sentfold.settings import Parameters


class GraphParameters(Parameters):
    """neighbors: the largest k that a manifold method may use. metric: euclidean or cosine.

    method       exact, approximate, or auto (exact up to `exact_up_to` sentences, approximate above)
    seed         random seed of the approximate method
    """

    neighbors: int = Field(ge=1, le=10_000)
    metric: Metric
    method: Method
    exact_up_to: int = Field(ge=0)
    seed: int = Field(ge=0, lt=2**32)


def knn_graph(suite: str, space: str, corpora: tuple[str, ...]) -> None:
    """Write the neighbour graph of every corpus in one space."""
    parameters = load_parameters(GraphParameters, "knn_graph")
    for corpus in corpora:
        source, target = space_path(suite, space, corpus), graph_path(suite, space, corpus)
        reason = absence(source, kind="vectors") or no_pool(source)
        if reason:
            write_absence(target, reason, kind="graph", inputs=[source])
            continue
        x = read_vectors(source)
        with located(f"corpus {corpus}, params.yaml: knn_graph", state=DISCARDED):
            graph, recall = find_neighbors(
                x,
                parameters.neighbors,
                metric=parameters.metric,
                method=parameters.method,
                exact_up_to=parameters.exact_up_to,
                seed=parameters.seed,
            )
        write_table(
            target,
            pa.table(
                {"neighbor": fixed_lists(graph.indices), "distance": fixed_lists(graph.distances.astype(np.float32))}
            ),
            kind="graph",
            parameters=parameters.model_dump(),
            inputs=[source],
            notes={
                **asdict(describe_graph(graph.indices, graph.distances, x)),
                "recall": recall,
                "recomputed_rows": graph.recomputed,
                "sentences": len(x),
            },
        )
