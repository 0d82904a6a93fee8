"""Every way in which a reported number can be tampered with is found and named."""

from __future__ import annotations

import fcntl
import json
import re
import shlex
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from pipeline.lineage.audit import audit
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.recompute import recompute
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import load_graph
from pipeline.lineage.text import audit_content, audit_text
from pipeline.lineage.trees import WorkingTree
from sentfold.locks import CHECKOUT_LOCK
from tests.lineage.small import Small
from tests.lineage.tamper import faults, verdict_of

HOLD = "import sys, zc.lockfile; lock = zc.lockfile.LockFile(sys.argv[1]); print(1, flush=True); input()"


def test_a_suite_as_it_was_run_and_committed_is_verified_whole(finished: Small) -> None:
    found = audit(finished.root, "quick")
    # 4 in sts.csv; 4 x 3 and 2 x 6 in scores.csv; 4 x 3, 2 and 1 in small.csv.
    assert found.count("verified") == len(found.findings) == 4 + 12 + 12 + 12 + 2 + 1
    assert found.causes == {}
    assert not found.failed(strict=True)


# --- the six tamperings, each alone ----------------------------------------------------------------


def test_a_tampered_cell_is_named_with_what_it_should_be(small: Small) -> None:
    small.edit("reports/quick/tables/sts.csv", "mini,20.50", "mini,21.50")
    found = audit(small.root, "quick")
    cell, table = found.causes
    assert (cell.kind, table.kind) == ("cell", "table")
    assert cell.subject == "reports/quick/tables/sts.csv, line 2, mini × first, value"
    assert cell.message == "the table says 21.50, reports/quick/scores/mini.json gives 20.50"
    assert "sts.csv" in table.message
    assert found.count("wrong") == 1
    assert verdict_of(found, "sts.csv", "mini", "first") == "wrong"


def test_a_tampered_difference_is_named(small: Small) -> None:
    small.edit("reports/quick/tables/scores.csv", "-0.40,", "+0.40,")
    found = audit(small.root, "quick")
    assert next(iter(found.causes)).kind == "cell"
    assert verdict_of(found, "scores.csv", "mini-lp", "first spearman.all.cosine", "difference") == "wrong"
    assert verdict_of(found, "scores.csv", "mini-lp", "first spearman.all.cosine", "value") == "verified"


def test_a_tampered_difference_to_the_control_is_found_against_the_scores_of_both(small: Small) -> None:
    small.edit("reports/quick/tables/scores.csv", "mini-lp,0.00,-1.00,1.00", "mini-lp,0.50,-1.00,1.00")
    found = audit(small.root, "quick")
    assert next(iter(found.causes)).kind == "cell"
    assert verdict_of(found, "scores.csv", "mini-lp", "first spearman.all.cosine", "control_difference") == "wrong"
    assert verdict_of(found, "scores.csv", "mini-lp", "first spearman.all.cosine", "difference") == "verified"


def test_a_tampered_number_that_only_the_report_computed_makes_its_table_wrong(small: Small) -> None:
    small.edit("reports/quick/tables/small.csv", "31.50", "32.50")
    found = audit(small.root, "quick")
    cell, table = faults(found)
    assert cell == ("cell", "reports/quick/tables/small.csv, line 6, mini × average spearman.all.cosine, value")
    assert table == ("table", "reports/quick/tables")
    assert "the table says 32.50, the index of cells 31.50" in next(iter(found.causes)).message
    assert verdict_of(found, "small.csv", "mini", "average spearman.all.cosine") == "wrong"
    assert verdict_of(found, "small.csv", "mini", "first spearman.all.cosine") == "verified"
    assert verdict_of(found, "scores.csv", "mini-lp", "first spearman.all.cosine", "difference_low") == "verified"


def test_a_tampered_score_is_named(small: Small) -> None:
    small.edit("reports/quick/scores/mini.json", "20.5", "20.6")
    found = audit(small.root, "quick")
    named = faults(found)
    assert ("score", "reports/quick/scores/mini.json") in named
    assert ("cell", "reports/quick/tables/sts.csv, line 2, mini × first, value") in named
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "verified"
    assert verdict_of(found, "sts.csv", "mini", "second") == "wrong", "its scores file is not to be believed"


