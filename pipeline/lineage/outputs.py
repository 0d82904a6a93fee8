"""What is wrong with, or absent from, the outputs that dvc.lock records of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from pipeline.lineage.causes import Cause, Kind
from pipeline.lineage.digests import Digest
from pipeline.lineage.numbers import tables_folder
from pipeline.lineage.phrases import edited_entry, listed, said_of
from pipeline.lineage.runs import wrote
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import Entry, Locked


class OutputChecks:
    """The faults of a stage's outputs."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph = scope.graph

    def output(self, locked: Locked, entry: Entry) -> Iterator[Cause]:
        """What speaks against one recorded output."""
        here = self.scope.digest(entry.path)
        if here is None or (here.md5 != entry.md5 and self.scope.foreign(entry.path)):
            yield self._absent(locked, entry)
            return
        if here.md5 == entry.md5:
            return
        readers = {self._read_as(name, entry.path) for name in self.graph.locked} - {None}
        before = self.scope.committed_entry(locked.name, "outs", entry.path)
        if before == here.md5:
            yield edited_entry(self.graph.lockfile, locked.name, entry, before)
        elif before is None and readers == {here.md5}:
            message = (
                f"its entry of {entry.path} says md5 {entry.md5}; what lies here, and what every stage that reads it "
                f"recorded, is {here.md5}: the entry was edited"
            )
            yield Cause("lock", f"{self.graph.lockfile}, stage {locked.name}", message, self.scope.rerun(locked.name))
        else:
            yield self._altered(locked, entry, here)

    def contradiction(self, locked: Locked, entry: Entry) -> str | None:
        """The md5 that the committed dvc.lock has instead, for the same command, parameters and inputs.

        None where it has the same, or made it of something else.
        """
        before = None if self.scope.revision is not None else self.scope.committed_lock(locked.name)
        if before is None or entry.path not in before.outs or before.outs[entry.path].md5 == entry.md5:
            return None
        same = (before.command, before.params, before.deps) == (locked.command, locked.params, locked.deps)
        return before.outs[entry.path].md5 if same else None

    def made_here(self, locked: Locked, entry: Entry) -> bool:
        """Whether an output contradicts the committed one, and a run of it that wrote these bytes is recorded here.

        Another kind of processor may write other bytes from the same inputs, so such a run speaks for them.
        """
        here = self.scope.digest(entry.path)
        if self.contradiction(locked, entry) is None or here is None or here.md5 != entry.md5:
            return False
        return wrote(self.scope.root, self.scope.suite, locked, entry.path)

    def forged(self, locked: Locked, entry: Entry) -> Cause | None:
        """What to say of an output that contradicts the committed one, and that was not `made_here`."""
        before, here = self.contradiction(locked, entry), self.scope.digest(entry.path)
        if before is None or (here is not None and here.md5 != entry.md5):
            return None
        message = (
            f"its entry of {entry.path} says md5 {entry.md5}; the committed one, of the same command, parameters and "
            f"inputs, says {before}; no run that wrote the other is recorded here: it was edited, or is from elsewhere"
        )
        remedy = f"git checkout -- {self.graph.lockfile}, then {self.scope.rerun()}; or audit with --recompute all"
        return Cause("lock", f"{self.graph.lockfile}, stage {locked.name}", message, remedy)

    def _absent(self, locked: Locked, entry: Entry) -> Cause:
        before = self.contradiction(locked, entry)
        records = f"{locked.name} wrote it with md5 {entry.md5}"
        if before is not None:
            records = f"{self.graph.lockfile} says md5 {entry.md5} of it, the committed one {before}"
        remedy = self.scope.fetch(entry)
        return Cause(
            self._kind(locked, entry, "artifact"), entry.path, f"it is not here; {records}", remedy, wrong=False
        )

    def _altered(self, locked: Locked, entry: Entry, here: Digest) -> Cause:
        files = [] if here.unreadable else self.scope.changed_files(entry, here)
        now = said_of(entry.path, here)
        message = f"it is not what {locked.name} wrote: md5 {entry.md5} then, {now} now{listed(files)}"
        if here.unreadable:
            message = f"it is not what {locked.name} wrote, md5 {entry.md5}, but something {now}"
        kind: Kind = "score" if PurePosixPath(entry.path).parent.name == "scores" else "artifact"
        remedy = self.scope.fetch(entry, altered=True, strange=self._strange(entry, here))
        return Cause(self._kind(locked, entry, kind), entry.path, message, remedy)

    def _strange(self, entry: Entry, here: Digest) -> list[str]:
        """Files of a folder in git that git does not have."""
        tracked = self.scope.head_digest(entry.path)
        if tracked is None or tracked.md5 != entry.md5 or not tracked.files:
            return []
        return [f"{entry.path}/{name}" for name in here.differing(tracked) if name not in tracked.files]

    def _kind(self, locked: Locked, entry: Entry, kind: Kind) -> Kind:
        """`table` for what the report writes: no number rests on it but those that are printed in it."""
        report = locked.name in self.graph.makers_of(tables_folder(self.scope.suite))
        return "table" if report and entry.path.startswith("reports/") else kind

    def _read_as(self, name: str, path: str) -> str | None:
        entry = self.graph.locked[name].deps.get(path)
        return None if entry is None else entry.md5
