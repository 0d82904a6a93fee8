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
    """neighbors: of each word in the affinity graph, itself aside. distance: of the graph. restarts: of k-means.

    rows: what k-means is run on, the rows of the eigenvectors each divided by the square root of the word's
    degree (scikit-learn), or each of length 1 (Ng, Jordan & Weiss 2002, which the LASE thesis cites).
    """

    neighbors: int = Field(ge=1, le=10_000)
    distance: Literal["euclidean", "cosine"]
    rows: Literal["degree", "unit"]
    restarts: int = Field(ge=1, le=1000)


def cluster(
    vectors: Floats, weights: Float64, sizes: tuple[int, ...], *, seed: int, settings: Settings
) -> Iterator[Partition]:
    """Normalised spectral clustering, one partition per size; one solve serves all sizes.

    The leading eigenvectors of D^-1/2 A D^-1/2, their rows divided by sqrt(D) or by their length, then k-means.
    With `rows: degree` that is scikit-learn's SpectralClustering(affinity="nearest_neighbors"), whose solver
    factors a sparse matrix that fills in at 300 dimensions; here Lanczos only multiplies, once for all sizes.
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
            expected=f"at most {n - 1}, for {n} words",
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
    """The rows that k-means is run on: eigenvectors 1..size of the random walk on the graph.

    affinity  (n, n) symmetric, non-negative, every row with a positive sum
    Returns (n, size) float64, largest eigenvalue first, and the eigenvalues in the notes. Column j solves
    D^-1 A x = l_j x, with x^T D x = 1; signs are canonical.
    """
    n = affinity.shape[0]
    roots = np.sqrt(np.asarray(affinity.sum(axis=1)).ravel())
    scaled = sp.csr_array(sp.diags_array(1 / roots) @ affinity @ sp.diags_array(1 / roots))
    # Eigenvalue 1 comes once per connected component, and its vectors are known; Lanczos from one start
    # vector would see only one of them. Larger components first, for all may not be wanted.
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
        # Shifted by 1: all eigenvalues are then in [0, 2], and the known ones, projected out, at the bottom.
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
            remedy="raise `neighbors`, so that the graph hangs together, or lower `sizes`",
        ) from None
    order = np.argsort(-values, kind="stable")
    return values[order] - 1, vectors[:, order]


def _cluster_rows(rows: Float64, size: int, seed: int, settings: Settings, notes: dict[str, Any]) -> Partition:
    from sklearn.cluster import KMeans

    if settings.rows == "unit":
        # The direction of a row is the same before and after it is divided by its root of the degree.
        rows = unit_length(rows)
    # Again: a limit reaches only the libraries that were loaded before it.
    with threadpool_limits(1):
        labels = KMeans(size, n_init=settings.restarts, random_state=seed).fit_predict(np.ascontiguousarray(rows))
    return Partition(labels.astype(np.int32), size, None, {**notes, "eigenvalues": notes["eigenvalues"][:size]})
