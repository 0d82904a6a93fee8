"""Bottom eigenvectors of M = (I - W)^T (I - W), with a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from sentfold.errors import ParameterError, SolverError
from sentfold.kernels.arrays import canonical_signs
from sentfold.manifold.solver.product import Operator
from sentfold.manifold.solver.ritz import Candidates, Demands
from sentfold.manifold.solver.search import SPARE, Found, Progress, Search
from sentfold.manifold.solver.spectrum import closed_classes, estimate_spectrum
from sentfold.neighbors.points import check_rows

Float64 = npt.NDArray[np.float64]

DENSE = 1200  # rows up to which LAPACK is about as fast as the Krylov search and is used instead
ROWS_PER_VECTOR = 6  # with fewer rows per wanted vector, a Krylov space of at most n / 2 vectors is too small
DENSE_AT_LAST = 6000  # rows up to which LAPACK solves what the search could not; about 1.5 GB and 2 minutes
DENSE_AT_MOST = 20_000  # rows up to which LAPACK solves what has no room in a Krylov space; about 13 GB
SUM_ERROR = 1e-6  # of a row of weights: it gives the constant vector an eigenvalue of at most the square of this


@dataclass(frozen=True)
class Eigenpairs:
    """The smallest eigenvalues above the null tolerance, their eigenvectors, and the certificate.

    vectors        (n, p) float64, orthonormal columns, entry of largest modulus positive
    values         (p,) eigenvalues, ascending, all above the null tolerance
    residuals      (p,) |M v - lambda v|
    nullity        number of eigenvalues at or below the null tolerance that were skipped
    orthogonality  largest deviation of V^T V from the identity
    outside        smallest Ritz value that a second search found orthogonally to all found vectors. A value below
                   the last of `values` would prove that an eigenvector was left out
    largest        upper estimate of the largest eigenvalue of M
    products       number of applications of M to a vector
    degree, basis  degree of the last filter and dimension of its Krylov space; 0 if LAPACK solved the problem
    precision      of the products in that space, float32 or float64; dense if LAPACK solved the problem. Values,
                   residuals and the final vectors are always float64
    """

    vectors: Float64
    values: Float64
    residuals: Float64
    nullity: int
    orthogonality: float
    outside: float
    largest: float
    products: int
    degree: int
    basis: int
    precision: str

    def certificate(self) -> dict[str, Any]:
        """All fields but the vectors, JSON-able, so that the solve can be checked. An infinite `outside` is None."""
        return {
            "basis": self.basis,
            "degree": self.degree,
            "eigenvalues": self.values.tolist(),
            "largest_eigenvalue": self.largest,
            "nullity": self.nullity,
            "orthogonality": self.orthogonality,
            "outside": self.outside if self.outside < float("inf") else None,
            "precision": self.precision,
            "products": self.products,
            "residuals": self.residuals.tolist(),
        }


def weight_matrix(neighbors: npt.NDArray[np.integer[Any]], values: Float64) -> sp.csr_array:
    """The sparse (n, n) matrix W whose row i holds the weights of sentence i's neighbours.

    Raises ParameterError for a neighbour that is no row.
    """
    n, k = neighbors.shape
    check_rows(neighbors, n)
    # Row starts have the type of the neighbours if it is wide enough: for a wider type scipy would copy all neighbours.
    kind = neighbors.dtype if n * k <= np.iinfo(neighbors.dtype).max else np.int64
    starts = np.arange(0, n * k + 1, k, dtype=kind)
    return sp.csr_array((values.ravel(), neighbors.ravel(), starts), shape=(n, n))


def bottom_eigenvectors(
    weights: sp.csr_array,
    p: int,
    *,
    seed: int,
    tolerance: float = 1e-8,
    null_tolerance: float = 1e-10,
    workers: int = 2,
    progress: Progress | None = None,
) -> Eigenpairs:
    """The p eigenvectors of M = (I - W)^T (I - W) with the smallest non-null eigenvalues.

    weights         (n, n) sparse W, rows summing to 1
    p               number of vectors, 1 <= p <= n - 2. The result for a smaller p is a prefix, up to tolerance
    seed            random seed of the start vectors
    tolerance       largest residual accepted, null vectors included, as a fraction of the p-th eigenvalue.
                    If the tolerance permits, products are float32 and only the last steps are float64
    null_tolerance  eigenvalues at or below this are null, and all of them are skipped. Their number can exceed the
                    number of components of the graph, because equal rows rebuild each other exactly
    workers         threads; they do not change the result
    progress        called with the size of the Krylov space and the residual that is expected of it, as a
                    fraction of the p-th eigenvalue
    Raises ParameterError if the weights, p or a tolerance do not fit, or p and the null vectors together are too many
    for n > 20,000 rows; SolverError if no try passes every check: the residuals are small, there are p non-null
    vectors, each value is clearly null or not, no eigenvalue is left out, and each closed part of the graph has its
    null vector.
    Cost: products x O(nnz(W)) time, memory for about 8 n p numbers; M is never formed. LAPACK solves with O(n^2)
    memory if n <= 1200, if p > n / 6 - 33, or if n <= 6000 and no try passes the checks. The residuals of LAPACK are
    about n times the rounding error of float64, which is too large for a tiny p-th eigenvalue.
    Source: SBERT-LP eq. 16-17; Roweis & Saul 2000, doi:10.1126/science.290.5500.2323; filtered Krylov
    spaces: Fang & Saad 2012, doi:10.1137/110836535
    """
    n, demands = weights.shape[0], Demands(p, tolerance, null_tolerance)
    _check_weights(weights)
    _check_arguments(n, demands)
    known = max(1, closed_classes(weights))
    wanted = p + known
    with threadpool_limits(1):
        if n <= DENSE or ROWS_PER_VECTOR * (wanted + SPARE) > n:
            return _certified(_solve_dense(weights, demands, wanted), demands, known)
        try:
            with Operator.from_weights(weights, workers=workers) as operator:
                rng = np.random.default_rng(seed)
                spectrum = estimate_spectrum(operator, 3 * (wanted + SPARE), rng)
                return _certified(Search(operator, demands, spectrum, rng, progress).run(wanted), demands, known)
        except SolverError:
            if n > DENSE_AT_LAST:
                raise
        return _certified(_solve_dense(weights, demands, wanted), demands, known)


@contextmanager
def solver_bar(*, of: str = "", disable: bool | None = None) -> Iterator[Progress | None]:
    """A progress line on stderr for bottom_eigenvectors, which takes the yielded function as `progress`.

    of       name of the solved problem, such as a corpus
    disable  as in tqdm; None: shown on a terminal only
    """
    with tqdm(desc=" ".join(["eigenvectors", of]).strip(), unit=" dimensions", disable=disable) as bar:

        def show(size: int, promise: float) -> None:
            bar.n = size
            bar.set_postfix_str(f"residual {promise:.1e} of the last eigenvalue")

        yield None if bar.disable else show


def _check_weights(weights: sp.csr_array) -> None:
    try:
        weights.check_format(full_check=True)  # compiled loops read and write at these rows unchecked
        off = np.abs(weights.sum(axis=1) - 1)
        wrong = "" if weights.shape[0] == weights.shape[1] else f"shape {weights.shape}"
    except ValueError as error:
        wrong = str(error)
    if not wrong and not (off <= SUM_ERROR).all():
        row = int(np.flatnonzero(~(off <= SUM_ERROR))[0])
        wrong = f"row {row} is off by {off[row]:.2g}"
    if wrong:
        raise ParameterError(
            "the weights are not those of a neighbour graph",
            where="weights",
            expected=f"an (n, n) sparse matrix whose rows sum to 1 within {SUM_ERROR:g}",
            got=wrong,
            remedy="compute the weights again: solve_weights divides each row by its sum",
        )


def _check_arguments(n: int, demands: Demands) -> None:
    if not 1 <= demands.p <= n - 2:
        raise ParameterError(
            "p does not fit the number of sentences",
            where="components",
            expected=f"1 <= p <= n - 2 = {n - 2} (n distinct sentences)",
            got=f"p = {demands.p}",
            remedy="lower `components`, or leave this corpus out of the suite",
        )
    if not (0 < demands.tolerance < 1 and 0 < demands.null_tolerance < 1e-3):
        raise ParameterError(
            "a tolerance of the eigensolver is out of range",
            where="tolerance, null_tolerance",
            expected="0 < tolerance < 1 and 0 < null_tolerance < 1e-3",
            got=f"{demands.tolerance:g}, {demands.null_tolerance:g}",
            remedy="correct the tolerance that is out of range",
        )


def _solve_dense(weights: sp.csr_array, demands: Demands, wanted: int) -> Found:
    """The eigenpairs from LAPACK, which leaves none out; the residuals have to pass the check too."""
    n = weights.shape[0]
    _refuse_dense(n, demands, wanted)
    difference = np.eye(n) - weights.toarray()
    m = difference.T @ difference
    values, vectors = eigh(m)
    keep = int((values <= demands.null_tolerance).sum()) + demands.p
    if keep > n:
        raise _too_few_directions(n, demands, null=keep - demands.p)
    residuals = np.linalg.norm(m @ vectors[:, :keep] - vectors[:, :keep] * values[:keep], axis=0)
    worst, last = float(residuals.max()), float(values[keep - 1])
    if not worst <= demands.tolerance * last:
        raise SolverError(
            f"the {demands.p} bottom eigenvectors could not be certified",
            where=f"n = {n}, solved by LAPACK",
            expected=f"residuals <= {demands.tolerance:g} of the last eigenvalue, {last:.2g}",
            got=f"{worst:.1e}, {worst / last:.1e} of it, because of rounding",
            remedy="raise the tolerance, or `components` so that the last eigenvalue is larger",
        )
    return Found(
        candidates=Candidates(values[:keep], vectors[:, :keep], residuals),
        outside=float(values[keep]) if keep < n else float("inf"),
        largest=float(values[-1]),
        products=0,
        degree=0,
        basis=0,
        precision="dense",
    )


def _refuse_dense(n: int, demands: Demands, wanted: int) -> None:
    if n > DENSE_AT_MOST:
        most = n // ROWS_PER_VECTOR - SPARE
        raise ParameterError(
            "too many eigenvectors are wanted for this number of sentences",
            where="components",
            expected=f"components and null vectors together <= n / {ROWS_PER_VECTOR} - {SPARE} = {most}, "
            f"or n <= {DENSE_AT_MOST}",
            got=f"{wanted} of n = {n}: {demands.p} components, and a null vector for each closed part of the graph",
            remedy="lower `components`, or raise `neighbors` so that the graph has fewer parts",
        )


def _too_few_directions(n: int, demands: Demands, *, null: int) -> ParameterError:
    return ParameterError(
        "the graph has fewer non-null directions than `components`",
        where="components",
        expected=f"<= {n - null}: {n} sentences less {null} null vectors",
        got=str(demands.p),
        remedy="lower `components`, or raise `neighbors` so that the graph has fewer parts",
    )


def _certified(found: Found, demands: Demands, known: int) -> Eigenpairs:
    """The non-null pairs; `known`: how many null vectors there are at least, one for each closed part of the graph."""
    null = found.candidates.null(demands)
    if null < known:
        raise SolverError(
            "null vectors could not be told from others",
            where="null_tolerance",
            expected=f"at least {known} null vectors, one for each part of the graph",
            got=f"{null} eigenvalues up to {demands.null_tolerance:g}; rounding moves those of null vectors above it",
            remedy="raise `null_tolerance`",
        )
    kept = slice(null, null + demands.p)
    vectors = canonical_signs(found.candidates.vectors[:, kept])
    return Eigenpairs(
        vectors=vectors,
        values=found.candidates.values[kept],
        residuals=found.candidates.residuals[kept],
        nullity=null,
        orthogonality=float(np.abs(vectors.T @ vectors - np.eye(demands.p)).max()),
        outside=found.outside,
        largest=found.largest,
        products=found.products,
        degree=found.degree,
        basis=found.basis,
        precision=found.precision,
    )
