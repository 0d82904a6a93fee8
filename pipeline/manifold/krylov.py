"""A growing block Krylov space of a filtered operator, and the Ritz pairs in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, get_blas_funcs

from pipeline.manifold.chebyshev import Filter
from pipeline.manifold.product import WIDTH, Block, Operator

Float64 = npt.NDArray[np.float64]

SIDE_STEPS = 16  # at most


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

    Each step applies the filter to the next WIDTH columns and appends what is new. Columns are made
    orthogonal to all others, in float64 twice, so no eigenvalue appears in copies. Directions that vanish are
    replaced by random ones, so an invariant subspace is no end; blocks can also be put in by hand.
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
        without: Block | None = None,
    ) -> None:
        self.operator, self.filter, self._rng = operator, chosen, rng
        self.capacity = max(2, capacity // WIDTH) * WIDTH
        columns = self.capacity + (SIDE_STEPS + 1) * WIDTH
        # By columns, so that memory is touched only where the space has grown.
        self._basis = np.empty((operator.n, columns), dtype=precision, order="F")
        self._projection = np.zeros((columns, columns), dtype=precision)
        self._without = None if without is None else np.asfortranarray(without, dtype=precision)
        self.size = self.applied = 0
        self.put_in(rng.standard_normal((operator.n, WIDTH)))

    @property
    def is_full(self) -> bool:
        """Whether no block fits any more, but for side steps."""
        return self.size + WIDTH > self.capacity

    def put_in(self, block: Float64) -> None:
        """Append the (n, WIDTH) directions of `block` that are new; random ones for the rest."""
        self._append(block.astype(self._basis.dtype))

    def extend(self) -> None:
        """Apply the filter to the next block of columns and append what is new."""
        place = slice(self.applied, self.applied + WIDTH)
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
        applied, size = self.applied, self.size
        waiting = self._basis[:, applied:size].copy()
        self.size = applied
        self.put_in(self._rng.standard_normal((self.operator.n, WIDTH)))
        try:
            yield
        finally:
            self.applied, self.size = applied, size
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
        """Coefficients of `block` in the basis and in the WIDTH columns that are appended."""
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
        self._basis[:, self.size : self.size + WIDTH] = fresh
        self.size += WIDTH
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
