"""Principal axes of centred rows, and the maps that keep, whiten or remove them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ParameterError
from pipeline.manifold.maps import Float64, LinearMap, canonical_signs, check_count, row_blocks

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class PrincipalAxes:
    """The eigenvectors of a covariance, once for every map that is built on them.

    mean       (d,) float64
    axes       (d, d) float64, orthonormal columns by descending variance, entry of largest modulus positive
    variances  (d,) float64 >= 0, of the rows along each axis, n - 1 in the denominator
    rank       axes whose variance stands above the rounding of its own computation
    rows       n
    """

    mean: Float64
    axes: Float64
    variances: Float64
    rank: int
    rows: int

    def share(self, p: int) -> float:
        """The part of the total variance along the first p axes; 1 where there is no variance at all."""
        total = float(self.variances.sum())
        return float(self.variances[:p].sum()) / total if total > 0 else 1.0


def principal_axes(x: npt.NDArray[np.floating[Any]]) -> PrincipalAxes:
    """All principal axes of centred rows, by the eigenvectors of their (d, d) scatter.

    x  (n, d) finite, n >= 1, one sentence per row; computed in float64 whatever its type
    The blocks of rows and their order are fixed, so with BLAS on one thread (threadpool_limits(1),
    which the stages and estimators set) equal input gives equal bits on any number of cores.
    Cost O(n d^2 + d^3) time, O(block d + d^2) memory: no float64 copy of x.
    Source: Hotelling 1933, doi:10.1037/h0071325
    """
    n, d = x.shape
    mean = _mean(x)
    scatter = np.zeros((d, d))
    for rows in row_blocks(n):
        centred = np.asarray(x[rows], dtype=np.float64) - mean
        scatter += centred.T @ centred
    values, vectors = np.linalg.eigh(scatter)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    # An eigenvalue is known to a few max(n, d) eps of the largest, and centring leaves eps |mean| in every row.
    floor = max(8 * max(n, d) * EPS * values[0], n * (4 * EPS) ** 2 * float(mean @ mean))
    return PrincipalAxes(
        mean=mean,
        axes=canonical_signs(np.ascontiguousarray(vectors)),
        variances=values / max(n - 1, 1),
        rank=min(int((values > floor).sum()), n - 1),
        rows=n,
    )


def principal_map(axes: PrincipalAxes, p: int | None) -> LinearMap:
    """The projection onto the p leading axes: PCA.

    p  1 <= p <= min(n, d); None for all of these
    Returns a map with a (d, p) matrix; its eigenvalues are the variances.
    Raises ParameterError if p does not fit.
    """
    p = _fitting(axes, p)
    return LinearMap(axes.mean, axes.axes[:, :p], axes.variances[:p])


def whitening_map(axes: PrincipalAxes, p: int | None, *, power: float) -> LinearMap:
    """The projection onto the p leading axes, each divided by its standard deviation to a power.

    p      1 <= p <= min(n, d); None for all of these
    power  0 is PCA, 1 gives the fitted rows unit covariance, 0.5 lies half-way; 0 <= power <= 1
    An axis beyond the rank has no deviation to divide by, only rounding: for power > 0 it maps to 0,
    so noise is never raised to the size of a signal, for fitted rows or new ones.
    Raises ParameterError if p or power does not fit.
    Source: Su et al. 2021, arXiv:2103.15316 (power 1); Kessy, Lewin & Strimmer 2018,
    doi:10.1080/00031305.2016.1277159
    """
    if isinstance(power, bool) or not (isfinite(power) and 0 <= power <= 1):
        raise ParameterError(
            "the power of a whitening is out of range",
            where="power",
            expected="0 (PCA) <= power <= 1 (full whitening)",
            got=repr(power),
        )
    plain = principal_map(axes, p)
    scale = np.ones(len(plain.eigenvalues))
    if power > 0:
        scale[axes.rank :] = 0.0
        scale[: axes.rank] = plain.eigenvalues[: axes.rank] ** (-power / 2)
    return LinearMap(plain.mean, plain.matrix * scale, plain.eigenvalues)


def removal_map(axes: PrincipalAxes, removed: int) -> LinearMap:
    """All but the top: centre, and project away the first principal axes. Keeps the dimension.

    removed  D, 0 <= D < rank; 0 only centres. The authors' rule of thumb for word vectors is d / 100.
    Returns a map with a (d, d) matrix; its eigenvalues are the D removed variances. The projection is
    taken of the centred row, so the fitted rows keep mean zero.
    Raises ParameterError if nothing would be left.
    Source: Mu & Viswanath 2018, arXiv:1702.01417, algorithm 1
    """
    check_count(removed, "D", least=0, most=axes.rank - 1, where="removed", meaning="rank of the centred rows - 1")
    top = axes.axes[:, :removed]
    return LinearMap(axes.mean, np.eye(len(axes.mean)) - top @ top.T, axes.variances[:removed])


def whitened_basis(axes: PrincipalAxes) -> Float64:
    """(d, rank): columns that give the centred rows unit variance and leave out their null space."""
    return axes.axes[:, : axes.rank] / np.sqrt(axes.variances[: axes.rank])


def _fitting(axes: PrincipalAxes, p: int | None) -> int:
    most = min(axes.rows, len(axes.mean))
    if p is None:
        return most
    return check_count(p, "p", least=1, most=most, where="components", meaning="min(n, d)")


def _mean(x: npt.NDArray[np.floating[Any]]) -> Float64:
    """The mean of rows; the second round takes away what rounding left in the first."""
    mean = np.zeros(x.shape[1])
    for _ in range(2):
        total = np.zeros(x.shape[1])
        for rows in row_blocks(len(x)):
            total += (np.asarray(x[rows], dtype=np.float64) - mean).sum(axis=0)
        mean = mean + total / len(x)
    return mean
