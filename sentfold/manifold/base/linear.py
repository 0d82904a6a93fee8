"""Linear maps of rows: their form, principal axes, and the sums over neighbours that LPP and NPE need."""

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
from sentfold.neighbors.points import check_rows, squared_lengths

Rows = npt.NDArray[np.integer[Any]]

EPS = float(np.finfo(np.float64).eps)
BLOCK = 256  # rows at a time together with their neighbours: block x k x d float64 take about 50 MB


@dataclass(frozen=True)
class LinearMap:
    """The map x -> (x - mean) matrix that a linear method learned. It applies to the fitted rows and to new rows.

    mean         (d,) float64, mean of the fitted rows
    matrix       (d, p) float64
    eigenvalues  of the eigenproblem that gave the map; if each column has one, in the order of the columns
    """

    mean: Float64
    matrix: Float64
    eigenvalues: Float64

    def apply(self, x: npt.NDArray[np.floating[Any]], *, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """The images of rows.

        x      (n, d), fitted or new rows of any type; the arithmetic is float64
        dtype  type of the result
        Returns (n, p). Cost O(n d p) time, O(block (d + p)) memory besides the result.
        """
        images = np.empty((len(x), self.matrix.shape[1]), dtype=dtype)
        for rows in row_blocks(len(x)):
            images[rows] = (np.asarray(x[rows], dtype=np.float64) - self.mean) @ self.matrix
        return images


@dataclass(frozen=True)
class PrincipalAxes:
    """The eigenvectors of a covariance matrix, computed once for several maps.

    mean       (d,) float64
    axes       (d, d) float64, orthonormal columns by descending variance, entry of largest modulus positive
    variances  (d,) float64 >= 0, variance of the rows along each axis, n - 1 in the denominator
    rank       number of axes whose variance is larger than its rounding error
    rows       n
    """

    mean: Float64
    axes: Float64
    variances: Float64
    rank: int
    rows: int

    def share(self, p: int) -> float:
        """The share of the first p axes in the total variance; 1 if the total is 0."""
        total = float(self.variances.sum())
        return float(self.variances[:p].sum()) / total if total > 0 else 1.0


def principal_axes(x: npt.NDArray[np.floating[Any]]) -> PrincipalAxes:
    """All principal axes of centred rows, by the eigenvectors of their (d, d) scatter.

    x  (n, d) finite, n >= 1, of any type, one sentence per row; the arithmetic is float64
    The blocks of rows and their order are fixed. So if BLAS runs on one thread (threadpool_limits(1), which the
    stages and estimators set), equal input gives equal bits on any number of cores.
    Raises ParameterError if a row is not finite or cannot be squared; see squared_lengths.
    Cost O(n d^2 + d^3) time, O(block d + d^2) memory: x is not copied to float64 as a whole.
    Source: Hotelling 1933, doi:10.1037/h0071325
    """
    n, d = x.shape
    squared_lengths(x)
    mean = _mean(x)
    scatter = np.zeros((d, d))
    for rows in row_blocks(n):
        centred = np.asarray(x[rows], dtype=np.float64) - mean
        scatter += centred.T @ centred
    values, vectors = np.linalg.eigh(scatter)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    # The error of an eigenvalue is a few max(n, d) eps times the largest; centring leaves an error eps |mean| in a row.
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
    """(d, rank) basis of the centred rows' span in which each coordinate of these rows has unit variance."""
    return axes.axes[:, : axes.rank] / np.sqrt(axes.variances[: axes.rank])


def _fitting(axes: PrincipalAxes, p: int | None) -> int:
    most = min(axes.rows, len(axes.mean))
    if p is None:
        return most
    return check_count(p, "p", least=1, most=most, where="components", meaning="min(n, d)")


def _mean(x: npt.NDArray[np.floating[Any]]) -> Float64:
    """The mean of rows; the second round corrects the rounding error of the first."""
    mean = np.zeros(x.shape[1])
    for _ in range(2):
        total = np.zeros(x.shape[1])
        for rows in row_blocks(len(x)):
            total += (np.asarray(x[rows], dtype=np.float64) - mean).sum(axis=0)
        mean = mean + total / len(x)
    return mean


def check_count(value: Any, symbol: str, *, least: int, most: int, where: str, meaning: str) -> int:
    """`value` as an int; ParameterError unless it is a whole number from `least` to `most`.

    symbol   its name in the papers, e.g. "p"
    where    the name of the parameter
    meaning  the formula of `most`, e.g. "min(n, d)"
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        raise ParameterError(
            f"{symbol} does not fit the data",
            where=where,
            expected=f"a whole number, {least} <= {symbol} <= {meaning} = {most}",
            got=f"{symbol} = {value!r}",
            remedy=f"correct `{where}`, or leave this data out",
        )
    return int(value)


# --- maps that keep neighbourhoods ---------------------------------------------------------------


def fitting_rank(axes: PrincipalAxes, p: int | None) -> int:
    """p; if it is None, the rank of the centred rows. Raises ParameterError if p exceeds that rank."""
    wanted = max(axes.rank, 1) if p is None else p
    return check_count(wanted, "p", least=1, most=axes.rank, where="components", meaning="rank of the centred rows")


def sparse_graph(neighbors: Rows, values: Float64) -> sp.csr_array:
    """The (n, n) matrix from (n, k) values: row i holds values[i] in the columns neighbors[i].

    Raises ParameterError for a neighbour that is no row.
    """
    n, k = neighbors.shape
    check_rows(neighbors, n)
    return sp.csr_array((values.ravel(), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


def blocks_with_sums(
    x: npt.NDArray[np.floating[Any]], mean: Float64, graph: sp.csr_array
) -> Iterator[tuple[slice, Float64, Float64]]:
    """Blocks of rows, the centred rows of each block, and the weighted sums of their centred neighbours.

    Only the rows of one block and their neighbours are in float64 at a time.
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
    """The map from the p smallest eigenvalues of above a = lambda below a, with a in coordinates of the basis."""
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
