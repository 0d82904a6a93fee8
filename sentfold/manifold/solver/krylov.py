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

SIDE_STEPS = 16  # largest number of extensions in a side step
LOWEST_DEGREE, HIGHEST_DEGREE = 3, 2000


@dataclass(frozen=True)
class Filter:
    """F(M), F the Chebyshev polynomial that is at most 1 on [cut, largest] and grows below the cut.

    cut, largest  ends of the damped interval, 0 < cut < largest
    degree        products with M per application
    damped        whether M is replaced by the damped M', see Operator
    """

    cut: float
    largest: float
    degree: int
    damped: bool = False

    @classmethod
    def for_cut(cls, cut: float, largest: float, *, strength: float, damped: bool = False) -> Filter:
        """The filter whose degree makes F(0) about e^(2 strength) / 2."""
        degree = int(np.clip(np.ceil(strength * np.sqrt(largest / cut)), LOWEST_DEGREE, HIGHEST_DEGREE))
        return cls(cut, largest, degree, damped)

    def apply(self, operator: Operator, vectors: Block, *, in_place: bool = False) -> Block:
        """F(M) times (n, m) vectors, in the precision of the vectors; costs `degree` products per vector."""
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
        """F(M) times `block`, by the three-term recurrence; `block` is overwritten."""
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
        """|dF / d lambda| at the eigenvalues where F takes the given values, which are >= 1."""
        angle = np.maximum(np.arccosh(np.maximum(values, 1.0)) / self.degree, 1e-9)
        steepness: Float64 = 2 * self.degree / (self.largest - self.cut) * np.sinh(self.degree * angle) / np.sinh(angle)
        return steepness


def _fitting_width(operator: Operator, left: int, itemsize: int) -> int:
    """The width of the next block, if `left` vectors remain.

    A row of a WIDE float64 block is four cache lines. It is no faster than two lines, and takes more memory.
    """
    widest = operator.width if itemsize == 4 else WIDTH
    return next(width for width in (operator.few, WIDTH, widest) if left <= width or width == widest)


@dataclass(frozen=True)
class Ritz:
    """The leading Ritz pairs of F(M).

    values        (m,) Ritz values of F(M), descending
    coefficients  (applied, m) coefficients of the Ritz vectors in the basis
    residuals     (m,) |F(M) v - value v|, computed from the projection
    """

    values: Float64
    coefficients: Float64
    residuals: Float64


class KrylovSpace:
    """A block Krylov space: an orthonormal basis Q and the projection H = Q^T F(M) Q.

    Each step applies the filter to the next `width` columns and appends the part of the images that is orthogonal to
    the basis. Columns are made orthogonal to all earlier columns, in float64 twice, so no eigenvalue appears in
    copies. A direction that vanishes is replaced by a random one, so the space also grows beyond an invariant
    subspace. `put_in` appends given directions. Side steps always use `few` columns, because the number of steps
    matters for them, not the width.
    Memory: capacity x n numbers, used as the space grows, and SIDE_STEPS blocks more for side steps.
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
        # Stored by columns, so that only the columns in use take memory.
        self._basis = np.empty((operator.n, columns), dtype=precision, order="F")
        self._projection = np.zeros((columns, columns), dtype=precision)
        self._without = None if without is None else np.asfortranarray(without, dtype=precision)
        self.size = self.applied = 0
        self.put_in(rng.standard_normal((operator.n, self.width)))

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another block; side steps have room of their own."""
        return self.size + self.width > self.capacity

    def put_in(self, block: Float64) -> None:
        """Append the orthogonal parts of the (n, m) columns; a random column where no such part is left."""
        self._append(block.astype(self._basis.dtype))

    def extend(self) -> None:
        """Apply the filter to the next block of columns and append the orthogonal part of the images."""
        place = slice(self.applied, self.applied + self.width)
        image = self.filter.apply(self.operator, np.ascontiguousarray(self._basis[:, place]))
        known = self.size
        inside, remainder = self._append(image)
        self._projection[:known, place] = inside
        self._projection[known : self.size, place] = remainder
        self.applied = place.stop

    @contextmanager
    def side_step(self) -> Iterator[None]:
        """Replace the block that waits for the filter by a random one; at the end restore the space.

        Within the context, `extend` may be called SIDE_STEPS times; the space then grows from the random block alone.
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
        """The `count` leading Ritz pairs orthogonal to the known ones, which may come from a smaller space."""
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
        """The largest Ritz value in the span of the columns from `applied` on that have been filtered."""
        return float(_leading(self._upper(applied), 1)[0][0])

    def _upper(self, start: int) -> Block:
        """The projection of F(M) on the columns from `start` to `applied`; valid on the diagonal and above."""
        return np.array(self._projection[start : self.applied, start : self.applied], order="F")

    def vectors(self, ritz: Ritz, *, before: Float64 | None = None) -> Float64:
        """The columns of `before` and the Ritz vectors, (n, m) float64, orthonormal in the precision of the basis."""
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
        """Append `block`; return its coefficients in the old basis and in the appended columns."""
        inside = np.zeros((self.size, block.shape[1]))
        scale = np.linalg.norm(block, axis=0).max(initial=0.0)
        inside += self._remove(block)
        if block.dtype == np.float64:
            inside += self._remove(block)
        fresh, remainder = orthonormalize(block)
        lengths = np.abs(np.diag(remainder))
        if lengths.min() < 0.1 * scale:  # scaling a short column up also scales up its rest in the span of the basis
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
                # QR keeps the directions of the first columns, so the columns that did not vanish come first.
                order = np.argsort(vanished, kind="stable")
                orthonormal, turned = np.linalg.qr(fresh[:, order])
                fresh[:, order] = orthonormal * np.where(np.diag(turned) < 0, -1.0, 1.0)
        self._basis[:, self.size : self.size + fresh.shape[1]] = fresh
        self.size += fresh.shape[1]
        return inside, remainder.astype(np.float64)

    def _remove(self, block: Block) -> Float64:
        """Make `block` orthogonal, in place, to the basis and to `without`; return its coefficients in the basis."""
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
    """Q, R of a tall block: Cholesky QR twice, which reads the block least; Householder QR if Cholesky breaks down."""
    try:
        first = np.linalg.cholesky((block.T @ block).astype(np.float64), upper=True)
        if np.diag(first).min() <= 1e-2 * np.sqrt(np.finfo(block.dtype).eps) * np.diag(first).max():
            return np.linalg.qr(block)
        once = block @ np.linalg.inv(first).astype(block.dtype)
        second = np.linalg.cholesky((once.T @ once).astype(np.float64), upper=True)
    except np.linalg.LinAlgError:
        return np.linalg.qr(block)
    return once @ np.linalg.inv(second).astype(block.dtype), (second @ first).astype(block.dtype)
