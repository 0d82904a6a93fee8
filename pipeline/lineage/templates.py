"""The part of DVC's templates that this project uses: `${a.b}`, and `foreach` over a mapping or a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

from pipeline.lineage.hashes import LineageError

LONGEST = 20_000  # letters of a string after its references are replaced; the longest command has some hundred

READ = ("cmd", "params", "deps", "outs", "metrics", "plots")  # of a stage; the rest, such as `meta`, can be long

_REFERENCE = re.compile(r"\$\{([^{}]+)\}")  # without blanks around the name: to try all their numbers takes hours


def expand(
    name: str, definition: Mapping[str, Any], context: Mapping[str, Any], *, where: str
) -> Iterator[tuple[str, Any]]:
    """The stages that one entry of dvc.yaml defines: one, or one per item of its `foreach`."""
    if "foreach" in definition:
        items, body = _items(name, definition["foreach"], context, where=where), definition.get("do") or {}
        if not isinstance(body, dict):
            raise malformed(where, f"do of stage {name}", f"a {type(body).__name__}", "a mapping with cmd")
        body = {key: value for key, value in body.items() if key in READ}
        for key, item in items.items():
            yield f"{name}@{key}", fill(body, {**context, "key": key, "item": item}, where=where)
    else:
        yield name, fill({key: value for key, value in definition.items() if key in READ}, context, where=where)


def _items(name: str, template: Any, context: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    items = fill(template, context, where=where)
    if isinstance(items, list):
        items = {str(item): item for item in items}
    if not isinstance(items, dict):
        raise malformed(where, f"foreach of stage {name}", str(items), "a mapping, or a list")
    return {str(key): item for key, item in items.items()}


def fill(template: Any, context: Mapping[str, Any], *, where: str) -> Any:
    """`template` with its references replaced, in strings at any depth, keys included.

    A string that is one reference becomes the value itself, whatever its type; inside a longer string the value
    becomes text.
    """
    if isinstance(template, dict):
        filled = [
            (fill(key, context, where=where), fill(value, context, where=where)) for key, value in template.items()
        ]
        wrong = [key for key, _ in filled if isinstance(key, dict | list)]
        if wrong:
            raise malformed(where, "a key", str(wrong[0]), "a name")
        return dict(filled)
    if isinstance(template, list):
        return [fill(value, context, where=where) for value in template]
    if not isinstance(template, str):
        return template
    whole = _REFERENCE.fullmatch(template)
    if whole:
        value = _look_up(context, whole[1], where=where)
        if isinstance(value, str) and len(value) > LONGEST:
            raise malformed(where, f"'{template[:60]}'", "more", f"at most {LONGEST:,} letters with its references")
        return value
    first, *others = _REFERENCE.split(template)  # every second piece is a reference
    pieces, total = [first], 0
    for place, piece in enumerate(others):
        pieces.append(piece if place % 2 else str(_look_up(context, piece, where=where)))
        total += len(pieces[-1])
        if total > LONGEST:
            raise malformed(where, f"'{template[:60]}'", "more", f"at most {LONGEST:,} letters with its references")
    return "".join(pieces)


def _look_up(context: Mapping[str, Any], reference: str, *, where: str) -> Any:
    value: Any = context
    for part in reference.strip().split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise malformed(where, f"${{{reference.strip()}}}", "no value", "a name in one of the files under `vars`")
        value = value[part]
    return value


def malformed(file: str, where: str, got: str, expected: str) -> LineageError:
    """The error for a part of dvc.yaml or dvc.lock that is not as it should be."""
    return LineageError(
        f"{file} is malformed",
        where=f"{file}: {where}",
        expected=expected,
        got=got,
        remedy=f"run `sentfold plan`, or take it and its variables from git again: git checkout HEAD -- {quote(file)}",
    )
