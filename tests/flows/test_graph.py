from pathlib import Path

import pytest

from flows.graph import StageGraph, descendants, dvcfile_of, read_graph, require_dvcfile, stale_stages
from pipeline.errors import RunError
from tests.flows.checkout import create_checkout

DIAMOND = StageGraph(
    names=("a", "b", "c", "d", "e"),
    parents={"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ()},
    changed=frozenset({"b"}),
)


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
