"""Locally linear embedding (LLE): the locality-preserving space of SBERT-LP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sentfold.manifold.base.local import LocalSettings, embed_locally, scale_eigenvectors
from sentfold.manifold.base.protocol import Embedded, Rows, SolverSettings, Source
from sentfold.manifold.solver.eigensolver import bottom_eigenvectors, weight_matrix
from sentfold.manifold.solver.search import Progress
from sentfold.manifold.weights.weights import Weights, solve_weights

TITLE = "locally linear embedding"
ROLE = "fold"
READS = "weights"
SOLVES = True

Settings = LocalSettings


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, p) coordinates and the certificate of their eigensolve. Raises as embed_locally does."""
    neighbors = source.nearest(settings.neighbors)
    made = embed_locally(source.vectors, neighbors, settings, source.solver, workers=source.workers)
    return Embedded(made.coordinates.astype(np.float32), made.pairs.certificate())


def reconstruct(source: Source, settings: Settings) -> tuple[Rows, Weights]:
    """The first of two steps: the (n, k) neighbours, and the weights with which they rebuild each row."""
    neighbors = source.nearest(settings.neighbors)
    return neighbors, solve_weights(source.vectors, neighbors, regularization=settings.regularization)


def solve(weights: sp.csr_array, settings: Settings, solver: SolverSettings, progress: Progress | None) -> Embedded:
    """The second step: the coordinates that a sparse (n, n) weight matrix gives."""
    pairs = bottom_eigenvectors(weights, settings.components, **solver.model_dump(), progress=progress)
    coordinates = scale_eigenvectors(pairs.vectors, pairs.values, settings.scaling)
    return Embedded(coordinates.astype(np.float32), pairs.certificate())


def fits(settings: Settings, shape: tuple[int, ...], held: int) -> bool:
    """Whether the graph holds k neighbours of each row and there are p eigenvectors."""
    k, n = settings.neighbors, shape[0]
    return k <= held and k < n and settings.components <= n - 2


def embed_points(source: Source, points: Mapping[int, Settings]) -> Iterator[tuple[int, npt.NDArray[np.floating[Any]]]]:
    """The number and the float64 space of each point. Points that differ in p or scaling share one eigensolve."""
    for k, regularization in dict.fromkeys((point.neighbors, point.regularization) for point in points.values()):
        same = {
            number: point
            for number, point in points.items()
            if (point.neighbors, point.regularization) == (k, regularization)
        }
        neighbors = source.nearest(k)
        weights = solve_weights(source.vectors, neighbors, regularization=regularization).values
        largest = max(point.components for point in same.values())
        pairs = bottom_eigenvectors(weight_matrix(neighbors, weights), largest, **source.solver.model_dump())
        for number, point in same.items():
            p = point.components
            yield number, scale_eigenvectors(pairs.vectors[:, :p], pairs.values[:p], point.scaling)
