"""A real repository of tiny stages, and the means to watch and to end what runs in it."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[2]

DVC_YAML = """
vars: [plan.yaml]
stages:
  download:
    foreach: ${stages.download}
    do:
      wdir: ${root}
      cmd: python -m pipeline download ${suite}-${key} data/${suite}/corpora/${key} --suite ${suite}
      deps: [stage.py]
      params: ["corpora_size.${key}"]
      outs: ["data/${suite}/corpora/${key}"]
  embed:
    foreach: ${stages.embed}
    do:
      wdir: ${root}
      cmd: >-
        python -m pipeline embed ${suite}-${key}
        data/${suite}/spaces/${key} data/${suite}/corpora/${key} --suite ${suite}
      deps: [stage.py, "data/${suite}/corpora/${key}"]
      params: [embed]
      outs: ["data/${suite}/spaces/${key}"]
  evaluate:
    wdir: ${root}
    cmd: python -m pipeline evaluate ${suite} data/${suite}/scores data/${suite}/spaces --suite ${suite}
    deps: [stage.py, "data/${suite}/spaces"]
    params: [evaluate]
    outs: ["data/${suite}/scores"]
  report:
    wdir: ${root}
    cmd: python -m pipeline report ${suite} reports/${suite}.txt data/${suite}/scores --suite ${suite}
    deps: ["${file}", stage.py, "data/${suite}/scores"]
    outs: [{"reports/${suite}.txt": {cache: false}}]
"""

# The stages of these checkouts end with their parent, and are recorded, as the project's own are.
PIPELINE = """
import os, sys
if sys.path[:1] == [os.getcwd()]:
    del sys.path[0]
from pkgutil import extend_path
__path__ = extend_path(__path__, __name__)
class SourceLoader:  # the recorder asks the project's own for the modules that a stage loaded: here there are none
    loaded = {}
"""
PIPELINE_MAIN = """
import runpy, sys
from pipeline.lineage.recorder import recorded
from pipeline.parent import die_with_parent
die_with_parent()
if sys.argv[1] not in ("plan", "check"):
    with recorded(sys.argv[1:]):
        runpy.run_path("stage.py")
"""

# A stage's output is its name and its inputs, so equal inputs give equal bytes. Beside that it
# notes when it ran, fails or lingers if a file of its name asks for it.
STAGE_PY = """
    import os, sys, time
    from pathlib import Path
    import yaml

    verb, name, out, *inputs = sys.argv[1:-2]  # the last two are --suite and its name
    label = f"{verb}-{name}"
    begin = time.time()
    asked = Path("asked", label)
    if asked.exists():
        wish, seconds = asked.read_text().split()
        print(f"{label} was asked to {wish}", flush=True)
        Path("pids", label).write_text(str(os.getpid()))
        time.sleep(float(seconds))
        if wish == "fail":
            print("no such thing", file=sys.stderr)
            sys.exit(3)
    params = yaml.safe_load(Path("params.yaml").read_text())
    setting = params["corpora_size"].get(name.rpartition("-")[2]) if verb == "download" else params.get(verb)
    if verb == "evaluate":
        setting = params["evaluate"]["rounding"]
    text = f"{verb} {setting}\\n"
    for source in map(Path, inputs):
        for file in sorted(source.iterdir()) if source.is_dir() else [source]:
            text += file.read_text()
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(text)
    with open("ran.txt", "a") as log:
        log.write(f"{label} {begin} {time.time()}\\n")
"""

PARAMS = """
corpora_size: {a: 1, b: 1}
embed: {dimension: 4}
evaluate: {rounding: 2, comment: none}
"""

PLAN = """
suite: {name}
root: {root}
file: {file}
stages:
  download: {{a: {{}}, b: {{}}}}
  embed: {{a: {{}}, b: {{}}}}
