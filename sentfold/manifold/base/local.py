"""Locally linear embedding: of rows whose neighbours are known, and of new rows by their neighbours among these."""

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
TILE = 512  # rows and columns of one product: its float32 block then stays in the second cache while it is searched


class LocalSettings(Parameters):
    """Settings of a locally linear embedding.

    neighbors       k
    regularization  added to the Gram diagonal as a fraction of its trace
    components      p
    scaling         of each dimension: unit variance, or times lambda^(-1/4), or times lambda^(-1/2)
    """

    neighbors: int = Field(default=30, ge=1, le=10_000)
    regularization: float = Field(default=1e-3, gt=0, le=100)
    components: int = Field(default=128, ge=1, le=10_000)
    scaling: Scaling = "unit"


@dataclass(frozen=True)
class LocalEmbedding:
    """Coordinates, and the eigenpairs that they were scaled from.

    coordinates  (n, p) float64
    pairs        Eigenpairs, certificate included
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

    solve_weights, bottom_eigenvectors and scale_eigenvectors say what is raised and what it costs.
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
    """Eigenvectors as coordinates: times sqrt(n), and times a power of each eigenvalue over the last.

    vectors  (n, p) orthonormal columns
    values   (p,) eigenvalues of the columns, > 0
    scaling  unit: power 0, so Y^T Y / n = I, the paper's; quarter: power -1/4; half: power -1/2, as in a
             commute-time embedding. The smaller an eigenvalue, the more its dimension then weighs.
    Returns (n, p); with any scaling the last column has mean square 1. Cosines see only the ratios.
    Raises ParameterError for another scaling, or an eigenvalue that is not positive.
    Source: SBERT-LP eq. 15 (unit)
    """
    if scaling not in POWERS:
        raise ParameterError(
            "there is no such scaling", where="scaling", expected=f"one of: {', '.join(POWERS)}", got=repr(scaling)
        )
    if not (values > 0).all():
        raise ParameterError(
            "a null vector has no scale",
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
    """Coordinates of new rows: those of their nearest fitted rows, weighted as these rebuild the new row.

    queries         (m, d) finite, the new rows
    fitted          (n, d) finite, the rows that were embedded, or the same prepared for the search, which
                    saves a few milliseconds per call; embedding: (n, p), their coordinates
    n_neighbors     k, 1 <= k <= n; metric: what is near; prepared rows have their own
    regularization  of the weights, as in solve_weights
    block           rows mapped at a time; workers: threads. Neither changes a bit of the result.
    progress        called with the number of rows mapped since it was last called
    Returns (m, p) float64. A row that equals a fitted one gets that one's coordinates, exactly; one next
    to it does not come arbitrarily close to them, since regularised weights let the other neighbours in.
    Coordinates of new rows do not agree with those of a fit that includes them: see benchmarks/out_of_sample.py.
    Raises ParameterError if k or the regularisation does not fit, a row is not finite, or widths differ.
    Cost O(m n d) float32 for the neighbours and O(m k (k d + k^2 + p)) beyond; memory, without the answer, one
    float32 copy of `fitted` and O(block (d + k)).
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
    if queries.dtype != searched.rows.dtype:  # once, and not for every block
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
    """The weighted coordinates of the neighbours; of the one that equals the query, where there is one."""
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
    # The search has looked at every number already.
    weights = weights_of_checked(
        queries, fitted, neighbors, regularization=regularization, workers=workers, errors=False
    )
    m, k = neighbors.shape
    rows = sp.csr_array((weights.values.ravel(), neighbors.ravel(), np.arange(0, m * k + 1, k)), shape=(m, len(fitted)))
    return np.asarray(rows @ embedding)


def equal_neighbor(queries: Floating, fitted: Floating, nearest: Neighbors) -> npt.NDArray[np.int64]:
    """The first neighbour of each query that equals it, number by number; -1 if none does.

    A distance of 0 alone would not tell: under the cosine, multiples of a row are at 0 too.
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
