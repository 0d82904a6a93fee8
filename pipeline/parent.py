"""A stage ends with the process that started it: an orphan would continue and write its output later."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
POLL_SECONDS = 0.5


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends, and watch the parent's parent where that is a shell.

    DVC starts a stage through a shell. Some shells replace themselves by the stage, so that dvc is the parent;
    dash stays between the two, and would keep the stage alive when dvc is killed. On Linux; elsewhere nothing.
    """
    if sys.platform != "linux":
        return
    parent, pr_set_pdeathsig = os.getppid(), 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent process died before the stage began")
    above = parent_of(parent)
    if above is not None and name_of(parent) in SHELLS:
        threading.Thread(target=_watch, args=(parent, above), daemon=True).start()


def parent_of(process: int) -> int | None:
    """The number of a process's parent; None if there is no such process."""
    try:
        # The name, which may hold anything, is in parentheses; the state and the parent follow.
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def name_of(process: int) -> str:
    """The name of a process's program; "" if there is no such process."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def _watch(shell: int, above: int) -> None:
    while parent_of(shell) == above:
        time.sleep(POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
