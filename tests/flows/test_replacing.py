"""Files that take another's place in one step."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.replacing import drop_drafts, replace_file


def test_a_replaced_file_has_the_new_content_and_the_old_mode(tmp_path: Path) -> None:
    path = tmp_path / "dvc.lock"
    path.write_bytes(b"old")
    path.chmod(0o664)
    replace_file(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o664)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_was_not_there_is_made(tmp_path: Path) -> None:
    replace_file(tmp_path / "dvc.lock", b"new")
    assert (tmp_path / "dvc.lock").read_bytes() == b"new"


def test_where_the_disk_refuses_the_old_file_stays_and_no_draft_is_left(tmp_path: Path) -> None:
    path = tmp_path / "dvc.lock"
    path.write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            replace_file(path, b"n" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_drafts_of_the_dead_are_removed_and_those_of_the_living_stay(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = [f".dvc.lock.{dead.pid}.tmp", f".dvc.lock.{os.getpid()}.tmp", f".other.{dead.pid}.tmp", "dvc.lock"]
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    drop_drafts(tmp_path / "dvc.lock")
    assert {path.name for path in tmp_path.iterdir()} == set(names[1:])
