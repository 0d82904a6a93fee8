import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dvc.output
import pytest

from flows.graph import StageGraph, descendants, dvcfile_of, read_graph, require_dvcfile, stale_stages
from pipeline.errors import RunError
from tests.flows.checkout import Checkout, create_checkout

DIAMOND = StageGraph(
    names=("a", "b", "c", "d", "e"),
    parents={"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ()},
    changed=frozenset({"b"}),
)


@pytest.fixture
def environment(serverless: dict[str, str]) -> dict[str, str]:
    """That of `finished`: nothing here runs a flow."""
    return serverless


def test_stale_is_what_changed_and_all_that_reads_it() -> None:
    assert stale_stages(DIAMOND) == ("b", "d")
    assert descendants(DIAMOND, ["a"]) == {"b", "c", "d"}
    assert DIAMOND.children == {"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": (), "e": ()}


def test_each_suite_has_its_own_stages_addressed_as_dvc_prints_them(tmp_path: Path, serverless: dict[str, str]) -> None:
    root = create_checkout(tmp_path / "checkout", serverless).root
    quick = read_graph(dvcfile_of("quick"), root=root)
    assert quick.names.index("download@a") < quick.names.index("embed@a") < quick.names.index("evaluate")
    assert quick.parents["evaluate"] == ("embed@a", "embed@b")
    assert quick.changed == set(quick.names), "nothing has run"
    other = read_graph(dvcfile_of("other"), root=root)
    assert other.names == tuple(f"suites/other/dvc.yaml:{name}" for name in quick.names)
    assert other.parents["suites/other/dvc.yaml:embed@b"] == ("suites/other/dvc.yaml:download@b",)


def age_every_file(root: Path) -> None:
    for path in root.rglob("*"):
        os.utime(path, (0, 0))


def rename_a_stage_in_the_lock(root: Path) -> None:
    path = root / "dvc.lock"
    path.write_text(path.read_text().replace("  report:", "  gone:"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda root: None,
    "times": age_every_file,
    "two parameters": lambda root: (root / "params.yaml").write_text(
        (root / "params.yaml").read_text().replace("a: 1", "a: 2").replace("rounding: 2", "rounding: 3")
    ),
    "a comment on parameters": lambda root: (root / "params.yaml").open("a").write("# why\n"),
    "code": lambda root: (root / "stage.py").open("a").write("\n"),
    "an output's content": lambda root: (root / "data/quick/spaces/a").write_text("other"),
    "an output is gone": lambda root: (root / "data/quick/corpora/b").unlink(),
    "the suite file": lambda root: (root / "suite.yaml").open("a").write("more: 1\n"),
    "a command": lambda root: (root / "dvc.yaml").write_text(
        (root / "dvc.yaml").read_text().replace("stage.py report", "stage.py  report")
    ),
    "a stage is not in dvc.lock": rename_a_stage_in_the_lock,
}


@pytest.mark.parametrize("what", CHANGES)
def test_changed_is_what_dvc_status_itself_names(what: str, finished: Checkout) -> None:
    CHANGES[what](finished.root)
    changed = read_graph(dvcfile_of("quick"), root=finished.root).changed
    said = subprocess.run(
        [sys.executable, "-m", "dvc", "status", "--json", "dvc.yaml"],
        cwd=finished.root,
        env=finished.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert changed == json.loads(said.stdout).keys()
    assert bool(changed) == (what not in ("nothing", "times", "a comment on parameters"))


def test_an_input_of_many_stages_is_looked_up_once(finished: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    build = dvc.output.build

    def count(odb: object, path: str, *more: Any, **named: Any) -> Any:
        asked.append(Path(path).name)
        return build(odb, path, *more, **named)

    monkeypatch.setattr(dvc.output, "build", count)
    assert read_graph(Path("dvc.yaml"), root=finished.root).changed == frozenset()
    assert asked.count("stage.py") == 1, "all six stages have it"
    with (finished.root / "stage.py").open("a") as file:
        file.write("# more\n")
    graph = read_graph(Path("dvc.yaml"), root=finished.root)
    assert graph.changed == set(graph.names), "what was looked up is not kept"


def test_reading_the_graph_of_a_broken_dvc_yaml_says_which(tmp_path: Path, serverless: dict[str, str]) -> None:
    root = create_checkout(tmp_path / "checkout", serverless).root
    (root / "dvc.yaml").write_text("stages:\n  a:\n    wdir: ${nowhere}\n    cmd: echo\n")
    with pytest.raises(RunError) as caught:
        read_graph(dvcfile_of("quick"), root=root)
    assert caught.value.where == "dvc.yaml"
    assert "nowhere" in caught.value.got


def test_an_unknown_suite_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no suite 'papre'"):
        require_dvcfile("papre", tmp_path)