def test_a_score_and_its_cells_tampered_together_are_found_by_the_hash(small: Small) -> None:
    small.edit("reports/quick/scores/mini.json", '"value": 20.5', '"value": 20.6')
    for table in ("sts.csv", "scores.csv", "small.csv"):
        small.edit(f"reports/quick/tables/{table}", "20.50", "20.60")
    found = audit(small.root, "quick")
    assert ("score", "reports/quick/scores/mini.json") in faults(found)
    assert verdict_of(found, "sts.csv", "mini", "first") == "wrong"


def test_a_tampered_artifact_is_named_and_not_what_was_made_of_it(small: Small) -> None:
    path = "data/quick/spaces/mini-lp/first.txt"
    (small.root / path).chmod(0o644)
    small.edit(path, "1.9", "1.8")
    found = audit(small.root, "quick")
    ((kind, subject),) = faults(found)
    assert (kind, subject) == ("artifact", "data/quick/spaces/mini-lp")
    (cause,) = found.causes
    assert "`dvc data status --granular` names the files" in cause.message
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "wrong"
    assert verdict_of(found, "sts.csv", "mini", "first") == "verified"


def test_a_tampered_parameter_is_named_with_both_values(small: Small) -> None:
    small.edit("params.yaml", "step: 1.0e-1", "step: 0.2")
    found = audit(small.root, "quick")
    ((kind, subject),) = faults(found)
    assert (kind, subject) == ("parameter", "params.yaml: fold.step")
    (cause,) = found.causes
    assert "it is 0.2 here" in cause.message
    assert "made with 0.1" in cause.message
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "wrong"
    assert verdict_of(found, "sts.csv", "mini", "first") == "verified"


def test_one_and_true_are_two_values_of_a_parameter(small: Small) -> None:
    """YAML's `1` and `true` are equal to Python, and to DVC, which makes no stage stale by them."""
    small.edit("params.yaml", "step: 1.0e-1", "step: true")
    lock = (small.root / "dvc.lock").read_text()
    assert "fold.step: 0.1" in lock
    (small.root / "dvc.lock").write_text(lock.replace("fold.step: 0.1", "fold.step: 1"))
    causes = audit(small.root, "quick").causes
    (message,) = [cause.message for cause in causes if cause.subject == "params.yaml: fold.step"]
    assert message.startswith("it is True here; the numbers were made with 1 ")


LOCK_EDITS = {
    "an output": (r"(outs:\n    - path: data/quick/spaces/mini-lp\n      hash: md5\n      md5: )(.)", "fold@mini"),
    "an input of data": (
        r"(deps:\n    - path: code/rules.py(?:.|\n)*?spaces/mini\n      hash: md5\n      md5: )(.)",
        "fold@mini",
    ),
    "an input of code": (r"(  fold@mini:(?:.|\n)*?- path: stage.py\n      hash: md5\n      md5: )(.)", "fold@mini"),
    "a parameter": (r"(fold.step: )(0)", "fold@mini"),
    "a command": (r"(python stage.py fold mini )(q)", "fold@mini"),
    "a whole stage": (r"()(  fold@mini:\n(?:    .*\n)+)", "fold@mini"),
}


@pytest.mark.parametrize("what", LOCK_EDITS)
def test_a_tampered_lock_entry_is_named_and_not_the_artifact(small: Small, what: str) -> None:
    pattern, stage = LOCK_EDITS[what]
    lock = small.root / "dvc.lock"
    swapped = {"0": "1"}
    text, number = re.subn(
        pattern, lambda m: m[1] + ("" if len(m[2]) > 1 else swapped.get(m[2], "0")), lock.read_text(), count=1
    )
    assert number == 1
    lock.write_text(text)
    found = audit(small.root, "quick")
    assert faults(found), what
    assert {kind for kind, _ in faults(found)} == {"lock"}
    assert any(f"stage {stage}" in subject for _, subject in faults(found))
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "wrong"
    assert verdict_of(found, "sts.csv", "mini", "first") == "verified"
    assert found.remarks[:-1] == ("dvc.lock here is not the committed one",)


