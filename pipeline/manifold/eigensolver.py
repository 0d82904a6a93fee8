"""Bottom eigenvectors of M = (I - W)^T (I - W) by Chebyshev-filtered Lanczos, each with its certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from pipeline.errors import ParameterError, SolverError, first_line
from pipeline.manifold.chebyshev import Filter, Operator
from pipeline.manifold.spectrum import closed_classes, cut_above, largest_eigenvalue, spectral_density

Float64 = npt.NDArray[np.float64]

SPARE = 8  # vectors beyond the wanted ones, which keep the last wanted one away from the cut
TRIES = 6


@dataclass(frozen=True)
class Eigenpairs:
    """The bottom of a spectrum, null space left out, with its certificate.

    vectors        (n, p) float64, orthonormal columns, entry of largest modulus positive
    values         (p,) eigenvalues, ascending, all above the null tolerance
    residuals      (p,) |M v - lambda v|
    nullity        number of eigenvalues at or below the null tolerance that were skipped
    orthogonality  largest deviation of V^T V from the identity
    largest        upper estimate of the largest eigenvalue of M
    products       applications of M
    degree         degree of the last filter
    """

    vectors: Float64
    values: Float64
    residuals: Float64
    nullity: int
    orthogonality: float
    largest: float
    products: int
    degree: int


@dataclass(frozen=True)
class _Ritz:
    """Ritz values (ascending), vectors and residuals of M from one filtered Lanczos run."""

    values: Float64
    vectors: Float64
    residuals: Float64


def weight_matrix(neighbors: npt.NDArray[np.integer[Any]], values: Float64) -> sp.csr_array:
    """The sparse (n, n) matrix W whose row i holds the weights of sentence i's neighbours."""
    n, k = neighbors.shape
    return sp.csr_array((values.ravel(), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


def bottom_eigenvectors(
    weights: sp.csr_array, p: int, *, seed: int, null_tolerance: float = 1e-10, residual_tolerance: float = 1e-11
) -> Eigenpairs:
    """The p eigenvectors of M = (I - W)^T (I - W) with the smallest non-null eigenvalues.

    weights             (n, n) sparse W, rows summing to 1
    p                   wanted vectors, 1 <= p <= n - 2
    seed                of the start vectors
    null_tolerance      an eigenvalue at or below this is null and skipped, however many there are
                        (the graph's components do not tell: twins rebuild each other exactly)
    residual_tolerance  largest residual accepted for any vector, null ones included; at most
                        null_tolerance, or a residual would leave open what is null
    Raises ParameterError if p or a tolerance does not fit, SolverError if no try passes every gate:
    residuals, number of vectors wanted, no eigenvalue left out.
    Cost: products x O(nnz(W)) time, O(n p) memory; M is never formed.
    Source: SBERT-LP eq. 16-17; Roweis & Saul 2000; filtered Lanczos: Fang & Saad 2012,
    doi:10.1137/110836535; spectral density: Lin, Saad & Yang 2016, doi:10.1137/130934283
    """
    n = weights.shape[0]
    _check_arguments(n, p, null_tolerance, residual_tolerance)
    operator, rng = Operator.from_weights(weights), np.random.default_rng(seed)
    complaint = "no answer"
    wanted, raised = p + max(1, closed_classes(weights)), 0.0
    try:
        largest = largest_eigenvalue(operator, rng)
        density = spectral_density(operator, rng)
    except ArpackError as error:
        raise _uncertified(operator, p, first_line(error), residual_tolerance) from None
    for attempt in range(TRIES):
        asked = min(wanted + SPARE * 2**attempt, n - 1)
        chosen = Filter.for_cut(min(max(cut_above(density, asked, largest), raised), largest), largest)
        try:
            ritz = _filtered_lanczos(operator, asked, chosen, rng)
            null = int((ritz.values <= null_tolerance).sum())
            complaint = _complaint(operator, ritz, null, p, chosen, residual_tolerance, rng)
        except ArpackError as error:
            complaint, largest = first_line(error), 1.05 * largest
            continue
        if not complaint:
            return _certified(ritz, null, p, operator, chosen)
        if null + p > asked:
            wanted = null + p
            continue
        # Ritz values bound eigenvalues from above, so this cut surely has every wanted vector below it.
        raised, largest = 1.1 * float(ritz.values[-1]), 1.05 * largest
    raise _uncertified(operator, p, complaint, residual_tolerance)


def canonical_signs(vectors: Float64) -> Float64:
    """Each column with its entry of largest modulus (the first such) made positive."""
    rows = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(vectors[rows, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def smallest_outside(operator: Operator, vectors: Float64, chosen: Filter, rng: np.random.Generator) -> float:
    """The smallest eigenvalue of M orthogonal to invariant `vectors`; the filter's cut if it lies above that.

    Lanczos can overlook a copy of a multiple eigenvalue; this looks once more where it has been.
    May raise ArpackError.
    """
    n, found = operator.n, vectors.shape[1]
    if found == n:
        return float("inf")
    if found == n - 1:  # one dimension is left, and the trace tells its eigenvalue
        return operator.trace - float(np.einsum("ij,ij->", vectors, operator(vectors)))
    # Found vectors are moved below every value that the filter takes elsewhere.
    floor = -2.0 if chosen.degree > 1 else -chosen.largest

    def deflated(v: Float64) -> Float64:
        inside = vectors.T @ v
        image = chosen.apply(operator, v - vectors @ inside)
        moved: Float64 = image - vectors @ (vectors.T @ image) + floor * (vectors @ inside)
        return moved

    linear = LinearOperator((n, n), matvec=deflated, dtype=np.float64)
    top, _ = eigsh(linear, k=1, which="LA", tol=1e-3, v0=rng.standard_normal(n))
    return chosen.invert(float(top[0]))


def _check_arguments(n: int, p: int, null_tolerance: float, residual_tolerance: float) -> None:
    if not 1 <= p <= n - 2:
        raise ParameterError(
            "p does not fit the number of sentences",
            where="components",
            expected=f"1 <= p <= n - 2 = {n - 2} (n distinct sentences)",
            got=f"p = {p}",
            remedy="lower `components` in params.yaml, or leave this corpus out of the suite",
        )
    if residual_tolerance > null_tolerance:
        raise ParameterError(
            "a residual could leave open which eigenvalues are null",
            where="residual_tolerance",
            expected=f"<= null_tolerance = {null_tolerance:g}",
            got=f"{residual_tolerance:g}",
            remedy="lower eigensolve.residual_tolerance in params.yaml",
        )


def _filtered_lanczos(operator: Operator, count: int, chosen: Filter, rng: np.random.Generator) -> _Ritz:
    """`count` bottom Ritz pairs of M. Raises ArpackError if the iteration does not converge."""
    n = operator.n
    filtered = LinearOperator((n, n), matvec=lambda v: chosen.apply(operator, v), dtype=np.float64)
    _, basis = eigsh(filtered, k=count, which="LA", ncv=min(n, 2 * count + 20), v0=rng.standard_normal(n), maxiter=300)
    basis, _ = np.linalg.qr(basis)
    values, rotation = np.linalg.eigh(basis.T @ operator(basis))
    vectors = basis @ rotation
    return _Ritz(values, vectors, np.linalg.norm(operator(vectors) - vectors * values, axis=0))


def _complaint(
    operator: Operator,
    ritz: _Ritz,
    null: int,
    p: int,
    chosen: Filter,
    residual_tolerance: float,
    rng: np.random.Generator,
) -> str:
    """What is wrong with a solution, or ''. The maximum residual counts, never the median."""
    keep = null + p
    if keep > len(ritz.values):
        return f"{null} null vectors left only {len(ritz.values) - null} others"
    worst = float(ritz.residuals[:keep].max())
    if not worst <= residual_tolerance:
        return f"largest residual {worst:.1e}"
    last = float(ritz.values[keep - 1])
    if chosen.degree > 1 and last >= chosen.cut:
        return f"eigenvalue {last:.3g} lies above the filter's cut {chosen.cut:.3g}"
    missed = smallest_outside(operator, ritz.vectors, chosen, rng)
    # An eigenvalue that equals the last one to rounding is no omission: the p-th place is a tie.
    return f"eigenvalue {missed:.6g} was left out below {last:.6g}" if missed < last * (1 - 1e-6) else ""


def _certified(ritz: _Ritz, null: int, p: int, operator: Operator, chosen: Filter) -> Eigenpairs:
    kept = slice(null, null + p)
    vectors = canonical_signs(ritz.vectors[:, kept])
    return Eigenpairs(
        vectors=vectors,
        values=ritz.values[kept],
        residuals=ritz.residuals[kept],
        nullity=null,
        orthogonality=float(np.abs(vectors.T @ vectors - np.eye(p)).max()),
        largest=chosen.largest,
        products=operator.products,
        degree=chosen.degree,
    )


def _uncertified(operator: Operator, p: int, complaint: str, residual_tolerance: float) -> SolverError:
    return SolverError(
        f"the {p} bottom eigenvectors could not be certified",
        where=f"n = {operator.n}, {operator.products} products with M",
        expected=f"residuals <= {residual_tolerance:g} and no eigenvalue left out",
        got=complaint,
        remedy="raise `neighbors` or `regularization`, or lower `components`, in params.yaml",
    )
