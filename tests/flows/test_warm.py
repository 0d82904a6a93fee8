"""Stages forked by a warm process, held against the same commands as DVC itself starts them."""

import ast
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dvc.stage.exceptions import StageCmdFailedError
from dvc.stage.run import _run as run_cold
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.warm import MANY, WARM, WarmRunner, WarmServer, plain_arguments, warm_stages
from flows.warm_server import LIBRARIES, OWN, TICK_NS
from pipeline import preloaded
from pipeline.errors import RunError
from pipeline.lineage.recorder import Run, _imported_sources, _sources, refuse_changes
from pipeline.lineage.stages import Stage
from tests.checkout import ROOT
from tests.flows.checkout import SOURCE, alive, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there the kernel ends the server with dvc")

# A package of the project's name that tells what it is called with, or does what it is asked.
MAIN = """
import json, os, signal, sys, time
from pathlib import Path

asked = sys.argv[2]
if asked == "tell":
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    Path(sys.argv[3]).write_text(json.dumps({
        "arguments": sys.argv[1:], "program": sys.argv[0], "folder": os.getcwd(), "path": sys.path[0],
        "name": __name__, "package": __package__, "environment": dict(os.environ), "ignored": ignored,
        "title": Path("/proc/self/cmdline").read_text().rstrip(chr(0)).split(chr(0))[1:],
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
    time.sleep(120)  # it is killed before; if not, its test fails late, not never
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with a package `pipeline` that tells what it is called with."""
    package = tmp_path / "pipeline"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(MAIN)
    # What the server itself is made of.
    for name in ("hiding.py", "leaving.py", "preloaded.py"):
        (package / name).write_text((ROOT / "pipeline" / name).read_text())
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
    used_what_was_imported: bool = False
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

    def run(self, command: str, *, cold: bool = False, folder: Path | None = None) -> None:
        """Run `python -m pipeline COMMAND`."""
        run: Callable[..., None] = run_cold if cold else self.runner
        # As DVC calls it.
        run(
            SHELL, f"python -m pipeline {command}", cwd=str(folder or self.folder), env=self.environment, close_fds=True
        )

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
    # As in a program; pytest's workers have none, and DVC then forgets to put it back after a command.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    found = Stages(folder, monkeypatch)
    yield found
    found.runner.end()
    signal.signal(signal.SIGINT, before)


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


# `pipeline.suite` is one of the modules that the server imports once.
STALE = """
import json, sys
from pathlib import Path
from pipeline import preloaded
from pipeline.suite import VERSION
Path(sys.argv[2]).write_text(json.dumps([VERSION, preloaded.warm, sorted(map(str, preloaded.stamps))]))
"""
LONG_AGO = 1_700_000_000


def age() -> None:
    """Let what was just written grow older than the server takes for written after its start (TICK_NS)."""
    time.sleep(4e-9 * TICK_NS)


def version(stages: Stages, folder: Path | None = None) -> int:
    """The version of `pipeline.suite` that a stage imports."""
    stages.run("encode version.json", folder=folder)
    found, warm, known = json.loads(((folder or stages.folder) / "version.json").read_text())
    assert warm
    stages.used_what_was_imported = known != []
    return int(found)


def test_code_that_the_server_imported_is_forgotten_while_it_differs(stages: Stages) -> None:
    (stages.folder / "pipeline/__main__.py").write_text(STALE)
    module = stages.folder / "pipeline/suite.py"

    def write(number: int) -> None:
        module.write_text(f"VERSION = {number}\n")
        os.utime(module, (LONG_AGO, LONG_AGO))

    write(1)
    age()
    assert version(stages) == 1
    assert stages.used_what_was_imported
    write(10)
    assert version(stages) == 10
    assert not stages.used_what_was_imported
    write(2)  # of the size and the time of the first
    assert version(stages) == 2
    module.unlink()
    with pytest.raises(StageCmdFailedError):
        version(stages)
    assert stages.left_to_dvc == []


def test_code_that_is_replaced_while_the_server_imports_is_read_anew(stages: Stages) -> None:
    (stages.folder / "pipeline/__main__.py").write_text(STALE)
    module, other = stages.folder / "pipeline/suite.py", stages.folder / "other.py"
    other.write_text("VERSION = 2\n")
    # The server reads the first, which lasts long enough to be replaced meanwhile, and finds the second when it looks
    # at the file's time.
    module.write_text("import pathlib, time\npathlib.Path('imported').touch()\ntime.sleep(2)\nVERSION = 1\n")
    for path in (module, other):
        os.utime(path, (LONG_AGO, LONG_AGO))
    age()

    def replace() -> None:
        until((stages.folder / "imported").exists, "the server to import it")
        other.replace(module)

    thread = threading.Thread(target=replace)
    thread.start()
    assert version(stages) == 2
    thread.join()
    assert stages.left_to_dvc == []


