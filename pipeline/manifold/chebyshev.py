"""The Chebyshev filter that turns the bottom of the spectrum of M into the top."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.manifold.product import WIDTH, Block, Operator, empty_block, padded_block

Float64 = npt.NDArray[np.float64]

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
