"""The spectral clustering of the released LASE code: a blurred, thresholded, diffused cosine affinity.

The method was made for the speakers in a recording, where adjacent rows are adjacent in time. Here adjacent rows
are words of adjacent frequency rank: the blur mixes words of similar frequency, so *the clusters depend on the
order of the vocabulary*. Another order of the words gives another partition; `sigma: 0` removes the dependence.

No dense (n, n) matrix is kept. Let P P^T be the affinity (1 + cos) / 2, c the change of its diagonal by cropping,
and G the banded blur matrix. The blurred affinity B = (G P)(G P)^T + G diag(c) G^T is low rank plus sparse.
Thresholding multiplies the entries below the threshold by `shrink`: the result is shrink B plus a sparse matrix of
the few entries above. Diffusion squares that matrix. The division of each row by its maximum gives a matrix that
is similar to a symmetric one, so a symmetric eigenproblem with the same eigenvalues is solved instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from pydantic import Field
from scipy.ndimage import gaussian_filter1d
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from sentfold.clusterers.base import Floats
from sentfold.errors import ParameterError, SolverError, first_line
from sentfold.kernels.arrays import canonical_signs
from sentfold.neighbors.points import squared_lengths
from sentfold.settings import Parameters
from sentfold.words.partition import CentroidRule, Float64, Partition, check_size

# Limit on the entries above the threshold, which are kept in memory at 12 bytes each.
MAX_KEPT = 200_000_000

TITLE = "blurred affinity"
MODEL_CENTROIDS: CentroidRule | None = None


class Settings(Parameters):
    """The affinity of the released LASE code.

    sigma      width of the Gaussian blur, in frequency ranks; 0 = no blur
    threshold  an entry below this share of the maximum of its row is shrunk
    shrink     factor of the entries below the threshold
    spare      how many clusters more than the requested size the eigengap may choose
    stop       eigenvalues below this are ignored by the eigengap rule
    restarts   number of runs of k-means
    """

    sigma: float = Field(ge=0, le=100)
    threshold: float = Field(ge=0, le=1)
    shrink: float = Field(ge=0, le=1)
    spare: int = Field(ge=0, le=1000)
    stop: float = Field(ge=0, le=1)
    restarts: int = Field(ge=1, le=1000)


def cluster(
    vectors: Floats, weights: Float64, sizes: tuple[int, ...], *, seed: int, settings: Settings
) -> Iterator[Partition]:
    """One partition per size; the eigengap may choose up to `spare` clusters more than the requested size.

    vectors  (v, d), in the order of frequency rank, which changes the result; no zero row; weights are ignored
    If the eigengap chooses more clusters than requested, the partition has the chosen number; the released code
    fails in that case.
    Raises ParameterError if a size does not fit, if a vector is zero, not finite or cannot be squared, or if the
    threshold keeps too much; SolverError if Lanczos fails. Cost O(v^2 d) time in blocks, O(v (d + kept)) memory.
    Source: spectralcluster 0.1.0 with p_percentile 0.95, after Wang et al. 2018, doi:10.1109/ICASSP.2018.8462628
    """
    n = len(vectors)
    for size in sizes:
        check_size(size, n)
    with threadpool_limits(1):
        affinity = diffused_affinity(vectors, settings)
        values, rows = _leading_rows(affinity, min(n, max(sizes) + settings.spare + 1), seed)
    for size in sizes:
        yield _cluster(values, rows, size, seed, settings)


@dataclass(frozen=True)
class Diffused:
    """D^-1 Y^2 with Y = shrink Q Q^T + S.

    q      (n, d + 1) float64
    s      (n, n) sparse symmetric
    shrink factor of the low-rank part
    peaks  (n,) row maxima of Y^2, the diagonal of D
    """

    q: Float64
    s: sp.csr_array
    shrink: float
    peaks: Float64

    def apply(self, v: Float64) -> Float64:
        """Y v."""
        result: Float64 = self.shrink * (self.q @ (self.q.T @ v)) + self.s @ v
        return result


def diffused_affinity(vectors: Floats, settings: Settings, *, block: int = 1024) -> Diffused:
    """Crop, blur, threshold, symmetrise, diffuse; see the docstring of this module. block: rows at a time."""
    n = len(vectors)
    x = np.asarray(vectors, dtype=np.float64)
    lengths = np.sqrt(squared_lengths(x, name="word"))
    if not lengths.all():
        raise ParameterError(
            "a word has a zero vector, which has no cosine",
            where="clusterings: blurred",
            got=f"{int((lengths == 0).sum())} of {n} words",
            remedy="use `missing: drop` or `missing: mean` for these word vectors",
        )
    p = np.hstack([np.ones((n, 1)), x / lengths[:, None]]) / np.sqrt(2)
    blocks = [slice(start, min(n, start + block)) for start in range(0, n, block)]
    crop = np.concatenate([_largest_other(p, rows) for rows in blocks]) - np.einsum("ij,ij->i", p, p)
    if settings.sigma > 0:
        q = gaussian_filter1d(p, settings.sigma, axis=0, mode="reflect")
        g = _blur_matrix(n, settings.sigma)
        banded = sp.csr_array(g @ sp.diags_array(crop) @ g.T)
    else:
        q, banded = p, sp.csr_array(sp.diags_array(crop))
    s = _above_threshold(q, banded, settings, blocks)
    peaks = _row_maxima(q, s, settings.shrink, blocks)
    if not peaks.min() > 0:
        raise ParameterError(
            "a word has no affinity to any word",
            where="clusterings: blurred",
            expected="two words or more whose vectors are not all opposite",
            got=f"{int((peaks <= 0).sum())} of {n} words without",
            remedy="add a corpus, or use another clusterer",
        )
    return Diffused(q, s, settings.shrink, peaks)


def _largest_other(p: Float64, rows: slice) -> Float64:
    """The largest affinity of each row to another row."""
    affinity = p[rows] @ p.T
    affinity[np.arange(rows.stop - rows.start), np.arange(rows.start, rows.stop)] = 0.0
    largest: Float64 = affinity.max(axis=1)
    return largest


def _blur_matrix(n: int, sigma: float) -> sp.csr_array:
    """The (n, n) banded matrix of scipy's Gaussian filter with reflecting ends."""
    radius = int(4.0 * sigma + 0.5)
    kernel = gaussian_filter1d(np.eye(1, 2 * radius + 1, radius)[0], sigma, mode="constant")
    # The modulus: where the kernel is longer than the vocabulary, a reflected index is reflected again.
    offsets = np.arange(-radius, radius + 1)
    places = (np.arange(n)[:, None] + offsets) % (2 * n)
    places = np.where(places >= n, 2 * n - 1 - places, places)
    rows = np.repeat(np.arange(n), len(offsets))
    return sp.csr_array(sp.coo_array((np.tile(kernel, n), (rows, places.ravel())), shape=(n, n)))


