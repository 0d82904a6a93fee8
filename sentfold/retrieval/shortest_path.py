"""Shortest paths: a document is as near to a query as the shortest path to it over neighbouring documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from sentfold.manifold.base.linear import sparse_graph
from sentfold.retrieval.base.protocol import Source
from sentfold.retrieval.base.ranking import Scorer, Singles, first_places
from sentfold.retrieval.base.scorers import inner_products
from sentfold.settings import Parameters

TITLE = "shortest paths over the documents"
LEARNS = "documents"

LEAST = 1e-6  # length of an edge between equal documents: a sparse matrix has no edge of length 0


class Settings(Parameters):
    """neighbors  documents that each document, and the query, has an edge to; fewer if there are fewer documents
    weight     share of the path in the distance; 0 is cosine
    shuffled   seed of a random renumbering of the documents in the graph: the control, which must not gain
    """

    neighbors: int = Field(default=10, ge=1, le=10_000)
    weight: float = Field(default=1.0, ge=0, le=1)
    shuffled: int | None = Field(default=None, ge=0, lt=2**32)


def prepare(source: Source, settings: Settings) -> Scorer:
    """Scores 1 - d^2 / 2 with d = (1 - w) c + w p: c the Euclidean distance to the query, p the length of the path.

    The rows are unit vectors, so w = 0 gives q . d. A path leads from the query to one of its nearest documents and on
    over edges between documents of which one is a neighbour of the other; the length of an edge is the Euclidean
    distance. No path to one of the k nearest is shorter than its own edge, so the first k keep their order, and a
    measure of the first ten places can change with k < 10 alone. A document without a path has c and the longest path
    of the query, so it comes after the others.
    Cost: the exact graph O(n^2 d) once; per query O(n d + n k log n).
    Source: after arXiv:2509.13562, whose graphs have directed edges too; the choice of k on other data is ours.
    """
    graph, plain = path_graph(source, settings), inner_products(source.documents)
    weight, count = settings.weight, min(settings.neighbors, len(source.documents))

    def score(queries: Singles) -> Singles:
        direct = np.sqrt(np.maximum(2 - 2 * plain(queries).astype(np.float64), 0))
        places = np.array([first_places(-row, count) for row in direct])
        starts = sp.csr_array(
            (np.maximum(np.take_along_axis(direct, places, axis=1), LEAST).ravel(), places.ravel(),
             np.arange(0, places.size + 1, count)),
            shape=direct.shape,
        )  # fmt: skip
        n, asked = graph.shape[0], len(queries)
        whole: Any = sp.block_array([[graph, sp.csr_array((n, asked))], [starts, None]], format="csr")
        paths = dijkstra(whole, indices=np.arange(n, n + asked))[:, :n]
        reached = np.isfinite(paths)
        longest = np.where(reached, paths, 0).max(axis=1, keepdims=True)
        distance = (1 - weight) * direct + weight * np.where(reached, paths, direct + longest)
        return np.asarray(1 - distance**2 / 2, dtype=np.float32)

    return score


def path_graph(source: Source, settings: Settings) -> sp.csr_array:
    """(n, n) symmetric Euclidean distances between documents of which one is a neighbour of the other."""
    near = source.nearest(settings.neighbors)
    edges = sparse_graph(near.indices, np.maximum(np.sqrt(np.maximum(2 * near.distances, 0)), LEAST))
    if settings.shuffled is not None:
        order = np.random.default_rng(settings.shuffled).permutation(len(source.documents))
        edges = edges[order][:, order]
    return sp.csr_array(edges.maximum(edges.T))
