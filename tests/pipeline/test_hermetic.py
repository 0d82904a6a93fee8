"""A stage reads what it declares, and nothing else: each runs in a folder that holds its declared inputs alone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from pipeline.lineage.isolated_stage import lay_out
from pipeline.lineage.stages import Graph, Stage, load_graph
from pipeline.lineage.trees import WorkingTree
from tests.checkout import make_checkout, write_plans

ROOT = Path(__file__).resolve().parents[2]

SUITE = """
suite: quick
source: package
corpora: [wordsim, simlex]
spaces: [wl-average, wl-average-npe, minilm-cls, minilm-cls-flow]
searched: [wl-average]
"""
SEARCHES = """searches:
  cosine: {method: cosine}
  csls: {method: csls, neighbors: [1, 10]}

pools:
  simlex: {column: score, least: 7.0, development: {corpus: wordsim}}
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's own files with a small suite, planned; nothing run."""
    root = make_checkout(tmp_path_factory.mktemp("hermetic") / "code")
    (root / "suite.yaml").write_text(SUITE)
    params = (root / "params.yaml").read_text(encoding="utf-8")
    rest = re.split(r"^(?=searches:|report:)", params, flags=re.MULTILINE)
    assert len(rest) == 3
    (root / "params.yaml").write_text(rest[0] + SEARCHES + rest[2], encoding="utf-8")
    write_plans(root)
    return root


@pytest.mark.slow
def test_each_stage_of_a_small_suite_runs_on_its_declared_inputs_alone(code: Path, tmp_path: Path) -> None:
    graph = load_graph(WorkingTree(code), "quick")
    for number, name in enumerate(graph.in_order()):
        alone = tmp_path / str(number)
        run_alone(code, graph, graph.stages[name], alone)
        # What it wrote is what the next stages read.
        for out in graph.stages[name].outs:
            copy(alone, code, out)
        shutil.rmtree(alone)
    assert "wl-average-csls" in (code / "reports/quick/tables/retrieval.csv").read_text()


def finished_stages() -> Iterator[str]:
    """The stages of quick whose recorded inputs and outputs are all here; none in a checkout that ran nothing."""
    graph, tree = load_graph(WorkingTree(ROOT), "quick"), WorkingTree(ROOT)
    for name in graph.in_order():
        locked = graph.locked.get(name)
        entries = [] if locked is None else [*locked.deps.values(), *locked.outs.values()]
        if entries and all((here := tree.digest(e.path)) is not None and here.md5 == e.md5 for e in entries):
            yield name


def one_of_each_command(names: Iterable[str]) -> list[str]:
    """The first stage of each command. test_graph.py compares what each stage imports with what it declares."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(name.partition("@")[0], name)
    return list(first.values())


@pytest.fixture
def one_processor() -> Iterator[None]:
    """This process and those that it starts have one processor."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(all_of_them)})
    yield
    os.sched_setaffinity(0, all_of_them)


@pytest.mark.slow
def test_stages_of_quick_write_the_recorded_bytes_on_their_declared_inputs_and_one_processor(
    tmp_path: Path, one_processor: None
) -> None:
    """The recorded bytes are those of a machine with more processors: kernels and searches divide rows among them."""
    graph: Graph = load_graph(WorkingTree(ROOT), "quick")
    names = one_of_each_command(finished_stages())
    if not names:
        pytest.skip("quick has not run here: `dvc repro` or `dvc pull` first")
    for number, name in enumerate(names):
        alone = tmp_path / str(number)
        run_alone(ROOT, graph, graph.stages[name], alone)
        for out, entry in graph.locked[name].outs.items():
            written = WorkingTree(alone).digest(out)
            assert written is not None, f"{name} wrote no {out}"
            assert written.md5 == entry.md5, f"{name}: {out} has other bytes"
        shutil.rmtree(alone)


def run_alone(source: Path, graph: Graph, stage: Stage, folder: Path) -> None:
    """Run a stage in a new folder that holds what it declares, as `audit --recompute` does."""
    lay_out(WorkingTree(source), graph, stage, artifacts=source, folder=folder)
    run(folder, stage.command, name=stage.name)


def run(folder: Path, command: str, *, name: str = "") -> None:
    """Run a stage's command in a folder. It must succeed."""
    kept = {key: value for key, value in os.environ.items() if key not in {"SENTFOLD_MIRROR", "PYTHONPATH"}}
    words = [sys.executable, *shlex.split(command)[1:]]
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "DO_NOT_TRACK": "1"}
    done = subprocess.run(words, cwd=folder, env={**kept, **quiet}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{name or command}: {(done.stdout + done.stderr)[-3000:]}"


def copy(source: Path, target: Path, path: str) -> None:
    """Copy a file or a folder, where there is one; of code with what Python and numba compiled, which saves minutes."""
    if (source / path).is_dir():
        ignored = shutil.ignore_patterns("*.pyc.*", "*.tmp*", ".gitignore")
        shutil.copytree(source / path, target / path, dirs_exist_ok=True, ignore=ignored)
    elif (source / path).is_file():
        compiled = (source / path).parent.glob(f"__pycache__/{Path(path).stem}.*") if path.endswith(".py") else ()
        for file in (source / path, *compiled):
            copied = target / file.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copied)
