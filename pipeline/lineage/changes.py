"""What changed between two commits above a number: parameters, code, commands, data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pipeline.lineage.stages import Graph, Locked

Kind = Literal["parameter", "code", "command", "stage", "data"]
NOTHING = "nothing"


@dataclass(frozen=True)
class Change:
    """One change, told once however many stages it touches. before, after: values, hashes or commands, as text."""

    kind: Kind
    subject: str
    before: str
    after: str


class Changes:
    """The changes between two graphs of one suite, by the locks of both."""

    def __init__(self, old: Graph, new: Graph) -> None:
        self.old = old
        self.new = new
        self._known: dict[str, tuple[Change, ...]] = {}
        self._upstream: dict[str, tuple[Change, ...]] = {}

    def above(self, name: str) -> tuple[Change, ...]:
        """What changed in a stage and in everything that it rests on, in either commit."""
        if name not in self._upstream:
            graphs = [graph for graph in (self.old, self.new) if name in graph.stages]
            stages = dict.fromkeys(stage for graph in graphs for stage in graph.ancestors(name))
            self._upstream[name] = tuple(dict.fromkeys(change for stage in stages for change in self.of(stage)))
        return self._upstream[name]

    def of(self, name: str) -> tuple[Change, ...]:
        """What changed in one stage itself."""
        if name not in self._known:
            self._known[name] = tuple(self._compare(name))
        return self._known[name]

    def _compare(self, name: str) -> Iterator[Change]:
        old, new = self.old.locked.get(name), self.new.locked.get(name)
        if old is None or new is None:
            if old is not new:
                was, now = ("absent" if found is None else "recorded" for found in (old, new))
                yield Change("stage", name, was, now)
            return
        found = [*self._parameters(old, new), *self._code(old, new)]
        if old.command != new.command:
            found.append(Change("command", name, old.command, new.command))
        yield from found
        if not found and not self._fed_otherwise(old, new):
            yield from self._outputs(old, new)

    def _parameters(self, old: Locked, new: Locked) -> Iterator[Change]:
        for file in dict.fromkeys([*old.params, *new.params]):
            was, now = flatten(old.params.get(file, {})), flatten(new.params.get(file, {}))
            for key in dict.fromkeys([*was, *now]):
                if was.get(key, NOTHING) != now.get(key, NOTHING):
                    before, after = str(was.get(key, NOTHING)), str(now.get(key, NOTHING))
                    yield Change("parameter", f"{file}: {key}", before, after)

    def _code(self, old: Locked, new: Locked) -> Iterator[Change]:
        for path in dict.fromkeys([*old.deps, *new.deps]):
            if self.old.makers_of(path) or self.new.makers_of(path):
                continue
            was, now = (locked.deps[path].md5 if path in locked.deps else NOTHING for locked in (old, new))
            if was != now:
                yield Change("code", path, was, now)

    def _fed_otherwise(self, old: Locked, new: Locked) -> bool:
        """Whether a stage read other data, made by other stages: then the change lies further up."""
        made = [path for path in {*old.deps, *new.deps} if self.new.makers_of(path) or self.old.makers_of(path)]
        return any(path not in old.deps or path not in new.deps or old.deps[path] != new.deps[path] for path in made)

    def _outputs(self, old: Locked, new: Locked) -> Iterator[Change]:
        for path, entry in new.outs.items():
            if path in old.outs and old.outs[path] != entry:
                yield Change("data", path, old.outs[path].md5, entry.md5)


def flatten(content: Any, place: str = "") -> dict[str, Any]:
    """Nested values by dotted keys."""
    if not isinstance(content, dict) or not content:
        return {place: content} if place else {}
    found: dict[str, Any] = {}
    for key, value in content.items():
        found |= flatten(value, f"{place}.{key}" if place else str(key))
    return found
