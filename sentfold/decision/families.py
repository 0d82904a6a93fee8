"""The candidates: families of spaces, each with a grid of parameters, and how each is fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.data.tables import DataError
from sentfold.decision.spaces import LandmarkSpace, LinearSpace, SmoothedSpace, Space
from sentfold.kernels.arrays import canonical_signs
from sentfold.manifold.abtt import removal_map
from sentfold.manifold.base.linear import EPS, LinearMap, PrincipalAxes, principal_axes, principal_map
from sentfold.manifold.base.local import scale_eigenvectors
from sentfold.manifold.landmark import first_of_equals
from sentfold.manifold.lpp import locality_preserving_map
from sentfold.manifold.npe import neighborhood_preserving_map
from sentfold.manifold.solver.eigensolver import bottom_eigenvectors, weight_matrix
from sentfold.manifold.weights.weights import solve_weights
from sentfold.manifold.whitening import whitening_map
from sentfold.neighbors.neighbors import nearest_neighbors

Floating = npt.NDArray[np.floating[Any]]
Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WIDEST = 4_096  # numbers of a vector: maps that keep the dimension have the square of it
LANDMARKS = 2_000  # rows at most whose neighbours are sought among each other
PER_DIMENSION = 10  # rows for each dimension of an embedding by neighbours
FEWEST = 10  # rows that any map is fitted on
REGULARIZATION = 1e-3
TOLERANCE = 1e-3  # of the eigensolver, as a fraction of the last eigenvalue

COMPONENTS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256)
WHITENED = (64, 128, 256)
POWERS = (0.5, 1.0)
REMOVED = (1, 3, 10)
SMOOTHED = ((5, 0.1), (5, 0.3), (5, 0.5), (15, 0.3))
NEAR = 15  # neighbours of the linear maps that keep neighbourhoods
KEPT = (32, 64, 128)  # their dimensions
EMBEDDED_NEAR = (10, 30)
EMBEDDED = (16, 32, 64, 128)
SHRINKAGE = (0.1, 0.5, 2.0, 10.0)


def refuse_wide(width: int) -> None:
    """Raise DataError for vectors of more than WIDEST numbers."""
    if width > WIDEST:
        raise DataError(
            "vectors are too wide to fit maps of them", where="vectors", expected=f"at most {WIDEST:,} numbers",
            got=f"{width:,}", remedy="reduce the vectors first, by the leading numbers of a Matryoshka model or by a "
            "random projection; `sentfold compare` takes them as they are",
        )  # fmt: skip


@dataclass(frozen=True)
class Points:
    """A space, and the points of a grid that are this space or its first dimensions.

    names  name of the point -> number of dimensions; 0 for all
    """

    space: Space
    names: dict[str, int]


@dataclass(frozen=True)
class Rows:
    """What a space may be fitted on.

    x      (n, d) vectors without labels, distinct; all of them for linear maps
    local  (l, d) those of them that maps with neighbours may hold: none is a text that chooses the parameters
    alike  what should be near each other: (s, d) differences of vectors, times the root of their weights
    """

    x: Floating
    local: Floating
    alike: Floating

    @cached_property
    def axes(self) -> PrincipalAxes:
        """Principal axes of x."""
        return axes_of(self.x)

    @cached_property
    def sample(self) -> Floating:
        """At most LANDMARKS rows of x, evenly spread, and no two equal."""
        return spread(self.x)

    @cached_property
    def landmarks(self) -> Floating:
        """At most LANDMARKS rows of `local`, evenly spread, and no two equal."""
        return spread(self.local)

    @cached_property
    def near(self) -> Ints:
        """(n, NEAR) neighbours of the sample."""
        return nearest_neighbors(self.sample, NEAR, workers=1).indices.astype(np.int64)


def axes_of(x: Floating) -> PrincipalAxes:
    """Principal axes of (n, d) rows: d of them, or n where n < d, in O(n^2 d) instead of O(d^3)."""
    n, d = x.shape
    if n >= d:
        return principal_axes(x)
    mean = x.mean(axis=0, dtype=np.float64)
    _, sizes, axes = np.linalg.svd(x - mean, full_matrices=False)
    values = sizes**2
    floor = max(8 * d * EPS * values[0], n * (4 * EPS) ** 2 * float(mean @ mean))
    rank = min(int((values > floor).sum()), n - 1)
    return PrincipalAxes(mean, canonical_signs(np.ascontiguousarray(axes.T)), values / max(n - 1, 1), rank, n)


@dataclass(frozen=True)
class Family:
    """One candidate: its name, and the spaces of its grid.

    spaces      Rows -> the spaces of the points that fit the rows
    supervised  whether it is fitted on labels
    local       whether it holds rows, so that only texts that are not among them can choose its parameters
    refitted    whether its published form is fitted on the very texts that are judged; shown apart, as transductive
    """

    name: str
    spaces: Callable[[Rows], Iterator[Points]]
    supervised: bool = False
    local: bool = False
    refitted: bool = False


def spread(x: Floating) -> Floating:
    """At most LANDMARKS of the distinct rows, evenly spread over their order."""
    distinct = first_of_equals(x)
    places = np.unique(np.linspace(0, len(distinct) - 1, min(LANDMARKS, len(distinct))).astype(np.int64))
    return np.ascontiguousarray(x[distinct[places]])


def mean_removal(rows: Rows) -> Iterator[Points]:
    """Centred vectors."""
    yield Points(LinearSpace(removal_map(rows.axes, 0)), {"": 0})


def all_but_the_top(rows: Rows) -> Iterator[Points]:
    """Centred vectors without their first principal directions."""
    for removed in REMOVED:
        if removed < min(rows.axes.rank, rows.x.shape[1]) / 2:
            yield Points(LinearSpace(removal_map(rows.axes, removed)), {f"{removed} removed": 0})


def principal_components(rows: Rows) -> Iterator[Points]:
    """The leading principal components."""
    names = {f"{p} dimensions": p for p in COMPONENTS if p < rows.axes.rank}
    if names:
        yield Points(LinearSpace(principal_map(rows.axes, max(names.values()))), names)


def whitening(rows: Rows) -> Iterator[Points]:
    """Principal components divided by a power of their deviation."""
    for power in POWERS:
        names = {f"{p} dimensions, power {power:g}": p for p in WHITENED if p < rows.axes.rank}
        if names:
            yield Points(LinearSpace(whitening_map(rows.axes, max(names.values()), power=power)), names)


def smoothing(rows: Rows) -> Iterator[Points]:
    """Each vector moved towards its nearest ones."""
    for k, amount in SMOOTHED:
        if len(rows.landmarks) > PER_DIMENSION * k:
            yield Points(SmoothedSpace(rows.landmarks, k, amount), {f"{k} neighbours, amount {amount:g}": 0})


def neighborhood_preserving(rows: Rows) -> Iterator[Points]:
    """NPE: the linear form of the embedding."""
    largest = _largest(rows.sample, rows.axes.rank, KEPT)
    if largest:
        weights = solve_weights(rows.sample, rows.near, regularization=REGULARIZATION, workers=1).values
        yield _prefixes(neighborhood_preserving_map(rows.sample, rows.near, weights, largest), largest)


def locality_preserving(rows: Rows) -> Iterator[Points]:
    """LPP: the linear form of Laplacian eigenmaps."""
    largest = _largest(rows.sample, rows.axes.rank, KEPT)
    if largest:
        yield _prefixes(locality_preserving_map(rows.sample, rows.near, largest, heat=None), largest)


def embedding(rows: Rows) -> Iterator[Points]:
    """The fold: locally linear embedding of landmarks, by which every vector is mapped."""
    x = rows.landmarks
    largest = _largest(x, len(x), EMBEDDED)
    if not largest:
        return
    near = nearest_neighbors(x, max(EMBEDDED_NEAR), workers=1).indices
    for k in EMBEDDED_NEAR:
        graph = np.ascontiguousarray(near[:, :k])
        weights = solve_weights(x, graph, regularization=REGULARIZATION, workers=1).values
        matrix = weight_matrix(graph, weights)
        pairs = bottom_eigenvectors(matrix, largest, tolerance=TOLERANCE, seed=0, workers=1)
        coordinates = scale_eigenvectors(pairs.vectors, pairs.values, "unit")
        names = {f"{k} neighbours, {p} dimensions": p for p in EMBEDDED if p <= largest}
        yield Points(LandmarkSpace(x, coordinates, k, REGULARIZATION), names)


def linear_adapter(rows: Rows) -> Iterator[Points]:
    """Directions shrunk in which vectors that belong together differ: (S + shrinkage I)^(-1/2), S of mean variance 1.

    S is the scatter of differences of vectors that the labels hold to be alike.
    Source: relevant component analysis, Bar-Hillel, Hertz, Shental & Weinshall 2003, ICML
    """
    if len(rows.alike) < FEWEST:
        return
    (s, d), apart = rows.alike.shape, rows.alike.astype(np.float64)
    if s < d:  # S is 0 outside of the span of the differences
        _, sizes, axes = np.linalg.svd(apart, full_matrices=False)
        values, vectors = sizes**2, axes.T
    else:
        values, vectors = np.linalg.eigh(apart.T @ apart)
        values = np.maximum(values, 0.0)
    if values.sum() > 0:
        values *= d / values.sum()
        for shrinkage in SHRINKAGE:
            outside = shrinkage**-0.5 if s < d else 0.0
            matrix = (vectors * (1 / np.sqrt(values + shrinkage) - outside)) @ vectors.T
            matrix[np.diag_indices(d)] += outside
            yield Points(LinearSpace(LinearMap(np.zeros(d), matrix, values)), {f"shrinkage {shrinkage:g}": 0})


FAMILIES = (
    Family("mean removal", mean_removal),
    Family("all but the top", all_but_the_top),
    Family("principal components", principal_components),
    Family("whitening", whitening),
    Family("smoothing by neighbours", smoothing, local=True),
    Family("neighbourhood preserving (NPE)", neighborhood_preserving),
    Family("locality preserving (LPP)", locality_preserving),
    Family("locally linear embedding", embedding, local=True, refitted=True),
    Family("linear adapter from labels", linear_adapter, supervised=True),
)


def _largest(x: Floating, rank: int, dimensions: tuple[int, ...]) -> int:
    """The largest dimension with PER_DIMENSION rows for each; 0 if there is none."""
    fitting = [p for p in dimensions if PER_DIMENSION * p <= len(x) and p < rank]
    return max(fitting) if fitting and len(x) > max(*EMBEDDED_NEAR, NEAR) + 1 else 0


def _prefixes(learned: LinearMap, largest: int) -> Points:
    return Points(LinearSpace(learned), {f"{p} dimensions": p for p in KEPT if p <= largest})
