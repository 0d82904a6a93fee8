"""Spectral clustering of words on a sparse graph of nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from sentfold.clusterers.base import Floats
from sentfold.errors import ParameterError, SolverError, first_line
from sentfold.kernels.arrays import canonical_signs
from sentfold.neighbors.neighbors import nearest_neighbors
from sentfold.settings import Parameters
from sentfold.words.partition import CentroidRule, Float64, Partition, check_size
from sentfold.words.vectors import unit_length

TITLE = "spectral"
MODEL_CENTROIDS: CentroidRule | None = None


class Settings(Parameters):
    """The settings of the affinity graph and of k-means.

    neighbors  number of neighbours of each word in the graph, the word itself excluded
    distance   the metric of the graph
    rows       the points of k-means are the rows of the eigenvectors. degree: each row is divided by the square root
               of the word's degree (scikit-learn); unit: each row is divided by its length (Ng, Jordan & Weiss 2002,
               which the LASE thesis cites)
    restarts   number of runs of k-means
    """

    neighbors: int = Field(ge=1, le=10_000)
    distance: Literal["euclidean", "cosine"]
    rows: Literal["degree", "unit"]
    restarts: int = Field(ge=1, le=1000)


def cluster(
    vectors: Floats, weights: Float64, sizes: tuple[int, ...], *, seed: int, settings: Settings
) -> Iterator[Partition]:
    """Normalised spectral clustering, one partition per size; all sizes share one eigenvalue problem.

    k-means runs on the rows of the leading eigenvectors of D^-1/2 A D^-1/2, each divided by sqrt(D) or by its length.
    `rows: degree` is the method of scikit-learn's SpectralClustering(affinity="nearest_neighbors"). The solver of
    scikit-learn factors a sparse matrix, and the factors fill in; the solver here, Lanczos, only multiplies.
    vectors  (v, d); weights are ignored
    Raises ParameterError if a size or the number of neighbours does not fit, SolverError if Lanczos fails.
    Cost O(v^2 d) for the graph, O(v k) per step of Lanczos.
    Source: Shi & Malik 2000, doi:10.1109/34.868688; Ng, Jordan & Weiss, NIPS 2001; von Luxburg 2007,
    doi:10.1007/s11222-007-9033-z
    """
    n = len(vectors)
    for size in sizes:
        check_size(size, n)
    if settings.neighbors >= n:
        raise ParameterError(
            "more neighbours than other words",
            where="spectral.neighbors",
            expected=f"at most {n - 1} neighbours for {n} words",
            got=str(settings.neighbors),
            remedy="lower `neighbors` in params.yaml, or add a corpus",
        )
    with threadpool_limits(1):
        affinity = neighbor_affinity(vectors, settings.neighbors, distance=settings.distance)
        embedding, notes = spectral_embedding(affinity, max(sizes), seed=seed)
    for size in sizes:
        yield _cluster_rows(embedding[:, :size], size, seed, settings, notes)


def neighbor_affinity(vectors: Floats, neighbors: int, *, distance: str) -> sp.csr_array:
    """(A + A^T) / 2 with A[i, j] = 1 if j is i or one of its nearest neighbours: (v, v), sparse."""
    n = len(vectors)
    found = nearest_neighbors(
        vectors, neighbors, metric="cosine" if distance == "cosine" else "euclidean", workers=1
    ).indices
    columns = np.hstack([np.arange(n, dtype=np.int32)[:, None], found]).ravel()
    starts = np.arange(0, n * (neighbors + 1) + 1, neighbors + 1)
    directed = sp.csr_array((np.ones(len(columns)), columns, starts), shape=(n, n))
    return sp.csr_array((directed + directed.T) / 2)


def spectral_embedding(affinity: sp.csr_array, size: int, *, seed: int) -> tuple[Float64, dict[str, Any]]:
    """The points of k-means: the rows of the first `size` eigenvectors of the random walk on the graph.

    affinity  (n, n) symmetric, non-negative, every row with a positive sum
    Returns (n, size) float64, largest eigenvalue first, and the eigenvalues in the notes. Column j solves
    D^-1 A x = l_j x, with x^T D x = 1; signs are canonical.
    """
    n = affinity.shape[0]
    roots = np.sqrt(np.asarray(affinity.sum(axis=1)).ravel())
    scaled = sp.csr_array(sp.diags_array(1 / roots) @ affinity @ sp.diags_array(1 / roots))
    # Eigenvalue 1 occurs once per connected component, and its eigenvectors are known; Lanczos from one start
    # vector would find only one of them. Larger components come first, because there may be more than `size`.
    count, component = connected_components(affinity, directed=False)
    place = np.empty(count, dtype=np.int64)
    place[np.argsort(-np.bincount(component), kind="stable")] = np.arange(count)
    known = np.zeros((n, count))
    known[np.arange(n), place[component]] = roots
    known /= np.sqrt(np.einsum("ij,ij->j", known, known))
    values, vectors = np.ones(count), known
    if count < size:
        more_values, more = _leading_eigenvectors(scaled, known, size - count, seed)
        values, vectors = np.concatenate([values, more_values]), np.hstack([known, more])
    embedding = canonical_signs(vectors[:, :size] / roots[:, None])
    return embedding, {"components": int(count), "eigenvalues": values[:size].tolist()}


def _leading_eigenvectors(scaled: sp.csr_array, known: Float64, count: int, seed: int) -> tuple[Float64, Float64]:
    """The `count` largest eigenpairs of `scaled` orthogonal to `known`, largest first."""
    n = scaled.shape[0]
    rest = n - known.shape[1]

    def apply(v: Float64) -> Float64:
        # A shift by 1 moves all eigenvalues to [0, 2]; the known ones are projected out, which moves them to 0.
        result: Float64 = scaled @ v + v
        return result - known @ (known.T @ result)

    if count >= rest or n <= max(4 * count, 200):
        dense = scaled.toarray() + np.eye(n)
        dense -= known @ (known.T @ dense)
        values, vectors = np.linalg.eigh((dense + dense.T) / 2)
        return values[::-1][:count] - 1, vectors[:, ::-1][:, :count]
    start = np.random.default_rng(seed).standard_normal(n)
    try:
        values, vectors = eigsh(
            LinearOperator((n, n), matvec=apply, dtype=np.float64),
            k=count,
            which="LA",
            v0=start - known @ (known.T @ start),
            ncv=min(n - 1, max(2 * count + 20, 60)),
            tol=1e-10,
        )
    except ArpackError as error:
        raise SolverError(
            "the eigenvectors of the word graph were not found",
            where="clusterings: spectral",
            got=first_line(error),
            remedy="raise `neighbors`, so that the graph is connected, or lower `sizes`",
        ) from None
    order = np.argsort(-values, kind="stable")
    return values[order] - 1, vectors[:, order]


def _cluster_rows(rows: Float64, size: int, seed: int, settings: Settings, notes: dict[str, Any]) -> Partition:
    from sklearn.cluster import KMeans

    if settings.rows == "unit":
        # Division by the square root of the degree did not change the direction of a row.
        rows = unit_length(rows)
    # A second limit: the first one covers only the libraries that were loaded before it, and scikit-learn came later.
    with threadpool_limits(1):
        labels = KMeans(size, n_init=settings.restarts, random_state=seed).fit_predict(np.ascontiguousarray(rows))
    return Partition(labels.astype(np.int32), size, None, {**notes, "eigenvalues": notes["eigenvalues"][:size]})
