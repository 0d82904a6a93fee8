"""Locality preserving projections, the linear form of Laplacian eigenmaps."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from pydantic import Field

from sentfold.errors import ParameterError
from sentfold.kernels.arrays import row_blocks
from sentfold.manifold.base.linear import (
    BLOCK,
    LinearMap,
    Rows,
    blocks_with_sums,
    bottom_map,
    fitting_rank,
    principal_axes,
    sparse_graph,
    whitened_basis,
)
from sentfold.manifold.base.protocol import Embedded, Source, embed_linearly
from sentfold.settings import Parameters

TITLE = "locality preserving projection"
ROLE = "fold"
READS = "graph"
SOLVES = False


class Settings(Parameters):
    """neighbors: k. heat: see locality_preserving_map; null: every edge weighs 1. components: p."""

    neighbors: int = Field(default=30, ge=1, le=10_000)
    heat: float | None = Field(default=None, gt=0, le=1e6)
    components: int = Field(default=128, ge=1, le=10_000)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) images. Raises as locality_preserving_map does."""
    neighbors = source.nearest(settings.neighbors)
    learned = locality_preserving_map(source.vectors, neighbors, settings.components, heat=settings.heat)
    return embed_linearly(source, learned)


def locality_preserving_map(
    x: npt.NDArray[np.floating[Any]], neighbors: Rows, p: int | None, *, heat: float | None
) -> LinearMap:
    """The linear map that keeps neighbours near each other: LPP, the linear form of Laplacian eigenmaps.

    x          (n, d) finite, one sentence per row
    neighbors  (n, k) rows of x, self excluded; i and j are joined if either is a neighbour of the other
    p          1 <= p <= rank of the centred rows; None for the rank
    heat       None: every edge weighs 1. Otherwise the weight is exp(-|x_i - x_j|^2 / t), where t is `heat` times
               the mean squared length of the edges; unitless, > 0
    Solves X^T L X a = lambda X^T D X a for centred X, weights S, degrees D and L = D - S, by ascending lambda, after
    the null space of X is dropped; a^T X^T D X a = 1. The entry of largest modulus of each column is positive.
    Returns a map with a (d, p) matrix; its eigenvalues are in [0, 2].
    Raises ParameterError if p or heat does not fit, SolverError if the eigenproblem cannot be solved.
    Cost O(n d (d + k) + d^3) time, O(block k d + d^2 + n k) memory; nothing is n x n, no float64 copy of x.
    Source: He & Niyogi 2003, Locality Preserving Projections, NIPS 16, equation 1
    """
    if heat is not None and (isinstance(heat, bool) or not (isfinite(heat) and heat > 0)):
        raise ParameterError(
            "the heat of an affinity is out of range",
            where="heat",
            expected="> 0, or none: every edge then weighs 1",
            got=repr(heat),
        )
    axes = principal_axes(x)
    p = fitting_rank(axes, p)
    basis = whitened_basis(axes)
    graph = _affinity(x, neighbors, heat)
    degrees = np.asarray(graph.sum(axis=1))[:, None]
    above, below = np.zeros((axes.rank, axes.rank)), np.zeros((axes.rank, axes.rank))
    for rows, here, summed in blocks_with_sums(x, axes.mean, graph):
        images = here @ basis
        above += images.T @ ((degrees[rows] * here - summed) @ basis)
        below += images.T @ (degrees[rows] * images)
    return bottom_map((above + above.T) / 2, (below + below.T) / 2, axes.mean, basis, p)


def _affinity(x: npt.NDArray[np.floating[Any]], neighbors: Rows, heat: float | None) -> sp.csr_array:
    """The symmetric (n, n) affinity S of the graph that joins i and j if either is a neighbour of the other."""
    directed = sparse_graph(neighbors, np.ones(neighbors.shape))
    graph = sp.csr_array(directed.maximum(directed.T))
    graph.sort_indices()  # fixes the order in which sums are taken
    if heat is None:
        return graph
    squared = np.empty(graph.nnz)
    for rows in row_blocks(graph.shape[0], BLOCK):
        entries = slice(graph.indptr[rows.start], graph.indptr[rows.stop])
        owners = np.repeat(np.arange(rows.start, rows.stop), np.diff(graph.indptr[rows.start : rows.stop + 1]))
        difference = x[owners].astype(np.float64) - x[graph.indices[entries]]
        squared[entries] = np.einsum("ed,ed->e", difference, difference)
    mean = float(squared.mean())
    # If the mean is 0, edges join equal rows only, and their weights are 1 at any heat.
    graph.data = np.exp(-squared / (heat * mean)) if mean > 0 else np.ones(graph.nnz)
    return graph
