"""Faults of a neighbour graph: several components, hubs, rows that are no row's neighbour, equal vectors."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sentfold.neighbors.neighbors import in_degrees
from sentfold.neighbors.points import check_rows


@dataclass(frozen=True)
class GraphReport:
    """Counts over the rows of a neighbour graph.

    components          connected components of the undirected graph
    largest_in_degree   the largest number of rows that have one row as a neighbour
    unchosen            rows that are no row's neighbour
    in_degree_skewness  third standardised moment of the in-degrees; 0 if all are equal, large if there are hubs
    zero_vectors        rows of zeros
    identical_vectors   rows that equal an earlier row
    tied_rows           rows whose last two neighbours are at equal distance, so that row numbers decide their order
    """

    components: int
    largest_in_degree: int
    unchosen: int
    in_degree_skewness: float
    zero_vectors: int
    identical_vectors: int
    tied_rows: int


def describe_graph(
    indices: npt.NDArray[np.integer[Any]], distances: npt.NDArray[np.floating[Any]], x: npt.NDArray[np.floating[Any]]
) -> GraphReport:
    """The GraphReport of a graph of the rows of x.

    indices (n, k) and distances (n, k) as `nearest_neighbors` returns them; x (n, d)
    Raises ParameterError for neighbours that are no rows of x. Cost O(n (k + d)) time, O(n k) memory.
    """
    check_rows(indices, len(x))
    n, k = indices.shape
    degrees = in_degrees(indices, n)
    starts = np.arange(0, n * k + 1, k)
    graph = sp.csr_array((np.ones(n * k, dtype=np.int8), indices.ravel(), starts), shape=(n, n))
    components, _ = sp.csgraph.connected_components(graph, directed=False)
    deviation = degrees - degrees.mean()
    spread = float(np.sqrt((deviation**2).mean()))
    return GraphReport(
        components=int(components),
        largest_in_degree=int(degrees.max()),
        unchosen=int((degrees == 0).sum()),
        in_degree_skewness=float(((deviation / spread) ** 3).mean()) if spread > 0 else 0.0,
        zero_vectors=int((~x.any(axis=1)).sum()),
        identical_vectors=count_twins(x),
        tied_rows=int((distances[:, -1] == distances[:, -2]).sum()) if k > 1 else 0,
    )


def count_twins(x: npt.NDArray[np.floating[Any]]) -> int:
    """Rows that equal an earlier row: distinct texts that the encoder cannot tell apart. Cost O(n d)."""
    # Adding 0 turns -0.0 into 0.0: the two numbers are equal but have different bytes.
    return len(x) - len({blake2b((row + 0.0).tobytes(), digest_size=16).digest() for row in x})
