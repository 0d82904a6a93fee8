"""What is wrong with, or absent from, the record of one stage: each of its own faults, none that it inherits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from pipeline.lineage.causes import Cause, Kind
from pipeline.lineage.digests import Digest
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import Entry, Locked, Stage, related, tracked_values

MISSING = "nothing"


class StageChecks:
    """The faults of stages, each stage looked at once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph = scope.graph
        self._known: dict[str, tuple[Cause, ...]] = {}

    def of(self, name: str) -> tuple[Cause, ...]:
        """The faults of one stage. Cost: hashing its inputs and outputs, each file once for all stages."""
        if name not in self._known:
            self._known[name] = tuple(self._check(name))
        return self._known[name]

    def of_all(self, names: tuple[str, ...]) -> list[Cause]:
        """The faults of several stages, each once."""
        return list(dict.fromkeys(cause for name in names for cause in self.of(name)))

    def _check(self, name: str) -> Iterator[Cause]:
        stage, locked = self.graph.stages[name], self.graph.locked.get(name)
        if locked is None:
            yield self._unrecorded(name)
            return
        yield from self._definition(stage, locked)
        yield from self._parameters(stage, locked)
        for entry in locked.deps.values():
            yield from self._dependency(locked, entry)
        for entry in locked.outs.values():
            yield from self._output(locked, entry)

    # --- what the two files say of each other ---------------------------------------------------

    def _unrecorded(self, name: str) -> Cause:
        edited = self.scope.committed is not None and name in self.scope.committed.locked
        found = "the committed one has: it was removed" if edited else "nor has the committed one: it has not run"
        place = f"{self.graph.lockfile}, stage {name}"
        return Cause("lock", place, f"it has no entry; {found}", self.scope.rerun(name))

    def _definition(self, stage: Stage, locked: Locked) -> Iterator[Cause]:
        place = f"{self.graph.lockfile}, stage {stage.name}"
        if stage.command != locked.command:
            message = f"it ran '{locked.command}'; {self.graph.dvcfile} says '{stage.command}'"
            yield Cause("lock", place, message, self.scope.rerun(stage.name))
        for what, wanted, recorded in (("deps", stage.deps, locked.deps), ("outs", stage.outs, locked.outs)):
            lacking, surplus = sorted(set(wanted) - set(recorded)), sorted(set(recorded) - set(wanted))
            if lacking or surplus:
                parts = [
                    *([f"lacks {', '.join(lacking)}"] if lacking else []),
                    *([f"has {', '.join(surplus)} too many"] if surplus else []),
                ]
                message = f"its {what} are not those of {self.graph.dvcfile}: it {' and '.join(parts)}"
                yield Cause("lock", place, message, self.scope.rerun(stage.name))

    def _parameters(self, stage: Stage, locked: Locked) -> Iterator[Cause]:
        for file, keys in stage.params.items():
            recorded, here = locked.params.get(file, {}), tracked_values(self.scope.yaml(file), keys)
            committed = tracked_values(self.scope.committed_yaml(file), keys)
            for key in dict.fromkeys([*here, *recorded]):
                ours, theirs = here.get(key, MISSING), recorded.get(key, MISSING)
                if ours != theirs:
                    yield self._altered_parameter(stage.name, file, key, ours, theirs, committed)
                elif self.scope.has_git and committed.get(key, MISSING) != ours:
                    message = f"{_brief(ours)} made these numbers; git's HEAD has {_brief(committed.get(key, MISSING))}"
                    yield Cause("parameter", f"{file}: {key}", message, f"commit {file}, or restore it and rerun")

    def _altered_parameter(
        self, name: str, file: str, key: str, here: Any, recorded: Any, committed: Mapping[str, Any]
    ) -> Cause:
        lock = self.graph.lockfile
        before = self.scope.committed_lock(name)
        then = None if before is None else before.params.get(file, {}).get(key, MISSING)
        here_, recorded_ = _differing(here, recorded)
        if then is not None and then == here and then != recorded:
            message = f"it says {recorded_} for {key}, {file} and the committed entry {here_}: the entry was edited"
            return Cause("lock", f"{lock}, stage {name}", message, f"git checkout -- {lock}")
        edited = self.scope.has_git and committed.get(key, MISSING) == recorded
        by = "; git's HEAD has the recorded value: the file was edited" if edited else ""
        message = f"it is {here_} here; the numbers were made with {recorded_} ({lock}){by}"
        return Cause("parameter", f"{file}: {key}", message, f"restore {file}, or {self.scope.rerun()}")

    # --- inputs ---------------------------------------------------------------------------------

    def _dependency(self, locked: Locked, entry: Entry) -> Iterator[Cause]:
        makers = [name for name in self.graph.makers_of(entry.path) if name != locked.name]
        yield from self._made(locked, entry, makers) if makers else self._source(locked, entry)

    def _source(self, locked: Locked, entry: Entry) -> Iterator[Cause]:
        """A file that no stage writes: code, or data kept in git."""
        here, head = self.scope.digest(entry.path), self.scope.head_digest(entry.path)
        before = self.scope.committed_entry(locked.name, "deps", entry.path)
        if here is not None and here.md5 == entry.md5:
            if self.scope.has_git and (head is None or head.md5 != entry.md5):
                found = "has it not" if head is None else f"has other bytes{_listed(here.differing(head))}"
                message = f"what made these numbers lies here, but git's HEAD {found}"
                yield Cause("code", entry.path, message, f"commit {entry.path}")
            return
        if here is not None and before == here.md5:
            yield self._edited_entry(locked.name, entry, before)
            return
        found = "it is not here" if here is None else f"the one here is another (md5 {here.md5})"
        message = f"these numbers were made with md5 {entry.md5}; {found}"
        if head is not None and head.md5 == entry.md5:
            files = [] if here is None else here.differing(head)
            message += f"; git's HEAD has the one that made them: it was edited here{_listed(files)}"
            yield Cause("code", entry.path, message, f"git checkout -- {entry.path}")
            return
        if head is not None:
            message += f", and so is git's HEAD's{self.scope.history(entry)}"
        yield Cause("code", entry.path, message, self.scope.rerun())

    def _made(self, locked: Locked, entry: Entry, makers: list[str]) -> Iterator[Cause]:
        """A file or folder that other stages write: the two records of it must agree."""
        outs = {out: found for name in makers for out, found in self._outs(name) if related(out, entry.path)}
        exact = outs.get(entry.path)
        here = self.scope.digest(entry.path)
        if exact is not None:
            # Where the file itself sides with the reader, it is the writer's entry that was edited.
            if exact.md5 != entry.md5 and (self.scope.foreign(entry.path) or here is None or here.md5 != entry.md5):
                yield self._disagreement(locked.name, entry, f"{makers[0]} recorded md5 {exact.md5}")
            return
        # A folder over several outputs, or a file inside one: what lies here decides, where the outputs are sound.
        sound = all((found := self.scope.digest(out)) is not None and found.md5 == outs[out].md5 for out in outs)
        if here is not None and sound and len(outs) and here.md5 != entry.md5:
            yield self._disagreement(locked.name, entry, f"as {', '.join(makers[:3])} wrote it, it is {here.md5}")

    def _outs(self, name: str) -> list[tuple[str, Entry]]:
        return list(self.graph.locked[name].outs.items()) if name in self.graph.locked else []

    def _disagreement(self, name: str, entry: Entry, other: str) -> Cause:
        before = self.scope.committed_entry(name, "deps", entry.path)
        if before is not None and before != entry.md5:
            return self._edited_entry(name, entry, before)
        here = self.scope.digest(entry.path)
        files = "" if here is None else _listed(self.scope.changed_files(entry, here))
        message = (
            f"it read {entry.path} as md5 {entry.md5}; {other}{files}: it has not run since, or the entry was edited"
        )
        return Cause("lock", f"{self.graph.lockfile}, stage {name}", message, self.scope.rerun(name))

    def _edited_entry(self, name: str, entry: Entry, before: str) -> Cause:
        lock = self.graph.lockfile
        message = f"its entry of {entry.path} says md5 {entry.md5}, the committed one {before}: the entry was edited"
        return Cause("lock", f"{lock}, stage {name}", message, f"git checkout -- {lock}")

    # --- outputs --------------------------------------------------------------------------------

    def _output(self, locked: Locked, entry: Entry) -> Iterator[Cause]:
        here = self.scope.digest(entry.path)
        if here is None or (here.md5 != entry.md5 and self.scope.foreign(entry.path)):
            message = f"it is not here; {locked.name} wrote it with md5 {entry.md5}"
            yield Cause("artifact", entry.path, message, self.scope.fetch(locked.name, entry), wrong=False)
            return
        if here.md5 == entry.md5:
            return
        readers = {self._read_as(name, entry.path) for name in self.graph.locked} - {None}
        before = self.scope.committed_entry(locked.name, "outs", entry.path)
        if before == here.md5:
            yield self._edited_entry(locked.name, entry, before)
        elif before is None and readers == {here.md5}:
            message = (
                f"its entry of {entry.path} says md5 {entry.md5}; what lies here, and what every stage that reads it "
                f"recorded, is {here.md5}: the entry was edited"
            )
            yield Cause("lock", f"{self.graph.lockfile}, stage {locked.name}", message, self.scope.rerun(locked.name))
        else:
            yield self._altered_output(locked, entry, here)

    def _read_as(self, name: str, path: str) -> str | None:
        entry = self.graph.locked[name].deps.get(path)
        return None if entry is None else entry.md5

    def _altered_output(self, locked: Locked, entry: Entry, here: Digest) -> Cause:
        files = self.scope.changed_files(entry, here)
        message = f"it is not what {locked.name} wrote: md5 {entry.md5} then, {here.md5} now{_listed(files)}"
        tracked = self.scope.head_digest(entry.path)
        remedy = f"git checkout -- {entry.path}" if tracked is not None and tracked.md5 == entry.md5 else ""
        path = PurePosixPath(entry.path)
        kind: Kind = "score" if path.parent.name == "scores" else "table" if path.parts[0] == "reports" else "artifact"
        return Cause(kind, entry.path, message, remedy or self.scope.fetch(locked.name, entry, altered=True))


def _listed(files: list[str]) -> str:
    shown = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    return f" ({shown})" if files else ""


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _differing(one: Any, other: Any) -> tuple[str, str]:
    """Two values in words; of two mappings, what differs alone."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in dict.fromkeys([*one, *other]) if one.get(key, MISSING) != other.get(key, MISSING)]
        pairs = [({key: side.get(key, MISSING) for key in keys}) for side in (one, other)]
        return _brief(pairs[0]), _brief(pairs[1])
    return _brief(one), _brief(other)