def test_a_tampered_lock_entry_is_named_without_git_too(small: Small) -> None:
    shutil.rmtree(small.root / ".git")
    pattern, stage = LOCK_EDITS["an output"]
    lock = small.root / "dvc.lock"
    lock.write_text(re.sub(pattern, r"\g<1>0", lock.read_text(), count=1))
    found = audit(small.root, "quick")
    assert ("artifact", "data/quick/spaces/mini-lp") in faults(found), stage
    assert "no git" in found.remarks[0]


def test_tampered_code_is_named_and_said_to_be_an_edit(small: Small) -> None:
    small.edit("code/rules.py", "RULE = 1", "RULE = 2")
    found = audit(small.root, "quick")
    assert set(faults(found)) == {("code", "code/rules.py"), ("code", "code")}
    assert all("it was edited here" in cause.message for cause in found.causes)
    assert any("rules.py" in cause.message for cause in found.causes if cause.subject == "code")


# --- code and parameters that git does not vouch for -------------------------------------------------


@pytest.mark.slow
def test_numbers_made_by_code_that_was_never_committed_are_uncommitted(small: Small) -> None:
    small.edit("code/layout.py", "import csv", "import csv, os")
    small.run("dvc", "repro", "-q", "report")
    found = audit(small.root, "quick")
    assert set(faults(found)) == {("code", "code/layout.py"), ("code", "code")}
    assert found.count("wrong") == 0
    assert verdict_of(found, "small.csv", "mini", "average spearman.all.cosine") == "uncommitted"
    assert not found.failed(strict=False)
    assert found.failed(strict=True)
    small.commit("Layout")
    assert not audit(small.root, "quick").failed(strict=True)


@pytest.mark.slow
def test_a_suite_of_ones_own_is_uncommitted_before_its_first_commit_and_verified_after_it(small: Small) -> None:
    folder = small.root / "suites/mine"
    folder.mkdir(parents=True)
    (folder / "dvc.yaml").symlink_to("../../dvc.yaml")
    plan = (small.root / "plan.yaml").read_text()
    for old, new in (("suite: quick", "suite: mine"), ("root: .", "root: ../.."), ("file: ", "file: suites/mine/")):
        plan = plan.replace(old, new)
    (folder / "plan.yaml").write_text(plan)
    small.run("dvc", "repro", "-q", "suites/mine/dvc.yaml")
    found = audit(small.root, "mine")
    assert found.count("wrong") == 0
    assert found.count("uncommitted") == len(found.findings) == 43
    assert not found.failed(strict=False)
    small.commit("A suite of my own")
    again = audit(small.root, "mine")
    assert again.count("verified") == 43, audit_text(again)


def test_numbers_that_rest_on_a_stage_that_has_not_run_are_not_made_yet(small: Small) -> None:
    small.edit("plan.yaml", "first: {}, second: {}", "first: {}, second: {}, third: {}")
    small.edit("params.yaml", "sizes: {first: 4", "sizes: {third: 2, first: 4")
    small.commit("A third corpus, which has not run")
    found = audit(small.root, "quick")
    assert found.count("wrong") == 0
    causes = {cause.subject: cause.message for cause in found.causes if cause.state == "unmade"}
    assert causes["dvc.lock, stage download@third"] == "it has no entry: the stage has not run yet"
    assert "Not made yet, by first cause:" in audit_text(found)
    assert (found.failed(strict=False), found.failed(strict=True)) == (False, True)


def test_code_that_was_committed_but_never_run_is_said_to_be_stale(small: Small) -> None:
    small.edit("code/texts.py", "1", "2")
    small.commit("Texts")
    found = audit(small.root, "quick")
    cause = next(cause for cause in found.causes if cause.subject == "code/texts.py")
    assert cause.message.endswith(", as in git's HEAD")
    assert cause.remedy == "sentfold run --suite quick"


def test_a_file_that_holds_no_number_is_held_against_the_lock_too(small: Small) -> None:
    small.edit("reports/quick/summary.txt", "20.50", "99.99")
    found = audit(small.root, "quick")
    assert faults(found) == [("table", "reports/quick/summary.txt")]
    assert found.count("wrong") == 0
    assert found.failed(strict=False)
    assert "43 verified, 0 wrong; wrong files on which no number rests: 1" in audit_text(found).splitlines()[1]
    assert audit_content(found)["counts"]["faults_apart"] == 1


