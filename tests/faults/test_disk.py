"""A full disk, a limit on the size of files, and a read-only data/."""

from __future__ import annotations

import os
import random
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.conftest import Disturbed, copy_checkout
from tests.faults.namespace import mounted, refused
from tests.faults.processes import PLAIN_DVC
from tests.faults.repetition import injections

needs_mounts = pytest.mark.skipif(refused() != "", reason=refused())

DISK = 96 * 2**20

# More than the stages of the change write, so that some runs just fit.
ROOM = 300 * 2**10

# SQLite, in which DVC keeps hashes, calls a disk without room by either, as it cannot grow a file or cannot map one.
SQLITE = ("disk is full", "disk I/O error")


@needs_mounts
@pytest.mark.parametrize("number", injections())
def test_a_full_disk_leaves_nothing_that_is_taken_for_whole(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random, tmp_path: Path
) -> None:
    disturbed = disturb("transforms")
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(f"mount -t tmpfs -o size={DISK} tmpfs {shlex.quote(str(disk))}") as namespace:
        # The whole checkout lies on it, with DVC's cache and dvc.lock.
        copy_checkout(disturbed.root, namespace.outside(disk) / "checkout")
        inside = replace(disturbed, root=namespace.outside(disk) / "checkout")
        inside.starter = replace(
            disturbed.starter, root=disk / "checkout", before=namespace.entering(disk / "checkout")
        )
        room = moments.randrange(ROOM)
        filler = namespace.outside(disk) / "filler"
        _fill(filler, room)
        command = inside.starter.run(*PLAIN_DVC)
        _require_reason(command.wait(), command.printed, "No space left on device", "ENOSPC", *SQLITE)
        filler.unlink()
        inside.judge("full disk", f"{room} bytes left", command)
        inside.starter.end()


def _fill(filler: Path, room: int) -> None:
    free = os.statvfs(filler.parent)
    with filler.open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, max(1, free.f_bavail * free.f_frsize - room))


def _require_reason(code: int, printed: str, *reasons: str) -> None:
    """A run that failed has to say why."""
    assert code == 0 or any(reason in printed for reason in reasons), printed


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="no prlimit")
@pytest.mark.parametrize("number", injections())
def test_a_limit_on_the_size_of_files_leaves_nothing_that_is_taken_for_whole(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # The kernel refuses the byte after the limit, in the middle of a file; dvc.lock is the largest here.
    disturbed = disturb("transforms")
    limit = moments.randrange(1024, 60_000)
    command = disturbed.starter.run(*PLAIN_DVC, before=("prlimit", f"--fsize={limit}"))
    _require_reason(command.wait(), command.printed, "File too large", "EFBIG", *SQLITE)
    disturbed.judge("file size limit", f"{limit} bytes", command)


@needs_mounts
@pytest.mark.parametrize("number", injections(slow=3))
def test_a_read_only_data_folder_is_named_and_left_as_it_was(number: int, disturb: Callable[[str], Disturbed]) -> None:
    disturbed = disturb("transforms")
    data = shlex.quote(str(disturbed.root / "data"))
    with mounted(f"mount --bind {data} {data}", f"mount -o remount,ro,bind {data}") as namespace:
        command = disturbed.starter.run(*PLAIN_DVC, before=namespace.entering(disturbed.root))
        assert command.wait() != 0
        assert "Read-only file system" in command.printed
    disturbed.judge("read-only data/", "from the start", command)
