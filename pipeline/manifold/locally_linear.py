"""Locally linear embedding of rows whose neighbours are known: weights, eigenvectors, scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.manifold.eigensolver import Eigenpairs, bottom_eigenvectors, weight_matrix
from pipeline.manifold.manifolds import Scaling
from pipeline.manifold.scaling import Float64, scale_eigenvectors
from pipeline.manifold.search import Progress
from pipeline.manifold.weights import solve_weights


@dataclass(frozen=True)
class LocalEmbedding:
    """Coordinates, and the eigenpairs that they were scaled from.

    coordinates  (n, p) float64
    pairs        Eigenpairs, certificate included
    degenerate   number of rows that equal all of their neighbours
    """

    coordinates: Float64
    pairs: Eigenpairs
    degenerate: int


def embed_locally(
    x: npt.NDArray[np.floating[Any]],
    neighbors: npt.NDArray[np.integer[Any]],
    p: int,
    *,
    regularization: float,
    scaling: Scaling,
    tolerance: float,
    null_tolerance: float,
    seed: int,
    workers: int,
    progress: Progress | None = None,
) -> LocalEmbedding:
    """The p-dimensional locality-preserving coordinates of (n, d) rows with their (n, k) neighbours.

    The settings are those of solve_weights, bottom_eigenvectors and scale_eigenvectors, which also say
    what is raised and what it costs. Source: SBERT-LP eq. 9-17
    """
    weights = solve_weights(x, neighbors, regularization=regularization, workers=workers)
    pairs = bottom_eigenvectors(
        weight_matrix(neighbors, weights.values),
        p,
        seed=seed,
        tolerance=tolerance,
        null_tolerance=null_tolerance,
        workers=workers,
        progress=progress,
    )
    return LocalEmbedding(scale_eigenvectors(pairs.vectors, pairs.values, scaling), pairs, len(weights.degenerate))
