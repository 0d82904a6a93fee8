import re
import subprocess
import sys
from pathlib import Path

import pytest

from flows.graph import StageGraph, build_graph, changed_stages, dvcfile_of, require_dvcfile, select_stages
from pipeline.lineage.stages import load_stages
from pipeline.lineage.trees import WorkingTree
from sentfold.errors import RunError
from tests.flows.checkout import Checkout, create_checkout

DIAMOND = StageGraph(
    names=("a", "b", "c", "d", "e"),
    parents={"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ()},
)


def read(suite: str, root: Path) -> StageGraph:
    return build_graph(load_stages(WorkingTree(root), suite), dvcfile_of(suite))


@pytest.fixture
def environment(serverless: dict[str, str]) -> dict[str, str]:
    """That of `finished`: nothing here runs a flow."""
    return serverless


def test_stale_is_what_changed_and_all_that_reads_it() -> None:
    assert DIAMOND.stale(["b"]) == ("b", "d")
    assert DIAMOND.descendants(["a"]) == {"b", "c", "d"}


@pytest.mark.slow
def test_each_suite_has_its_own_stages_addressed_as_dvc_prints_them(tmp_path: Path, serverless: dict[str, str]) -> None:
    root = create_checkout(tmp_path / "checkout", serverless).root
    quick = read("quick", root)
    assert quick.names.index("download@a") < quick.names.index("embed@a") < quick.names.index("evaluate")
    assert quick.parents["evaluate"] == ("embed@a", "embed@b")
    assert changed_stages(Path("dvc.yaml"), root=root) == set(quick.names), "nothing has run"
    other = read("other", root)
    assert other.names == tuple(f"suites/other/dvc.yaml:{name}" for name in quick.names)
    assert other.parents["suites/other/dvc.yaml:embed@b"] == ("suites/other/dvc.yaml:download@b",)


def test_the_graph_is_that_of_dvc_itself(finished: Checkout) -> None:
    drawn = subprocess.run(
        [sys.executable, "-m", "dvc", "dag", "--dot", "--full"],
        cwd=finished.root,
        env=finished.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    edges = set(re.findall(r'"([^"]+)" -> "([^"]+)"', drawn.stdout))
    graphs = [read(suite, finished.root) for suite in ("quick", "other")]
    assert edges == {(parent, name) for graph in graphs for name in graph.names for parent in graph.parents[name]}


def test_what_changed_is_asked_of_dvc(finished: Checkout) -> None:
    assert changed_stages(Path("dvc.yaml"), root=finished.root) == frozenset()
    finished.change("rounding: 2", "rounding: 3")
    (finished.root / "data/quick/corpora/b").unlink()
    assert changed_stages(Path("dvc.yaml"), root=finished.root) == {"evaluate", "download@b", "embed@b"}


def test_a_status_that_dvc_cannot_give_is_an_error_with_its_words(finished: Checkout) -> None:
    (finished.root / "dvc.yaml").write_text("stages:\n  a:\n    wdir: ${nowhere}\n    cmd: echo\n")
    with pytest.raises(RunError, match="`dvc status` failed") as caught:
        changed_stages(Path("dvc.yaml"), root=finished.root)
    assert "nowhere" in caught.value.got


def test_an_unknown_suite_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no suite 'papre'"):
        require_dvcfile("papre", tmp_path)


PREFIX = "suites/other/dvc.yaml:"
GRAPH = StageGraph(
    names=("download@a", "download@b", "embed@a", "embed@b", "evaluate", "report"),
    parents={
        "download@a": (),
        "download@b": (),
        "embed@a": ("download@a",),
        "embed@b": ("download@b",),
        "evaluate": ("embed@a", "embed@b"),
        "report": ("evaluate",),
    },
    outs={
        "download@a": ("data/corpora/a",),
        "download@b": ("data/corpora/b",),
        "embed@a": ("data/spaces/a",),
        "embed@b": ("data/spaces/b",),
        "evaluate": ("data/scores",),
        "report": ("reports/table.csv", "reports/page.html"),
    },
)
OTHER = StageGraph(
    names=tuple(PREFIX + name for name in GRAPH.names),
    parents={PREFIX + name: tuple(PREFIX + parent for parent in parents) for name, parents in GRAPH.parents.items()},
)


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([], set(GRAPH.names)),
        (["embed@a"], {"embed@a", "download@a"}),
        (["embed"], {"embed@a", "embed@b", "download@a", "download@b"}),
        (["download@b", "embed@a"], {"embed@a", "download@a", "download@b"}),
        (["data/spaces/a"], {"embed@a", "download@a"}),
        (["data/spaces/a/deep/file.parquet"], {"embed@a", "download@a"}),
        (["data/spaces/"], {"embed@a", "embed@b", "download@a", "download@b"}),
        (["reports/page.html"], set(GRAPH.names)),
    ],
)
def test_a_target_means_the_stages_it_names_and_all_that_they_need(targets: list[str], expected: set[str]) -> None:
    assert select_stages(GRAPH, targets) == expected


def test_a_stage_of_another_suite_is_named_with_or_without_its_file() -> None:
    expected = {PREFIX + "embed@a", PREFIX + "download@a"}
    assert select_stages(OTHER, ["embed@a"]) == select_stages(OTHER, [PREFIX + "embed@a"]) == expected


def test_ancestors_are_all_that_a_stage_reads_and_not_itself() -> None:
    assert GRAPH.ancestors(["evaluate"]) == {"embed@a", "embed@b", "download@a", "download@b"}
    assert GRAPH.ancestors(["download@a"]) == frozenset()


def test_an_unknown_target_is_refused_with_what_it_may_have_meant() -> None:
    with pytest.raises(RunError, match="nothing here is called 'evalaute'") as caught:
        select_stages(GRAPH, ["embed", "evalaute"])
    assert "did you mean evaluate" in caught.value.remedy
    assert caught.value.expected.endswith("download, embed, evaluate, report")


def test_a_path_that_only_begins_like_an_output_is_not_that_output() -> None:
    with pytest.raises(RunError):
        select_stages(GRAPH, ["data/spaces/ab"])


def test_stages_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").write_text(
        "stages:\n  a: {cmd: a, deps: [x], outs: [y]}\n  b: {cmd: b, deps: [y], outs: [x]}\n"
    )
    with pytest.raises(RunError, match="read each other's outputs"):
        read("quick", tmp_path)
