"""What is estimated of a spectrum before it is solved: its upper end, its density, its null vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from pipeline.manifold.chebyshev import Operator

Float64 = npt.NDArray[np.float64]

PROBES = 8  # random vectors of the spectral density estimate
STEPS = 120  # Lanczos steps per probe


def closed_classes(weights: sp.csr_array) -> int:
    """Closed communicating classes of the weight graph: sets that rebuild themselves alone.

    Each has an indicator that M maps to 0, so this is a lower bound of the nullity (and the nullity
    itself, unless weights cancel, as between twins).
    """
    count, label = connected_components(weights, directed=True, connection="strong")
    source, target = weights.nonzero()
    leaving = np.unique(label[source[label[source] != label[target]]])
    return int(count) - len(leaving)


def largest_eigenvalue(operator: Operator, rng: np.random.Generator) -> float:
    """An upper estimate: the largest Ritz value, plus its residual, plus 1%. May raise ArpackError."""
    top, vector = eigsh(operator.as_linear(), k=1, which="LA", tol=1e-2, v0=rng.standard_normal(operator.n))
    residual = float(np.linalg.norm(operator(vector[:, 0]) - top[0] * vector[:, 0]))
    return (float(top[0]) + residual) * 1.01


def spectral_density(operator: Operator, rng: np.random.Generator) -> tuple[Float64, Float64]:
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


def cut_above(density: tuple[Float64, Float64], count: int, largest: float) -> float:
    """A value with about 1.3 x count eigenvalues below it.

    Too high a cut costs a few iterations; too low a one hides wanted vectors where the filter is flat.
    """
    grid, below = density
    place = int(np.searchsorted(below, 1.3 * count))
    return max(float(grid[place]) if place < len(grid) else largest, 1e-6 * largest)


def _lanczos(operator: Operator, start: Float64, steps: int) -> tuple[Float64, Float64]:
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
