"""Which stages a run is about: all of a suite, or what its targets need."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import PurePosixPath

from flows.graph import StageGraph, ancestors, group_of
from pipeline.errors import RunError


def select_stages(graph: StageGraph, targets: Sequence[str]) -> frozenset[str]:
    """The stages that `targets` name, and all that they need; every stage if there is no target.

    targets  each a stage (`embed@x`), a group of a matrix (`embed`), or a path: an output, something
             in it, or a folder that holds outputs

    Raises RunError naming the first target that is none of these.
    """
    if not targets:
        return frozenset(graph.names)
    named: set[str] = set()
    for target in targets:
        found = _named_by(graph, target)
        if not found:
            raise _unknown(graph, target)
        named |= found
    return ancestors(graph, named) | named


def _named_by(graph: StageGraph, target: str) -> set[str]:
    short = target.rpartition(":")[2]
    stages = {name for name in graph.names if target == name or short in (name.rpartition(":")[2], group_of(name))}
    return stages or _makers(graph, PurePosixPath(target))


def _makers(graph: StageGraph, path: PurePosixPath) -> set[str]:
    def touches(out: str) -> bool:
        return path.is_relative_to(out) or PurePosixPath(out).is_relative_to(path)

    return {name for name, outs in graph.outs.items() if any(map(touches, outs))}


def _unknown(graph: StageGraph, target: str) -> RunError:
    known = {group_of(name) for name in graph.names} | {name.rpartition(":")[2] for name in graph.names}
    paths = {out for outs in graph.outs.values() for out in outs}
    near = difflib.get_close_matches(target, sorted(known | paths), n=3)
    groups = dict.fromkeys(group_of(name) for name in graph.names)
    return RunError(
        f"nothing here is called '{target}'",
        where="--target",
        expected=f"a stage, an output's path, or one of: {', '.join(groups)}",
        got=target,
        state="no stage was started",
        remedy=f"did you mean {' or '.join(near)}?" if near else "'dvc stage list' names every stage",
    )
