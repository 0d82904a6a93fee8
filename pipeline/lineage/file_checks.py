"""What is wrong with, or absent from, the inputs and outputs that dvc.lock records of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from pipeline.lineage.hashes import Digest, folder_digest
from pipeline.lineage.numbers import tables_folder
from pipeline.lineage.scope import Cause, Kind, Scope, described, edited_entry, listed
from pipeline.lineage.stages import Entry, Locked, related
from sentfold.numeric_profile import is_supported

# One cause, however many stages and files it concerns.
NO_GIT = Cause(
    "code",
    "git history",
    "there is no git here, so nothing says which commit the code and the parameters belong to",
    "audit in a clone of the repository",
    state="absent",
)


class InputChecks:
    """The faults of a stage's dependencies."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph = scope.graph

    def dependency(self, locked: Locked, entry: Entry) -> Iterator[Cause]:
        """What speaks against one recorded input."""
        makers = [name for name in self.graph.makers_of(entry.path) if name != locked.name]
        yield from self._made(locked, entry, makers) if makers else self._source(locked, entry)

    # --- files that no stage writes: code, or data in git ----------------------------------------

    def _source(self, locked: Locked, entry: Entry) -> Iterator[Cause]:
        here, head = self.scope.digest(entry.path), self.scope.head_digest(entry.path)
        before = self.scope.committed_entry(locked.name, "deps", entry.path)
        if here is not None and here.md5 == entry.md5:
            yield from self._uncommitted(entry, here, head)
        elif here is not None and before == here.md5:
            yield edited_entry(self.graph.lockfile, locked.name, entry, before)
        else:
            yield self._altered_source(entry, here, head)

    def _uncommitted(self, entry: Entry, here: Digest, head: Digest | None) -> Iterator[Cause]:
        if not self.scope.has_git:
            yield NO_GIT
        elif head is None or head.md5 != entry.md5:
            other = "has no such file" if head is None else f"has other bytes{listed(here.differing(head))}"
            message = f"what made these numbers is here, and git's HEAD {other}"
            yield Cause("code", entry.path, message, f"commit {entry.path}", state="uncommitted")

    def _altered_source(self, entry: Entry, here: Digest | None, head: Digest | None) -> Cause:
        now = "it is not here" if here is None else f"here it is {described(entry.path, here)}"
        message, remedy = f"these numbers were made with md5 {entry.md5}; {now}", self.scope.rerun()
        if head is not None and head.md5 == entry.md5:
            files = [] if here is None else here.differing(head)
            message += f"; git's HEAD has the one that made them: it was edited here{listed(files)}"
            remedy = self.scope.restore(entry.path, head)
        elif head is not None:
            message += ", as in git's HEAD" if here == head else "; git's HEAD has yet another"
        return Cause("code", entry.path, message, remedy)

    # --- files that other stages write: the two records must agree ------------------------------

    def _made(self, locked: Locked, entry: Entry, makers: list[str]) -> Iterator[Cause]:
        if any(name not in self.graph.locked for name in makers):
            return  # A maker without an entry is a fault of its own.
        outs = [out for name in makers for out in self.graph.locked[name].outs.values()]
        outs = [out for out in outs if related(out.path, entry.path)]
        made = self._as_recorded(entry, outs)
        if made is None:
            yield from self._incomparable(locked, entry, makers, outs)
        elif made.md5 != entry.md5 and not self._writer_was_edited(entry, outs):
            yield self._disagreement(locked.name, entry, made)

    def _as_recorded(self, entry: Entry, outs: list[Entry]) -> Digest | None:
        """A dependency as the stages that write it recorded it; None where that cannot be told from what is here."""
        files: dict[str, str] = {}
        for out in outs:
            if out.path == entry.path:
                return Digest(out.md5)
            listing = self._listing(out)
            if listing is None:
                return None
            if not out.path.startswith(f"{entry.path}/"):
                inner = entry.path.removeprefix(f"{out.path}/")
                inside = {name[len(inner) + 1 :]: md5 for name, md5 in listing.items() if name.startswith(f"{inner}/")}
                return Digest(listing[inner]) if inner in listing else folder_digest(inside)
            top = out.path.removeprefix(f"{entry.path}/")
            files |= {f"{top}/{name}" if name else top: md5 for name, md5 in listing.items()}
        return folder_digest(files)

    def _listing(self, out: Entry) -> dict[str, str] | None:
        """The md5 of each file of an output, of a single file under ""."""
        found = self.scope.recorded_folder(out)
        return {"": out.md5} if not out.md5.endswith(".dir") else None if found is None else dict(found.files)

    def _writer_was_edited(self, entry: Entry, outs: list[Entry]) -> bool:
        """Whether what is here is what the reader recorded: then the writer's entry is named, as an output."""
        exact = any(out.path == entry.path for out in outs)
        return exact and not self.scope.foreign(entry.path) and self.scope.is_as_recorded(entry)

    def _incomparable(self, locked: Locked, entry: Entry, makers: list[str], outs: list[Entry]) -> Iterator[Cause]:
        """Not all parts of a folder are here: the committed records are the witness, if there are any."""
        before = self.scope.committed_entry(locked.name, "deps", entry.path)
        if before == entry.md5:
            return  # What is absent here is named under its own stage.
        committed = {self.scope.committed_entry(name, "outs", out.path) for name in makers for out in outs}
        if before is not None and committed - {None} == {out.md5 for out in outs}:
            yield edited_entry(self.graph.lockfile, locked.name, entry, before)
            return
        message = f"{locked.name} read it as md5 {entry.md5}; not all that it was made of is here to compare"
        yield Cause("artifact", entry.path, message, self.scope.fetch(entry), state="absent")

    def _disagreement(self, name: str, entry: Entry, made: Digest) -> Cause:
        """A reader recorded other bytes than the writers did."""
        before = self.scope.committed_entry(name, "deps", entry.path)
        if before is not None and before != entry.md5:
            return edited_entry(self.graph.lockfile, name, entry, before)
        read = self.scope.recorded_folder(entry)
        differing = [] if read is None or not made.files else read.differing(made)
        strange = [f"{entry.path}/{file}" for file in differing if file not in made.files]
        files = f"; no stage writes{listed(strange)}" if strange else listed(differing)
        message = f"it read {entry.path} as md5 {entry.md5}; by the records of its writers it is md5 {made.md5}{files}"
        remedy = f"remove {', '.join(strange[:3])}, then {self.scope.rerun()}" if strange else self.scope.rerun(name)
        return Cause("lock", f"{self.graph.lockfile}, stage {name}", message, remedy)


