"""What the commands refuse, and what their surroundings cannot change."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from pipeline.lineage.audit import audit
from pipeline.lineage.scope import leaves, value_in
from tests.lineage.small import Small
from tests.lineage.tamper import faults


def test_a_hooks_environment_does_not_lead_an_audit_into_another_repository(small: Small, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    done = small.run("pipeline", "audit", "--strict", GIT_DIR=str(tmp_path / "elsewhere"), GIT_INDEX_FILE="none")
    assert "43 verified" in done.stdout


def test_a_checkout_has_the_committed_bytes_whatever_git_is_told_of_line_ends(small: Small, tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parents[2] / ".gitattributes", small.root)
    small.commit("The attributes of this project")
    clone = tmp_path / "clone"
    small.run("git", "clone", "-q", "-c", "core.autocrlf=true", str(small.root), str(clone))
    shutil.copytree(small.root / "data", clone / "data")
    assert not audit(clone, "quick").failed(strict=True)


def test_what_a_sparse_checkout_leaves_out_is_absent_and_the_remedy_brings_it(small: Small) -> None:
    small.run("git", "status")  # else git leaves files of which it does not know that they are unchanged
    small.run("git", "sparse-checkout", "set", "reports", "pipeline")
    assert not (small.root / "code").exists()
    found = audit(small.root, "quick")
    assert {cause.state for cause in found.causes} == {"absent"}
    for cause in found.causes:
        small.run(*shlex.split(cause.remedy))
    assert not audit(small.root, "quick").failed(strict=True)


@pytest.mark.slow
def test_a_replaced_object_of_git_does_not_vouch_for_an_edit(small: Small) -> None:
    old = small.run("git", "rev-parse", "HEAD:params.yaml").stdout.strip()
    small.edit("params.yaml", "step: 1.0e-1", "step: 0.2")
    small.run("dvc", "repro", "-q")
    new = small.run("git", "hash-object", "-w", "params.yaml").stdout.strip()
    small.run("git", "replace", old, new)
    assert "step: 0.2" in small.run("git", "show", "HEAD:params.yaml").stdout, "git itself is led astray"
    assert ("parameter", "params.yaml: fold.step") in faults(audit(small.root, "quick"))


@pytest.mark.parametrize("committed", [False, True])
def test_one_edit_of_a_parameter_is_one_cause_though_stages_track_it_by_several_names(
    small: Small, committed: bool
) -> None:
    small.edit("dvc.yaml", "params: [fold.step, ", "params: [fold.step, evaluate.shift, ")
    small.run("dvc", "repro", "-q")
    small.commit("Folding reads the shift")
    small.edit("params.yaml", "shift: 0.5", "shift: 0.25")
    if committed:
        small.commit("Another shift, not run")
    (cause,) = audit(small.root, "quick").causes
    assert cause.subject == "params.yaml: evaluate.shift"
    assert cause.message.startswith("it is 0.25 here; the numbers were made with 0.5 (dvc.lock)")
    assert ("the file was edited" in cause.message) is not committed


def test_what_differs_in_two_blocks_is_told_value_by_value() -> None:
    one, other = {"a": 1, "b": {"c": [1], "d": 2}}, {"a": 1, "b": {"c": [2], "e": 3}}
    assert list(leaves("k", one, other)) == [
        ("k.b.c", [1], [2]), ("k.b.d", 2, "nothing"), ("k.b.e", "nothing", 3),
    ]  # fmt: skip
    assert list(leaves("k", one, dict(one))) == []
    assert value_in({"k.b": {"c": 5}, "k.bb": 6}, "k.b.c") == 5
    assert value_in({"k.b": {"c": 5}, "k.bb": 6}, "k.bb") == 6
    assert value_in({"k.b": {"c": 5}}, "k.x") == "nothing"
