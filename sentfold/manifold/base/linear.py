"""Linear maps of rows: their form, principal axes, and the sums over neighbours that some of them are learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from sentfold.errors import ParameterError, SolverError
from sentfold.kernels.arrays import Float64, canonical_signs, row_blocks

Rows = npt.NDArray[np.integer[Any]]

EPS = float(np.finfo(np.float64).eps)
BLOCK = 256  # rows at a time where each row brings its neighbours: block x k x d float64 stay near 50 MB


@dataclass(frozen=True)
class LinearMap:
    """x -> (x - mean) matrix: what a linear method learned, for its own rows and for new ones.

    mean         (d,) float64, mean of the rows it was fitted on
    matrix       (d, p) float64
    eigenvalues  of the problem that gave the map, in the order of its columns where it has one each
    """

    mean: Float64
    matrix: Float64
    eigenvalues: Float64

    def apply(self, x: npt.NDArray[np.floating[Any]], *, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """The images of rows.

        x      (n, d), fitted or new; computed in float64 whatever its type
        dtype  of the answer
        Returns (n, p). Cost O(n d p) time, O(block (d + p)) memory without the answer.
        """
        images = np.empty((len(x), self.matrix.shape[1]), dtype=dtype)
        for rows in row_blocks(len(x)):
            images[rows] = (np.asarray(x[rows], dtype=np.float64) - self.mean) @ self.matrix
        return images


@dataclass(frozen=True)
class PrincipalAxes:
    """The eigenvectors of a covariance, once for every map that is built on them.

    mean       (d,) float64
    axes       (d, d) float64, orthonormal columns by descending variance, entry of largest modulus positive
    variances  (d,) float64 >= 0, of the rows along each axis, n - 1 in the denominator
    rank       axes whose variance is above the rounding of its own computation
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


def check_count(value: Any, symbol: str, *, least: int, most: int, where: str, meaning: str) -> int:
    """`value` as an int; ParameterError unless it is a whole number from `least` to `most`.

    symbol   what the papers call it, e.g. "p"
    where    the parameter that gives it
    meaning  what `most` is, e.g. "min(n, d)"
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        raise ParameterError(
            f"{symbol} does not fit the data",
            where=where,
            expected=f"a whole number, {least} <= {symbol} <= {meaning} = {most}",
            got=f"{symbol} = {value!r}",
            remedy=f"lower `{where}`, or leave this data out",
        )
    return int(value)


# --- maps that keep neighbourhoods ---------------------------------------------------------------


def fitting_rank(axes: PrincipalAxes, p: int | None) -> int:
    """p, or the rank for None. Raises ParameterError if p exceeds the rank of the centred rows."""
    wanted = max(axes.rank, 1) if p is None else p
    return check_count(wanted, "p", least=1, most=axes.rank, where="components", meaning="rank of the centred rows")


def sparse_graph(neighbors: Rows, values: Float64) -> sp.csr_array:
    """The (n, n) matrix whose row i holds n x k values at the columns of row i's neighbours."""
    n, k = neighbors.shape
    return sp.csr_array((values.ravel(), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


def blocks_with_sums(
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


def bottom_map(above: Float64, below: Float64, mean: Float64, basis: Float64, p: int) -> LinearMap:
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
