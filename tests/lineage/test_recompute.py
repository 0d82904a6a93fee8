"""Numbers that are forged all the way down are found by making them anew."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from pipeline.lineage.audit import Audit, audit
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.recompute import Remade, gaps, recompute
from pipeline.lineage.scope import Scope
from tests.lineage.small import Small
from tests.lineage.tamper import forge


def audited(small: Small, *, everything: bool, seed: int = 0, revision: str | None = None) -> Audit:
    def again(scope: Scope) -> list[Remade]:
        return recompute(scope, everything=everything, seed=seed)

    return audit(small.root, "quick", revision=revision, again=again)


def outcomes(found: Audit) -> dict[str, str]:
    return {remade.stage: remade.outcome for remade in found.remade}


def test_a_forgery_that_agrees_with_itself_passes_a_look_and_fails_a_second_run(small: Small) -> None:
    forge(small)
    small.commit("A better result")
    assert not audit(small.root, "quick").failed(strict=True), "a look alone cannot know"
    found = audited(small, everything=True)
    assert outcomes(found)["evaluate@mini"] == "differs"
    assert outcomes(found)["evaluate@mini-lp"] == "equal"
    assert found.failed(strict=False)
    named = {cause.subject for cause in found.causes if cause.state == "wrong"}
    assert "stage evaluate@mini" in named
    cause = next(cause for cause in found.causes if cause.subject == "stage evaluate@mini")
    assert "reports/quick/scores/mini.json" in cause.message
    assert "up to 0.40" in cause.message
    verdicts = {(f.number.row, f.number.table[-7:]): f.verdict for f in found.findings if f.number.column == "first"}
    assert verdicts["mini", "sts.csv"] == "wrong"
    assert verdicts["mini-lp", "sts.csv"] == "verified"


def test_everything_is_made_anew_from_nothing_and_the_checkout_stays_as_it_was(small: Small) -> None:
    shutil.rmtree(small.root / "data")
    shutil.rmtree(small.root / ".dvc/cache")
    before = {path: path.stat().st_mtime_ns for path in small.root.rglob("*") if ".git/" not in str(path)}
    found = audited(small, everything=True)
    assert set(outcomes(found).values()) == {"equal"}
    assert len(found.remade) == 8
    assert found.count("verified") == len(found.findings), "made anew, so not absent"
    assert {path: path.stat().st_mtime_ns for path in small.root.rglob("*") if ".git/" not in str(path)} == before


@pytest.mark.parametrize(("disturbance", "outcome"), [("1e-3", "within bound"), ("1e-1", "differs")])
def test_other_bytes_pass_if_the_scores_made_of_them_agree_within_the_bound(
    small: Small, monkeypatch: pytest.MonkeyPatch, disturbance: str, outcome: str
) -> None:
    monkeypatch.setenv("DISTURBED", disturbance)
    found = audited(small, everything=True)
    # 1e-3 moves the sum over 1..6 by 0.021, and 1e-1 by 2.1.
    assert outcomes(found)["embed@second-mini"] == outcome
    assert outcomes(found)["evaluate@mini"] == outcome
    assert outcomes(found)["report"] == outcome
    assert outcomes(found)["download@first"] == "equal"
    assert found.failed(strict=True) == (outcome == "differs")


def test_a_sample_is_the_same_for_the_same_seed_and_each_stage_runs_on_recorded_inputs(finished: Small) -> None:
    scope = Scope(finished.root, "quick")
    runs = {seed: [remade.stage for remade in recompute(scope, everything=False, seed=seed)] for seed in (0, 1)}
    assert [remade.stage for remade in recompute(scope, everything=False, seed=0)] == runs[0]
    assert len(runs[0]) == len(runs[1]) == 4
    assert runs[0] != runs[1]


def test_a_sampled_stage_whose_bytes_differ_is_judged_by_the_scores_below_it(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope(small.root, "quick")
    seed = next(seed for seed in range(50) if "embed@second-mini" in [r.stage for r in recompute_dry(scope, seed)])
    monkeypatch.setenv("DISTURBED", "1e-3")
    found = {remade.stage: remade for remade in recompute(scope, everything=False, seed=seed)}
    assert found["embed@second-mini"].outcome == "within bound"
    assert {"fold@mini", "evaluate@mini", "evaluate@mini-lp"} <= set(found)
    monkeypatch.setenv("DISTURBED", "1e-1")
    found = {remade.stage: remade for remade in recompute(scope, everything=False, seed=seed)}
    assert found["embed@second-mini"].outcome == "differs"


def recompute_dry(scope: Scope, seed: int) -> list[Remade]:
    from pipeline.lineage.recompute import draw

    return [Remade(name, "skipped") for name in draw(scope.graph.in_order(), seed)]


def test_a_stage_that_fails_is_named_with_its_first_words_and_what_reads_it_is_skipped(small: Small) -> None:
    small.edit("stage.py", 'elif verb == "fold":', 'elif verb == "fold":\n    sys.exit("no such fold")\nelif 0:')
    small.commit("A broken fold")
    found = audited(small, everything=True)
    assert outcomes(found)["fold@mini"] == "failed"
    assert outcomes(found)["evaluate@mini-lp"] == outcomes(found)["report"] == "skipped"
    assert outcomes(found)["evaluate@mini"] == "equal"
    cause = next(cause for cause in found.causes if cause.subject == "stage fold@mini")
    assert "no such fold" in cause.message


def test_a_commit_is_made_anew_with_its_own_code(small: Small) -> None:
    old = small.run("git", "rev-parse", "HEAD").stdout.strip()
    small.edit("stage.py", 'params["evaluate"]["shift"]', '2 * params["evaluate"]["shift"]')
    small.run("dvc", "repro", "-q")
    small.commit("Shift twice")
    found = audited(small, everything=True, revision=old)
    assert set(outcomes(found).values()) == {"equal"}
    assert found.count("verified") == len(found.findings)


def test_numbers_without_a_fellow_are_infinitely_far(tmp_path: Path) -> None:
    assert list(gaps({"a": 1.0}, {"a": 1.25})) == [0.25]
    assert max(gaps({"a": 1.0}, {"b": 1.0})) == float("inf")
    assert list(gaps({}, {})) == []


def test_the_command_tells_what_it_runs_and_exits_1_on_a_forgery(small: Small, tmp_path: Path) -> None:
    forge(small)
    small.commit("A better result")
    done = small.run("pipeline", "audit", "--recompute", "all", "--json", str(tmp_path / "a.json"), check=False)
    assert done.returncode == 1
    assert "run again: evaluate@mini: differs" in done.stderr
    content = json.loads((tmp_path / "a.json").read_text())
    assert len(content["remade"]) == 8
    assert small.run("pipeline", "audit", "--recompute", "some", check=False).returncode == 2
    digest = hashlib.md5((small.root / "reports/quick/scores/mini.json").read_bytes()).hexdigest()
    assert digest in done.stdout


def test_a_command_that_was_written_into_the_lock_is_not_run(small: Small, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    small.edit("dvc.lock", "python stage.py fold mini quick", f"touch {victim}")
    found = audited(small, everything=True)
    assert not victim.exists()
    assert outcomes(found)["fold@mini"] == "equal"
    assert found.failed(strict=False), "the entry was edited"


@pytest.mark.parametrize("path", ["../elsewhere", "/tmp/elsewhere"])
def test_a_path_outside_of_the_checkout_is_refused_and_nothing_runs(small: Small, path: str) -> None:
    small.edit(
        "dvc.yaml",
        "      - reports/${suite}/summary.txt",
        f"      - {path}: {{cache: false}}\n      - reports/${{suite}}/summary.txt",
    )
    with pytest.raises(LineageError, match="outside of the checkout"):
        recompute(Scope(small.root, "quick"), everything=True)
