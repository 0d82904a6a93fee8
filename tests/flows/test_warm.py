"""Stages forked by a warm process, held against the same commands as DVC itself starts them."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dvc.stage.exceptions import StageCmdFailedError
from dvc.stage.run import _run as run_cold
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.warm import WARM, WarmRunner, WarmServer, plain_arguments
from tests.checkout import ROOT
from tests.flows.checkout import SOURCE, alive, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there the kernel ends the server with dvc")

# A package of the project's name that tells what it is called with, or does what it is asked.
MAIN = """
import json, os, signal, sys, time
from pathlib import Path
from pipeline.code import VERSION

asked = sys.argv[2]
if asked == "tell":
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    Path(sys.argv[3]).write_text(json.dumps({
        "arguments": sys.argv[1:], "program": sys.argv[0], "folder": os.getcwd(), "path": sys.path[0],
        "name": __name__, "package": __package__, "environment": dict(os.environ), "ignored": ignored,
        "version": VERSION, "title": Path("/proc/self/cmdline").read_text().rstrip(chr(0)).split(chr(0))[1:],
        "fds": sorted(os.listdir("/proc/self/fd"))[:-1], "umask": os.umask(0o22), "group": os.getpgid(0),
    }))
    print("told", flush=True)
elif asked == "exit":
    sys.exit(int(sys.argv[3]))
elif asked == "die":
    os.kill(os.getpid(), int(sys.argv[3]))
elif asked == "raise":
    raise KeyboardInterrupt
