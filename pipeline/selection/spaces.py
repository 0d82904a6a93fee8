"""The space of one point of a grid, and all spaces of a grid with the work that they share done once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ParameterError
from pipeline.manifold.eigensolver import bottom_eigenvectors, weight_matrix
from pipeline.manifold.graph_maps import smooth
from pipeline.manifold.manifolds import (
    AbttParameters,
    LleParameters,
    PcaParameters,
    SmoothParameters,
    WhiteningParameters,
)
from pipeline.manifold.principal import PrincipalAxes, principal_axes, principal_map, removal_map, whitening_map
from pipeline.manifold.scaling import scale_eigenvectors
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.manifold.weights import solve_weights
from pipeline.selection.grids import Point

Floating = npt.NDArray[np.floating[Any]]
Rows = npt.NDArray[np.integer[Any]]
Made = tuple[int, Floating]


def spaces_of(x: Floating, neighbors: Rows, points: Sequence[Point], solver: SolverParameters) -> Iterator[Made]:
    """The place of each point in `points` that fits the data, and its (n, p) space, in an order of its own.

    x          (n, d); neighbors: (n, k) for the largest k of the points, nearest first
    One eigensolve per (k, regularisation), whose columns are cut for every p; one set of principal axes.
    A point whose k or p does not fit n is left out. Cost: that of the largest p for each (k, regularisation).
    """
    places = {place: point for place, point in enumerate(points) if fits(point, x.shape, neighbors.shape[1])}
    local = {place: point for place, point in places.items() if isinstance(point, LleParameters)}
    yield from _local_spaces(x, neighbors, local, solver)
    linear = {place: point for place, point in places.items() if place not in local}
    axes = principal_axes(x) if any(not isinstance(point, SmoothParameters) for point in linear.values()) else None
    for place, point in linear.items():
        if isinstance(point, SmoothParameters):
            yield place, smooth(x, neighbors[:, : point.neighbors], amount=point.amount)
        elif axes is not None and not isinstance(point, LleParameters):
            yield place, _linear_space(x, axes, point)


def space_of(x: Floating, neighbors: Rows, point: Point, solver: SolverParameters) -> Floating:
    """The (n, p) space of one point. Raises ParameterError if its k or p does not fit the data."""
    for _, space in spaces_of(x, neighbors, [point], solver):
        return space
    raise ParameterError(
        "the chosen parameters do not fit this corpus",
        expected=f"k < n, p <= n - 2, p <= d, for {len(x)} sentences of {x.shape[1]} dimensions",
        got=str(point.model_dump()),
    )


def fits(point: Point, shape: tuple[int, ...], held: int) -> bool:
    """Whether a point's k and p fit (n, d) vectors with `held` neighbours each."""
    n, d = shape
    match point:
        case LleParameters(neighbors=k, components=p):
            return k <= held and k < n and p <= n - 2
        case SmoothParameters(neighbors=k):
            return k <= held and k < n
        case AbttParameters(removed=removed):
            return removed < min(n - 1, d)
        case PcaParameters(components=p) | WhiteningParameters(components=p):
            return p <= min(n, d)


def _local_spaces(
    x: Floating, neighbors: Rows, points: dict[int, LleParameters], solver: SolverParameters
) -> Iterator[Made]:
    solves = dict.fromkeys((point.neighbors, point.regularization) for point in points.values())
    for k, regularization in solves:
        same = {
            place: point
            for place, point in points.items()
            if (point.neighbors, point.regularization) == (k, regularization)
        }
        nearest = np.ascontiguousarray(neighbors[:, :k])
        weights = weight_matrix(nearest, solve_weights(x, nearest, regularization=regularization).values)
        largest = max(point.components for point in same.values())
        pairs = bottom_eigenvectors(weights, largest, **solver.model_dump())
        for place, point in same.items():
            p = point.components
            yield place, scale_eigenvectors(pairs.vectors[:, :p], pairs.values[:p], point.scaling)


def _linear_space(
    x: Floating, axes: PrincipalAxes, point: PcaParameters | WhiteningParameters | AbttParameters
) -> Floating:
    match point:
        case PcaParameters(components=p):
            return principal_map(axes, p).apply(x)
        case WhiteningParameters(components=p, power=power):
            return whitening_map(axes, p, power=power).apply(x)
        case AbttParameters(removed=removed):
            return removal_map(axes, removed).apply(x)
