"""Files that appear whole or not at all, on disks that several machines may write to."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.errors import ArtifactError, ParameterError, first_line

PLAN, MANIFEST, LOCK = "plan.json", "manifest.json", ".lock"
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")  # of `appearing`, and of whoever asks whether a folder is shared
_OURS = re.compile(r"[a-z]+-\d{5}\.(parquet|json)")


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A temporary name beside `target`; what was written there is synced and renamed if nothing failed.

    The name is unlike any other writer's on any machine, so two workers that were given the same task do not
    meet; the last rename wins, with the same bytes. Raises ArtifactError when the disk refuses; whatever
    stood at `target` before then still stands.
    """
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _fsync(temporary)
        temporary.replace(target)
        _fsync(target.parent)
    except OSError as error:
        raise ArtifactError(
            "cannot write a file of a partitioned dataset",
            where=str(target),
            got=f"{errno.errorcode.get(error.errno or 0, 'OSError')}: {error.strerror or first_line(error)}",
            state="no partial file was left; finished parts are kept",
            remedy="free space, or make the folder writable, and run the same command again",
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def hold_target(target: Path, *, source: Path) -> Iterator[None]:
    """Hold the folder `target` for one run, cleared of what killed writers left half-written.

    Raises ParameterError if it holds anything that is not ours, lies in the source or the source in it, or
    is held by another run: flock's lock, free as soon as its holder is gone.
    """
    _require_ours(target, source)
    try:
        target.mkdir(parents=True, exist_ok=True)
        lock = (target / LOCK).open("a+")
    except OSError as error:
        raise ArtifactError("cannot write into the target", where=str(target), got=first_line(error)) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise ParameterError(
                "another run is writing into this folder",
                where=str(target),
                got=lock.read().strip() or "a process that has not said who it is",
                state="nothing was changed",
                remedy="wait until it ends, or end it",
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}\n")
        lock.flush()
        sweep(target)
        try:
            yield
        finally:
            lock.truncate(0)


def sweep(target: Path) -> None:
    """Remove what killed writers left half-written. Only whoever holds the target may."""
    for stale in [*target.glob(".*.tmp"), *target.glob("*/.*.tmp")]:
        if _TEMPORARY.fullmatch(stale.name):
            stale.unlink(missing_ok=True)


def _require_ours(target: Path, source: Path) -> None:
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
    names = [path.name for path in target.iterdir()] if target.is_dir() else []
    held = [name for name in names if name != LOCK and not _TEMPORARY.fullmatch(name)]
    if not target.is_dir() or (held and not (target / PLAN).exists()):
        raise ParameterError(
            "the target holds something else",
            where=str(target),
            expected=f"no such folder yet, an empty one, or one with our {PLAN}",
            got=", ".join(sorted(held)[:5]) or "a file",
            state="nothing was changed",
            remedy="give another target",
        )


def keep_only(folder: Path, kept: set[str]) -> None:
    """Remove every part and receipt but these; nothing else that may lie there."""
    for path in folder.glob("*-*.*") if folder.is_dir() else ():
        if path.name not in kept and _OURS.fullmatch(path.name):
            path.unlink()