elif asked == "linger":
    Path(sys.argv[3]).write_text(str(os.getpid()))
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with a package `pipeline` that tells what it is called with."""
    package = tmp_path / "pipeline"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(MAIN)
    (package / "code.py").write_text("VERSION = 1\n")
    # What the server itself is made of.
    (package / "hiding.py").write_text((ROOT / "pipeline/hiding.py").read_text())
    (tmp_path / "flows").symlink_to(ROOT / "flows")
    return tmp_path


# One that becomes its last command, so that a signal is reported as one. Others exit with 128 more than its number.
SHELL = shutil.which("bash") or "/bin/sh"

# What a shell sets for itself.
OF_SHELL = ("_", "PWD", "OLDPWD", "SHLVL")


@dataclass
class Stages:
    """Runs commands of stages in a folder, warm or cold."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    left_to_dvc: list[str] = field(default_factory=list)
    runner: WarmRunner = field(init=False)

    def __post_init__(self) -> None:
        def cold(executable: str | None, cmd: str, **more: Any) -> None:
            self.left_to_dvc.append(cmd)
            run_cold(executable, cmd, **more)

        self.monkeypatch.chdir(self.folder)
        self.runner = WarmRunner(always=True, cold=cold)

    @property
    def environment(self) -> dict[str, str]:
        """Of a stage; its `python` is this interpreter."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        folder = str(Path(sys.executable).parent)
        return {**kept, "PATH": f"{folder}{os.pathsep}{kept['PATH']}", "DVC_STAGE": "encode@x"}

    def run(self, command: str, *, cold: bool = False) -> None:
        """Run `python -m pipeline COMMAND`."""
        run: Callable[..., None] = run_cold if cold else self.runner
        # As DVC calls it.
        run(SHELL, f"python -m pipeline {command}", cwd=str(self.folder), env=self.environment, close_fds=True)

    def tell(self, *, cold: bool = False) -> dict[str, Any]:
        """What a stage says of itself."""
        self.run("encode tell told.json --a=b x,y:z", cold=cold)
        told: dict[str, Any] = json.loads((self.folder / "told.json").read_text())
        for name in OF_SHELL:
            told["environment"].pop(name, None)
        return told


@pytest.fixture
def stages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stages]:
    """Stages in that checkout, whose server ends with the test."""
    found = Stages(folder, monkeypatch)
    yield found
    found.runner.end()


def test_a_forked_stage_sees_what_one_started_by_dvc_sees(stages: Stages, capfd: pytest.CaptureFixture[str]) -> None:
    cold = stages.tell(cold=True)
    for _ in range(2):
        assert stages.tell() == cold
    assert stages.left_to_dvc == []
    assert capfd.readouterr().out == "told\n" * 3
    assert cold["title"][-4:] == ["tell", "told.json", "--a=b", "x,y:z"]


def test_a_forked_stage_ends_as_one_started_by_dvc_does(stages: Stages) -> None:
    def outcome(command: str, **how: bool) -> str | None:
        try:
            stages.run(f"encode {command}", **how)
        except StageCmdFailedError as error:
            return str(error)
        return None

    for command in ("exit 3", "die 9", "die 15", "die 2", "raise", "exit 0"):
        assert outcome(command) == outcome(command, cold=True)
    assert stages.left_to_dvc == []


def test_code_that_was_edited_between_two_stages_is_read_anew(stages: Stages) -> None:
    assert stages.tell()["version"] == 1
    (stages.folder / "pipeline/code.py").write_text("VERSION = 20\n")
    assert stages.tell()["version"] == 20


# The project's own package: the server imports its modules once, and forks have to notice what it imported.
STALE = """
import json, sys
from pathlib import Path
from pipeline.suite import VERSION
Path(sys.argv[2]).write_text(json.dumps(VERSION))
"""


def test_code_that_the_server_imported_is_forgotten_while_it_differs(stages: Stages) -> None:
    (stages.folder / "pipeline/__main__.py").write_text(STALE)
    module = stages.folder / "pipeline/suite.py"

    def write(version: int, seconds: int | None = None) -> None:
        module.write_text(f"VERSION = {version}\n")
        if seconds:
            os.utime(module, (seconds, seconds))

    def version() -> int:
        stages.run("encode version.json")
        return int(json.loads((stages.folder / "version.json").read_text()))

    long_ago = 1_700_000_000
    write(1, long_ago)
    assert version() == 1
    write(10, long_ago)  # another size
    assert version() == 10
    write(2)  # another time
    assert version() == 2
    module.unlink()
    with pytest.raises(StageCmdFailedError):
        version()
    write(1, long_ago)  # as the server knows it
    assert version() == 1
    assert stages.left_to_dvc == []


def test_what_the_server_cannot_run_is_left_to_dvc(stages: Stages, capfd: pytest.CaptureFixture[str]) -> None:
    assert not {"report", "download", "embed", "word_counts"} & WARM, "they use pandas, which the server hides"
    stages.run("report tell told.json")
    stages.run("encode tell told.json; echo more")
    assert stages.left_to_dvc == [
        "python -m pipeline report tell told.json", "python -m pipeline encode tell told.json; echo more"
    ]  # fmt: skip
    assert capfd.readouterr().out == "told\ntold\nmore\n"


def test_stages_are_left_to_dvc_if_the_server_is_gone(stages: Stages) -> None:
    stages.tell()
    server = stages.runner._server
    assert server is not None
    server.process.kill()
    server.process.wait()
    for _ in range(2):
        assert stages.tell()["version"] == 1
    assert len(stages.left_to_dvc) == 2


def test_a_stage_dies_with_the_server_and_the_server_with_dvc(folder: Path) -> None:
    code = """
        import os, sys
        from flows.warm import WarmRunner
        os.chdir(sys.argv[1])
        runner = WarmRunner(always=True)
        runner(None, f"python -m pipeline encode linger {sys.argv[2]}", cwd=os.getcwd(), env=dict(os.environ))
    """
    for victim in ("dvc", "server", "stage"):
        note = folder / f"{victim}.pid"
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(folder), note.name],
            env={**environment, "PYTHONPATH": str(SOURCE)},
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda note=note: note.exists() and note.read_text() != "", "the stage")
        stage = int(note.read_text())
        server = int(Path(f"/proc/{stage}/stat").read_text().rpartition(")")[2].split()[1])
        assert server != process.pid
        os.kill({"dvc": process.pid, "server": server, "stage": stage}[victim], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
        until(lambda stage=stage, server=server: not alive(stage) and not alive(server), "both to end", seconds=60)
        assert process.returncode == (-signal.SIGKILL if victim == "dvc" else 1)
        assert ("exited with -9" in said) == (victim != "dvc"), said


def test_the_server_has_no_thread_that_a_fork_would_lose() -> None:
    # OpenBLAS ends its threads before a fork and starts them again after it; jemalloc does likewise.
    server = WarmServer({**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)})
    try:
        assert server.is_ready(wait=True)
        names = {path.read_text().strip() for path in Path(f"/proc/{server.process.pid}/task").glob("*/comm")}
        assert names == {"python", "jemalloc_bg_thd"}
    finally:
        server.end()


plain_words = st.text(alphabet="azAZ09_@%+=:,./-", min_size=1, max_size=6)
any_words = st.text(alphabet="a0-@ $'\"\\;&|*?~#<>(){}!`\n\té", max_size=4)
words = st.lists(plain_words, min_size=1, max_size=4) | st.lists(plain_words | any_words, max_size=4)


@settings(deadline=None)
@given(words)
def test_a_shell_would_cut_a_plain_command_at_the_same_places(arguments: list[str]) -> None:
    command = " ".join(["python", "-m", "pipeline", *arguments])
    environment: Mapping[str, str] = {"PATH": str(Path(sys.executable).parent)}
    found = plain_arguments(command, environment)
    if found:
        assert ["python", "-m", "pipeline", *found] == shlex.split(command) == command.split(" ")
        printed = subprocess.run(
            [SHELL, "-c", f"set -- {command}; printf '%s\\n' \"$@\""], capture_output=True, text=True, check=True
        ).stdout
        assert printed.splitlines() == command.split(" ")
    assert plain_arguments(command, {"PATH": "/nowhere"}) == []


@pytest.mark.parametrize("command", ["python -m pipeline encode wl-sif --suite quick", "python -m pipeline evaluate x"])
def test_commands_of_the_project_are_plain(command: str) -> None:
    assert plain_arguments(command, {"PATH": str(Path(sys.executable).parent)}) == command.split()[3:]
    assert plain_arguments(command.replace("python", "/usr/bin/python", 1), os.environ) == []
