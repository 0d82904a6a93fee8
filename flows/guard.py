"""Run one command so that it and all it started end with the process that wanted it.

Called as a program by `start_guarded`: `python guard.py PARENT COMMAND...`. It is a process of its
own because PR_SET_PDEATHSIG, the kernel's way, does not reach far enough here: it is cleared at the
next fork, so dvc would die but not the stage below it; and it fires when the *thread* that forked
ends, which for a pool of threads is not when the run ends. The guard runs the command in a process
group and ends the whole group when the parent is gone, when it is told to, or when the command ends
and leaves something running. Standard library only, so it starts in some 30 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

POLL_SECONDS = 0.1

# Between the interrupt, which lets a stage remove its temporary files, and the kill.
GRACE_SECONDS = 3.0


def start_guarded(
    command: Sequence[str], *, cwd: Path, env: dict[str, str], output: IO[bytes] | None = None, session: bool = False
) -> subprocess.Popen[bytes]:
    """Start `command` under a guard; the process returned is the guard's, with the command's exit code.

    output   a file for what the command prints, on both channels; None leaves it to ours
    session  out of reach of the terminal's Ctrl-C, which then ends us alone, and it in our good time
    `terminate()` on the result ends the command and everything below it.
    """
    # -I and -S: nothing of this folder or of the environment can shadow the standard library.
    guard = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), *command]
    streams = None if output is None else output.fileno()
    return subprocess.Popen(
        guard,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=streams,
        stderr=None if output is None else subprocess.STDOUT,
        start_new_session=session,
    )


def guard(parent: int, command: Sequence[str]) -> int:
    """Run `command` until it ends, a signal arrives, or `parent` is gone; return its exit code."""
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: told.append(received))
    # If the guard itself is killed, the kernel ends its command, which is dvc; a stage asks for the same.
    # A guard has but one thread, so nothing is unsafe before exec, and no thread can end first.
    child = subprocess.Popen(command, process_group=0, preexec_fn=_die_with_guard)  # noqa: PLW1509
    while child.poll() is None:
        if told or os.getppid() != parent:
            _interrupt(child)
            break
        time.sleep(POLL_SECONDS)
    _kill_group(child.pid)
    code = child.wait()
    # A shell's convention: death by signal n is exit code 128 + n.
    return code if code >= 0 else 128 - code


def _die_with_guard() -> None:
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _interrupt(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGINT)
    end = time.monotonic() + GRACE_SECONDS
    while child.poll() is None and time.monotonic() < end:
        time.sleep(POLL_SECONDS)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(guard(int(sys.argv[1]), sys.argv[2:]))
