"""Stage `knn_graph`: the nearest neighbours of every sentence in an encoder's space."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pydantic import Field
from threadpoolctl import threadpool_limits

from pipeline.artifacts import (
    Vectors,
    absence,
    fixed_lists,
    graph_path,
    read_vectors,
    space_path,
    write_absence,
    write_table,
)
from pipeline.errors import located
from pipeline.manifold.neighbors import Metric, in_degrees, nearest_neighbors
from pipeline.manifold.pool import DISCARDED, no_pool
from pipeline.params import Parameters, load_parameters


class GraphParameters(Parameters):
    """neighbors: largest k any manifold may use. metric: euclidean or cosine."""

    neighbors: int = Field(ge=1, le=10_000)
    metric: Metric


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
        # One BLAS thread per block and blocks in parallel: the bytes do not depend on the machine's cores.
        with threadpool_limits(1), located(f"corpus {corpus}, params.yaml: knn_graph", state=DISCARDED):
            graph = nearest_neighbors(x, parameters.neighbors, metric=parameters.metric)
        degrees = in_degrees(graph.indices, len(x))
        write_table(
            target,
            pa.table(
                {"neighbor": fixed_lists(graph.indices), "distance": fixed_lists(graph.distances.astype(np.float32))}
            ),
            kind="graph",
            parameters=parameters.model_dump(),
            inputs=[source],
            notes={
                "identical_vectors": count_twins(x),
                "largest_in_degree": int(degrees.max()),
                "recomputed_rows": graph.recomputed,
                "sentences": len(x),
                "unchosen": int((degrees == 0).sum()),
                "zero_vectors": int((~x.any(axis=1)).sum()),
            },
        )


def count_twins(x: Vectors) -> int:
    """Rows that equal an earlier row: distinct texts that the encoder cannot tell apart."""
    return len(x) - len(np.unique(x, axis=0))
