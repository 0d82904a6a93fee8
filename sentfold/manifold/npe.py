"""Neighbourhood preserving embedding, the linear form of locally linear embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.kernels.arrays import Float64
from sentfold.manifold.base.linear import (
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
from sentfold.manifold.weights.weights import solve_weights
from sentfold.settings import Parameters

TITLE = "neighbourhood preserving embedding"
ROLE = "fold"
READS = "graph"
SOLVES = False


class Settings(Parameters):
    """neighbors: k. regularization: added to the Gram diagonal as a fraction of its trace. components: p."""

    neighbors: int = Field(default=30, ge=1, le=10_000)
    regularization: float = Field(default=1e-3, gt=0, le=100)
    components: int = Field(default=128, ge=1, le=10_000)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) images, and the number of rows that equal all their neighbours. Raises as its two steps do."""
    neighbors = source.nearest(settings.neighbors)
    weights = solve_weights(source.vectors, neighbors, regularization=settings.regularization)
    learned = neighborhood_preserving_map(source.vectors, neighbors, weights.values, settings.components)
    return embed_linearly(source, learned, degenerate_rows=len(weights.degenerate))


def neighborhood_preserving_map(
    x: npt.NDArray[np.floating[Any]], neighbors: Rows, weights: Float64, p: int | None
) -> LinearMap:
    """The linear map after which neighbours rebuild each row best: NPE, the linear form of LLE.

    x          (n, d) finite, one sentence per row
    neighbors  (n, k) rows of x, self excluded
    weights    (n, k) reconstruction weights, each row summing to 1
    p          1 <= p <= rank of the centred rows; None for the rank
    Minimises a^T X^T M X a under a^T X^T X a = 1 for centred X and M = (I - W)^T (I - W), by ascending
    eigenvalue. X^T M X is computed as (D X)^T (D X) with D = I - W, in blocks of rows. The null space of X, where
    the constraint cannot hold, is dropped first. The entry of largest modulus of each column is positive.
    Returns a map with a (d, p) matrix; its eigenvalues are between the smallest and the largest of M.
    Raises ParameterError if p does not fit, SolverError if the eigenproblem cannot be solved.
    Cost O(n d (d + k) + d^3) time, O(block k d + d^2) memory; nothing is n x n, no float64 copy of x.
    Source: He, Cai, Yan & Zhang 2005, doi:10.1109/ICCV.2005.167
    """
    axes = principal_axes(x)
    p = fitting_rank(axes, p)
    basis = whitened_basis(axes)
    above, below = np.zeros((axes.rank, axes.rank)), np.zeros((axes.rank, axes.rank))
    for _, here, rebuilt in blocks_with_sums(x, axes.mean, sparse_graph(neighbors, weights)):
        # Rows are whitened before products are summed, so directions of small variance, which NPE needs, stay exact.
        images, errors = here @ basis, (here - rebuilt) @ basis
        above += errors.T @ errors
        below += images.T @ images
    return bottom_map(above, below, axes.mean, basis, p)
