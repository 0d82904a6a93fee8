"""New rows by their neighbours among embedded ones: the barycentric map of LLE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from pipeline.errors import ParameterError, located
from pipeline.manifold.neighbors import Neighbors, Searched, nearest_among
from pipeline.manifold.points import Metric
from pipeline.manifold.weights import refuse_regularization, weights_of_checked

Float64 = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating[Any]]

BLOCK = 8192  # rows mapped at a time
TILE = 512  # rows and columns of one product: its float32 block then stays in the second cache while it is searched


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
    Cost O(m n d) float32 for the neighbours and O(m k (k d + k^2 + p)) beyond; memory beside the answer one
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
            found = nearest_among(part, searched, n_neighbors, block=TILE, workers=workers)
            images[start : start + block] = _combine(part, searched.rows, embedding, found, regularization, workers)
        if progress:
            progress(len(part))
    return images


def _combine(
    queries: Floating, fitted: Floating, embedding: Float64, found: Neighbors, regularization: float, workers: int
) -> Float64:
    """The weighted coordinates of the neighbours; of the one that equals the query, where there is one."""
    twin = equal_neighbor(queries, fitted, found)
    new = np.flatnonzero(twin < 0)
    if len(new) == len(queries):
        return _weighted_mean(queries, fitted, embedding, found.indices, regularization, workers)
    images = embedding[twin]
    if len(new):
        images[new] = _weighted_mean(queries[new], fitted, embedding, found.indices[new], regularization, workers)
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


def equal_neighbor(queries: Floating, fitted: Floating, found: Neighbors) -> npt.NDArray[np.int64]:
    """The first neighbour of each query that equals it, number by number; -1 if none does.

    A distance of 0 alone would not tell: under the cosine, multiples of a row are at 0 too.
    """
    twin = np.full(len(queries), -1, dtype=np.int64)
    for column in range(found.indices.shape[1]):
        open_ = np.flatnonzero((found.distances[:, column] == 0) & (twin < 0))
        if not len(open_):
            break
        candidates = found.indices[open_, column]
        same = (queries[open_] == fitted[candidates]).all(axis=1)
        twin[open_[same]] = candidates[same]
    return twin
