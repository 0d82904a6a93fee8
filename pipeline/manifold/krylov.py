"""A growing block Krylov space of a filtered operator, and the Ritz pairs in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from pipeline.manifold.chebyshev import Filter
from pipeline.manifold.product import WIDTH, Block, Operator

Float64 = npt.NDArray[np.float64]


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
    Memory: capacity x n numbers, taken as the space grows.
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
        capacity = max(2, capacity // WIDTH) * WIDTH
        # By columns, so that memory is touched only where the space has grown.
        self._basis = np.empty((operator.n, capacity), dtype=precision, order="F")
        self._projection = np.zeros((capacity, capacity))
        self._without = None if without is None else np.asfortranarray(without, dtype=precision)
        self.size = self.applied = 0
        self.put_in(rng.standard_normal((operator.n, WIDTH)))

    @property
    def capacity(self) -> int:
        """Largest dimension."""
        return self._basis.shape[1]

    @property
    def is_full(self) -> bool:
        """Whether no block fits any more."""
        return self.size + WIDTH > self._basis.shape[1]

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

    def ritz(self, count: int) -> Ritz:
        """The `count` leading Ritz pairs."""
        applied = self.applied
        upper = np.triu(self._projection[:applied, :applied])
        # The vectors are combined in the basis's precision, and no better one is needed of the coefficients.
        symmetric = (upper + np.triu(upper, 1).T).astype(self._basis.dtype)
        values, vectors = eigh(
            symmetric, subset_by_index=[max(0, applied - count), applied - 1], overwrite_a=True, check_finite=False
        )
        values, vectors = values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)
        outside = self._projection[applied : self.size, :applied] @ vectors
        return Ritz(values, vectors, np.linalg.norm(outside, axis=0))

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
