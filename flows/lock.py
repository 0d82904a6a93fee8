"""The one lock of a checkout: a run holds it from its beginning to its end.

DVC's own locks guard single files for moments. Two whole runs at once take turns at those until one of the two fails
on a path that the other writes, so a run takes this lock first.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import psutil
import typer

from flows.recovery import recover
from sentfold.errors import RunError, first_line
from sentfold.locks import CHECKOUT_LOCK, HELD_BY, try_lock

POLL_SECONDS = 0.3
MOST_BYTES = 4096  # of the note of a holder
LONGEST_PURPOSE = 200  # letters, of which each takes at most 12 bytes of the note


@contextmanager
def hold_checkout(root: Path, *, wait: bool, purpose: str, say: Callable[[str], None] = typer.echo) -> Iterator[None]:
    """Hold the checkout `root` alone for the length of a `with` block.

    wait     True: say who holds it and wait; False: raise at once
    purpose  what the holder is doing, in a few words, for those who wait
    say      is told, in a line, who holds the checkout

    The lock is flock's, so it is free the moment its holder dies, however it dies; the JSON in the file only says
    who holds it. The files of DVC that a killed run left damaged are repaired before the block begins. The holder,
    and a process that the holder started, such as the flow, pass through.

    Raises RunError if `root` is no DVC checkout, or is held and `wait` is False.
    """
    if not (root / ".dvc").is_dir():
        raise RunError(
            "this is no sentfold checkout",
            where=str(root),
            expected="a folder with .dvc and dvc.yaml in it",
            remedy="run from the root of the checkout",
        )
    path = root / CHECKOUT_LOCK
    if _is_held_by_ancestor(path):
        yield
        return
    with _open(path) as file:
        _acquire(file, path, wait=wait, say=say)
        with _told(path):
            _write_holder(file, purpose)
        before = os.environ.get(HELD_BY)
        os.environ[HELD_BY] = str(os.getpid())
        try:
            recover(root)
            yield
        finally:
            os.environ.pop(HELD_BY)
            if before is not None:
                os.environ[HELD_BY] = before
            file.truncate(0)


def _open(path: Path) -> IO[str]:
    """The lock file, made if need be. A symbolic link is refused: the file that it names would be emptied."""
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(
            path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600
        )
        os.fchmod(handle, 0o600)  # who can read the file can hold the lock
        return os.fdopen(handle, "a+", encoding="utf-8")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """An OSError inside as a RunError about the lock file."""
    try:
        yield
    except OSError as error:
        raise RunError(
            "the checkout cannot be locked",
            where=str(path),
            expected="a file that can be written, no link",
            got=first_line(error),
            state="no stage was started",
            remedy="free space, make the folder writable, or remove the link, and run the command again",
        ) from None


def _acquire(file: IO[str], path: Path, *, wait: bool, say: Callable[[str], None]) -> None:
    # Polling, not a blocking flock, so that a change of holder is told to those who wait.
    told = ""
    while True:
        if try_lock(file, path):
            return
        holder = _describe(_read_holder(path))
        if not wait:
            raise RunError(
                "another run holds this checkout",
                where=str(path),
                got=holder,
                remedy="wait until it ends, or end it; its lock is free as soon as the process is gone",
            )
        if holder != told:
            say(f"waiting: this checkout is held by {holder}")
            told = holder
        time.sleep(POLL_SECONDS)


def _write_holder(file: IO[str], purpose: str) -> None:
    holder = {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "purpose": purpose[:LONGEST_PURPOSE],
    }
    file.truncate(0)
    file.write(json.dumps(holder) + "\n")
    file.flush()


def _read_holder(path: Path) -> dict[str, object]:
    # A holder that has just taken the lock may not have written yet. What is there can be a stranger's pipe or device.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb", buffering=0) as file:
            holder = json.loads(file.read(MOST_BYTES) or b"")
    except (OSError, ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _describe(holder: dict[str, object]) -> str:
    if not holder:
        return "a process that has not said who it is"
    return f"process {holder.get('pid')} on {holder.get('host')} since {holder.get('since')}: {holder.get('purpose')}"


def _is_held_by_ancestor(path: Path) -> bool:
    # The variable alone proves nothing: it may come from the run of another checkout, or from a
    # holder long dead whose number went to someone else. It counts if this checkout's file names
    # the same process on this host, and that process is this one or one that started it.
    claimed = os.environ.get(HELD_BY, "")
    holder = _read_holder(path)
    if not claimed.isdigit() or holder.get("pid") != int(claimed) or holder.get("host") != socket.gethostname():
        return False
    here = psutil.Process()
    return int(claimed) in {here.pid, *(parent.pid for parent in here.parents())}
