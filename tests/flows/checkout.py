"""A real repository of tiny stages, and the means to watch and to end what runs in it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[2]

DVC_YAML = """
vars: [suite.yaml]
stages:
  download:
    wdir: ${root}
    matrix: {corpus: "${corpora}"}
    cmd: python stage.py download ${suite}-${item.corpus} data/${suite}/corpora/${item.corpus}
    deps: [stage.py]
    params: ["corpora_size.${item.corpus}"]
    outs: ["data/${suite}/corpora/${item.corpus}"]
  embed:
    wdir: ${root}
    matrix: {corpus: "${corpora}"}
    cmd: >-
      python stage.py embed ${suite}-${item.corpus}
      data/${suite}/spaces/${item.corpus} data/${suite}/corpora/${item.corpus}
    deps: [stage.py, "data/${suite}/corpora/${item.corpus}"]
    params: [embed]
    outs: ["data/${suite}/spaces/${item.corpus}"]
  evaluate:
    wdir: ${root}
    cmd: python stage.py evaluate ${suite} data/${suite}/scores data/${suite}/spaces
    deps: [stage.py, "data/${suite}/spaces"]
    params: [evaluate]
    outs: ["data/${suite}/scores"]
  report:
    wdir: ${root}
    cmd: python stage.py report ${suite} reports/${suite}.txt data/${suite}/scores
    deps: ["${file}", stage.py, "data/${suite}/scores"]
    outs: [{"reports/${suite}.txt": {cache: false}}]
"""

# A stage's output is its name and its inputs, so equal inputs give equal bytes. Beside that it
# notes when it ran, fails or lingers if a file of its name asks for it.
STAGE_PY = """
    import os, sys, time
    from pathlib import Path
    import yaml

    verb, name, out, *inputs = sys.argv[1:]
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

SUITE = """
suite: {name}
root: {root}
file: {file}
corpora: [a, b]
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

    def start(self, code: str) -> subprocess.Popen[str]:
        """Start Python code in this checkout; `root` is its path, `reproduce` and the others are imported."""
        prelude = (
            "import signal\n"
            # A shell that runs the tests in the background makes all of them deaf to Ctrl-C.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "from pathlib import Path\n"
            "from flows.lock import hold_checkout\n"
            "from flows.repro import plain_repro\n"
            "from flows.reproduce import reproduce\n"
            "root = Path.cwd()\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", prelude + textwrap.dedent(code)],
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """Kill what `start` started."""
        for process in self.started:
            process.kill()
            process.communicate()

    def run(self, code: str) -> str:
        """Run Python code to its end and return what it printed; it must succeed."""
        process = self.start(code)
        printed, _ = process.communicate(timeout=900)
        assert process.returncode == 0, printed
        return printed


def until(condition: Callable[[], bool], what: str, *, seconds: float = 300.0) -> None:
    """Poll `condition`; fail the test if it does not hold in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)


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
    (root / ".gitignore").write_text("data/**\n!data/**/\nasked\npids\nran.txt\n")
    (root / "suite.yaml").write_text(SUITE.format(name="quick", root=".", file="suite.yaml"))
    (other / "suite.yaml").write_text(SUITE.format(name="other", root="../..", file="suites/other/suite.yaml"))
    (other / "dvc.yaml").symlink_to("../../dvc.yaml")
    for command in (["git", "init", "-q"], [sys.executable, "-m", "dvc", "init", "-q"]):
        subprocess.run(command, cwd=root, env=environment, check=True)
    (root / ".dvc/config").write_text("[core]\n    analytics = false\n    check_update = false\n")
    return Checkout(root, environment)