def test_a_stage_of_another_folder_reads_the_code_there(stages: Stages, tmp_path: Path) -> None:
    for number, root in ((1, stages.folder), (2, tmp_path / "elsewhere")):
        (root / "pipeline").mkdir(parents=True, exist_ok=True)
        for name in ("__init__.py", "preloaded.py"):
            if root != stages.folder:
                shutil.copy(stages.folder / "pipeline" / name, root / "pipeline" / name)
        (root / "pipeline/__main__.py").write_text(STALE)
        (root / "pipeline/suite.py").write_text(f"VERSION = {number}\n")
    age()
    assert version(stages) == 1
    assert version(stages, tmp_path / "elsewhere") == 2
    assert version(stages) == 1


def test_code_that_was_edited_before_the_recorder_hashed_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "pipeline/suite.py"
    module.parent.mkdir()
    module.write_text("old")
    monkeypatch.setattr(preloaded, "stamps", {str(module): preloaded.stamp(str(module))})
    stage = Stage("encode@x", "", ("pipeline/suite.py",), {}, ())
    assert _imported_sources(tmp_path, stage) == _sources(tmp_path, stage)
    module.write_text("new")
    run = Run(tmp_path, {"by_dvc": True}, datetime.now(UTC), stage, {}, _imported_sources(tmp_path, stage), {})
    with pytest.raises(RunError, match="changed while the stage ran") as refused:
        refuse_changes(run)
    assert refused.value.where == "pipeline/suite.py"


def test_an_interrupt_reaches_a_stage_that_is_about_to_be_forked(stages: Stages) -> None:
    stages.run("encode exit 0")
    server = stages.runner._server
    assert server is not None
    # As Ctrl-C does, but before there is a stage: dvc ignores it by then.
    os.kill(server.process.pid, signal.SIGINT)
    before = time.monotonic()
    with pytest.raises(StageCmdFailedError, match=r"exited with -2|exited with 130"):
        stages.run("encode linger lingering.pid")
    assert time.monotonic() - before < 60
    stages.run("encode exit 0")  # it was for that stage alone


def test_a_server_that_still_imports_is_left_out_and_ended_at_once(
    stages: Stages, capfd: pytest.CaptureFixture[str]
) -> None:
    # The server imports it with the rest, for longer than this test takes.
    (stages.folder / "pipeline/suite.py").write_text("import time\ntime.sleep(100)\n")
    stages.runner = WarmRunner(cold=stages.runner._cold)
    for _ in range(MANY + 2):
        stages.run("encode exit 0")
    server = stages.runner._server
    assert server is not None
    assert len(stages.left_to_dvc) == MANY + 2
    begin = time.monotonic()
    stages.runner.end()
    assert time.monotonic() - begin < 20
    assert server.process.returncode == -signal.SIGKILL
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("first", "starts"), [("download", True), ("embed", True), ("encode", False)])
def test_the_server_is_started_by_a_stage_after_which_others_come(stages: Stages, first: str, *, starts: bool) -> None:
    stages.runner = WarmRunner(cold=stages.runner._cold)
    stages.run(f"{first} exit 0")
    assert (stages.runner._server is not None) == starts
    for _ in range(MANY):
        stages.run("report exit 0")
    assert (stages.runner._server is not None) == starts
    stages.run("encode exit 0")
    assert stages.runner._server is not None


def test_no_stage_that_uses_pandas_is_run_by_the_server_which_hides_it() -> None:
    uses: dict[str, bool] = {}
    for function in ast.parse((ROOT / "pipeline/__main__.py").read_text()).body:
        for call in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "begin_stage":
                uses[function.name] = bool(call.keywords)
    assert {name for name, pandas in uses.items() if pandas} == {"download", "embed", "word_counts", "report"}
    assert {name for name in WARM if uses[name]} == set()


def test_a_setting_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTFOLD_WARM", "yes")
    with pytest.raises(SystemExit, match="SENTFOLD_WARM is 'yes'; expected 0, 1 or nothing"):
        warm_stages(["repro"])


def test_what_the_server_imports_is_there() -> None:
    assert [name for name in (*LIBRARIES, *OWN) if importlib.util.find_spec(name) is None] == []


def test_what_the_server_cannot_run_is_left_to_dvc(stages: Stages, capfd: pytest.CaptureFixture[str]) -> None:
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
        stages.tell()
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
