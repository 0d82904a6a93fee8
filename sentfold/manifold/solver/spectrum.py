"""Estimates before an eigensolve: the largest eigenvalue, the density of eigenvalues, the number of null vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.csgraph import connected_components

from sentfold.manifold.solver.product import WIDTH, Operator, empty_block

Float64 = npt.NDArray[np.float64]

HIGHEST_CUT = 0.9  # as a fraction of the largest eigenvalue
TOP_STEPS = 16  # Lanczos steps for the upper end alone
STEPS = (60, 120, 240, 400)  # numbers of Lanczos steps after which the estimate is checked


@dataclass(frozen=True)
class Spectrum:
    """An estimate of the spectrum of the damped M', whose lower end is nearly that of M.

    largest  upper estimate of the largest eigenvalue of M
    damped   upper estimate of the largest eigenvalue of M'
    grid     (m,) values, ascending
    below    (m,) estimated number of eigenvalues at or below each value of the grid
    """

    largest: float
    damped: float
    grid: Float64
    below: Float64

    def cut_above(self, count: int) -> float:
        """A value with about `count` eigenvalues below it, or the lowest value that the estimate resolves."""
        place = int(np.searchsorted(self.below, count))
        value = float(self.grid[place]) if place < len(self.grid) else self.damped
        return min(max(value, 1e-7 * self.damped), HIGHEST_CUT * self.damped)


def estimate_spectrum(operator: Operator, count: int, rng: np.random.Generator) -> Spectrum:
    """Stochastic Lanczos quadrature with WIDTH random sign vectors, until it resolves `count` eigenvalues.

    Steps are added while the lowest point of the estimate has more than `count` eigenvalues below it.
    Vectors are not reorthogonalised: copies of a Ritz value share its weight.
    Cost: up to 400 x WIDTH products. Source: Lin, Saad & Yang 2016, doi:10.1137/130934283
    """
    plain = _Recurrence(operator, rng, damped=False)
    plain.run(min(TOP_STEPS, operator.n))
    largest = plain.spectrum(0.0).damped
    recurrence = _Recurrence(operator, rng, damped=True)
    for steps in STEPS:
        recurrence.run(min(steps, operator.n))
        spectrum = recurrence.spectrum(largest)
        if spectrum.below[0] <= count or steps >= operator.n:
            break
    return spectrum


def closed_classes(weights: sp.csr_array) -> int:
    """Number of closed communicating classes of the weight graph: sets of rows that only rows of the set rebuild.

    M maps the indicator vector of each class to 0, so the number is a lower bound of the nullity. It equals the
    nullity unless weights cancel, as they do between equal rows.
    """
    count, label = connected_components(weights, directed=True, connection="strong")
    source, target = weights.nonzero()
    leaving = np.unique(label[source[label[source] != label[target]]])
    return int(count) - len(leaving)


class _Recurrence:
    """WIDTH independent Lanczos recurrences, run together."""

    def __init__(self, operator: Operator, rng: np.random.Generator, *, damped: bool) -> None:
        self.operator, self.damped = operator, damped
        self.now, self.before, self.image, self.scratch = (empty_block(operator.n, np.float32) for _ in range(4))
        self.now[:] = (rng.integers(0, 2, self.now.shape) * 2 - 1) / np.sqrt(operator.n)
        self.before[:] = 0
        self.diagonal: list[Float64] = []
        self.off: list[Float64] = [np.zeros(WIDTH)]

    def run(self, steps: int) -> None:
        while len(self.diagonal) < steps:
            self.operator.recur(self.now, self.now, self.image, self.scratch, (0.0, 0.0, 1.0), damped=self.damped)
            self.image -= self.off[-1].astype(np.float32) * self.before
            self.diagonal.append(_column_products(self.now, self.image))
            self.image -= self.diagonal[-1].astype(np.float32) * self.now
            length = np.sqrt(_column_products(self.image, self.image))
            self.off.append(length)
            self.image /= np.maximum(length, np.finfo(np.float32).tiny).astype(np.float32)
            self.before, self.now, self.image = self.now, self.image, self.before

    def spectrum(self, largest: float) -> Spectrum:
        n, curves, top = self.operator.n, [], 0.0
        diagonal, off = np.array(self.diagonal), np.array(self.off[1:])
        for probe in range(WIDTH):
            # If a coupling is 0, the recurrence has ended; later nodes have weight 0.
            nodes, vectors = eigh_tridiagonal(diagonal[:, probe], off[:-1, probe])
            masses = n * vectors[0] ** 2
            top = max(top, float(nodes[-1] + off[-1, probe] * abs(vectors[-1, -1])))
            # A node represents the eigenvalues on both sides of it, so half its mass is below it.
            curves.append((np.maximum(nodes, 0.0), np.cumsum(masses) - masses / 2))
        grid = np.unique(np.concatenate([nodes for nodes, _ in curves]))
        below = [np.interp(grid, np.append(0.0, nodes), np.append(0.0, counts)) for nodes, counts in curves]
        return Spectrum(largest, 1.01 * top, grid, np.mean(below, axis=0))


def _column_products(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> Float64:
    """Inner products of the columns, summed over blocks of rows in float64."""
    total = np.zeros(a.shape[1])
    for start in range(0, len(a), 8192):
        part = slice(start, start + 8192)
        total += np.einsum("ij,ij->j", a[part], b[part])
    return total
