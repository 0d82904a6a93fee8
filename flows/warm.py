"""Stages that find their libraries imported: `dvc repro` asks a process that has done so to fork for each of them.

A new Python imports numba, scipy and scikit-learn for each stage, which takes longer than what many of them then do
(`python -m benchmarks.warm`). Here one process imports them once and is forked. The fork has the command line,
environment, folder, signals and exit code that DVC's own child would have, reads the project's code anew if it was
edited, and is killed by the kernel when DVC dies. Whatever is not plainly `python -m pipeline STAGE ...`, by this very
interpreter, is left to DVC, and so is everything if the server cannot start.

That process is started when several stages have run, or one after which others come, and asked once it is ready; the
environment variable SENTFOLD_WARM says otherwise: 0 for never, 1 for every stage from the first.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dvc.stage import run as dvc_run
from dvc.stage.exceptions import StageCmdFailedError

# A command without anything that a shell would read otherwise than by cutting it at its blanks.
PLAIN = re.compile(r"python -m pipeline(?: [\w@%+=:,./-]+)+")

# Stages that hide pandas, as the server does (`begin_stage` in pipeline/__main__.py), and that import enough to be
# worth it. `report` uses pandas, `embed` loads torch, whose threads would not live through a fork.
WARM = frozenset({
    "vocabulary", "word_vectors", "cluster_words", "encode", "knn_graph", "reconstruction_weights", "eigensolve",
    "transform", "graph_transform", "sweep", "selected", "sensitivity", "evaluate",
})  # fmt: skip

# Letters that a stage's command line may take, in the list of processes.
TITLE = 200

# A run that made so many stages may well make more; the server's own imports take as long as those of two.
MANY = 2

# The last stage of a run: no other comes after it.
LAST = "report"

_run = dvc_run._run


class WarmServer:
    """A process that is forked for each stage; see warm_server.py. The kernel ends it when this process dies."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._connection, theirs = socket.socketpair()
        command = [sys.executable, "-m", "flows.warm_server", str(theirs.fileno()), str(os.getpid()), " " * TITLE]
        # It keeps interrupts for its forks, from its first moment on.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=dict(environment))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self._lines = self._connection.makefile("rw", encoding="utf-8", newline="\n")
        self._is_ready = False

    def is_ready(self, *, wait: bool = False) -> bool:
        """Whether it has imported all."""
        if not self._is_ready and select.select([self._connection], [], [], None if wait else 0)[0]:
            self._is_ready = self._read("ready") is not None
        return self._is_ready

    def run(self, arguments: Sequence[str], cwd: str, environment: Mapping[str, str]) -> int | None:
        """The exit code of `python -m pipeline ARGUMENTS`, as subprocess gives it; None if it was never started."""
        request = {"arguments": list(arguments), "cwd": str(Path(cwd).resolve()), "environment": dict(environment)}
        try:
            self._lines.write(json.dumps(request) + "\n")
            self._lines.flush()
        except OSError:
            return None
        if self._read("pid") is None:
            return None
        code = self._read("code")
        # Who kills the server kills the stage.
        return -signal.SIGKILL if code is None else code

    def end(self) -> None:
        """End it, whatever it does: it has no stage any more, and nothing worth keeping."""
        self.process.kill()
        self.process.wait()

    def _read(self, key: str) -> int | None:
        """The number in the next line of its answer; None if it is gone."""
        try:
            line = self._lines.readline()
        except OSError:
            line = ""
        if not line:
            self._is_ready = False
            return None
        return int(json.loads(line)[key])


class WarmRunner:
    """In the place of DVC's `_run`: runs a stage's command, by the server where it can.

    always  every command that the server can run, from the first: wait for it
    cold    runs all others
    """

    def __init__(self, *, always: bool = False, cold: Callable[..., None] = _run) -> None:
        self._always = always
        self._cold = cold
        self._server: WarmServer | None = None
        self._commands = 0

    def __call__(self, executable: str | None, cmd: str, **more: Any) -> None:
        """Run one command of a stage. Raises StageCmdFailedError if it fails."""
        self._commands += 1
        arguments = plain_arguments(cmd, more["env"])
        if self._server is None and arguments and self._is_worth_it(arguments[0]):
            self._server = WarmServer(more["env"])
        server = self._server
        if server is None or not arguments or arguments[0] not in WARM or not server.is_ready(wait=self._always):
            self._cold(executable, cmd, **more)
            return
        code = self._undisturbed(server, arguments, more["cwd"], more["env"])
        if code is None:
            self._cold(executable, cmd, **more)
        elif code:
            raise StageCmdFailedError(cmd, code)

    def end(self) -> None:
        """End the server, if there is one."""
        if self._server is not None:
            self._server.end()

    def _is_worth_it(self, stage: str) -> bool:
        """Whether to start the server."""
        # After a download or an embedding, others come; after a later stage, often none but the report.
        return self._always or (stage != LAST and (stage not in WARM or self._commands > MANY))

    def _undisturbed(
        self, server: WarmServer, arguments: list[str], cwd: str, environment: Mapping[str, str]
    ) -> int | None:
        # As DVC does while a command runs: Ctrl-C reaches the command itself.
        if threading.current_thread() is not threading.main_thread():
            return server.run(arguments, cwd, environment)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return server.run(arguments, cwd, environment)
        finally:
            signal.signal(signal.SIGINT, before)


def plain_arguments(command: str, environment: Mapping[str, str]) -> list[str]:
    """What follows `python -m pipeline` in a command that this interpreter would run; else nothing."""
    if not PLAIN.fullmatch(command):
        return []
    # No resolve(): a venv's python is a link, and its target does not know the venv's libraries.
    python = shutil.which("python", path=environment.get("PATH"))
    here = Path(sys.executable)
    if python is None or Path(python).absolute().parent != here.absolute().parent or not here.samefile(python):
        return []
    return command.split(" ")[3:]


def warm_stages(arguments: Sequence[str]) -> WarmRunner | None:
    """Let DVC, called with these arguments, run its stages by a server, if it may run several.

    Exits with an error if SENTFOLD_WARM is neither 0, 1 nor empty.
    """
    setting = os.environ.get("SENTFOLD_WARM", "")
    if setting not in ("", "0", "1"):
        sys.exit(f"error: SENTFOLD_WARM is {setting!r}; expected 0, 1 or nothing; no stage was started")
    if sys.platform != "linux" or setting == "0" or not {"-s", "--single-item"}.isdisjoint(arguments):
        return None
    try:
        for stream in range(3):
            os.fstat(stream)
    except OSError:
        return None  # the connection would take the place of a closed one
    runner = WarmRunner(always=setting == "1")
    dvc_run._run = runner
    return runner
