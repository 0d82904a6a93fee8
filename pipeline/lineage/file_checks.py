"""What is wrong with, or absent from, the inputs and outputs that dvc.lock records of a stage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from shlex import quote
from typing import Any

from pipeline.lineage.hashes import Digest
from pipeline.lineage.numbers import tables_folder
from pipeline.lineage.scope import (
    Cause,
    Kind,
    Scope,
    State,
    brief,
    bring_back,
    described,
    edited_entry,
    listed,
    restore,
)
from pipeline.lineage.stages import Entry, Graph, Locked, related
from sentfold.errors import first_line
from sentfold.numeric_profile import is_supported

# Measured times, which git alone holds, and the texts that they may have: the report prints the name of a processor, so
# a line break or HTML there would make a table in the report.
BENCHMARKS = "reports/benchmarks/"
PLAIN = re.compile(r"([\w(][\w .,()@+/:=-]{0,99})?", re.ASCII)
MOST_MEASURED = 1 << 20  # bytes of a file of measured times

# One cause, however many stages and files it concerns.
NO_GIT = Cause(
    "code",
    "git history",
    "this folder is the root of no git repository, so nothing says which commit the code and the parameters belong to",
    "audit in a clone of the repository",
    state="absent",
)


def begins(graph: Graph, name: str) -> bool:
    """Whether a stage reads data from outside alone, such as a mirror's. The stage `plan` checks, and makes no data."""
    return all(maker == "plan" for dep in graph.locked[name].deps for maker in graph.makers_of(dep))


