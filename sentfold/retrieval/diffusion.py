"""Diffusion: scores spread from the first documents over the graph of mutual nearest neighbours of the documents."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from sentfold.manifold.base.linear import sparse_graph
from sentfold.retrieval.base.protocol import Source
from sentfold.retrieval.base.ranking import Scorer, Singles, first_places
from sentfold.retrieval.base.scorers import inner_products
from sentfold.settings import Parameters

TITLE = "diffusion over the documents"
LEARNS = "documents"


class Settings(Parameters):
    """neighbors  k of the graph; fewer if there are fewer documents
    power      of a cosine as the weight of an edge, and of a first document
    found      first documents of the query, from which the scores spread
    damping    share of a score that moves on in each step; steps: number of steps
    weight     share of the spread scores in the result, the largest being 1; 0 is cosine
    shuffled   seed of a random renumbering of the documents in the graph: the control, which must not gain
    """

    neighbors: int = Field(default=20, ge=1, le=10_000)
    power: float = Field(default=3.0, ge=0, le=20)
    found: int = Field(default=10, ge=1, le=1000)
    damping: float = Field(default=0.8, gt=0, lt=1)
    steps: int = Field(default=20, ge=1, le=1000)
    weight: float = Field(default=0.5, ge=0, le=1)
    shuffled: int | None = Field(default=None, ge=0, lt=2**32)


def prepare(source: Source, settings: Settings) -> Scorer:
    """Scores (1 - w) q . d + w f(d) / max f, with f after t steps of f <- a S f + (1 - a) y.

    y holds the first documents' cosines to the power; S is the normalised matrix of the graph. A document that
    cannot be reached has f = 0, and its cosine orders it.
    Cost: the exact graph O(n^2 d) once; per query O(n d + t n k). Memory O(n k) and 3 n numbers per query of a block.
    Source: Iscen et al. 2017, arXiv:1611.05113, eqs. 3 and 7, by their iteration
    """
    graph, plain = mutual_graph(source, settings), inner_products(source.documents)
    damping, weight = np.float32(settings.damping), np.float32(settings.weight)

    def score(queries: Singles) -> Singles:
        cosines = plain(queries)
        start = np.zeros(cosines.shape, dtype=np.float32)
        for row, values in zip(start, cosines, strict=True):
            found = first_places(values, settings.found)
            row[found] = np.maximum(values[found], 0) ** np.float32(settings.power)
        begun = np.ascontiguousarray(start.T)
        spread = begun
        for _ in range(settings.steps):
            spread = damping * (graph @ spread) + (1 - damping) * begun
        largest = spread.max(axis=0)
        reached = spread / np.where(largest > 0, largest, 1)
        return np.asarray((1 - weight) * cosines + weight * reached.T, dtype=np.float32)

    return score


def mutual_graph(source: Source, settings: Settings) -> sp.csr_array:
    """(n, n) float32 D^-1/2 A D^-1/2, with A the cosines, to the power, of documents that are neighbours of each other.

    Symmetric; the eigenvalues are in [-1, 1], so the diffusion converges for every damping below 1.
    """
    near = source.nearest(settings.neighbors)
    edges = sparse_graph(near.indices, np.maximum(1 - near.distances, 0) ** settings.power)
    if settings.shuffled is not None:
        order = np.random.default_rng(settings.shuffled).permutation(len(source.documents))
        edges = edges[order][:, order]
    mutual = edges.minimum(edges.T)
    degrees = mutual.sum(axis=1)
    scale = sp.diags_array(np.where(degrees > 0, degrees, 1) ** -0.5)
    return sp.csr_array(scale @ mutual @ scale, dtype=np.float32)
