"""The folder that a fold writes: parts, a receipt for each part, one writer at a time.

A task writes one part, then its receipt. The receipt names the part's sha256 and everything that the part was made
from, so a later run keeps the parts that are still right and makes the others again.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentfold.data.tables import refuse_holes
from sentfold.errors import ArtifactError, ParameterError, first_line
from sentfold.files import (
    PARQUET,
    ROW_GROUP,
    Vectors,
    fixed_lists,
    json_bytes,
    replace_whole,
    require_regular,
    sha256_of,
    write_json,
)
from sentfold.fold.source import Rows
from sentfold.locks import try_lock

MANIFEST, LOCK, RECEIPTS = "manifest.json", ".lock", "receipts"
STEPS = ("vectors", "landmarks", "folded")  # the folders of parts
NOTED = {"vectors": "dimension", "landmarks": "landmarks"}  # step -> the note that later steps read
_TEMPORARY = re.compile(r"\.((part|vectors|landmarks|folded)-\d{5}\.|manifest\.|probe\.).*\.tmp")
_PART = re.compile(r"[a-z]+-\d{5}\.(parquet|json)")


@dataclass(frozen=True)
class Part:
    """A part that a task made.

    file    within the target; rows, size in bytes and sha256 of it
    notes   what was counted and certified
    reused  whether an earlier run made it
    """

    file: str
    rows: int
    size: int
    sha256: str
    notes: dict[str, Any]
    reused: bool = field(default=False, compare=False)

    @property
    def receipt(self) -> str:
        """The file of the receipt, within the target."""
        step, _, name = self.file.partition("/")
        return f"{RECEIPTS}/{step}-{name.removeprefix('part-').removesuffix('.parquet')}.json"

    def listed(self) -> dict[str, Any]:
        """The part as a manifest lists it."""
        return {"file": self.file, "rows": self.rows, "sha256": self.sha256, "size": self.size}

    def whole(self, target: str, *, width: int) -> Rows:
        """All rows of the part."""
        return Rows(str(Path(target) / self.file), self.file, self.sha256, width, 0, self.rows)


class Task(Protocol):
    """A function of files, with its arguments. A task can be sent to any machine that sees or gets the same files.

    step    the folder of the part; number: of the part in the folder
    target  the folder of the whole fold
    """

    step: ClassVar[str]

    @property
    def target(self) -> str: ...

    @property
    def number(self) -> int: ...

    def record(self) -> dict[str, Any]:
        """All that the part depends on, JSON-able: no folder, no time, no host, no number of threads."""

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Write the part; return its rows and notes."""

    def inputs(self) -> tuple[Rows, ...]:
        """What it reads."""

    def moved(self, target: Path, copies: Path) -> Self:
        """The same task on a machine with another target, and with copies of the inputs in the folder `copies`."""


def perform(task: Task) -> Part:
    """Do a task, unless the part and the receipt of an earlier run agree with it.

    The part appears before the receipt: a task that was killed in between is done again. A task that is done twice,
    or by two processes at once, leaves the same bytes. Raises what `task.write` raises, and ArtifactError when the
    disk refuses.
    """
    kept = read_receipt(task)
    if kept and is_whole(Path(task.target) / kept.file, kept):
        return kept
    file = _file_of(task)
    with replace_whole(Path(task.target) / file) as temporary:
        rows, notes = task.write(temporary)
        part = Part(file, rows, temporary.stat().st_size, sha256_of(temporary), notes)
    write_receipt(task, part)
    return part


def read_receipt(task: Task) -> Part | None:
    """The part by its receipt, if an earlier run left one with the record of the task. The file may be missing."""
    file = _file_of(task)
    try:
        path = Path(task.target) / Part(file, 0, 0, "", {}).receipt
        require_regular(path)
        refuse_holes(path)  # whose DataError is a ValueError
        receipt = json.loads(path.read_bytes())
        if receipt.pop("record") != json.loads(json_bytes(task.record())):
            return None
        part = Part(**receipt, reused=True)
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):  # no receipt of a part
        return None
    return part if part.file == file and _is_sound(part, task.step) else None


def _is_sound(part: Part, step: str) -> bool:
    """Whether a part of a receipt has the types and the notes that the other steps count on."""
    numbers = [part.rows, part.size]
    if not isinstance(part.notes, dict) or NOTED.get(step, "") not in {"", *part.notes}:
        return False
    if step == "vectors":
        numbers += part.notes.values()
    return all(type(number) is int and number >= 0 for number in numbers)


def write_receipt(task: Task, part: Part) -> None:
    """Note in the target what the part was made from. Raises ArtifactError when the disk refuses."""
    content = {**part.listed(), "notes": part.notes, "record": task.record()}
    write_json(Path(task.target) / part.receipt, content)


def is_whole(path: Path, part: Part) -> bool:
    """Whether a file has the size and the sha256 of a part."""
    try:
        return path.stat().st_size == part.size and sha256_of(path) == part.sha256
    except (OSError, TypeError):  # TypeError: the receipt has something else than a size
        return False


