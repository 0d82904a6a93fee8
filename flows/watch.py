"""The end of a run whose Prefect server ended first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pipeline.errors import RunError, SentfoldError

# How long a configured server may be silent: it may be started anew meanwhile, and Prefect's clients try again.
PATIENCE_SECONDS = 60.0

# What an interrupted run may take to end its stages, and Prefect to find that nobody answers any more.
LEAVE_SECONDS = 5.0
PRINT_SECONDS = 1.0  # in which the command line prints its error, after which Prefect's threads would hold it up
EXIT_CODE = 2  # of the command line after one of our errors


class Server(Protocol):
    """What a run depends on.

    every  seconds from one look at it to the next
    """

    every: float

    def ended(self) -> bool:
        """Whether it is beyond hope."""

    def answers(self) -> bool:
        """Whether it is there at this moment."""

    def error(self, resume: str) -> RunError:
        """What to tell its users; resume: the command that takes the run up again."""


@dataclass
class OwnServer:
    """The temporary server of one run, which only a fault ends before the run."""

    process: subprocess.Popen[bytes]
    log: Path
    every: float = 0.2

    def ended(self) -> bool:
        return self.process.poll() is not None

    def answers(self) -> bool:
        return not self.ended()

    def error(self, resume: str) -> RunError:
        return RunError(
            "Prefect's temporary server ended before the run did",
            where=str(self.log),
            got=f"exit code {self.process.returncode}",
            state="stages that finished are kept; those that ran were stopped",
            remedy=f"read its log, then: {resume}; 'sentfold repro' runs the same stages without Prefect",
        )


@dataclass
class ConfiguredServer:
    """Somebody's server, which has ended for us when it was silent for PATIENCE_SECONDS."""

    url: str
    every: float = 5.0
    _heard: float = field(default_factory=time.monotonic)
    _problem: str = ""

    def ended(self) -> bool:
        return not self.answers() and time.monotonic() - self._heard >= PATIENCE_SECONDS

    def answers(self) -> bool:
        problem = unanswered(self.url)
        if not problem:
            self._heard = time.monotonic()
        self._problem = problem or self._problem
        return not problem

    def error(self, resume: str) -> RunError:
        return RunError(
            "the configured Prefect server went away during the run",
            where="PREFECT_API_URL, or the active Prefect profile",
            got=f"{self._problem}, for {time.monotonic() - self._heard:.0f} s",
            state="stages that finished are kept; those that ran were stopped; its pages may show them as running",
            remedy=f"start that server, then: {resume}; 'sentfold repro' runs the same stages without Prefect",
        )


def unanswered(url: str) -> str:
    """Why the API at this address does not answer; empty if it does."""
    # Any answer will do, a refusal too: what a server wants from its users is Prefect's affair.
    try:
        urllib.request.urlopen(f"{url}/health", timeout=10.0).close()
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        return f"{url}/health: {error}"
    return ""


@contextmanager
def watched(server: Server, resume: str) -> Iterator[None]:
    """Interrupt the block if the server ends first, and raise RunError for whatever that makes of it.

    An error of ours that the block raised by itself stays what it is.

    Prefect's clients try a server that is gone for minutes, each of them, and while the process ends too: what has
    not come to its end after LEAVE_SECONDS is ended with the whole process.
    resume  the command that takes the run up again, for the error
    """
    signs = Signs()
    threading.Thread(target=watch, args=(server, resume, signs), name="watch of the server", daemon=True).start()
    try:
        yield
    except BaseException as error:
        if not signs.interrupted.is_set() and server.answers():
            signs.safe.set()
            raise
        signs.left.set()
        threading.Thread(target=_leave, name="end without a server", daemon=True).start()
        # An error of ours, of a stage that failed, tells more than that nobody listens to it.
        if isinstance(error, SentfoldError) and not signs.interrupted.is_set():
            raise
        raise server.error(resume) from None
    else:
        # What came out well stays so, should the server have ended in the last moment.
        signs.safe.set()


@dataclass(frozen=True)
class Signs:
    """What the block and its watch tell each other.

    safe         nobody needs the server any more
    interrupted  the watch has interrupted the block
    left         the block was left by an error, and the process ends
    """

    safe: threading.Event = field(default_factory=threading.Event)
    interrupted: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)


def watch(server: Server, resume: str, signs: Signs) -> None:
    """End this process soon after the server does."""
    while not server.ended():
        if signs.safe.wait(server.every) or signs.left.is_set():
            return
    # The server is told to end only when it is safe; whoever slept through that must not take it for a death.
    if signs.safe.is_set() or signs.left.is_set():
        return
    signs.interrupted.set()
    # To the main thread by name: a signal that another thread gets does not wake it.
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    if not signs.left.wait(LEAVE_SECONDS):
        sys.stderr.write(f"error: {server.error(resume)}\n")
        _leave()


def _leave() -> None:
    time.sleep(PRINT_SECONDS)  # the main thread prints its error meanwhile, and nothing tells when it has
    # As if it were killed: the guards of its stages notice, and the next run mends what is left.
    os._exit(EXIT_CODE)
