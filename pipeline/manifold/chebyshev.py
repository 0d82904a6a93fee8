"""The operator M, and the Chebyshev filter that turns the bottom of its spectrum into the top."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

Float64 = npt.NDArray[np.float64]


@dataclass
class Operator:
    """v -> M v = (I - W)^T (I - W) v as two sparse products, counted; M is never formed."""

    difference: sp.csr_array
    transposed: sp.csr_array
    products: int = field(default=0)

    @classmethod
    def from_weights(cls, weights: sp.csr_array) -> Operator:
        """The operator of a sparse (n, n) weight matrix W."""
        difference = sp.csr_array(sp.eye_array(weights.shape[0], format="csr") - weights)
        return cls(difference, sp.csr_array(difference.T))

    def __call__(self, block: Float64) -> Float64:
        self.products += 1 if block.ndim == 1 else block.shape[1]
        result: Float64 = self.transposed @ (self.difference @ block)
        return result

    @property
    def n(self) -> int:
        """Number of sentences."""
        return int(self.difference.shape[0])

    @property
    def trace(self) -> float:
        """Sum of all eigenvalues, from the entries of I - W."""
        return float((self.difference.data**2).sum())

    def as_linear(self) -> LinearOperator:
        """The same for scipy's solvers."""
        return LinearOperator((self.n, self.n), matvec=self, dtype=np.float64)


@dataclass(frozen=True)
class Filter:
    """p(M), p the Chebyshev polynomial that is at most 1 on [cut, largest] and grows below the cut.

    degree 1 is M itself, mirrored: monotone on the whole spectrum, so the cut does not matter.
    """

    cut: float
    largest: float
    degree: int

    @classmethod
    def for_cut(cls, cut: float, largest: float) -> Filter:
        """Degree whose filter grows by about e^3 from the cut down to zero; 1 where most is wanted."""
        if cut > 0.3 * largest:
            return cls(cut, largest, 1)
        return cls(cut, largest, int(np.clip(np.ceil(1.5 * np.sqrt(largest / cut)), 2, 400)))

    def apply(self, operator: Operator, v: Float64) -> Float64:
        """p(M) v by the three-term recurrence; `degree` products."""
        if self.degree == 1:
            mirrored: Float64 = self.largest * v - operator(v)
            return mirrored
        scale = 2.0 / (self.largest - self.cut)
        shift = (self.largest + self.cut) / (self.largest - self.cut)
        before, now = v, shift * v - scale * operator(v)
        for _ in range(self.degree - 1):
            before, now = now, 2 * (shift * now - scale * operator(now)) - before
        return now

    def invert(self, value: float) -> float:
        """The eigenvalue of M, at most the cut, at which the filter takes `value`; the cut for values up to 1."""
        if self.degree == 1:
            return self.largest - value
        if value <= 1:
            return self.cut
        mapped = float(np.cosh(np.arccosh(value) / self.degree))
        return (self.largest + self.cut - (self.largest - self.cut) * mapped) / 2
