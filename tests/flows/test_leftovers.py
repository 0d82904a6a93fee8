"""What stages wrote that dvc.yaml has no more leaves no trace in what is recorded of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from flows.leftovers import clear_leftovers
from flows.repro import plain_repro
from flows.reproduce import reproduce
from tests.flows.checkout import Checkout

RUNS: dict[str, Callable[[Path], object]] = {
    "plain": lambda root: plain_repro("quick", root),
    "parallel": lambda root: reproduce("quick", 2, root),
}


def edit(checkout: Checkout, file: str, old: str, new: str) -> None:
    path = checkout.root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def stages(checkout: Checkout) -> set[str]:
    return set(yaml.safe_load((checkout.root / "dvc.lock").read_text())["stages"])


@pytest.mark.parametrize("how", RUNS)
def test_a_run_after_a_stage_is_gone_leaves_the_records_of_a_checkout_that_never_had_it(
    finished: Checkout, fresh: Checkout, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for checkout in (finished, fresh):
        edit(checkout, "suite.yaml", "corpora: [a, b]", "corpora: [a]")
        RUNS[how](checkout.root)
    assert (finished.root / "dvc.lock").read_bytes() == (fresh.root / "dvc.lock").read_bytes()
    assert not (finished.root / "data/quick/spaces/b").exists()
    assert not (finished.root / "data/quick/corpora/b").exists()
    assert (finished.root / "data/quick/spaces/a").exists()
    told = [line for line in capfd.readouterr().out.splitlines() if line.startswith("removed ")]
    assert told == [
        "removed data/quick/corpora/b: download@b, which wrote it, is no stage of dvc.yaml any more",
        "removed data/quick/spaces/b: embed@b, which wrote it, is no stage of dvc.yaml any more",
    ]


def test_a_leftover_that_is_not_as_recorded_is_left_and_named(
    finished: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    path = finished.root / "data/quick/spaces/b"
    path.chmod(0o644)
    path.write_text("made by hand\n")
    edit(finished, "suite.yaml", "corpora: [a, b]", "corpora: [a]")
    clear_leftovers("quick", finished.root)
    assert path.read_text() == "made by hand\n"
    assert "left data/quick/spaces/b" in capsys.readouterr().out
    assert "embed@b" not in stages(finished)


def test_an_output_that_another_stage_writes_now_is_kept(finished: Checkout) -> None:
    edit(finished, "dvc.yaml", "  embed:\n", "  encode:\n")
    clear_leftovers("quick", finished.root)
    assert (finished.root / "data/quick/spaces/a").exists()
    assert stages(finished) == {"download@a", "download@b", "evaluate", "report"}


def test_another_suite_and_what_only_dvc_understands_are_left_alone(finished: Checkout) -> None:
    before = (finished.root / "dvc.lock").read_bytes()
    edit(finished, "suite.yaml", "corpora: [a, b]", "corpora: [a]")
    clear_leftovers("other", finished.root)
    edit(finished, "dvc.yaml", 'matrix: {corpus: "${corpora}"}', 'foreach: "${corpora}"')
    clear_leftovers("quick", finished.root)
    assert (finished.root / "dvc.lock").read_bytes() == before
    assert (finished.root / "data/quick/spaces/b").exists()


def test_a_lock_of_leftovers_alone_becomes_an_empty_one(finished: Checkout) -> None:
    text = "\n".join(["stages:", "  other:", "    wdir: ${root}", "    cmd: echo", ""])
    (finished.root / "dvc.yaml").write_text(f"vars: [suite.yaml]\n{text}")
    clear_leftovers("quick", finished.root)
    assert stages(finished) == set()
    assert not (finished.root / "data/quick/spaces").exists()
    plain_repro("quick", finished.root)
    assert stages(finished) == {"other"}
