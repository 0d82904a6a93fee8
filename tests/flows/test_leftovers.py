"""Outputs of stages that dvc.yaml no longer has leave no trace in what is recorded of the others."""

from __future__ import annotations

import hashlib

import pytest
import yaml

from flows.recovery import clear_leftovers
from pipeline.lineage.stages import Entry, Locked, load_graph
from pipeline.lineage.trees import WorkingTree
from tests.flows.checkout import Checkout

WITHOUT_B = ("{a: {}, b: {}}", "{a: {}}")


def clear(checkout: Checkout, suite: str = "quick") -> None:
    clear_leftovers(load_graph(WorkingTree(checkout.root), suite), checkout.root)


@pytest.mark.slow
def test_after_a_stage_is_gone_a_run_records_what_a_checkout_records_that_never_had_it(
    finished: Checkout, fresh: Checkout
) -> None:
    printed = ""
    for checkout in (finished, fresh):
        checkout.edit("plan.yaml", *WITHOUT_B)
        printed += checkout.run()
    records = [yaml.safe_load((checkout.root / "dvc.lock").read_text())["stages"] for checkout in (finished, fresh)]
    assert {name: entry for name, entry in records[0].items() if name in records[1]} == records[1]
    assert not (finished.root / "data/quick/spaces/b").exists()
    assert not (finished.root / "data/quick/corpora/b").exists()
    assert (finished.root / "data/quick/spaces/a").exists()
    assert [line for line in printed.splitlines() if line.startswith("removed ")] == [
        "removed data/quick/corpora/b: download@b, which wrote it, is no stage of dvc.yaml any more",
        "removed data/quick/spaces/b: embed@b, which wrote it, is no stage of dvc.yaml any more",
    ]


@pytest.mark.slow
def test_scores_of_a_space_that_is_gone_are_removed(finished: Checkout) -> None:
    """The report reads their whole folder."""
    graph = load_graph(WorkingTree(finished.root), "quick")
    scores = finished.root / "reports/quick/scores"
    scores.mkdir(parents=True)
    for name in ("gone", "by-hand"):
        (scores / f"{name}.json").write_text(name)
    outs = {f"reports/quick/scores/{name}.json": hashlib.md5(b"gone").hexdigest() for name in ("gone", "by-hand")}
    entries = {path: Entry(path, md5) for path, md5 in outs.items()}
    graph.locked["evaluate@gone"] = Locked("evaluate@gone", "x", {}, {}, entries)
    clear_leftovers(graph, finished.root)
    assert [file.name for file in scores.iterdir()] == ["by-hand.json"]


def test_a_leftover_that_is_not_as_recorded_is_left_and_named(
    finished: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    path = finished.root / "data/quick/spaces/b"
    path.chmod(0o644)
    path.write_text("made by hand\n")
    finished.edit("plan.yaml", *WITHOUT_B)
    clear(finished)
    assert path.read_text() == "made by hand\n"
    assert "left data/quick/spaces/b" in capsys.readouterr().out


def test_an_output_that_another_stage_writes_now_is_kept(finished: Checkout) -> None:
    finished.edit("dvc.yaml", "  embed:\n", "  encode:\n")
    clear(finished)
    assert (finished.root / "data/quick/spaces/a").exists()


def test_another_suite_is_left_alone(finished: Checkout) -> None:
    finished.edit("plan.yaml", *WITHOUT_B)
    clear(finished, "other")
    assert (finished.root / "data/quick/spaces/b").exists()


def test_where_every_stage_is_gone_every_output_is_removed(finished: Checkout) -> None:
    (finished.root / "dvc.yaml").write_text("vars: [plan.yaml]\nstages:\n  other:\n    wdir: ${root}\n    cmd: echo\n")
    clear(finished)
    assert not (finished.root / "data/quick/spaces").exists()
