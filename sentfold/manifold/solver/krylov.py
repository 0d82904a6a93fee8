"""The Chebyshev filter of M, a growing block Krylov space of the filtered operator, and the Ritz pairs in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, get_blas_funcs

from sentfold.manifold.solver.product import WIDTH, Block, Operator, empty_block, padded_block

Float64 = npt.NDArray[np.float64]

SIDE_STEPS = 16  # at most
LOWEST_DEGREE, HIGHEST_DEGREE = 3, 2000


@dataclass(frozen=True)
class Filter:
    """F(M), F the Chebyshev polynomial that is at most 1 on [cut, largest] and grows below the cut.

    cut, largest  ends of the damped interval, 0 < cut < largest
    degree        products with M per application
    damped        of the damped M' instead of M, see Operator
    """

    cut: float
    largest: float
    degree: int
    damped: bool = False

    @classmethod
    def for_cut(cls, cut: float, largest: float, *, strength: float, damped: bool = False) -> Filter:
        """The degree at which F(0) is about e^(2 strength) / 2."""
        degree = int(np.clip(np.ceil(strength * np.sqrt(largest / cut)), LOWEST_DEGREE, HIGHEST_DEGREE))
        return cls(cut, largest, degree, damped)

    def apply(self, operator: Operator, vectors: Block, *, in_place: bool = False) -> Block:
        """F(M) times (n, m) vectors, in their precision; `degree` products each."""
        out = vectors if in_place else np.empty_like(vectors)
        start = 0
        while start < vectors.shape[1]:
            width = _fitting_width(operator, vectors.shape[1] - start, vectors.dtype.itemsize)
            part = vectors[:, start : start + width]
            filtered = self._apply_block(operator, padded_block(part, width=width))
            out[:, start : start + width] = filtered[:, : part.shape[1]]
            start += width
        return out

    def _apply_block(self, operator: Operator, block: Block) -> Block:
        """The three-term recurrence; `block` is overwritten."""
        scale = 2.0 / (self.largest - self.cut)
        shift = (self.largest + self.cut) / (self.largest - self.cut)
        before, now, after, scratch = (
            block,
            *(empty_block(operator.n, block.dtype, width=block.shape[1]) for _ in range(3)),
        )
        operator.recur(before, before, now, scratch, (shift, 0.0, -scale), damped=self.damped)
        for _ in range(self.degree - 1):
            operator.recur(now, before, after, scratch, (2 * shift, -1.0, -2 * scale), damped=self.damped)
            before, now, after = now, after, before
        return now

    def at(self, values: Float64) -> Float64:
        """F at eigenvalues of M."""
        mapped = (self.largest + self.cut - 2 * np.asarray(values)) / (self.largest - self.cut)
        inside = np.cos(self.degree * np.arccos(np.clip(mapped, -1, 1)))
        grown: Float64 = np.where(mapped > 1, np.cosh(self.degree * np.arccosh(np.maximum(mapped, 1))), inside)
        return grown

    def invert(self, values: Float64) -> Float64:
        """The eigenvalue of M, at most the cut, at which F takes each value; the cut for values up to 1."""
        mapped = np.cosh(np.arccosh(np.maximum(values, 1.0)) / self.degree)
        inverse: Float64 = (self.largest + self.cut - (self.largest - self.cut) * mapped) / 2
        return inverse

    def slope(self, values: Float64) -> Float64:
        """|dF / d lambda| where F takes values >= 1."""
        angle = np.maximum(np.arccosh(np.maximum(values, 1.0)) / self.degree, 1e-9)
        steepness: Float64 = 2 * self.degree / (self.largest - self.cut) * np.sinh(self.degree * angle) / np.sinh(angle)
        return steepness


def _fitting_width(operator: Operator, left: int, itemsize: int) -> int:
    """The width for the next of the vectors that are left.

    Wide blocks of float64 would be four cache lines a row: no faster than two, and four blocks are held at once.
    """
    widest = operator.width if itemsize == 4 else WIDTH
    return next(width for width in (operator.few, WIDTH, widest) if left <= width or width == widest)


@dataclass(frozen=True)
class Ritz:
    """The leading Ritz pairs of F(M).

    values        (m,) of F, descending
    coefficients  (applied, m) of the vectors in the basis
    residuals     (m,) |F v - value v|, as the recurrence tells
    """

    values: Float64
    coefficients: Float64
    residuals: Float64


class KrylovSpace:
    """Orthonormal basis of blocks Q, and the projection H = Q^T F(M) Q.

    Each step applies the filter to the next `width` columns and appends what is new. Columns are made
    orthogonal to all others, in float64 twice, so no eigenvalue appears in copies. Directions that vanish are
    replaced by random ones, so an invariant subspace is no end; blocks can also be put in by hand.
    Side steps go a few columns at a time, whatever the width: their number is what counts.
    Memory: capacity x n numbers, taken as the space grows, and SIDE_STEPS blocks more for side steps.
    Source: filtered Krylov spaces: Fang & Saad 2012, doi:10.1137/110836535
    """

    def __init__(
        self,
        operator: Operator,
        chosen: Filter,
        rng: np.random.Generator,
        *,
        capacity: int,
        precision: npt.DTypeLike,
        width: int | None = None,
        without: Block | None = None,
    ) -> None:
        self.operator, self.filter, self._rng = operator, chosen, rng
        self.width = width or operator.width
        self.capacity = max(2, capacity // self.width) * self.width
        columns = self.capacity + (SIDE_STEPS + 1) * WIDTH
        # By columns, so that memory is touched only where the space has grown.
        self._basis = np.empty((operator.n, columns), dtype=precision, order="F")
        self._projection = np.zeros((columns, columns), dtype=precision)
        self._without = None if without is None else np.asfortranarray(without, dtype=precision)
        self.size = self.applied = 0
        self.put_in(rng.standard_normal((operator.n, self.width)))

    @property
    def is_full(self) -> bool:
        """Whether no block fits any more, but for side steps."""
        return self.size + self.width > self.capacity

    def put_in(self, block: Float64) -> None:
        """Append the (n, m) directions of `block` that are new; random ones for the rest."""
        self._append(block.astype(self._basis.dtype))

    def extend(self) -> None:
        """Apply the filter to the next block of columns and append what is new."""
        place = slice(self.applied, self.applied + self.width)
        image = self.filter.apply(self.operator, np.ascontiguousarray(self._basis[:, place]))
        known = self.size
        inside, remainder = self._append(image)
        self._projection[:known, place] = inside
        self._projection[known : self.size, place] = remainder
        self.applied = place.stop

    @contextmanager
    def side_step(self) -> Iterator[None]:
        """A random block in the place of the one that waits for the filter; in the end all is as it was.

        What is extended meanwhile, at most SIDE_STEPS times, grows from that block alone.
        """
        applied, size, width = self.applied, self.size, self.width
        waiting = self._basis[:, applied:size].copy()
        self.size, self.width = applied, self.operator.few
        self.put_in(self._rng.standard_normal((self.operator.n, self.width)))
        try:
            yield
        finally:
            self.applied, self.size, self.width = applied, size, width
            self._basis[:, applied:size] = waiting

    def ritz(self, count: int) -> Ritz:
        """The `count` leading Ritz pairs."""
        values, vectors = _leading(self._upper(0), count)
        outside = self._projection[self.applied : self.size, : self.applied] @ vectors
        return Ritz(values, vectors, np.linalg.norm(outside, axis=0))

    def ritz_outside(self, known: Ritz, count: int) -> Ritz:
        """The `count` leading Ritz pairs orthogonal to those that are known, which may be of a smaller space."""
        upper = self._upper(0)
        inside = np.zeros((self.applied, known.coefficients.shape[1]), upper.dtype, order="F")
        inside[: len(known.coefficients)] = known.coefficients
        multiply, update = get_blas_funcs(("symm", "syr2k"), (upper,))
        # (I - U U^T) H (I - U U^T) = H - U B^T - B U^T with B = H U - U (U^T H U) / 2.
        images = multiply(1.0, upper, inside)
        images -= inside @ (inside.T @ images) / 2
        upper = update(-1.0, inside, images, beta=1.0, c=upper, overwrite_c=True)
        values, vectors = _leading(upper, count)
        return Ritz(values, vectors, np.full(len(values), np.nan))

    def largest_since(self, applied: int) -> float:
        """The largest Ritz value of the blocks that the filter was applied to since `applied` alone."""
        return float(_leading(self._upper(applied), 1)[0][0])

    def _upper(self, start: int) -> Block:
        """The projection of F(M) on the columns from `start` to `applied`: its upper triangle and the diagonal hold."""
        return np.array(self._projection[start : self.applied, start : self.applied], order="F")

    def vectors(self, ritz: Ritz, *, before: Float64 | None = None) -> Float64:
        """The Ritz vectors, (n, m) float64, orthonormal to the basis's precision; after the columns of `before`."""
        known = 0 if before is None else before.shape[1]
        vectors = np.empty((len(self._basis), known + ritz.coefficients.shape[1]))
        if before is not None:
            vectors[:, :known] = before
        coefficients = ritz.coefficients.astype(self._basis.dtype)
        for start in range(0, coefficients.shape[1], WIDTH):
            part = coefficients[:, start : start + WIDTH]
            columns = slice(known + start, known + start + part.shape[1])
            vectors[:, columns] = self._basis[:, : self.applied] @ part
        return vectors

    def _append(self, block: Block) -> tuple[Float64, Float64]:
        """Coefficients of `block` in the basis and in the columns that are appended."""
        inside = np.zeros((self.size, block.shape[1]))
        scale = np.linalg.norm(block, axis=0).max(initial=0.0)
        inside += self._remove(block)
        if block.dtype == np.float64:
            inside += self._remove(block)
        fresh, remainder = orthonormalize(block)
        lengths = np.abs(np.diag(remainder))
        if lengths.min() < 0.1 * scale:  # scaling a short column up has scaled up what was left in it of the basis
            self._remove(fresh)
            fresh, turned = orthonormalize(fresh)
            remainder = turned @ remainder
        vanished = lengths <= 1e2 * np.finfo(block.dtype).eps * scale
        if vanished.any():
            fresh[:, vanished] = self._rng.standard_normal((len(block), int(vanished.sum())))
            remainder = remainder.copy()
            remainder[vanished] = 0
            for _ in range(2):
                self._remove(fresh)
                # Gram-Schmidt from the left: sound columns come first and keep their direction.
                order = np.argsort(vanished, kind="stable")
                orthonormal, turned = np.linalg.qr(fresh[:, order])
                fresh[:, order] = orthonormal * np.where(np.diag(turned) < 0, -1.0, 1.0)
        self._basis[:, self.size : self.size + fresh.shape[1]] = fresh
        self.size += fresh.shape[1]
        return inside, remainder.astype(np.float64)

    def _remove(self, block: Block) -> Float64:
        """Make `block` orthogonal, in place, to the basis and to what is left out; its coefficients in the basis."""
        if self._without is not None:
            block -= self._without @ (self._without.T @ block)
        basis = self._basis[:, : self.size]
        inside = basis.T @ block
        block -= basis @ inside
        return inside.astype(np.float64)


def _leading(upper: Block, count: int) -> tuple[Float64, Float64]:
    """The `count` leading eigenpairs of the symmetric matrix with this upper triangle, which is overwritten."""
    size = len(upper)
    values, vectors = eigh(
        upper, lower=False, subset_by_index=[max(0, size - count), size - 1], overwrite_a=True, check_finite=False
    )
    return values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)


def orthonormalize(block: Block) -> tuple[Block, Block]:
    """Q, R of a tall block: Cholesky's way twice, which reads it least, or Householder's where that breaks down."""
    try:
        first = np.linalg.cholesky((block.T @ block).astype(np.float64), upper=True)
        if np.diag(first).min() <= 1e-2 * np.sqrt(np.finfo(block.dtype).eps) * np.diag(first).max():
            return np.linalg.qr(block)
        once = block @ np.linalg.inv(first).astype(block.dtype)
        second = np.linalg.cholesky((once.T @ once).astype(np.float64), upper=True)
    except np.linalg.LinAlgError:
        return np.linalg.qr(block)
    return once @ np.linalg.inv(second).astype(block.dtype), (second @ first).astype(block.dtype)
