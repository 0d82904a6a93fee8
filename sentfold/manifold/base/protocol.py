"""The contents of a method's file in sentfold/manifold, and the search for a method by its name.

A method is one file. The file defines:

TITLE     the name of the method in tables
ROLE      fold (reduces the dimension and uses neighbourhoods), control (reduces the dimension without
          neighbourhoods), or adjustment (anything else)
READS     vectors, graph (vectors and their neighbours), or weights (see below)
SOLVES    whether `embed` computes eigenvectors of weights, with the settings of the block `eigensolve`
Settings  a model of the method's parameters, each with its range and its default
embed     (source, settings) -> Embedded: the new space

A file may also define:

fits          (settings, shape, held) -> bool: whether (n, d) vectors with `held` neighbours each are enough.
              Only a method with `fits` can be selected: `method: <name>-selected` in params.yaml is then a grid.
same_as       (settings, shape) -> (name of another method, its settings) if that method makes the same space of (n, d)
              vectors up to a rotation; ("", {}) if the space is the vectors themselves; None if no other method
              makes the space. Tables state which spaces are the same.
embed_points  (source, points) -> (number of the point, its space) for each point of a grid, if points share work

A method that reads weights runs in two stages, so that the weights are an artifact of their own. Its file defines
reconstruct   (source, settings) -> (neighbours, Weights)
solve         (weight matrix, settings, solver, progress) -> Embedded
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.errors import ParameterError
from sentfold.manifold.base.linear import LinearMap, PrincipalAxes, principal_axes
from sentfold.neighbors.points import check_rows
from sentfold.settings import Parameters

Floating = npt.NDArray[np.floating[Any]]
Rows = npt.NDArray[np.integer[Any]]


class SolverSettings(Parameters):
    """Settings of every eigensolve; see bottom_eigenvectors. seed: random seed of the start vectors."""

    tolerance: float = Field(default=1e-8, gt=0, lt=1)
    null_tolerance: float = Field(default=1e-10, gt=0, lt=1e-3)
    seed: int = Field(default=0, ge=0, lt=2**32)


@dataclass(frozen=True)
class Source:
    """The space that a method starts from.

    vectors    (n, d) finite
    neighbors  (n, k) rows of the vectors, nearest first; None where the method reads no graph
    solver     settings of eigensolves; workers: threads, which do not change the result
    """

    vectors: Floating
    neighbors: Rows | None = None
    solver: SolverSettings = field(default_factory=SolverSettings)
    workers: int = 2

    def __post_init__(self) -> None:
        """Raise ParameterError for neighbours that are no rows of the vectors."""
        if self.neighbors is not None:
            check_rows(self.neighbors, len(self.vectors))

    @property
    def held(self) -> int:
        """How many neighbours of each row are known."""
        return 0 if self.neighbors is None else int(self.neighbors.shape[1])

    @cached_property
    def axes(self) -> PrincipalAxes:
        """The principal axes of the vectors, computed once for all points of a grid."""
        return principal_axes(self.vectors)

    def nearest(self, k: int) -> Rows:
        """The first k neighbours of each row, (n, k). Raises ParameterError if the graph holds fewer."""
        if self.neighbors is None or k > self.held:
            raise ParameterError(
                "the method needs more neighbours than the graph holds",
                where="neighbors",
                expected=f"<= knn_graph.neighbors = {self.held}",
                got=str(k),
                remedy="raise knn_graph.neighbors, or lower `neighbors` of the method",
            )
        return np.ascontiguousarray(self.neighbors[:, :k])


@dataclass(frozen=True)
class Embedded:
    """A new space, (n, p) float32, and facts about its fit, JSON-able."""

    vectors: npt.NDArray[np.float32]
    notes: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Raise ParameterError for a vector that float32 does not hold."""
        bad = np.flatnonzero(~np.isfinite(self.vectors).all(axis=1))
        if len(bad):
            raise ParameterError(
                "a vector of the new space is not finite in float32",
                where=f"row {bad[0]}",
                expected="numbers below 3.4e38",
                got=f"{len(bad)} such vectors",
                remedy="look at this row of the source, or scale all vectors",
            )


def embed_linearly(source: Source, learned: LinearMap, **notes: Any) -> Embedded:
    """The images of the source under a linear map, with the map's eigenvalues among the notes."""
    vectors = learned.apply(source.vectors, dtype=np.float32)
    return Embedded(vectors, {"eigenvalues": learned.eigenvalues.tolist(), **notes})


class ManifoldMethod(Protocol):
    """A module of sentfold/manifold; see the docstring of this module."""

    TITLE: str
    ROLE: Literal["fold", "control", "adjustment"]
    READS: Literal["vectors", "graph", "weights"]
    SOLVES: bool
    Settings: type[Parameters]

    def embed(self, source: Source, settings: Any) -> Embedded:
        """The space that the settings ask for."""

    def fits(self, settings: Any, shape: tuple[int, ...], held: int) -> bool:
        """Whether (n, d) vectors with `held` neighbours each are enough for the settings."""

    def reconstruct(self, source: Source, settings: Any) -> tuple[Rows, Any]:
        """The neighbours that each row is rebuilt from, and their Weights."""

    def solve(self, weights: Any, settings: Any, solver: SolverSettings, progress: Any) -> Embedded:
        """The space of a sparse weight matrix."""


def known_methods() -> tuple[str, ...]:
    """The names of the files of sentfold/manifold that define `embed`. The files are searched as text, not imported."""
    files = sorted(Path(__file__).parents[1].glob("*.py"))
    return tuple(file.stem for file in files if "\ndef embed(" in file.read_text(encoding="utf-8"))


def find_method(name: str) -> ManifoldMethod:
    """The module sentfold/manifold/<name>.py. Raises ParameterError if there is no such method."""
    if name not in known_methods():
        raise ParameterError(
            f"there is no manifold method '{name}'",
            where="method",
            expected=f"one of: {', '.join(known_methods())}",
            got=name,
            remedy="correct the name, or add the file sentfold/manifold/<method>.py",
        )
    return cast(ManifoldMethod, import_module(f"sentfold.manifold.{name}"))


def embed_each(
    method: ManifoldMethod, source: Source, points: Mapping[int, Parameters]
) -> Iterator[tuple[int, Floating]]:
    """The number and the (n, p) space of each point, in the order that the method chooses."""
    together = getattr(method, "embed_points", None)
    if together is not None:
        yield from together(source, points)
        return
    for number, point in points.items():
        yield number, method.embed(source, point).vectors
