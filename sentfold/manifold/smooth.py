"""Smoothing over the neighbour graph: each sentence moves towards the mean of its neighbours."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.errors import ParameterError
from sentfold.kernels.arrays import row_blocks
from sentfold.manifold.base.linear import BLOCK, Rows
from sentfold.manifold.base.protocol import Embedded, Source
from sentfold.neighbors.points import check_rows
from sentfold.settings import Parameters

TITLE = "smoothing by neighbours"
ROLE = "adjustment"
READS = "graph"
SOLVES = False


class Settings(Parameters):
    """neighbors: k. amount: share of the neighbours' mean in the result; below 0 moves a row away from the mean."""

    neighbors: int = Field(default=5, ge=1, le=10_000)
    amount: float = Field(default=0.1, ge=-10, le=1)


def embed(source: Source, settings: Settings) -> Embedded:
    """The (n, d) smoothed vectors."""
    neighbors = source.nearest(settings.neighbors)
    return Embedded(smooth(source.vectors, neighbors, amount=settings.amount, dtype=np.float32), {})


def fits(settings: Settings, shape: tuple[int, ...], held: int) -> bool:
    """Whether the graph holds k neighbours of each row."""
    return settings.neighbors <= held and settings.neighbors < shape[0]


def same_as(settings: Settings, shape: tuple[int, ...]) -> tuple[str, dict[str, Any]] | None:
    """The source itself, if the amount is 0."""
    return ("", {}) if settings.amount == 0 else None


def smooth(
    x: npt.NDArray[np.floating[Any]],
    neighbors: Rows,
    *,
    amount: float,
    pool: npt.NDArray[np.floating[Any]] | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> npt.NDArray[Any]:
    """Each row moved towards the mean of its neighbours: (1 - a) x + a mean.

    x          (n, d) finite, of any type; the arithmetic is float64
    neighbors  (n, k) rows of `pool`
    amount     a <= 1: 0 changes nothing, 1 replaces a row by the mean, below 0 moves the row away from the mean
    pool       (m, d) vectors of the neighbours; None for x itself
    dtype      type of the result
    Returns (n, d). Raises ParameterError if the amount is out of range, or a neighbour is no row of the pool.
    Cost O(n k d) time, O(block k d) memory besides the result.
    Source: one step of Taubin 1995, doi:10.1145/218380.218473, on a kNN graph
    """
    if isinstance(amount, bool) or not (isfinite(amount) and amount <= 1):
        raise ParameterError(
            "the amount of smoothing is out of range",
            where="amount",
            expected="a finite number <= 1",
            got=repr(amount),
        )
    held = x if pool is None else pool
    check_rows(neighbors, len(x), of=len(held))
    result = np.empty(x.shape, dtype=dtype)
    for rows in row_blocks(len(x), BLOCK):
        mean = held[neighbors[rows]].mean(axis=1, dtype=np.float64)
        result[rows] = (1 - amount) * np.asarray(x[rows], dtype=np.float64) + amount * mean
    return result
