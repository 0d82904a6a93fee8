"""What is wrong with, or absent from, the inputs and outputs that dvc.lock records of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from pipeline.lineage.hashes import Digest, folder_digest
from pipeline.lineage.numbers import tables_folder
from pipeline.lineage.runs import read_runs, run_that_wrote
from pipeline.lineage.scope import Cause, Kind, Scope, described, edited_entry, listed
from pipeline.lineage.stages import Entry, Locked, related

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
        now = "it is not here" if here is None else f"here it is another, {described(entry.path, here)}"
        message = f"these numbers were made with md5 {entry.md5}; {now}"
        if head is not None and head.md5 == entry.md5:
            files = [] if here is None else here.differing(head)
            message += f"; git's HEAD has the one that made them: it was edited here{listed(files)}"
            return Cause("code", entry.path, message, self._restored(entry, files, head))
        if head is not None:
            message += f", and git's HEAD has another, too{self.scope.history(entry)}"
        return Cause("code", entry.path, message, self.scope.rerun())

    def _restored(self, entry: Entry, files: list[str], head: Digest) -> str:
        """How to get back what git has: what it does not track must go, as no checkout removes it."""
        strange = [f"{entry.path}/{name}" for name in files if name not in head.files] if head.files else []
        steps = [f"remove {', '.join(strange)}"] if strange else []
        if len(strange) < len(files) or not files:
            steps.append(f"git checkout -- {entry.path}")
        return ", then ".join(steps)

    # --- files that other stages write: the two records must agree ------------------------------

    def _made(self, locked: Locked, entry: Entry, makers: list[str]) -> Iterator[Cause]:
        if any(name not in self.graph.locked for name in makers):
            return  # A maker without an entry is a fault of its own.
        outs = {
            out: (name, found)
            for name in makers
            for out, found in self.graph.locked[name].outs.items()
            if related(out, entry.path)
        }
        if entry.path in outs:
            name, exact = outs[entry.path]
            here = self.scope.digest(entry.path)
            # If the file is what the reader recorded, the writer's entry is the one that was edited.
            if exact.md5 != entry.md5 and (self.scope.foreign(entry.path) or here is None or here.md5 != entry.md5):
                yield self._disagreement(locked.name, entry, f"{name} recorded md5 {exact.md5}")
        else:
            yield from self._composed(locked, entry, outs)

    def _composed(self, locked: Locked, entry: Entry, outs: dict[str, tuple[str, Entry]]) -> Iterator[Cause]:
        """A folder over several outputs, or a file inside one: what the outputs' own records make of it."""
        made = self._as_recorded(entry, [out for _, out in outs.values()])
        if made is not None:
            if made.md5 != entry.md5:
                yield self._disagreement(locked.name, entry, *self._other(entry, made, locked.name))
            return
        before = self.scope.committed_entry(locked.name, "deps", entry.path)
        if before == entry.md5:
            return  # What is absent here is named under its own stage; the record is the committed one.
        committed = [self.scope.committed_entry(name, "outs", out.path) for name, out in outs.values()]
        if before is not None and committed == [out.md5 for _, out in outs.values()]:
            yield edited_entry(self.graph.lockfile, locked.name, entry, before)
            return
        message = f"{locked.name} read it as md5 {entry.md5}; not all that it was made of is here to compare"
        yield Cause("artifact", entry.path, message, self.scope.fetch(entry), state="absent")

    def _as_recorded(self, entry: Entry, outs: list[Entry]) -> Digest | None:
        """A dependency as the stages that write it recorded it; None where that cannot be told from what is here."""
        files: dict[str, str] = {}
        for out in outs:
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
        if not out.md5.endswith(".dir"):
            return {"": out.md5}
        here = self.scope.digest(out.path)
        found = here if here is not None and here.md5 == out.md5 else self.scope.cache.listing(out.md5)
        return None if found is None else dict(found.files)

    def _other(self, entry: Entry, made: Digest, name: str) -> tuple[str, str]:
        """How a dependency should have been read, which files make the difference, where known, and what to do."""
        text = f"by the records of its parts, it is md5 {made.md5}"
        here = self.scope.digest(entry.path)
        read = here if here is not None and here.md5 == entry.md5 else self.scope.cache.listing(entry.md5)
        if read is not None and read.files:
            differing = {inner: f"{entry.path}/{inner}" for inner in read.differing(made)}
            strange = [path for inner, path in differing.items() if inner not in made.files]
            other = [path for inner, path in differing.items() if inner in made.files]
            text += f"; no stage writes{listed(strange)}" if strange else ""
            text += f"; others are{listed(other)}" if other else ""
            # A run removes what a stage that is gone wrote. Only its owner may remove a file without a record.
            unknown = [path for path in strange if not any(related(out, path) for out in self._gone())]
            more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
            remove = f"remove {unknown[0]}{more}, then " if unknown else ""
            return text, remove + self.scope.rerun("" if strange else name)
        inside = [out for out in self._gone() if related(out, entry.path)]
        if inside:
            text += f"; stages that {self.graph.dvcfile} has no more wrote in it{listed(inside)}"
        return text, self.scope.rerun(name)

    def _gone(self) -> list[str]:
        """Outputs of stages that dvc.lock still has and dvc.yaml has no more."""
        return [out for name in self.graph.leftovers for out in self.graph.locked[name].outs]

    def _disagreement(self, name: str, entry: Entry, other: str, remedy: str = "") -> Cause:
        before = self.scope.committed_entry(name, "deps", entry.path)
        if before is not None and before != entry.md5:
            return edited_entry(self.graph.lockfile, name, entry, before)
        message = f"it read {entry.path} as md5 {entry.md5}; {other}: it has not run since, or the entry was edited"
        return Cause("lock", f"{self.graph.lockfile}, stage {name}", message, remedy or self.scope.rerun(name))


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
                f"its entry of {entry.path} says md5 {entry.md5}; what is here, and what every stage that reads it "
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
        root, log = self.scope.root, read_runs(self.scope.root, self.scope.suite)
        return run_that_wrote(root, log, locked.name, (entry.path,), same_inputs=True) is not None

    def forged(self, locked: Locked, entry: Entry) -> Cause | None:
        """What to say of an output that contradicts the committed one, and that was not `made_here`."""
        before, here = self.contradiction(locked, entry), self.scope.digest(entry.path)
        if before is None or (here is not None and here.md5 != entry.md5):
            return None
        message = (
            f"its entry of {entry.path} says md5 {entry.md5}; the committed one, of the same command, parameters and "
            f"inputs, says {before}; no run recorded here wrote the other: it was edited, or is from another machine"
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
            self._kind(locked, entry, "artifact"), entry.path, f"it is not here; {records}", remedy, state="absent"
        )

    def _altered(self, locked: Locked, entry: Entry, here: Digest) -> Cause:
        files = [] if here.unreadable else self.scope.changed_files(entry, here)
        now = described(entry.path, here)
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
