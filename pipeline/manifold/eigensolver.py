"""Bottom eigenvectors of M = (I - W)^T (I - W) by Chebyshev-filtered Lanczos.

M is only ever applied, as two sparse products; it is never formed. A Chebyshev polynomial of M
that is large below a cut and bounded by 1 above it turns the bottom of the spectrum into a
well-separated top, which Lanczos finds in few iterations. The cut comes from the spectral density.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from pipeline.errors import ParameterError, SolverError, first_line

Float64 = npt.NDArray[np.float64]

SPARE = 8  # vectors beyond the wanted ones, which keep the last wanted one away from the cut
PROBES = 8  # random vectors of the spectral density estimate
STEPS = 120  # Lanczos steps per probe
TRIES = 5


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


@dataclass
class _Operator:
    """v -> M v as two sparse products, counted."""

    difference: sp.csr_array
    transposed: sp.csr_array
    products: int = field(default=0)

    def __call__(self, block: Float64) -> Float64:
        self.products += 1 if block.ndim == 1 else block.shape[1]
        result: Float64 = self.transposed @ (self.difference @ block)
        return result

    @property
    def n(self) -> int:
        return int(self.difference.shape[0])


def weight_matrix(neighbors: npt.NDArray[np.integer[Any]], values: Float64) -> sp.csr_array:
    """The sparse (n, n) matrix W whose row i holds the weights of sentence i's neighbours."""
    n, k = neighbors.shape
    return sp.csr_array((values.ravel(), neighbors.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


def bottom_eigenvectors(
    weights: sp.csr_array, p: int, *, seed: int, null_tolerance: float = 1e-10, residual_tolerance: float = 1e-8
) -> Eigenpairs:
    """The p eigenvectors of M = (I - W)^T (I - W) with the smallest non-null eigenvalues.

    weights             (n, n) sparse W, rows summing to 1
    p                   wanted vectors, 1 <= p <= n - 2
    seed                of the start vectors
    null_tolerance      an eigenvalue at or below this is null and skipped, however many there are
                        (the graph's components do not tell: twins rebuild each other exactly)
    residual_tolerance  largest residual accepted for any vector, null ones included
    Raises ParameterError if p does not fit, SolverError if no try passes every gate: residuals,
    number of vectors below the last one, number of vectors wanted.
    Cost: products x O(nnz(W)) time, O(n p) memory; M is never formed.
    Source: SBERT-LP eq. 16-17; Roweis & Saul 2000; filtered Lanczos: Fang & Saad 2012,
    doi:10.1137/110836535; spectral density: Lin, Saad & Yang 2016, doi:10.1137/130934283
    """
    n = weights.shape[0]
    if not 1 <= p <= n - 2:
        raise ParameterError(
            "p does not fit the number of sentences",
            where="components",
            expected=f"1 <= p <= n - 2 = {n - 2} (n distinct sentences)",
            got=f"p = {p}",
            remedy="lower `components` in params.yaml, or leave this corpus out of the suite",
        )
    difference = sp.csr_array(sp.eye_array(n, format="csr") - weights)
    operator = _Operator(difference, sp.csr_array(difference.T))
    rng = np.random.default_rng(seed)
    largest = _largest_eigenvalue(operator, rng)
    density = _spectral_density(operator, rng)
    wanted, raised, complaint = p + 1, 0.0, ""
    for _ in range(TRIES):
        asked = min(wanted + SPARE, n - 1)
        cut = min(max(_cut(density, asked, largest), raised), largest)
        degree = _degree(cut, largest)
        values, vectors, residuals = _filtered_lanczos(operator, asked, cut, largest, degree, rng)
        null = int((values <= null_tolerance).sum())
        if null + p > len(values):
            wanted, complaint = null + p, f"{null} null vectors left only {len(values) - null} others"
            if wanted > n - 1:
                break
            continue
        keep = null + p
        complaint = _complaint(
            operator, values, vectors, residuals, keep, cut, largest, degree, residual_tolerance, rng
        )
        if not complaint:
            chosen = canonical_signs(vectors[:, null:keep])
            return Eigenpairs(
                vectors=chosen,
                values=values[null:keep],
                residuals=residuals[null:keep],
                nullity=null,
                orthogonality=float(np.abs(chosen.T @ chosen - np.eye(p)).max()),
                largest=largest,
                products=operator.products,
                degree=degree,
            )
        # Ritz values bound eigenvalues from above, so this cut surely has every wanted vector below it.
        raised = 1.1 * float(values[-1])
        largest *= 1.05
    raise SolverError(
        f"the {p} bottom eigenvectors could not be certified",
        where=f"n = {n}, {operator.products} products with M",
        expected=f"residuals <= {residual_tolerance:g} and no eigenvalue left out",
        got=complaint,
        remedy="raise `neighbors` or `regularization`, or lower `components`, in params.yaml",
    )


def canonical_signs(vectors: Float64) -> Float64:
    """Each column with its entry of largest modulus (the first such) made positive."""
    rows = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(vectors[rows, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def _complaint(
    operator: _Operator,
    values: Float64,
    vectors: Float64,
    residuals: Float64,
    keep: int,
    cut: float,
    largest: float,
    degree: int,
    residual_tolerance: float,
    rng: np.random.Generator,
) -> str:
    """What is wrong with a solution, or ''. The maximum residual counts, never the median."""
    worst = float(residuals[:keep].max())
    if not worst <= residual_tolerance:
        return f"largest residual {worst:.1e}"
    if degree > 1 and values[keep - 1] >= cut:
        return f"eigenvalue {values[keep - 1]:.3g} lies above the filter's cut {cut:.3g}"
    missed = _smallest_outside(operator, vectors, cut, largest, degree, rng)
    # An eigenvalue that equals the last one to rounding is no omission: the p-th place is a tie.
    if missed < values[keep - 1] * (1 - 1e-6):
        return f"eigenvalue {missed:.6g} was left out below {values[keep - 1]:.6g}"
    return ""


def _largest_eigenvalue(operator: _Operator, rng: np.random.Generator) -> float:
    """An upper estimate: the largest Ritz value, plus its residual, plus 1%."""
    top, vector = eigsh(
        LinearOperator((operator.n, operator.n), matvec=operator, dtype=np.float64),
        k=1,
        which="LA",
        tol=1e-2,
        v0=rng.standard_normal(operator.n),
    )
    residual = float(np.linalg.norm(operator(vector[:, 0]) - top[0] * vector[:, 0]))
    return (float(top[0]) + residual) * 1.01


def _spectral_density(operator: _Operator, rng: np.random.Generator) -> tuple[Float64, Float64]:
    """Stochastic Lanczos quadrature: grid of values (ascending) and the number of eigenvalues up to each."""
    curves = []
    for _ in range(PROBES):
        diagonal, off = _lanczos(operator, rng.choice([-1.0, 1.0], operator.n), min(STEPS, operator.n - 1))
        nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
        masses = vectors[0] ** 2 * operator.n
        # A node stands for the eigenvalues on both sides of it, so half its mass lies below it.
        curves.append((np.maximum(nodes, 0.0), np.cumsum(masses) - masses / 2))
    grid = np.unique(np.concatenate([nodes for nodes, _ in curves]))
    below = [np.interp(grid, np.append(0.0, nodes), np.append(0.0, counts)) for nodes, counts in curves]
    return grid, np.mean(below, axis=0)


def _lanczos(operator: _Operator, start: Float64, steps: int) -> tuple[Float64, Float64]:
    """Diagonal and off-diagonal of the Lanczos matrix, fully reorthogonalised."""
    basis = [start / np.linalg.norm(start)]
    diagonal: list[float] = []
    off: list[float] = []
    for _ in range(steps):
        image = operator(basis[-1])
        diagonal.append(float(basis[-1] @ image))
        stacked = np.array(basis)
        for _ in range(2):
            image = image - stacked.T @ (stacked @ image)
        length = float(np.linalg.norm(image))
        if length < 1e-12 or len(diagonal) == steps:
            break
        off.append(length)
        basis.append(image / length)
    return np.array(diagonal), np.array(off)


def _cut(density: tuple[Float64, Float64], count: int, largest: float) -> float:
    """A value with about 1.3 x count eigenvalues below it.

    Too high a cut costs a few iterations; too low a one hides wanted vectors where the filter is flat.
    """
    grid, below = density
    place = int(np.searchsorted(below, 1.3 * count))
    return max(float(grid[place]) if place < len(grid) else largest, 1e-6 * largest)


def _degree(cut: float, largest: float) -> int:
    """Degree whose filter grows by about e^3 from the cut down to zero; 1 where most is wanted."""
    if cut > 0.3 * largest:
        return 1  # M itself, mirrored: monotone everywhere, so the cut does not matter
    return int(np.clip(np.ceil(1.5 * np.sqrt(largest / cut)), 2, 400))


def _filter(operator: _Operator, cut: float, largest: float, degree: int) -> Callable[[Float64], Float64]:
    """v -> T_degree((largest + cut - 2 M) / (largest - cut)) v: at most 1 on [cut, largest], larger below."""
    if degree == 1:
        return lambda v: largest * v - operator(v)
    scale, shift = 2.0 / (largest - cut), (largest + cut) / (largest - cut)

    def apply(v: Float64) -> Float64:
        before, now = v, shift * v - scale * operator(v)
        for _ in range(degree - 1):
            before, now = now, 2 * (shift * now - scale * operator(now)) - before
        return now

    return apply


def _filter_value(value: float, cut: float, largest: float, degree: int) -> float:
    """The filter at one eigenvalue of M (for the inverse see _unfilter)."""
    if degree == 1:
        return largest - value
    return float(np.cosh(degree * np.arccosh(max(1.0, (largest + cut - 2 * value) / (largest - cut)))))


def _unfilter(filtered: float, cut: float, largest: float, degree: int) -> float:
    """The eigenvalue of M, at most the cut, at which the filter takes a value."""
    if degree == 1:
        return largest - filtered
    if filtered <= 1:
        return cut
    return (largest + cut - (largest - cut) * float(np.cosh(np.arccosh(filtered) / degree))) / 2


def _filtered_lanczos(
    operator: _Operator, count: int, cut: float, largest: float, degree: int, rng: np.random.Generator
) -> tuple[Float64, Float64, Float64]:
    """`count` bottom Ritz values, vectors and residuals of M, ascending."""
    n = operator.n
    filtered = LinearOperator((n, n), matvec=_filter(operator, cut, largest, degree), dtype=np.float64)
    try:
        _, basis = eigsh(
            filtered, k=count, which="LA", ncv=min(n, 2 * count + 20), v0=rng.standard_normal(n), maxiter=300
        )
    except ArpackError as error:
        raise SolverError(
            "the Lanczos iteration did not converge",
            where=f"n = {n}, {count} vectors, filter of degree {degree}",
            got=first_line(error),
            remedy="raise `neighbors` or `regularization`, or lower `components`, in params.yaml",
        ) from None
    basis, _ = np.linalg.qr(basis)
    values, rotation = np.linalg.eigh(basis.T @ operator(basis))
    vectors = basis @ rotation
    residuals = np.linalg.norm(operator(vectors) - vectors * values, axis=0)
    return values, vectors, residuals


def _smallest_outside(
    operator: _Operator, vectors: Float64, cut: float, largest: float, degree: int, rng: np.random.Generator
) -> float:
    """The smallest eigenvalue of M orthogonal to `vectors` (the cut, if it lies above it).

    Lanczos can overlook a copy of a multiple eigenvalue; this looks once more where it has been.
    """
    n = operator.n
    apply = _filter(operator, cut, largest, degree)
    # The value that no filter of M takes: found vectors are moved below everything else.
    floor = -2.0 if degree > 1 else -largest

    def deflated(v: Float64) -> Float64:
        inside = vectors.T @ v
        rest = v - vectors @ inside
        image = apply(rest)
        return image - vectors @ (vectors.T @ image) + floor * (vectors @ inside)

    if n - vectors.shape[1] < 2:
        return largest
    top = eigsh(
        LinearOperator((n, n), matvec=deflated, dtype=np.float64),
        k=1,
        which="LA",
        tol=1e-3,
        v0=rng.standard_normal(n),
        return_eigenvectors=False,
    )
    return _unfilter(float(top[0]), cut, largest, degree)
