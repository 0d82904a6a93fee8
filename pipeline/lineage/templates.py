"""The part of dvc.yaml's templating that this project uses: `vars`, `${a.b}` in strings, `matrix` over scalars."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from pipeline.lineage.errors import LineageError

_REFERENCE = re.compile(r"\$\{\s*([^}]+?)\s*\}")


def look_up(context: Mapping[str, Any], reference: str, *, where: str) -> Any:
    """The value of a dotted reference. Raises LineageError if the context has none."""
    value: Any = context
    for part in reference.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise LineageError(
                f"'${{{reference}}}' stands for nothing",
                where=where,
                expected="a name of the suite file",
                got=reference,
                remedy=f"correct {where}, or the suite file beside it",
            )
        value = value[part]
    return value


def fill(template: Any, context: Mapping[str, Any], *, where: str) -> Any:
    """`template` with its references replaced, in strings at any depth, keys included.

    A string that is one reference becomes the value itself, whatever its type; inside a longer string it
    becomes text.
    """
    if isinstance(template, dict):
        return {fill(key, context, where=where): fill(value, context, where=where) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, context, where=where) for value in template]
    if not isinstance(template, str):
        return template
    whole = _REFERENCE.fullmatch(template)
    if whole:
        return look_up(context, whole[1], where=where)
    return _REFERENCE.sub(lambda found: str(look_up(context, found[1], where=where)), template)


def expand(
    name: str, definition: Mapping[str, Any], context: Mapping[str, Any], *, where: str
) -> Iterator[tuple[str, Any]]:
    """The stages that one entry of dvc.yaml stands for: itself, or one per point of its matrix."""
    if "foreach" in definition:
        raise LineageError(
            f"stage '{name}' uses 'foreach', which is not understood here", where=where, remedy="use 'matrix'"
        )
    matrix = fill(definition.get("matrix"), context, where=where)
    rest = {key: value for key, value in definition.items() if key != "matrix"}
    if matrix is None:
        yield name, fill(rest, context, where=where)
        return
    if not isinstance(matrix, dict) or not all(isinstance(values, list) for values in matrix.values()):
        raise LineageError(
            f"the matrix of stage '{name}' runs over no lists",
            where=where,
            expected="a list of the suite file under each name",
            got=str(matrix),
            remedy="correct the suite file, or take it from git again",
        )
    for values in product(*matrix.values()):
        item = dict(zip(matrix, values, strict=True))
        address = f"{name}@{'-'.join(str(value) for value in values)}"
        yield address, fill(rest, {**context, "item": item, "key": address}, where=where)
