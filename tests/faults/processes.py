"""Start a command so that everything it starts can be found again, and strike one of its processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.checkout import environment
from tests.faults.fixture_suite import STAGES
from tests.flows.checkout import alive

# In the environment of a command, and so of all that descends from it, whoever adopts it.
MARK = "SENTFOLD_FAULT_TEST"

# Generous, because a machine may be busy or a process paused for minutes; nothing waits so long when all is well.
PATIENCE_SECONDS = 600.0

RUN = ("-m", "flows", "run", "--jobs", "2")
PLAIN_DVC = ("-m", "dvc", "repro")


@dataclass
class Command:
    """A Python command in a checkout, in a session of its own; what it prints goes to a file."""

    process: subprocess.Popen[bytes]
    mark: str
    log: Path

    @property
    def printed(self) -> str:
        """What it and all below it have printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def remade(self) -> set[str]:
        """The stages that DVC ran, or took from its run cache, by its own words."""
        ran = re.findall(r"Running stage '([^']+)'", self.printed)
        return {*ran, *re.findall(r"Stage '([^']+)' is cached", self.printed)}

    def wait(self) -> int:
        """Its exit code, as soon as it ends."""
        return self.process.wait(PATIENCE_SECONDS)

    def processes(self) -> dict[int, list[str]]:
        """Its living processes, itself and everything below or orphaned, with their command lines."""
        return processes_marked(self.mark)

    def await_role(self, role: Callable[[list[str]], bool], *, passing: frozenset[int] = frozenset()) -> int | None:
        """The first process of a role that is none of `passing`; None if the command ends before there is one."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            found = [pid for pid, words in self.processes().items() if role(words) and pid not in passing]
            if found:
                return max(found)
            if self.process.poll() is not None:
                return None
            time.sleep(0.01)
        raise AssertionError(f"no such process in {PATIENCE_SECONDS:.0f} s:\n{self.printed}")

    def orphans(self, *, seconds: float) -> list[list[str]]:
        """What is still alive some seconds after the command ended, and is killed now."""
        end = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in left:
            strike(pid, signal.SIGKILL)
        return list(left.values())


@dataclass
class Starter:
    """Starts commands in one checkout and remembers them, so that none outlives its test.

    root    the checkout, as the commands see it
    logs    where what they print goes; not inside the checkout, which may be full
    before  a command that runs each of them, such as nsenter's
    """

    root: Path
    logs: Path
    environment: dict[str, str] = field(default_factory=environment)
    before: tuple[str, ...] = ()
    started: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        # DVC's notes on file times: on the disk that may be full, and gone with the test.
        self.environment["DVC_SITE_CACHE_DIR"] = str(self.root / ".dvc/tmp/site")

    def start(self, *words: str, before: tuple[str, ...] = (), stdin: int = subprocess.DEVNULL) -> Command:
        """Start this interpreter with `words`; `before` is a command that runs it, such as prlimit's."""
        mark = uuid.uuid4().hex
        log = self.logs / f"{self.root.name}-{len(self.started)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self.before, *before, sys.executable, *words],
                cwd=self.root if self.root.exists() else self.logs,
                env={**self.environment, MARK: mark},
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=stdin == subprocess.DEVNULL,
            )
        self.started.append(Command(process, mark, log))
        return self.started[-1]

    def run(self, *words: str, before: tuple[str, ...] = ()) -> Command:
        """The same, to its end."""
        command = self.start(*words, before=before)
        command.wait()
        return command

    def start_on_terminal(self, *words: str) -> tuple[Command, int]:
        """The same in the foreground of a terminal of its own, and the end of it that a keyboard would write to."""
        keyboard, terminal = os.openpty()
        command = self.start(*words, before=("setsid", "--ctty", "--wait"), stdin=terminal)
        os.close(terminal)
        return command, keyboard

    def end(self) -> None:
        """Kill whatever is left."""
        for command in self.started:
            command.process.kill()
            command.process.wait()
            command.orphans(seconds=0.0)


def processes_marked(mark: str) -> dict[int, list[str]]:
    """Every living process whose environment holds the mark, with its command line."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0") and alive(int(folder.name)):
                found[int(folder.name)] = (folder / "cmdline").read_text().split("\0")[:-1]
        except OSError:
            continue
    return found


def strike(pid: int, number: signal.Signals) -> bool:
    """Send a signal; False if there was nobody to get it.

    A process that has ended and that nobody has waited for yet still takes signals, to no effect.
    """
    if not alive(pid):
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def press_ctrl_c(command: Command, keyboard: int) -> bool:
    """Interrupt a command in the foreground of its terminal; False if it has ended."""
    if command.process.poll() is not None:
        return False
    os.write(keyboard, b"\x03")
    return True


def is_stage(words: list[str]) -> bool:
    """`python -m pipeline STAGE ...`, not the shell around it."""
    return words[1:3] == ["-m", "pipeline"] and words[3:4] != [] and words[3] in STAGES


def is_dvc(words: list[str]) -> bool:
    """`python -P -m dvc ... repro ...`, or without `-P` as a user starts it; not the guard around it."""
    return [word for word in words[1:4] if word != "-P"][:2] == ["-m", "dvc"] and "repro" in words


def is_guard(words: list[str]) -> bool:
    """The process that ends a dvc and all below it when their starter is gone."""
    return len(words) > 4 and words[1:3] == ["-I", "-S"] and words[3].endswith("processes.py") and "dvc" in words


def is_flow(words: list[str]) -> bool:
    """The process of the flow, below `sentfold run`."""
    return words[1:4] == ["-m", "flows", "flow"]


def is_server(words: list[str]) -> bool:
    """Prefect's server, not the guard around it."""
    return words[1:5] == ["-m", "prefect", "server", "start"]