def test_a_table_that_was_taken_out_of_the_report_is_counted(small: Small) -> None:
    (small.root / "reports/quick/tables/sts.csv").unlink()
    found = audit(small.root, "quick")
    assert faults(found) == [("table", "reports/quick/tables")]
    assert "39 verified" in audit_text(found)
    assert found.failed(strict=False)


# --- absence ------------------------------------------------------------------------------------------


def test_what_is_not_here_is_absent_with_the_command_that_brings_it(small: Small, tmp_path: Path) -> None:
    shutil.rmtree(small.root / "data/quick/spaces/mini-lp")
    found = audit(small.root, "quick")
    assert not found.failed(strict=False)
    assert found.failed(strict=True)
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "absent"
    assert verdict_of(found, "sts.csv", "mini", "first") == "verified"
    (cause,) = found.causes
    fetch = "if DVC's cache lacks it, sentfold run --suite quick"
    assert cause.remedy == f"dvc checkout dvc.yaml; {fetch}"
    small.run(*cause.remedy.partition(";")[0].split())
    assert not audit(small.root, "quick").failed(strict=True)


@pytest.mark.slow
def test_a_clone_is_absent_until_it_pulls_and_then_verified(small: Small, tmp_path: Path) -> None:
    small.run("dvc", "remote", "add", "-d", "store", str(tmp_path / "store"))
    small.commit("A remote")
    small.run("dvc", "push", "-q")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(small.root), str(clone)], check=True)
    here = Small(clone)
    found = audit(clone, "quick")
    assert found.count("wrong") == 0
    # What the report alone copied out of a paper rests on git.
    assert found.count("absent") == len(found.findings) - 1
    assert all("dvc checkout" in cause.remedy for cause in found.causes)
    here.run("dvc", "pull", "-q")
    again = audit(clone, "quick")
    assert again.count("verified") == len(again.findings)


# --- commits ------------------------------------------------------------------------------------------


def test_a_commit_is_audited_whatever_lies_in_the_checkout(small: Small) -> None:
    good = small.run("git", "rev-parse", "HEAD").stdout.strip()
    small.edit("reports/quick/tables/sts.csv", "mini,20.50", "mini,21.50")
    bad = small.commit("A better result")
    small.edit("reports/quick/tables/sts.csv", "mini,21.50", "mini,22.50")
    assert not audit(small.root, "quick", revision=good).failed(strict=True)
    found = audit(small.root, "quick", revision=bad)
    assert faults(found)[0] == ("cell", "reports/quick/tables/sts.csv, line 2, mini × first, value")
    assert found.commit == bad


@pytest.mark.slow
def test_artifacts_of_the_run_before_a_pull_are_absent_and_changed_ones_are_wrong(small: Small, tmp_path: Path) -> None:
    """A colleague's run was pulled, and dvc.lock and the reports are the colleague's."""
    mine = small.copy(tmp_path / "mine")
    small.edit("params.yaml", "step: 1.0e-1", "step: 0.2")
    small.run("dvc", "repro", "-q")
    small.commit("Step 0.2")
    shutil.rmtree(small.root / "data")
    shutil.copytree(mine.root / "data", small.root / "data")
    found = audit(small.root, "quick")
    assert found.count("wrong") == 0 and not found.failed(strict=False) and found.failed(strict=True)
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "absent"
    assert any("is of an earlier commit's run" in cause.message for cause in found.causes)
    with (small.root / "data/quick/spaces/mini-lp/first.txt").open("a") as stream:
        stream.write("1.0\n")
    assert verdict_of(audit(small.root, "quick"), "sts.csv", "mini-lp", "first") == "wrong"


@pytest.mark.slow
def test_artifacts_of_a_run_that_came_in_by_a_merge_are_absent(small: Small, tmp_path: Path) -> None:
    """git's log leaves out the side of a merge whose dvc.lock was not taken."""
    branch = small.run("git", "branch", "--show-current").stdout.strip()
    small.run("git", "switch", "-q", "-c", "mine")
    for step, name in (("0.3", "mine"), ("0.2", branch)):
        small.run("git", "switch", "-q", name)
        small.edit("params.yaml", "step: 1.0e-1", f"step: {step}")
        small.run("dvc", "repro", "-q")
        small.commit(f"Step {step}")
        shutil.copytree(small.root / "data", tmp_path / name)
    small.run("git", "switch", "-q", "mine")
    small.run("git", "merge", "-q", branch, check=False)
    small.run("git", "checkout", "--theirs", "dvc.lock", "params.yaml", "reports")
    small.commit("Merge, and take the other run")
    shutil.rmtree(small.root / "data")
    shutil.copytree(tmp_path / "mine", small.root / "data")
    found = audit(small.root, "quick")
    assert found.count("wrong") == 0 and verdict_of(found, "sts.csv", "mini-lp", "first") == "absent"