class FileChecks:
    """The faults of a stage's dependencies and outputs."""

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
        for file in [] if here is None else [f"{entry.path}/{name}" for name in here.files] or [entry.path]:
            if file.startswith("data/"):  # where stages look for vectors and scores; code and sources are elsewhere
                message = "stages read it, and no stage writes it: nothing says how it was made"
                remedy = f"give it a stage in {self.graph.dvcfile}, or take it out of the inputs"
                yield Cause("artifact", file, message, remedy, state="unwitnessed")
        if here is not None and not here.unreadable:
            for file in [f"{entry.path}/{name}" for name in here.files] or [entry.path]:
                if file.startswith(BENCHMARKS) and file.endswith(".json"):
                    yield from self._odd_texts(file)
        before = self.scope.committed_entry(locked.name, "deps", entry.path)
        if here is not None and here.md5 == entry.md5:
            yield from self._uncommitted(entry, here, head)
        elif here is not None and before == here.md5:
            yield edited_entry(self.graph.lockfile, locked.name, entry, before, self.scope.rerun())
        else:
            yield self._altered_source(entry, here, head)

    def _odd_texts(self, file: str) -> Iterator[Cause]:
        """A file of measured times with a text that could be more than a name."""
        content = self.scope.read(file) or b""
        try:
            if len(content) > MOST_MEASURED:
                raise ValueError(f"it has {len(content):,} bytes, and at most {MOST_MEASURED:,} are read")
            times = json.loads(content)
            odd = next((text for text in texts_in(times) if not PLAIN.fullmatch(text)), None)
            wrong = "" if odd is None else f"the text {brief(odd)!r} is no plain name of at most 100 signs"
            if isinstance(times, dict) and not isinstance(times.get("processor", ""), str):
                wrong = "the name of its processor is no text"
        except (ValueError, RecursionError) as error:
            wrong = f"it cannot be read as measured times: {first_line(error)}"
        if wrong:
            message = f"{wrong}; the report prints such texts"
            yield Cause("file", file, message, "measure again (docs/performance.md)")

    def _uncommitted(self, entry: Entry, here: Digest, head: Digest | None) -> Iterator[Cause]:
        if self.scope.head is None:
            yield NO_GIT
        elif head is None or head.md5 != entry.md5:
            other = "has no such file" if head is None else f"has other bytes{listed(here.differing(head))}"
            message = f"what made these numbers is here, and git's HEAD {other}"
            yield Cause("code", entry.path, message, f"commit {quote(entry.path)}", state="uncommitted")

    def _altered_source(self, entry: Entry, here: Digest | None, head: Digest | None) -> Cause:
        if here is None and head is not None and head.md5 == entry.md5:  # deleted, or left out of a sparse checkout
            message = "it is not here; git's HEAD has the one that made these numbers"
            return Cause("code", entry.path, message, bring_back(entry.path), state="absent")
        now = "it is not here" if here is None else f"here it is {described(entry.path, here)}"
        message, remedy = f"these numbers were made with md5 {entry.md5}; {now}", self.scope.rerun()
        if head is not None and head.md5 == entry.md5:
            files = [] if here is None else here.differing(head)
            message += f"; git's HEAD has the one that made them: it was edited here{listed(files)}"
            remedy = restore(entry.path)
        elif head is not None:
            message += ", as in git's HEAD" if here == head else "; git's HEAD has yet another"
        return Cause("code", entry.path, message, remedy)

    # --- files that other stages write: the two records must agree ------------------------------

    def _made(self, locked: Locked, entry: Entry, makers: list[str]) -> Iterator[Cause]:
        """What a stage read against what others wrote: the record of the same path, else the files that are here.

        What is absent, altered or unrecorded of it is named under the stage that writes it.
        """
        if any(name not in self.graph.locked for name in makers):
            return
        outs = [
            out for name in makers for out in self.graph.locked[name].outs.values() if related(out.path, entry.path)
        ]
        exact = [out for out in outs if out.path == entry.path]
        if exact:
            if exact[0].md5 != entry.md5 and (self.scope.foreign(entry.path) or not self.scope.is_as_recorded(entry)):
                yield self._disagreement(locked.name, entry, exact[0].md5, [])
        elif all(self.scope.is_as_recorded(out) for out in outs):
            here = self.scope.digest(entry.path) or Digest("")
            files = [f"{entry.path}/{file}" for file in here.files]
            strange = [file for file in files if not any(related(out.path, file) for out in outs)]
            if strange or here.md5 != entry.md5:
                yield self._disagreement(locked.name, entry, here.md5, strange)

    def _disagreement(self, name: str, entry: Entry, made: str, strange: list[str]) -> Cause:
        """A reader recorded other bytes than the writers did. strange: files in the folder that no stage writes."""
        before = self.scope.committed_entry(name, "deps", entry.path)
        if before is not None and before != entry.md5:
            return edited_entry(self.graph.lockfile, name, entry, before, self.scope.rerun())
        message = f"it read {entry.path} as md5 {entry.md5}; as its writers left it, it is md5 {made}"
        if strange:
            message = f"it reads {entry.path}, and no stage writes{listed(strange)}"
        remedy = (f"remove {', '.join(map(quote, strange[:3]))}, then " if strange else "") + self.scope.rerun()
        return Cause("lock", f"{self.graph.lockfile}, stage {name}", message, remedy)

    # --- outputs ----------------------------------------------------------------------------------

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
            yield edited_entry(self.graph.lockfile, locked.name, entry, before, self.scope.rerun())
        elif before in (None, entry.md5) and self._is_of_earlier_run(entry, here):
            yield self._absent(locked, entry, before, "; what is here is of an earlier commit's run")
        else:
            yield self._altered(locked, entry, here)

    def _is_of_earlier_run(self, entry: Entry, here: Digest) -> bool:
        """Whether an artifact, which git does not hold, is what an earlier commit recorded, as before a `git pull`.

        A report that differs from dvc.lock is wrong, whatever commits say of it: it is what people read.
        """
        in_git = self.scope.head_digest(entry.path) is not None or entry.path.startswith("reports/")
        return not in_git and here.md5 in self.scope.recorded_once

    def _contradicted(self, locked: Locked, entry: Entry, before: str | None) -> Iterator[Cause]:
        """The committed dvc.lock has other bytes of the same command, parameters and inputs.

        A processor outside of the numeric profile may write others, so there they are only uncommitted. So are those
        of a stage that begins the pipeline: it reads a mirror, which may have been filled since.
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
        lock, reads = self.graph.lockfile, not begins(self.graph, locked.name)
        remedy = f"git checkout HEAD -- {lock}, then {self.scope.rerun()}"
        if not reads:
            remedy = f"commit {lock} if the stage's source, such as a mirror, has other files now; else {remedy}"
        state: State = "wrong" if reads and is_supported() else "uncommitted"
        yield Cause("lock", f"{lock}, stage {locked.name}", message, remedy, state=state)

    def _absent(self, locked: Locked, entry: Entry, before: str | None, here: str = "") -> Cause:
        records = f"{locked.name} wrote it with md5 {entry.md5}"
        if before not in (None, entry.md5):
            records = f"{self.graph.lockfile} says md5 {entry.md5} of it, the committed one {before}"
        kind, message = self._kind(locked, entry, "artifact"), f"it is not here; {records}{here}"
        return Cause(kind, entry.path, message, self.scope.fetch(entry), state="absent")

    def _altered(self, locked: Locked, entry: Entry, here: Digest) -> Cause:
        if here.unreadable:
            message = (
                f"it is not what {locked.name} wrote, md5 {entry.md5}, but something {described(entry.path, here)}"
            )
        else:
            files = listed(self.scope.changed_files(entry, here))
            if here.files and not files:
                files = " (`dvc data status --granular` names the files)"
            message = f"it is not what {locked.name} wrote: md5 {entry.md5} then, {here.md5} now{files}"
        kind: Kind = "score" if PurePosixPath(entry.path).parent.name == "scores" else "artifact"
        return Cause(self._kind(locked, entry, kind), entry.path, message, self.scope.fetch(entry, altered=True))

    def _kind(self, locked: Locked, entry: Entry, kind: Kind) -> Kind:
        """`table` for what the report writes: no number rests on it but those that are printed in it."""
        report = locked.name in self.graph.makers_of(tables_folder(self.scope.suite))
        return "table" if report and entry.path.startswith("reports/") else kind


def texts_in(value: Any) -> Iterator[str]:
    """Every text in parsed JSON, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)
