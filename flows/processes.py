"""Start a command so that the command and everything below it end with the process that started it.

`start_guarded` calls this file as a program, the guard: `python processes.py PARENT COMMAND...`. The kernel's own
way, PR_SET_PDEATHSIG, is not enough here. A fork clears it, so dvc would die but not the stage below dvc; and the
signal is sent when the *thread* that forked ends, which for a pool of threads is not when the run ends. The guard
runs the command in a process group. It ends the whole group when the parent is gone, when a signal tells it to, or
when the command ends and leaves something running. Only the standard library is imported, so a guard starts in
some 30 ms.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

POLL_SECONDS = 0.1

# Between the interrupt, which lets a stage remove its temporary files, and the kill.
GRACE_SECONDS = 3.0


def start_guarded(
    command: Sequence[str], *, cwd: Path, env: dict[str, str], output: IO[bytes] | None = None, session: bool = False
) -> subprocess.Popen[bytes]:
    """Start `command` under a guard; the process returned is the guard's, with the command's exit code.

    output   a file for what the command prints, on both channels; None: the channels of this process
    session  in a session of its own, which the terminal's Ctrl-C does not reach
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


def new_log(log: Path) -> Path:
    """Make the folder of a log, and remove what is in its place: to write through a link is to write elsewhere."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    return log


def dvc_command(*words: str) -> list[str]:
    """The command line of this interpreter's dvc, whatever `dvc` the PATH finds.

    With `--wait-for-lock`, which has to precede the subcommand, parallel dvc processes wait for each other's short
    locks; without it they fail. With `-P` Python does not import from the working folder, where
    a folder of data can have the name of a library.
    """
    return [sys.executable, "-P", "-m", "dvc", "--wait-for-lock", *words]


def dvc_environment(project: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a dvc in the folder `project`: no other user of the machine reaches DVC's pickles and locks.

    DVC's own place for pickles is /var/tmp/dvc, where everyone can write: a pickle from there runs code as this
    account. Who can read a lock can hold it for ever. If the user set DVC_SITE_CACHE_DIR, or else
    core.site_cache_dir, DVC keeps its pickles there. Raises RunError if there is no private folder.
    """
    # In the function: the guard imports the standard library alone.
    from dvc.config import Config, ConfigError

    from sentfold.errors import RunError, first_line

    chosen, site = environment.get("DVC_SITE_CACHE_DIR"), project.absolute() / ".dvc/tmp/site"
    with suppress(ConfigError, OSError):  # dvc itself says what is wrong with the configuration
        chosen = chosen or Config(str(project / ".dvc"))["core"].get("site_cache_dir")
    try:
        site.mkdir(mode=0o700, parents=True, exist_ok=True)
        site.chmod(0o700)
        with suppress(PermissionError):  # another account owns the checkout
            site.parent.chmod(0o700)
    except OSError as error:
        raise RunError(
            "DVC has no private folder for its own files",
            where=str(site),
            expected="a folder that this account owns, or can make",
            got=first_line(error),
            state="nothing was run",
            remedy="free space, make .dvc/tmp writable, or remove what another account left there",
        ) from None
    return {**environment, "DVC_SITE_CACHE_DIR": chosen or str(site)}


class Stop(Protocol):
    """Says whether a stage is to be ended: a threading.Event, or something like it."""

    def is_set(self) -> bool:
        """Whether to end the stage."""
        ...


def wait_for(process: subprocess.Popen[bytes], stop: Stop | None = None) -> int:
    """The exit code of a guarded process. It is ended first if `stop` is set, or if this call is interrupted."""
    try:
        while True:
            try:
                return process.wait(timeout=POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if stop and stop.is_set():
                    process.terminate()
                    return process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def pause(seconds: float, stop: Stop | None = None) -> None:
    """Sleep, but end early if `stop` is set."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (stop and stop.is_set()):
        time.sleep(min(POLL_SECONDS, seconds))


def guard(parent: int, command: Sequence[str]) -> int:
    """Run `command` until it ends, a signal arrives, or `parent` is gone; return its exit code."""
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: told.append(received))
    # If the guard itself is killed, the kernel ends its command, which is dvc; a stage asks for the same.
    # A guard has but one thread, so nothing is unsafe before exec, and no thread can end first.
    child = subprocess.Popen(command, process_group=0, preexec_fn=die_with_parent)  # noqa: PLW1509
    while child.poll() is None:
        if told or os.getppid() != parent:
            _interrupt(child)
            break
        time.sleep(POLL_SECONDS)
    _kill_group(child.pid)
    code = child.wait()
    # A shell's convention: death by signal n is exit code 128 + n.
    return code if code >= 0 else 128 - code


def die_with_parent() -> None:
    """Make the kernel kill this process when the thread that forked it ends. On Linux; elsewhere nothing."""
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