"""


@dataclass
class Checkout:
    """A repository with the suites quick and other: per suite 2 downloads, 2 embeds, evaluate, report."""

    root: Path
    environment: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def ran(self) -> set[str]:
        """The stages that ran, by the label each writes down, since the last `forget`."""
        return set(self.times())

    def times(self) -> dict[str, tuple[float, float]]:
        """Begin and end of every stage that ran since the last `forget`."""
        path = self.root / "ran.txt"
        rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return {label: (float(begin), float(end)) for label, begin, end in rows}

    def forget(self) -> None:
        """Start counting anew."""
        (self.root / "ran.txt").unlink(missing_ok=True)

    def ask(self, label: str, wish: str, seconds: float = 0.0) -> None:
        """Ask a stage to `fail` or to `linger`."""
        (self.root / "asked" / label).write_text(f"{wish} {seconds}")

    def mend(self, label: str) -> None:
        """Take back what was asked."""
        (self.root / "asked" / label).unlink()

    def pid_of(self, label: str, *, seconds: float = 300.0) -> int:
        """The process of a stage that was asked something, as soon as it runs."""
        path = self.root / "pids" / label
        until(lambda: path.exists() and path.read_text() != "", f"{label} to start", seconds=seconds)
        return int(path.read_text())

    def change(self, old: str, new: str) -> None:
        """Edit params.yaml."""
        path = self.root / "params.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace a text that is in a file."""
        path = self.root / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `python -m WORDS` in this checkout."""
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", *words],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A shell that runs the tests in the background makes all of them deaf to Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """Kill what `start` started."""
        for process in self.started:
            process.kill()
            process.communicate()

    def call(self, *words: str) -> tuple[int, str]:
        """Run `python -m WORDS` to its end: its exit code, and what it printed."""
        process = self.start(*words)
        printed, _ = process.communicate(timeout=900)
        return process.returncode, printed

    def run(self, *options: str) -> str:
        """What `sentfold run` prints here; it must succeed."""
        code, printed = self.call("flows", "run", *options)
        assert code == 0, printed
        return printed

    def repro(self) -> str:
        """What `dvc repro` prints here; it must succeed."""
        code, printed = self.call("dvc", "repro", "dvc.yaml")
        assert code == 0, printed
        return printed


def plant(root: Path) -> Path:
    """Put folders of data with names of libraries into a checkout; the file that exists once one was imported."""
    mark = root / "imported"
    # Names of libraries, and some that libraries try to import where they are not installed.
    names = ("aiosqlite", "configobj", "dask", "distributed", "json", "networkx", "numpy", "psutil", "sqlalchemy")
    for name in (
        *names,
        "typer",
        "multiprocessing",
        "uvicorn",
        "brotli",
        "lz4",
        "msvcrt",
        "snappy",
        "winreg",
        "zstandard",
    ):
        (root / name).mkdir()
        module = f"open({str(mark)!r}, 'a').write('{name} ')\nraise ImportError"
        (root / name / "__init__.py").write_text(module)
    return mark


def until(condition: Callable[[], bool], what: str, *, seconds: float = 300.0) -> None:
    """Poll `condition`; fail the test if it does not hold in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)


def settings_of(example: str, environment: dict[str, str]) -> dict[str, str]:
    """The environment of a shell that has read a file of flows/examples."""
    command = f". {SOURCE}/flows/examples/{example} && env -0"
    printed = subprocess.run(["sh", "-ec", command], env=environment, capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in printed.split("\0") if line)


def alive(pid: int) -> bool:
    """Whether a process exists and is more than the record of its own death."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def processes_in(folder: Path) -> list[int]:
    """Every living process that works in `folder`."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink() == folder and alive(int(link.parent.name)):
                found.append(int(link.parent.name))
        except OSError:
            continue
    return found


def create_checkout(root: Path, environment: dict[str, str]) -> Checkout:
    """Write the repository described above; nothing has run in it yet."""
    other = root / "suites" / "other"
    other.mkdir(parents=True)
    for folder in ("asked", "pids"):
        (root / folder).mkdir()
    (root / "dvc.yaml").write_text(DVC_YAML)
    (root / "stage.py").write_text(textwrap.dedent(STAGE_PY))
    (root / "params.yaml").write_text(PARAMS)
    (root / ".gitignore").write_text("data/**\n!data/**/\n*.log\nasked\npids\nran.txt\n/.sentfold/\n__pycache__\n")
    (root / "pipeline").mkdir()
    (root / "pipeline/__init__.py").write_text(PIPELINE)
    (root / "pipeline/__main__.py").write_text(PIPELINE_MAIN)
    (root / "plan.yaml").write_text(PLAN.format(name="quick", root=".", file="plan.yaml"))
    (other / "plan.yaml").write_text(PLAN.format(name="other", root="../..", file="suites/other/plan.yaml"))
    (other / "dvc.yaml").symlink_to("../../dvc.yaml")
    for command in (["git", "init", "-q"], [sys.executable, "-m", "dvc", "init", "-q"]):
        subprocess.run(command, cwd=root, env=environment, check=True)
    (root / ".dvc/config").write_text("[core]\n    analytics = false\n    check_update = false\n")
    return Checkout(root, environment)