@pytest.mark.slow
def test_artifacts_of_a_branch_that_was_checked_out_here_are_absent(small: Small) -> None:
    """The last commit of the branch has no run. Of a branch that was fetched alone nothing is taken."""
    branch = small.run("git", "branch", "--show-current").stdout.strip()
    small.run("git", "switch", "-q", "-c", "mine")
    small.edit("params.yaml", "step: 1.0e-1", "step: 0.3")
    small.run("dvc", "repro", "-q")
    small.commit("Step 0.3")
    small.run("git", "commit", "-q", "--allow-empty", "-m", "Nothing")
    small.run("git", "switch", "-q", branch)
    found = audit(small.root, "quick")
    assert found.count("wrong") == 0 and verdict_of(found, "sts.csv", "mini-lp", "first") == "absent"
    shutil.rmtree(small.root / ".git/logs")
    assert verdict_of(audit(small.root, "quick"), "sts.csv", "mini-lp", "first") == "wrong"


def test_a_history_in_which_dvc_lock_had_a_huge_line_takes_no_memory(small: Small) -> None:
    """Twelve commits of 400 MB each are a branch of 406 KB, and change nothing when it is merged."""
    lock = (small.root / "dvc.lock").read_bytes()
    (small.root / "dvc.lock").write_bytes(lock + b"# " + b"a" * 40_000_000)
    small.commit("Put in")
    (small.root / "dvc.lock").write_bytes(lock)
    small.commit("Take out")
    scope = Scope(small.root, "quick")
    tracemalloc.start()
    try:
        found = scope.recorded_once
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert {entry.md5 for stage in scope.graph.locked.values() for entry in stage.outs.values()} <= found


def test_a_forged_report_whose_bytes_a_commit_recorded_once_is_wrong(small: Small) -> None:
    """The commit after it has the sound dvc.lock again, and every stage would write what that says."""
    lock = (small.root / "dvc.lock").read_bytes()
    graph = load_graph(WorkingTree(small.root), "quick")
    small.edit("reports/quick/summary.txt", "20.50", "99.50")
    small.edit("reports/quick/scores/mini.json", "20.5", "99.5")
    locked = {**graph.locked["report"].outs, **graph.locked["evaluate@mini"].outs}
    for out, entry in locked.items():
        made = WorkingTree(small.root).digest(out)
        assert made is not None
        small.edit("dvc.lock", entry.md5, made.md5)
    small.commit("Run")
    (small.root / "dvc.lock").write_bytes(lock)
    small.commit("Run again")
    found = audit(small.root, "quick", again=lambda scope: recompute(scope, which="all"))
    wrong = {cause.subject for cause in found.causes if cause.state == "wrong"}
    assert {"reports/quick/summary.txt", "reports/quick/scores/mini.json"} <= wrong


def test_a_report_whose_deletion_was_staged_comes_back_by_the_advice(small: Small) -> None:
    small.run("git", "rm", "-q", "reports/quick/summary.txt")
    (cause,) = audit(small.root, "quick").causes
    small.run(*shlex.split(cause.remedy))
    assert not audit(small.root, "quick").failed(strict=True)


@pytest.mark.slow
def test_a_commit_whose_artifacts_are_not_here_is_absent_with_the_way_to_them(small: Small) -> None:
    old = small.run("git", "rev-parse", "HEAD").stdout.strip()
    small.edit("params.yaml", "step: 1.0e-1", "step: 0.2")
    small.run("dvc", "repro", "-q")
    small.commit("Step 0.2")
    assert not audit(small.root, "quick").failed(strict=True)
    found = audit(small.root, "quick", revision=old)
    assert found.count("wrong") == 0
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "absent"
    assert all(old in cause.remedy for cause in found.causes)


# --- how it looks, and what it leaves alone ---------------------------------------------------------------