class OutputChecks:
    """The faults of a stage's outputs."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph = scope.graph

    def output(self, locked: Locked, entry: Entry) -> Iterator[Cause]:
        """What speaks against one recorded output."""
        here = self.scope.digest(entry.path)
        before = self.scope.committed_entry(locked.name, "outs", entry.path)
        if here is None or (here.md5 != entry.md5 and self.scope.foreign(entry.path)):
            yield from self._contradicted(locked, entry, before)
            yield self._absent(locked, entry, before)
        elif here.md5 == entry.md5:
            yield from self._contradicted(locked, entry, before)
        elif before == here.md5:
            yield edited_entry(self.graph.lockfile, locked.name, entry, before)
        else:
            yield self._altered(locked, entry, here)

    def _contradicted(self, locked: Locked, entry: Entry, before: str | None) -> Iterator[Cause]:
        """The committed dvc.lock has other bytes of the same command, parameters and inputs.

        A processor outside of the numeric profile may write others, so there they are only uncommitted.
        """
        committed = self.scope.committed_lock(locked.name)
        if committed is None or before in (None, entry.md5):
            return
        if (committed.command, committed.params, committed.deps) != (locked.command, locked.params, locked.deps):
            return
        message = (
            f"its entry of {entry.path} says md5 {entry.md5}; the committed entry, of the same command, parameters "
            f"and inputs, says {before}"
        )
        remedy = f"git checkout -- {self.graph.lockfile}, then {self.scope.rerun()}"
        place = f"{self.graph.lockfile}, stage {locked.name}"
        yield Cause("lock", place, message, remedy, state="wrong" if is_supported() else "uncommitted")

    def _absent(self, locked: Locked, entry: Entry, before: str | None) -> Cause:
        records = f"{locked.name} wrote it with md5 {entry.md5}"
        if before not in (None, entry.md5):
            records = f"{self.graph.lockfile} says md5 {entry.md5} of it, the committed one {before}"
        kind, message = self._kind(locked, entry, "artifact"), f"it is not here; {records}"
        return Cause(kind, entry.path, message, self.scope.fetch(entry), state="absent")

    def _altered(self, locked: Locked, entry: Entry, here: Digest) -> Cause:
        if here.unreadable:
            message = (
                f"it is not what {locked.name} wrote, md5 {entry.md5}, but something {described(entry.path, here)}"
            )
        else:
            files = listed(self.scope.changed_files(entry, here))
            message = f"it is not what {locked.name} wrote: md5 {entry.md5} then, {here.md5} now{files}"
        kind: Kind = "score" if PurePosixPath(entry.path).parent.name == "scores" else "artifact"
        return Cause(self._kind(locked, entry, kind), entry.path, message, self.scope.fetch(entry, altered=True))

    def _kind(self, locked: Locked, entry: Entry, kind: Kind) -> Kind:
        """`table` for what the report writes: no number rests on it but those that are printed in it."""
        report = locked.name in self.graph.makers_of(tables_folder(self.scope.suite))
        return "table" if report and entry.path.startswith("reports/") else kind
