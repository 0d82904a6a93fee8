"""Locally linear embedding of rows whose neighbours are known, and of new rows by their nearest embedded rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from pydantic import Field

from sentfold.errors import ParameterError, located
from sentfold.manifold.base.protocol import SolverSettings
from sentfold.manifold.solver.eigensolver import Eigenpairs, bottom_eigenvectors, weight_matrix
from sentfold.manifold.solver.search import Progress
from sentfold.manifold.weights.weights import refuse_regularization, solve_weights, weights_of_checked
from sentfold.neighbors.neighbors import Neighbors, Searched, nearest_among
from sentfold.neighbors.points import Metric
from sentfold.settings import Parameters

Float64 = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating[Any]]
Scaling = Literal["unit", "quarter", "half"]

POWERS: dict[str, float] = {"unit": 0.0, "quarter": -0.25, "half": -0.5}
BLOCK = 8192  # rows mapped at a time
TILE = 512  # rows and columns of one block of distances; as float32 it stays in the second-level cache


class LocalSettings(Parameters):
    """Settings of a locally linear embedding.

    neighbors       k
    regularization  added to the Gram diagonal as a fraction of its trace
    components      p
    scaling         unit: each dimension has unit variance; quarter: times lambda^(-1/4); half: times lambda^(-1/2)
    """

    neighbors: int = Field(default=30, ge=1, le=10_000)
    regularization: float = Field(default=1e-3, gt=0, le=100)
    components: int = Field(default=128, ge=1, le=10_000)
    scaling: Scaling = "unit"


@dataclass(frozen=True)
class LocalEmbedding:
    """Coordinates, and the eigenpairs from which they are computed.

    coordinates  (n, p) float64
    pairs        Eigenpairs, with their certificate
    degenerate   number of rows that equal all of their neighbours
    """

    coordinates: Float64
    pairs: Eigenpairs
    degenerate: int


def embed_locally(
    x: Floating,
    neighbors: npt.NDArray[np.integer[Any]],
    settings: LocalSettings,
    solver: SolverSettings,
    *,
    workers: int = 2,
    progress: Progress | None = None,
) -> LocalEmbedding:
    """The locality-preserving coordinates of (n, d) rows with their (n, k) neighbours.

    Errors and cost are those of solve_weights, bottom_eigenvectors and scale_eigenvectors.
    Source: SBERT-LP eq. 9-17
    """
    weights = solve_weights(x, neighbors, regularization=settings.regularization, workers=workers)
    pairs = bottom_eigenvectors(
        weight_matrix(neighbors, weights.values),
        settings.components,
        **solver.model_dump(),
        workers=workers,
        progress=progress,
    )
    coordinates = scale_eigenvectors(pairs.vectors, pairs.values, settings.scaling)
    return LocalEmbedding(coordinates, pairs, len(weights.degenerate))


def scale_eigenvectors(vectors: Float64, values: Float64, scaling: Scaling) -> Float64:
    """Coordinates from eigenvectors: v_i sqrt(n) (lambda_i / lambda_p)^power.

    vectors  (n, p) orthonormal columns
    values   (p,) eigenvalues of the columns, > 0
    scaling  unit: power 0, so Y^T Y / n = I, as in the paper; quarter: power -1/4; half: power -1/2, as in a
             commute-time embedding. A negative power gives dimensions of smaller eigenvalues more weight
    Returns (n, p). With every scaling the last column has mean square 1; cosines depend on the ratios alone.
    Raises ParameterError for an unknown scaling, or an eigenvalue that is not positive.
    Source: SBERT-LP eq. 15 (unit)
    """
    if scaling not in POWERS:
        raise ParameterError(
            "there is no such scaling", where="scaling", expected=f"one of: {', '.join(POWERS)}", got=repr(scaling)
        )
    if not (values > 0).all():
        raise ParameterError(
            "a null vector cannot be scaled",
            where="eigenvalues",
            expected="all > 0",
            got=f"{values.min():.3g}",
            remedy="raise `null_tolerance`, so that null vectors are skipped",
        )
    scaled: Float64 = vectors * (np.sqrt(len(vectors)) * (values / values[-1]) ** POWERS[scaling])
    return scaled


def map_out_of_sample(
    queries: Floating,
    fitted: Floating | Searched,
    embedding: Float64,
    *,
    n_neighbors: int,
    metric: Metric = "euclidean",
    regularization: float,
    block: int = BLOCK,
    workers: int = 2,
    progress: Callable[[int], object] | None = None,
) -> Float64:
    """Coordinates of new rows: means of their neighbours' coordinates, with the weights that rebuild the new row.

    queries         (m, d) finite, the new rows; their neighbours are the nearest fitted rows
    fitted          (n, d) finite, the embedded rows; or the result of Searched.prepare for them, which saves a
                    few milliseconds per call
    embedding       (n, p), coordinates of the fitted rows
    n_neighbors     k, 1 <= k <= n
    metric          of the search for neighbours; prepared rows have their own metric instead
    regularization  of the weights, as in solve_weights
    block           rows mapped at a time; workers: threads. Neither changes a bit of the result.
    progress        called with the number of rows mapped since the last call
    Returns (m, p) float64. A row that equals a fitted row gets exactly the coordinates of the fitted row. The
    coordinates are not continuous there: regularised weights also use the other neighbours of a nearby row.
    A fit that includes the new rows gives them other coordinates: see benchmarks/out_of_sample.py.
    Raises ParameterError if k or the regularisation does not fit, a row is not finite, or d differs.
    Cost O(m n d) float32 operations for the neighbours and O(m k (k d + k^2 + p)) for the rest; memory besides the
    result: one float32 copy of `fitted` and O(block (d + k)).
    Source: Saul & Roweis 2003, Think globally, fit locally, JMLR 4:119-155
    """
    searched = fitted if isinstance(fitted, Searched) else Searched.prepare(fitted, metric=metric)
    if len(searched.rows) != len(embedding):
        raise ParameterError(
            "the embedding is not that of the fitted rows",
            where="embedding",
            expected=f"{len(searched.rows)} rows",
            got=f"{len(embedding)}",
        )
    refuse_regularization(regularization)
    if queries.dtype != searched.rows.dtype:  # converted once, not for every block
        queries = queries.astype(np.float64, copy=False)
        if searched.rows.dtype != np.float64:
            searched = Searched.prepare(searched.rows.astype(np.float64), metric=searched.frame.metric)
    images = np.empty((len(queries), embedding.shape[1]))
    for start in range(0, len(queries), block):
        part = np.ascontiguousarray(queries[start : start + block])
        with located(f"rows from {start} on"):
            nearest = nearest_among(part, searched, n_neighbors, block=TILE, workers=workers)
            images[start : start + block] = _combine(part, searched.rows, embedding, nearest, regularization, workers)
        if progress:
            progress(len(part))
    return images


def _combine(
    queries: Floating, fitted: Floating, embedding: Float64, nearest: Neighbors, regularization: float, workers: int
) -> Float64:
    """The weighted mean of the neighbours' coordinates; if a neighbour equals the query, that neighbour's."""
    equal = equal_neighbor(queries, fitted, nearest)
    new = np.flatnonzero(equal < 0)
    if len(new) == len(queries):
        return _weighted_mean(queries, fitted, embedding, nearest.indices, regularization, workers)
    images = embedding[equal]
    if len(new):
        images[new] = _weighted_mean(queries[new], fitted, embedding, nearest.indices[new], regularization, workers)
    return images


def _weighted_mean(
    queries: Floating,
    fitted: Floating,
    embedding: Float64,
    neighbors: npt.NDArray[np.int32],
    regularization: float,
    workers: int,
) -> Float64:
    # The search has already checked that every number is finite.
    weights = weights_of_checked(
        queries, fitted, neighbors, regularization=regularization, workers=workers, errors=False
    )
    m, k = neighbors.shape
    rows = sp.csr_array((weights.values.ravel(), neighbors.ravel(), np.arange(0, m * k + 1, k)), shape=(m, len(fitted)))
    return np.asarray(rows @ embedding)


def equal_neighbor(queries: Floating, fitted: Floating, nearest: Neighbors) -> npt.NDArray[np.int64]:
    """The first neighbour of each query whose vector equals the query's; -1 if there is no such neighbour.

    A distance of 0 is not enough: the cosine distance of a row to a multiple of the row is 0 too.
    """
    equal = np.full(len(queries), -1, dtype=np.int64)
    for column in range(nearest.indices.shape[1]):
        open_ = np.flatnonzero((nearest.distances[:, column] == 0) & (equal < 0))
        if not len(open_):
            break
        candidates = nearest.indices[open_, column]
        same = (queries[open_] == fitted[candidates]).all(axis=1)
        equal[open_[same]] = candidates[same]
    return equal
