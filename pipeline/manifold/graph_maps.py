"""Maps that a neighbour graph gives: linear ones that keep neighbourhoods, and smoothing over them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from pipeline.errors import ParameterError, SolverError
from pipeline.manifold.maps import Float64, LinearMap, canonical_signs, check_count, row_blocks
from pipeline.manifold.principal import PrincipalAxes, principal_axes, whitened_basis

Rows = npt.NDArray[np.integer[Any]]

# Rows at a time where each brings its neighbours: block x k x d float64 stay near 50 MB.
BLOCK = 256


def neighborhood_preserving_map(
    x: npt.NDArray[np.floating[Any]], neighbors: Rows, weights: Float64, p: int | None
) -> LinearMap:
    """The linear map whose images their neighbours rebuild best: NPE, the linear form of LLE.

    x          (n, d) finite, one sentence per row
    neighbors  (n, k) rows of x, self excluded
    weights    (n, k) reconstruction weights, each row summing to 1
    p          1 <= p <= rank of the centred rows; None for the rank
    Minimises a^T X^T M X a under a^T X^T X a = 1 for centred X and M = (I - W)^T (I - W), by ascending
    eigenvalue, X^T M X formed as (D X)^T (D X) with D = I - W in blocks of rows. The null space of X,
    where the constraint cannot hold, is dropped first. Columns: entry of largest modulus positive.
    Returns a map with a (d, p) matrix; its eigenvalues lie between the smallest and the largest of M.
    Raises ParameterError if p does not fit, SolverError if the eigenproblem cannot be solved.
    Cost O(n d (d + k) + d^3) time, O(block k d + d^2) memory; nothing is n x n, no float64 copy of x.
    Source: He, Cai, Yan & Zhang 2005, doi:10.1109/ICCV.2005.167
    """
    axes = principal_axes(x)
    p = _fitting(axes, p)
    basis = whitened_basis(axes)
    above, below = np.zeros((axes.rank, axes.rank)), np.zeros((axes.rank, axes.rank))
    for _, here, rebuilt in _with_sums(x, axes.mean, _sparse(neighbors, weights)):
        # Rows are whitened before they are squared: the small directions, which NPE looks for, keep their digits.
        images, errors = here @ basis, (here - rebuilt) @ basis
        above += errors.T @ errors
        below += images.T @ images
    return _bottom_map(above, below, axes.mean, basis, p)


def locality_preserving_map(
    x: npt.NDArray[np.floating[Any]], neighbors: Rows, p: int | None, *, heat: float | None
) -> LinearMap:
    """The linear map that keeps neighbours near each other: LPP, the linear form of Laplacian eigenmaps.

    x          (n, d) finite, one sentence per row
    neighbors  (n, k) rows of x, self excluded; i and j are joined if either is a neighbour of the other
    p          1 <= p <= rank of the centred rows; None for the rank
    heat       None: every edge weighs 1. Otherwise exp(-|x_i - x_j|^2 / t) with t = `heat` times the mean
               squared length of the edges, so it is unitless, > 0
    Solves X^T L X a = lambda X^T D X a for centred X, degrees D and L = D - S, by ascending lambda, the
    null space of X dropped first; a^T X^T D X a = 1. Columns: entry of largest modulus positive.
    Returns a map with a (d, p) matrix; its eigenvalues lie in [0, 2].
    Raises ParameterError if p or heat does not fit, SolverError if the eigenproblem cannot be solved.
    Cost O(n d (d + k) + d^3) time, O(block k d + d^2 + n k) memory; nothing is n x n, no float64 copy of x.
    Source: He & Niyogi 2003, Locality Preserving Projections, NIPS 16, equation 1
    """
    if heat is not None and (isinstance(heat, bool) or not (isfinite(heat) and heat > 0)):
        raise ParameterError(
            "the heat of an affinity is out of range",
            where="heat",
            expected="> 0, or none for edges that weigh 1",
            got=repr(heat),
        )
    axes = principal_axes(x)
    p = _fitting(axes, p)
    basis = whitened_basis(axes)
    graph = _affinity(x, neighbors, heat)
    degrees = np.asarray(graph.sum(axis=1))[:, None]
    above, below = np.zeros((axes.rank, axes.rank)), np.zeros((axes.rank, axes.rank))
    for rows, here, summed in _with_sums(x, axes.mean, graph):
        images = here @ basis
        above += images.T @ ((degrees[rows] * here - summed) @ basis)
        below += images.T @ (degrees[rows] * images)
    return _bottom_map((above + above.T) / 2, (below + below.T) / 2, axes.mean, basis, p)


def smooth(
    x: npt.NDArray[np.floating[Any]],
    neighbors: Rows,
    *,
    amount: float,
    pool: npt.NDArray[np.floating[Any]] | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> npt.NDArray[Any]:
    """Each row moved towards the mean of its neighbours: (1 - a) x + a mean.

    x          (n, d) finite; computed in float64 whatever its type
    neighbors  (n, k) rows of `pool`
    amount     a, at most 1: 0 changes nothing, 1 replaces a row by the mean, below 0 sharpens, that is
               moves it away
    pool       (m, d) where the neighbours lie; None for x itself
    dtype      of the answer
    Returns (n, d). Raises ParameterError if the amount is out of range.
    Cost O(n k d) time, O(block k d) memory beside the answer.
    Source: one step of Taubin 1995, doi:10.1145/218380.218473, on a kNN graph
    """
    if isinstance(amount, bool) or not (isfinite(amount) and amount <= 1):
        raise ParameterError(
            "the amount of smoothing is out of range",
            where="amount",
            expected="a number <= 1; below 0 it sharpens",
            got=repr(amount),
        )
    held = x if pool is None else pool
    result = np.empty(x.shape, dtype=dtype)
    for rows in row_blocks(len(x), BLOCK):
        mean = held[neighbors[rows]].mean(axis=1, dtype=np.float64)
        result[rows] = (1 - amount) * np.asarray(x[rows], dtype=np.float64) + amount * mean
    return result


def _fitting(axes: PrincipalAxes, p: int | None) -> int:
    wanted = max(axes.rank, 1) if p is None else p
    return check_count(wanted, "p", least=1, most=axes.rank, where="components", meaning="rank of the centred rows")


def _sparse(neighbors: Rows, values: Float64) -> sp.csr_array:
    n, k = neighbors.shape
    return sp.csr_array((values.ravel(), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


def _affinity(x: npt.NDArray[np.floating[Any]], neighbors: Rows, heat: float | None) -> sp.csr_array:
    """The symmetric (n, n) affinity S of the graph in which either side's choice makes an edge."""
    directed = _sparse(neighbors, np.ones(neighbors.shape))
    graph = sp.csr_array(directed.maximum(directed.T))
    graph.sort_indices()  # the order in which sums are taken
    if heat is None:
        return graph
    squared = np.empty(graph.nnz)
    for rows in row_blocks(graph.shape[0], BLOCK):
        entries = slice(graph.indptr[rows.start], graph.indptr[rows.stop])
        owners = np.repeat(np.arange(rows.start, rows.stop), np.diff(graph.indptr[rows.start : rows.stop + 1]))
        difference = x[owners].astype(np.float64) - x[graph.indices[entries]]
        squared[entries] = np.einsum("ed,ed->e", difference, difference)
    mean = float(squared.mean())
    # Only twins are joined where the mean is 0: they weigh 1 at any heat.
    graph.data = np.exp(-squared / (heat * mean)) if mean > 0 else np.ones(graph.nnz)
    return graph