def _file_of(task: Task) -> str:
    return f"{task.step}/part-{task.number:05d}.parquet"


# --- the folder -------------------------------------------------------------------------------------


@contextmanager
def hold_target(target: Path, *, source: Path) -> Iterator[None]:
    """Hold the folder `target` for one run, without the partial files of killed writers.

    Raises ParameterError if the folder holds something else than a fold, if it contains the source or the source
    contains it, or if another run holds it. The lock is flock's: it is free as soon as its holder is gone.
    """
    _require_own_folder(target, source)
    try:
        target.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        lock = os.fdopen(os.open(target / LOCK, flags, 0o600), "a+", encoding="utf-8")
        os.fchmod(lock.fileno(), 0o600)  # who can read the file can hold the lock
    except OSError as error:
        raise ArtifactError("cannot write into the target", where=str(target), got=first_line(error)) from None
    with lock:
        if not try_lock(lock, target / LOCK):
            lock.seek(0)
            raise ParameterError(
                "another run writes into this folder",
                where=str(target),
                got=lock.read().strip() or "an unknown process",
                state="nothing was changed",
                remedy="wait until the other run ends, or end it",
            )
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        lock.flush()
        remove_partial_files(target)
        try:
            yield
        finally:
            lock.truncate(0)


def remove_partial_files(target: Path) -> None:
    """Remove the temporary files of killed writers, on any machine. Only the process that holds the target may.

    Only the fold's own folders are looked into, and no links to folders: other files of these names are not the fold's.
    """
    for folder in (target, *(target / name for name in (*STEPS, RECEIPTS))):
        for stale in () if folder.is_symlink() and folder != target else folder.glob(".*.tmp"):
            if _TEMPORARY.fullmatch(stale.name):
                stale.unlink(missing_ok=True)


def remove_surplus(target: Path, parts: Iterable[Part]) -> None:
    """Remove the parts and receipts of an earlier plan: a reader takes all files of a folder."""
    kept = {target / name for part in parts for name in (part.file, part.receipt)}
    for step in (*STEPS, RECEIPTS):
        for path in (target / step).glob("*-*.*"):
            if path not in kept and _PART.fullmatch(path.name):
                path.unlink()


def _require_own_folder(target: Path, source: Path) -> None:
    here, there = target.resolve(), source.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise ParameterError(
            "the target cannot be written there",
            where=str(target),
            expected="a folder apart from the source",
            got=f"source {source}",
        )
    if not target.exists():
        return
    names = sorted(path.name for path in target.iterdir()) if target.is_dir() else ["a file"]
    # The lock is emptied, and surplus files of these folders are removed: what a link names would be lost.
    links = [name for name in (LOCK, RECEIPTS, *STEPS) if (target / name).is_symlink()]
    if links:
        raise ParameterError(
            "the target holds links in the place of its own files", where=str(target), expected="files and folders",
            got=", ".join(links), state="nothing was changed", remedy="give another target",
        )  # fmt: skip
    manifest = target / MANIFEST  # other programs have a .lock and a manifest, too
    if manifest.is_file():
        refuse_holes(manifest)
    foreign = manifest.is_file() and b'"partitions"' not in manifest.read_bytes()
    if names and (LOCK not in names or foreign):
        raise ParameterError(
            "the target holds something else",
            where=str(target),
            expected=f"no such folder yet, an empty folder, or the folder of a fold, with its {LOCK} and {MANIFEST}",
            got=", ".join(names[:5]),
            state="nothing was changed",
            remedy="give another target",
        )


# --- writing ----------------------------------------------------------------------------------------


def write_vectors(path: Path, blocks: Iterable[Vectors], *, width: int, record: dict[str, Any]) -> None:
    """Write blocks of (m, width) float32 as column `vector` of a Parquet file, with the record in its metadata.

    The row groups, and so the bytes, do not depend on the sizes of the blocks. Memory: one row group and a block.
    """
    schema = pa.schema([("vector", pa.list_(pa.float32(), width))])
    schema = schema.with_metadata({b"sentfold-part": json.dumps(record, sort_keys=True)})
    with pq.ParquetWriter(path, schema, **PARQUET) as writer:
        for group in _row_groups(blocks, width):
            writer.write_table(pa.table([fixed_lists(group)], schema=schema), row_group_size=ROW_GROUP)


def _row_groups(blocks: Iterable[Vectors], width: int) -> Iterator[Vectors]:
    """The same rows in blocks of ROW_GROUP, the last one aside; each is overwritten by the next."""
    group, count = np.empty((ROW_GROUP, width), dtype=np.float32), 0
    for block in blocks:
        start = 0
        while start < len(block):
            piece = block[start : start + ROW_GROUP - count]
            group[count : count + len(piece)] = piece
            start, count = start + len(piece), count + len(piece)
            if count == ROW_GROUP:
                yield group
                count = 0
    if count:
        yield group[:count]