def _above_threshold(q: Float64, banded: sp.csr_array, settings: Settings, blocks: list[slice]) -> sp.csr_array:
    """S: shrink * banded + (1 - shrink) * (the entries of B that reach the threshold of their row or column)."""
    n = len(q)
    above = []
    kept = 0
    for rows in blocks:
        b = q[rows] @ q.T + banded[rows].toarray()
        mask = b >= settings.threshold * b.max(axis=1, keepdims=True)
        kept += int(mask.sum())
        if kept > MAX_KEPT:
            raise ParameterError(
                "the threshold keeps too much of the affinity",
                where="clusterings: blurred.threshold",
                expected=f"at most {MAX_KEPT} entries above the threshold",
                got=f"{kept} in the first {rows.stop} of {n} words",
                remedy="raise `threshold`, or `vocabulary.minimum_count`",
            )
        above.append(sp.csr_array(np.where(mask, b, 0.0)))
    upper = sp.csr_array(sp.vstack(above))
    # B is symmetric, so the maximum of an entry and its transpose is the value of B if either of the two was kept.
    return sp.csr_array(settings.shrink * banded + (1 - settings.shrink) * upper.maximum(upper.T))


def _row_maxima(q: Float64, s: sp.csr_array, shrink: float, blocks: list[slice]) -> Float64:
    """max_j (Y^2)_ij, Y^2 = shrink^2 Q (Q^T Q) Q^T + shrink (Q (S Q)^T + (S Q) Q^T) + S^2, a block at a time."""
    sq = s @ q
    left = shrink**2 * q @ (q.T @ q) + shrink * sq
    peaks = []
    for rows in blocks:
        z = left[rows] @ q.T + shrink * (q[rows] @ sq.T)
        z += (s[rows] @ s).toarray()
        peaks.append(z.max(axis=1))
    return np.concatenate(peaks)


def _leading_rows(affinity: Diffused, count: int, seed: int) -> tuple[Float64, Float64]:
    """The `count` largest eigenvalues of D^-1 Y^2 and their unit eigenvectors, (n, count)."""
    n = len(affinity.peaks)
    roots = np.sqrt(affinity.peaks)

    def apply(v: Float64) -> Float64:
        result: Float64 = affinity.apply(affinity.apply(v.ravel() / roots)) / roots
        return result

    if n <= max(4 * count, 200):
        dense = np.column_stack([apply(column) for column in np.eye(n)])
        values, vectors = np.linalg.eigh((dense + dense.T) / 2)
    else:
        try:
            values, vectors = eigsh(
                LinearOperator((n, n), matvec=apply, dtype=np.float64),
                k=count,
                which="LA",
                v0=np.random.default_rng(seed).standard_normal(n),
                ncv=min(n - 1, max(2 * count + 20, 60)),
                tol=1e-10,
            )
        except ArpackError as error:
            raise SolverError(
                "the eigenvectors of the blurred affinity were not found",
                where="clusterings: blurred",
                got=first_line(error),
                remedy="lower `sizes` or `spare`",
            ) from None
    order = np.argsort(-values, kind="stable")[:count]
    rows = vectors[:, order] / roots[:, None]
    rows /= np.sqrt(np.einsum("ij,ij->j", rows, rows))
    return values[order], canonical_signs(rows)


def choose_by_eigengap(values: Float64, *, largest: int, stop: float) -> int:
    """The number i <= `largest` of clusters with the greatest ratio l_i / l_{i+1} of eigenvalues; 0 if there is none.

    values  eigenvalues, largest first; an l_i below `stop` is ignored
    """
    best, chosen = 0.0, 0
    for i in range(1, min(largest + 1, len(values))):
        if values[i - 1] < stop:
            break
        ratio = float(values[i - 1] / values[i]) if values[i] != 0 else np.inf
        if ratio > best:
            best, chosen = ratio, i
    return chosen


def _cluster(values: Float64, rows: Float64, size: int, seed: int, settings: Settings) -> Partition:
    from sklearn.cluster import KMeans

    largest = min(size + settings.spare, len(rows))
    chosen = max(size, choose_by_eigengap(values, largest=largest, stop=settings.stop))
    model = KMeans(chosen, n_init=settings.restarts, random_state=seed)
    # A second limit: the first one covers only the libraries that were loaded before it, and scikit-learn came later.
    with threadpool_limits(1):
        labels = model.fit_predict(np.ascontiguousarray(rows[:, :chosen]))
    notes = {"asked": size, "eigenvalues": values[: chosen + 1].tolist()}
    return Partition(labels.astype(np.int32), chosen, None, notes)