def test_the_first_cause_is_named_once_however_many_numbers_rest_on_it(small: Small) -> None:
    path = small.root / "data/quick/corpora/first/sentences.txt"
    path.chmod(0o644)
    path.write_text("5.0\n")
    found = audit(small.root, "quick")
    text = audit_text(found)
    assert text.count("data/quick/corpora/first") == text.count("data/quick/corpora/first\n") == 1
    assert re.search(r"\d+ verified, \d+ wrong\n", text)
    content: dict[str, Any] = json.loads(json.dumps(audit_content(found)))
    (cause,) = content["causes"]
    assert cause["numbers"] == content["counts"]["wrong"] == len(content["numbers"]) - 1


def test_an_audit_writes_nothing_and_takes_no_lock(small: Small) -> None:
    lock = small.root / ".dvc/tmp/lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, lock],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdout.readline() == b"1\n"
    before = {path: path.stat().st_mtime_ns for path in small.root.rglob("*") if ".git/" not in str(path)}
    try:
        done = small.run("pipeline", "audit", "--json")
    finally:
        holder.communicate(b"\n")
    assert {path: path.stat().st_mtime_ns for path in small.root.rglob("*") if ".git/" not in str(path)} == before
    assert json.loads(done.stdout)["counts"] == {
        "verified": 43, "wrong": 0, "unwitnessed": 0, "uncommitted": 0, "unmade": 0, "absent": 0, "faults_apart": 0,
    }  # fmt: skip


@pytest.mark.slow
def test_the_command_exits_1_only_when_something_is_wrong_or_strictly_absent(small: Small) -> None:
    assert small.run("pipeline", "audit", "--strict").returncode == 0
    shutil.rmtree(small.root / "data/quick/spaces")
    assert small.run("pipeline", "audit").returncode == 0
    assert small.run("pipeline", "audit", "--strict", check=False).returncode == 1
    with (small.root / CHECKOUT_LOCK).open("a") as held:  # as a run holds it, which may write what is absent
        fcntl.flock(held, fcntl.LOCK_EX)
        assert small.run("pipeline", "audit", "--strict", check=False).returncode == 2
    small.edit("reports/quick/tables/sts.csv", "mini,20.50", "mini,21.50")
    assert small.run("pipeline", "audit", check=False).returncode == 1
    assert small.run("pipeline", "audit", "--rev", "HEAD").returncode == 0
    assert small.run("pipeline", "audit", "--rev", "no-such", check=False).returncode == 2


@pytest.mark.slow
def test_an_audit_beside_a_run_says_that_a_run_goes_on_and_calls_nothing_wrong(small: Small) -> None:
    """A run writes dvc.lock and artifacts in place, so an audit at the same time can meet half of a file."""
    small.edit("reports/quick/tables/sts.csv", "mini,20.50", "mini,21.50")
    lock = small.root / CHECKOUT_LOCK
    for spoil in (lambda: None, lambda: (small.root / "dvc.lock").write_text("schema: '2.0'\nstages:")):
        spoil()
        with lock.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            told = small.run("pipeline", "audit", check=False)
            assert told.returncode == 2 and "a run changes this checkout" in told.stderr
            told = small.run("pipeline", "audit", "--strict", "--signed", check=False)
            assert "a run changes this checkout" in told.stderr and "verifies no signature" in told.stderr
            other = small.run("pipeline", "audit", "--suite", "none", check=False).stderr
            assert "a run changes this checkout" in other and "there is no suite 'none'" in other
            assert small.run("pipeline", "audit", "--rev", "HEAD").returncode == 0
        assert "a run changes" not in small.run("pipeline", "audit", check=False).stderr


def test_a_suite_without_tables_is_an_error_that_says_what_to_do(small: Small) -> None:
    shutil.rmtree(small.root / "reports")
    with pytest.raises(LineageError, match="no tables") as caught:
        audit(small.root, "quick")
    assert "sentfold run" in caught.value.remedy


def test_a_table_that_is_no_table_is_an_error_that_names_it(small: Small) -> None:
    (small.root / "reports/quick/tables/small.csv").write_bytes(b"table,origin\n\xff\xfe,measured\n")
    with pytest.raises(LineageError, match="cannot be read") as caught:
        audit(small.root, "quick")
    assert "small.csv" in caught.value.where
