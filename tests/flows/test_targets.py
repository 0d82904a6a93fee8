import pytest

from flows.graph import StageGraph, ancestors
from flows.targets import select_stages
from pipeline.errors import RunError

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
    changed=frozenset(),
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
    changed=frozenset(),
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
    assert ancestors(GRAPH, ["evaluate"]) == {"embed@a", "embed@b", "download@a", "download@b"}
    assert ancestors(GRAPH, ["download@a"]) == frozenset()


def test_an_unknown_target_is_refused_with_what_it_may_have_meant() -> None:
    with pytest.raises(RunError, match="nothing here is called 'evalaute'") as caught:
        select_stages(GRAPH, ["embed", "evalaute"])
    assert "did you mean evaluate" in caught.value.remedy
    assert caught.value.expected.endswith("download, embed, evaluate, report")


def test_a_path_that_only_begins_like_an_output_is_not_that_output() -> None:
    with pytest.raises(RunError):
        select_stages(GRAPH, ["data/spaces/ab"])