def _with_sums(
    x: npt.NDArray[np.floating[Any]], mean: Float64, graph: sp.csr_array
) -> Iterator[tuple[slice, Float64, Float64]]:
    """Blocks of rows, the centred rows themselves, and the graph's weighted sums of their neighbours.

    Only the neighbours of one block are float64 at a time.
    """
    for rows in row_blocks(len(x), BLOCK):
        start, stop = graph.indptr[rows.start], graph.indptr[rows.stop]
        columns, places = np.unique(graph.indices[start:stop], return_inverse=True)
        local = sp.csr_array(
            (graph.data[start:stop], places, graph.indptr[rows.start : rows.stop + 1] - start),
            shape=(rows.stop - rows.start, len(columns)),
        )
        others = np.asarray(x[columns], dtype=np.float64) - mean
        yield rows, np.asarray(x[rows], dtype=np.float64) - mean, np.asarray(local @ others)


def _bottom_map(above: Float64, below: Float64, mean: Float64, basis: Float64, p: int) -> LinearMap:
    """The map of the p smallest eigenvalues of above a = lambda below a, a in coordinates of the basis."""
    try:
        values, vectors = scipy.linalg.eigh(above, below, subset_by_index=(0, p - 1))
    except scipy.linalg.LinAlgError as error:
        raise SolverError(
            "a generalised eigenproblem could not be solved",
            where=f"{len(below)} dimensions",
            expected="a positive definite right-hand side",
            got=str(error),
            remedy="raise `heat`, or leave it out",
        ) from None
    return LinearMap(mean, canonical_signs(basis @ vectors), np.asarray(values))
