"""The grids that hyper-parameters are chosen from: blocks of `manifolds:` whose method ends in `-selected`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from pipeline.manifold.manifolds import (
    AbttParameters,
    LleParameters,
    PcaParameters,
    Scaling,
    SmoothParameters,
    WhiteningParameters,
)
from pipeline.params import Parameters, load_parameters

Point = LleParameters | PcaParameters | WhiteningParameters | AbttParameters | SmoothParameters
AsTuple = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)


class _Grid(Parameters):
    """Lists of values by parameter; every combination is a point, checked as that method's parameters are.

    budget_seconds  of CPU that the sweep may take before it warns; it changes no result
    """

    budget_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _every_point_is_sound(self) -> _Grid:
        points = list(self.points())
        if len({repr(point) for point in points}) != len(points) or not points:
            raise ValueError("each parameter needs at least one value, and none twice")
        return self

    def points(self) -> Iterator[Any]:
        """Every combination, the first parameter varying slowest; of equally good points the first is chosen."""
        raise NotImplementedError

    def _combined(self, model: type[Parameters]) -> Iterator[Any]:
        values = {name: value for name, value in self if name not in ("method", "budget_seconds")}
        method = str(self.model_dump()["method"]).removesuffix("-selected")
        for chosen in product(*values.values()):
            yield model.model_validate({"method": method, **dict(zip(values, chosen, strict=True))})


class LleGrid(_Grid):
    """Values of k, regularisation, p and scaling; see LleParameters."""

    method: Literal["lle-selected"]
    neighbors: Annotated[tuple[int, ...], AsTuple]
    regularization: Annotated[tuple[float, ...], AsTuple]
    components: Annotated[tuple[int, ...], AsTuple]
    scaling: Annotated[tuple[Scaling, ...], AsTuple]

    def points(self) -> Iterator[LleParameters]:
        """See _Grid."""
        return self._combined(LleParameters)


class PcaGrid(_Grid):
    """Values of p."""

    method: Literal["pca-selected"]
    components: Annotated[tuple[int, ...], AsTuple]

    def points(self) -> Iterator[PcaParameters]:
        """See _Grid."""
        return self._combined(PcaParameters)


class WhiteningGrid(_Grid):
    """Values of p and of the power; see WhiteningParameters."""

    method: Literal["whitening-selected"]
    components: Annotated[tuple[int, ...], AsTuple]
    power: Annotated[tuple[float, ...], AsTuple]

    def points(self) -> Iterator[WhiteningParameters]:
        """See _Grid."""
        return self._combined(WhiteningParameters)


class AbttGrid(_Grid):
    """Numbers of removed directions."""

    method: Literal["abtt-selected"]
    removed: Annotated[tuple[int, ...], AsTuple]

    def points(self) -> Iterator[AbttParameters]:
        """See _Grid."""
        return self._combined(AbttParameters)


class SmoothGrid(_Grid):
    """Values of k and of the amount; see SmoothParameters."""

    method: Literal["smooth-selected"]
    neighbors: Annotated[tuple[int, ...], AsTuple]
    amount: Annotated[tuple[float, ...], AsTuple]

    def points(self) -> Iterator[SmoothParameters]:
        """See _Grid."""
        return self._combined(SmoothParameters)


Grid = LleGrid | PcaGrid | WhiteningGrid | AbttGrid | SmoothGrid
GRIDS: dict[str, type[Grid]] = {
    "lle-selected": LleGrid,
    "pca-selected": PcaGrid,
    "whitening-selected": WhiteningGrid,
    "abtt-selected": AbttGrid,
    "smooth-selected": SmoothGrid,
}
MODELS: dict[str, type[Point]] = {
    "lle": LleParameters,
    "pca": PcaParameters,
    "whitening": WhiteningParameters,
    "abtt": AbttParameters,
    "smooth": SmoothParameters,
}


class _Method(Parameters):
    """The one key that every grid has."""

    model_config = ConfigDict(extra="ignore")

    method: Literal["lle-selected", "pca-selected", "whitening-selected", "abtt-selected", "smooth-selected"] = Field()


def load_grid(name: str) -> Grid:
    """The block manifolds.<name> of params.yaml as the grid of its method. Raises ParameterError."""
    return load_parameters(GRIDS[load_parameters(_Method, f"manifolds.{name}").method], f"manifolds.{name}")


def largest_neighbors(grid: Grid) -> int:
    """The largest k that any point asks for; 0 where none needs a graph."""
    return max(getattr(grid, "neighbors", (0,)))
