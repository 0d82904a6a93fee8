"""Grids. A block of `manifolds:` whose method ends in `-selected` lists values; each combination is a grid point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from sentfold.errors import ParameterError, located
from sentfold.manifold.base.protocol import ManifoldMethod, find_method
from sentfold.settings import Parameters, refuse_unknown, validate

SUFFIX = "-selected"
MOST_POINTS = 10_000  # of one grid; a line of twenty short lists stands for a million points and more


@dataclass(frozen=True)
class Grid:
    """The combinations of hyper-parameters from which the best is chosen.

    method          name of a file of sentfold/manifold, without .py
    points          settings of that method; of equally good points the first is chosen
    budget_seconds  CPU time after which the sweep warns; it changes no result
    """

    method: str
    points: tuple[Parameters, ...]
    budget_seconds: float | None = None

    @property
    def module(self) -> ManifoldMethod:
        """The file of the method."""
        return find_method(self.method)


def read_grid(block: Mapping[str, Any], *, where: str) -> Grid:
    """The grid of a block of lists. The first setting of the method varies slowest.

    A setting that the block does not name has its default value. `where` names the block in errors.
    Raises ParameterError if the method cannot be selected, a list or one of its values is wrong, or there are
    too many combinations.
    """
    method = str(block.get("method")).removesuffix(SUFFIX)
    with located(where):
        module = find_method(method)
    if not hasattr(module, "fits"):
        raise ParameterError(
            f"the method '{method}' cannot be selected",
            where=f"{where}.method",
            expected="a method whose file defines `fits`",
            got=str(block.get("method")),
        )
    names = tuple(module.Settings.model_fields)
    refuse_unknown(dict(block), ("method", *names, "budget_seconds"), where=where)
    listed = {name: _values(block[name], f"{where}.{name}") for name in names if name in block}
    points = tuple(validate(module.Settings, chosen, where=where) for chosen in combine(listed, where=where))
    return Grid(method, points, _budget(block.get("budget_seconds"), f"{where}.budget_seconds"))


def combine(listed: Mapping[str, list[Any]], *, where: str) -> Iterator[dict[str, Any]]:
    """Every combination of listed values; the first key varies slowest. Raises ParameterError if they are too many."""
    number = prod(map(len, listed.values()))
    if number > MOST_POINTS:
        raise ParameterError(
            "a grid is too large", where=where, expected=f"at most {MOST_POINTS:,} combinations", got=f"{number:,}"
        )
    return (dict(zip(listed, chosen, strict=True)) for chosen in product(*listed.values()))


def _values(values: Any, where: str) -> list[Any]:
    if not isinstance(values, list) or not values or len({repr(value) for value in values}) != len(values):
        raise ParameterError(
            "a list of grid values is wrong",
            where=where,
            expected="a list of at least one value, and no value twice",
            got=repr(values),
            remedy="correct params.yaml",
        )
    return values


def _budget(seconds: Any, where: str) -> float | None:
    if seconds is None or (isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0):
        return seconds
    raise ParameterError(
        "the budget is wrong", where=where, expected="a number of seconds, more than 0", got=repr(seconds)
    )
