"""One task of a partitioned run: it leaves one file and a receipt, and does nothing where both stand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pipeline.artifacts import sha256_of
from pipeline.partitions.files import appearing
from pipeline.partitions.plan import Rows

RECEIPTS = "receipts"


@dataclass(frozen=True)
class Made:
    """A file of this run, within its target, as an input of another task."""

    file: str
    rows: int
    sha256: str

    def record(self) -> dict[str, Any]:
        """JSON-able."""
        return {"file": self.file, "sha256": self.sha256}

    def whole(self, target: str) -> Rows:
        """All rows of the file."""
        return Rows(str(Path(target) / self.file), 0, self.rows)


@dataclass(frozen=True)
class Receipt:
    """What a task left.

    file     within the target; rows, size in bytes and sha256 of it
    record   what it was made from: inputs, parameters, code and libraries
    notes    what was counted and certified
    reused   whether an earlier run had made it
    """

    file: str
    rows: int
    size: int
    sha256: str
    record: dict[str, Any]
    notes: dict[str, Any]
    reused: bool = field(default=False, compare=False)

    @property
    def note(self) -> str:
        """The file of this receipt, within the target."""
        return note_of(self.file)

    def listed(self) -> dict[str, Any]:
        """The file, as a manifest lists it."""
        return {"file": self.file, "rows": self.rows, "sha256": self.sha256, "size": self.size}

    def made(self) -> Made:
        """The file alone: of thousands of parts, all records together would be too much to send around."""
        return Made(self.file, self.rows, self.sha256)


class Task(Protocol):
    """A function of files, with its arguments. It may be sent to any machine that sees the same folders.

    step    names the folder of its output; number: of the output among those of the step
    target  the folder of the whole run
    """

    step: ClassVar[str]

    @property
    def target(self) -> str: ...

    @property
    def number(self) -> int: ...

    def record(self) -> dict[str, Any]:
        """Everything that the output depends on, JSON-able: no place, no time, no host."""

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Write the output; return its rows and notes."""


def perform(task: Task) -> Receipt:
    """Do a task, unless its output stands: receipt and file are there, agree, and come of the same record.

    The output appears before its receipt, so that a task killed in between is done again. Doing it twice, or
    twice at once, leaves the same bytes. Raises what `task.write` does, and ArtifactError when the disk refuses.
    """
    folder, file = Path(task.target), f"{task.step}/part-{task.number:05d}.parquet"
    note = folder / note_of(file)
    record = json.loads(json.dumps(task.record()))
    kept = _kept(folder, file, note, record)
    if kept:
        return kept
    with appearing(folder / file) as temporary:
        rows, notes = task.write(temporary)
        receipt = Receipt(file, rows, temporary.stat().st_size, sha256_of(temporary), record, notes)
    with appearing(note) as temporary:
        temporary.write_bytes(as_json({**receipt.listed(), "record": record, "notes": notes}))
    return receipt


def note_of(file: str) -> str:
    """The receipt that goes with a file, both within the target."""
    step, _, part = file.partition("/")
    return f"{RECEIPTS}/{step}-{part.removeprefix('part-').removesuffix('.parquet')}.json"


def _kept(folder: Path, file: str, note: Path, record: dict[str, Any]) -> Receipt | None:
    """The receipt of an earlier run, if it is of this very task and the file has the bytes it names."""
    try:
        held = json.loads(note.read_bytes())
        receipt = Receipt(**held, reused=True)
        if receipt.file != file or receipt.record != record:
            return None
        if (folder / file).stat().st_size != receipt.size or sha256_of(folder / file) != receipt.sha256:
            return None
    except (OSError, ValueError, TypeError):  # missing, no JSON, or another's
        return None
    return receipt


def as_json(content: Any) -> bytes:
    """Deterministic JSON."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False).encode() + b"\n"
