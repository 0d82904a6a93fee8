"""Numbers, pages and figures that are forged all the way down are found by making them anew."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pipeline.lineage.audit import Audit, audit
from pipeline.lineage.hashes import LineageError, md5_of
from pipeline.lineage.recompute import (
    Remade,
    Which,
    first_place,
    largest_gap,
    read_as_text,
    recompute,
    remove_abandoned,
    scratch_folder,
)
from pipeline.lineage.scope import Scope
from pipeline.lineage.trees import WorkingTree
from sentfold.report.page import pack
from tests.lineage.small import Small, environment_of
from tests.lineage.tamper import forge

ROOT = Path(__file__).parents[2]
HOLD = """
from pipeline.lineage.recompute import scratch_folder
with scratch_folder() as folder:
    print(folder, flush=True)
    input()
"""
# Another container has process numbers of its own.
ELSEWHERE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def audited(small: Small, *, which: Which = "all", exact: bool | None = None, revision: str | None = None) -> Audit:
    def again(scope: Scope) -> list[Remade]:
        return recompute(scope, which=which, exact=exact)

    return audit(small.root, "quick", revision=revision, again=again)


def outcomes(found: Audit) -> dict[str, str]:
    return {remade.stage: remade.outcome for remade in found.remade}


def commit_forgery(small: Small, file: str, old: str, new: str) -> None:
    """Edit a reported file, put its hash into dvc.lock, and commit both: every record agrees."""
    small.edit(file, old, new)
    lock = small.root / "dvc.lock"
    content = yaml.safe_load(lock.read_text())
    for stage in content["stages"].values():
        for entry in [*stage.get("deps", []), *stage["outs"]]:
            if file == entry["path"] or file.startswith(f"{entry['path']}/"):
                here = WorkingTree(small.root).digest(entry["path"])
                assert here is not None
                entry["md5"] = here.md5
    lock.write_text(yaml.safe_dump(content))
    small.commit("A better report")


def test_a_forgery_that_agrees_with_itself_passes_a_look_and_fails_a_second_run(small: Small) -> None:
    forge(small)
    small.commit("A better result")
    assert not audit(small.root, "quick").failed(strict=True), "a look alone cannot know"
    found = audited(small)
    assert outcomes(found)["evaluate@mini"] == "differs"
    assert outcomes(found)["evaluate@mini-lp"] == "equal"
    assert found.failed(strict=False)
    cause = next(cause for cause in found.causes if cause.subject == "stage evaluate@mini")
    assert cause.state == "wrong"
    assert "reports/quick/scores/mini.json, line " in cause.message
    assert '"value": 20.9' in cause.message and '"value": 20.5' in cause.message
    verdicts = {(f.number.row, f.number.table[-7:]): f.verdict for f in found.findings if f.number.column == "first"}
    assert verdicts["mini", "sts.csv"] == "wrong"
    assert verdicts["mini-lp", "sts.csv"] == "verified"


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("reports/quick/summary.txt", "20.50", "20.54"),  # a page, by less than the bound
        ("reports/quick/tables/scores.csv", "-2.40,1.60", "-2.40,-1.60"),  # an interval that is no longer over 0
        ("reports/quick/tables/small.csv", "A paper", "B paper"),
        ("reports/quick/summary.txt", "mini 20.50 42.50\n", ""),  # a row
        ("reports/quick/tables/cells.json", '"printed", [0], {"value": "11.1"}', '"printed", [0], {"value": "11.2"}'),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_no_page_no_interval_and_no_row_can_be_forged(small: Small, file: str, old: str, new: str, exact: bool) -> None:
    commit_forgery(small, file, old, new)
    found = audited(small, exact=exact)
    below_bound = not exact and new == "20.54"
    assert outcomes(found)["report"] == ("within bound" if below_bound else "differs")
    assert found.failed(strict=False) is not below_bound
    if not below_bound:
        assert file in next(cause.message for cause in found.causes if cause.kind == "recomputation")


def test_a_report_made_again_from_its_scores_shows_what_was_changed_in_it_alone(small: Small) -> None:
    assert outcomes(audited(small, which="report")) == {"report": "equal"}
    commit_forgery(small, "reports/quick/summary.txt", "20.50", "90.50")
    assert not audit(small.root, "quick").failed(strict=True), "a look alone cannot know"
    found = audited(small, which="report")
    assert outcomes(found) == {"report": "differs"}
    assert found.failed(strict=False)


def give_summary_to_fold(small: Small, **more: object) -> None:
    """Let dvc.yaml and dvc.lock say that `fold` writes the summary. more: parameters of `fold` by file, in dvc.lock."""
    page = "reports/quick/summary.txt"
    small.edit("dvc.yaml", "      - reports/${suite}/summary.txt: {cache: false}\n", "")
    fold = 'outs: ["data/${suite}/spaces/${key}-lp"'
    small.edit("dvc.yaml", f"{fold}]", fold + ', {"reports/${suite}/summary.txt": {cache: false}}]')
    lock = small.root / "dvc.lock"
    content = yaml.safe_load(lock.read_text())
    stages = content["stages"]
    (moved,) = (out for out in stages["report"]["outs"] if out["path"] == page)
    stages["report"]["outs"].remove(moved)
    stages["fold@mini"]["outs"].append(moved | {"md5": md5_of(small.root / page)})
    stages["fold@mini"]["params"] |= more
    lock.write_text(yaml.safe_dump(content))


def test_a_page_that_another_stage_is_said_to_write_is_made_again_too(small: Small) -> None:
    """Its hash in dvc.lock is right, and the report that is made again has no such output."""
    give_summary_to_fold(small)
    commit_forgery(small, "reports/quick/summary.txt", "20.50", "90.50")
    assert not audit(small.root, "quick").failed(strict=True), "a look alone cannot know"
    assert audited(small, which="report").failed(strict=False)


def test_a_page_that_is_called_a_parameter_file_of_the_stage_that_writes_it_is_not_written(small: Small) -> None:
    """A stage runs in a folder with its parameters: the forged page lay there, and counted as written."""
    page = "reports/quick/summary.txt"
    small.edit("dvc.yaml", '{"${file}": [corpora]}]', '{"${file}": [corpora]}, {"reports/${suite}/summary.txt": }]')
    (small.root / page).write_text("mini-lp: 99.9\n")
    give_summary_to_fold(small, **{page: {"mini-lp": 99.9}})
    small.commit("A better page")
    found = {one.stage: one for one in audited(small, which="report").remade}
    assert found["fold@mini"].outcome == "differs" and f"{page} was not written" in found["fold@mini"].about


def test_a_report_whose_data_are_not_here_is_not_made_again_and_that_is_said(small: Small) -> None:
    shutil.rmtree(small.root / "data")
    found = audited(small, which="report")
    assert outcomes(found) == {"report": "skipped"}
    assert any("what it reads is not here" in cause.message for cause in found.causes)


def test_everything_is_made_anew_from_nothing_and_the_checkout_stays_as_it_was(small: Small) -> None:
    shutil.rmtree(small.root / "data")
    shutil.rmtree(small.root / ".dvc/cache")
    before = {path: path.stat().st_mtime_ns for path in small.root.rglob("*") if ".git/" not in str(path)}
    found = audited(small)
    assert set(outcomes(found).values()) == {"equal"}
    assert len(found.remade) == 8
    assert found.count("verified") == len(found.findings), "made anew, so not absent"
    assert {path: path.stat().st_mtime_ns for path in small.root.rglob("*") if ".git/" not in str(path)} == before


@pytest.mark.parametrize(
    ("disturbance", "exact", "outcome"),
    # 1e-3 moves the sum over 1..6 by 0.021, and 1e-1 by 2.1.
    [("1e-3", True, "differs"), ("1e-3", False, "within bound"), ("1e-1", False, "differs")],
)
def test_other_bytes_pass_only_outside_of_the_numeric_profile_and_within_the_bound(
    small: Small, monkeypatch: pytest.MonkeyPatch, disturbance: str, exact: bool, outcome: str
) -> None:
    monkeypatch.setenv("SENTFOLD_DISTURBED", disturbance)
    found = audited(small, exact=exact)
    assert outcomes(found)["evaluate@mini"] == outcomes(found)["report"] == outcome
    assert outcomes(found)["download@first"] == "equal"
    assert found.failed(strict=True) == (outcome == "differs")


@pytest.mark.slow
def test_numbers_that_a_page_holds_packed_are_held_against_the_bound_too(tmp_path: Path) -> None:
    """The letters of packed data differ in all places where one number differs in its last digit."""

    def page(value: float, name: str = "cosine", place: str = "page.html") -> str:
        (tmp_path / place).write_text(f"<script id=data>{pack({'rows': [[name, value]] * 30})}</script>")
        return read_as_text(WorkingTree(tmp_path), place)

    assert largest_gap(page(58.46), page(58.47)) == pytest.approx(0.01)
    assert largest_gap(page(58.46), page(59.46)) == pytest.approx(1.0)
    assert largest_gap(page(58.46), page(58.46, "dot product")) == math.inf
    assert largest_gap(page(58.46, place="page.txt"), page(58.47, place="page.txt")) == math.inf
    bomb = b64encode(gzip.compress(bytes(10**9), 1)).decode()
    (tmp_path / "bomb.html").write_text(bomb)
    assert read_as_text(WorkingTree(tmp_path), "bomb.html") == bomb
    ours = read_as_text(WorkingTree(ROOT), "reports/quick/index.html")
    assert "H4sI" not in ours and len(ours) > 2 * (ROOT / "reports/quick/index.html").stat().st_size


def test_what_a_report_says_of_its_machine_is_not_held_against_the_bound(tmp_path: Path) -> None:
    """Kernels of BLAS have the names of processors; and where the bound counts, the processor is another one."""
    committed = json.loads((ROOT / "reports/quick/lineage.json").read_text())

    def gap(section: str, name: str, value: object) -> float:
        other = json.loads(json.dumps(committed))
        other[section][name] = value
        for folder, record in (("one", committed), ("two", other)):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "lineage.json").write_text(json.dumps(record))
        return largest_gap(*(read_as_text(WorkingTree(tmp_path), f"{name}/lineage.json") for name in ("one", "two")))

    assert gap("environment", "blas", ["openblas 0.3.30 SkylakeX"]) == 0
    assert gap("corpora", "lee", {}) == math.inf


@pytest.mark.slow
def test_a_sample_is_the_same_for_the_same_seed_and_each_stage_runs_on_recorded_inputs(finished: Small) -> None:
    scope = Scope(finished.root, "quick")
    runs = {seed: [remade.stage for remade in recompute(scope, which="sample", seed=seed)] for seed in (0, 1)}
    again = recompute(scope, which="sample", seed=0)
    assert [remade.stage for remade in again] == runs[0]
    assert {remade.outcome for remade in again} == {"equal"}
    assert len(runs[0]) == len(runs[1]) == 4
    assert runs[0] != runs[1]
    said = finished.run("pipeline", "audit", "--recompute", "sample").stderr
    drawn = re.search(r"a sample by --seed (\d+)", said)
    assert drawn is not None and said.count("equal") == 4


@pytest.mark.parametrize("where", [(), ELSEWHERE], ids=["here", "in another container"])
def test_the_scratch_folders_of_killed_audits_are_removed_and_those_of_living_ones_are_not(
    tmp_path: Path, where: tuple[str, ...]
) -> None:
    if where and subprocess.run([*where, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespace of processes can be had here")
    command = [*where, sys.executable, "-c", HOLD]
    environment = {**environment_of(), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        folder = Path(other.stdout.readline().strip())
        (folder / "alone").mkdir()
        remove_abandoned(tmp_path)
        assert (folder / "alone").is_dir()
        other.kill()
        assert other.stdout.read() == "", "ended"
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_the_users_own_with_the_name_of_a_scratch_folder_is_left_alone(tmp_path: Path) -> None:
    """`sentfold-audit-2026-11-25` was removed: 2026 was read as a process that had ended."""
    notes = [tmp_path / name / "lock" for name in ("sentfold-audit-2026-11-25", "sentfold-audit-20261125")]
    for file in notes:
        file.parent.mkdir()
        file.write_text("my notes")
    (tmp_path / "sentfold-audit-2026/lock").mkdir(parents=True)
    (tmp_path / "sentfold-audit-3").mkdir()
    before = sorted(tmp_path.rglob("*"))
    remove_abandoned(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_scratch_folder_of_another_user_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may make one in /tmp: 3,000 folders deep, it ended the audit with a RecursionError."""
    with scratch_folder() as folder:
        place = shutil.copytree(folder, tmp_path / folder.name)
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: place.stat().st_uid + 1)
        remove_abandoned(tmp_path)
    assert place.exists()
    remove_abandoned(tmp_path)
    assert not place.exists()


def test_a_stage_that_fails_is_named_with_its_first_words_and_what_reads_it_is_skipped(small: Small) -> None:
    small.edit("stage.py", 'elif verb == "fold":', 'elif verb == "fold":\n    sys.exit("no such fold")\nelif 0:')
    small.commit("A broken fold")
    found = audited(small)
    assert outcomes(found)["fold@mini"] == "failed"
    assert outcomes(found)["evaluate@mini-lp"] == outcomes(found)["report"] == "skipped"
    assert outcomes(found)["evaluate@mini"] == "equal"
    cause = next(cause for cause in found.causes if cause.subject == "stage fold@mini")
    assert (cause.state, cause.message) == ("wrong", "run again, it failed: exit 1: no such fold")
    skipped = next(cause for cause in found.causes if cause.subject == "stage evaluate@mini-lp")
    assert (skipped.state, skipped.message) == (
        "unwitnessed", "it was not run again: it reads what fold@mini would have made",
    )  # fmt: skip


@pytest.mark.parametrize("code", [75, pytest.param(2, marks=pytest.mark.slow)])
def test_a_stage_whose_server_or_mirror_is_not_there_is_not_called_wrong(
    code: int, small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 75 is EX_TEMPFAIL of sysexits.h, and 2 the code of an error of sentfold: no mirror, a full disk.
    offline = f'if verb == "download" and os.environ.get("SENTFOLD_OFFLINE"):\n    sys.exit({code})\n'
    offline += 'if verb == "download":'
    small.edit("stage.py", 'if verb == "download":', offline)
    small.run("dvc", "repro", "-q")
    small.commit("A server")
    monkeypatch.setenv("SENTFOLD_OFFLINE", "yes")
    found = audited(small)
    assert outcomes(found)["download@first"] == "skipped"
    assert (found.count("wrong"), found.count("unwitnessed")) == (0, len(found.findings))


def test_a_full_disk_for_the_folders_of_stages_is_not_called_wrong(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pipeline.lineage.recompute.lay_out", full)
    found = audited(small, which="report")
    assert set(outcomes(found).values()) == {"skipped"}
    assert found.count("wrong") == 0 and any("TMPDIR" in cause.message for cause in found.causes)


@pytest.mark.slow
def test_a_commit_is_made_anew_with_its_own_code(small: Small) -> None:
    old = small.run("git", "rev-parse", "HEAD").stdout.strip()
    small.edit("stage.py", 'params["evaluate"]["shift"]', '2 * params["evaluate"]["shift"]')
    small.run("dvc", "repro", "-q")
    small.commit("Shift twice")
    found = audited(small, revision=old)
    assert set(outcomes(found).values()) == {"equal"}
    assert found.count("verified") == len(found.findings)


# --- what a stage reads -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("secret", ["extra.txt", "numpy.py"])
def test_what_a_stage_reads_and_does_not_declare_is_not_there_when_it_runs_again(small: Small, secret: str) -> None:
    small.edit(
        "stage.py", '+ params["evaluate"]["shift"]', f'+ params["evaluate"]["shift"] + Path("{secret}").exists()'
    )
    (small.root / secret).write_text("tracked by git, and no dependency of any stage\n")
    small.run("dvc", "repro", "-q")
    small.commit("An undeclared input")
    found = audited(small)
    assert outcomes(found)["evaluate@mini"] == "differs"
    assert found.failed(strict=False)


@pytest.mark.slow
def test_a_stage_gets_the_parameters_that_it_declares_and_no_others(small: Small) -> None:
    small.edit("stage.py", "[v - params", '[v * len(params["sizes"]) / 2 - params')
    small.run("dvc", "repro", "-q")
    small.commit("An undeclared parameter")
    found = audited(small)
    assert outcomes(found)["fold@mini"] == "failed"
    assert "sizes" in next(cause.message for cause in found.causes if cause.subject == "stage fold@mini")


# --- what dvc.lock cannot make an audit do --------------------------------------------------------------


def refused(small: Small) -> str:
    with pytest.raises(LineageError) as caught:
        recompute(Scope(small.root, "quick"), which="all")
    return str(caught.value)


def test_a_command_that_was_written_into_the_lock_is_reported_and_nothing_runs(small: Small, tmp_path: Path) -> None:
    small.edit("dvc.lock", "python stage.py fold mini quick", f"touch {tmp_path / 'victim'}")
    said = refused(small)
    assert "dvc.lock disagrees with dvc.yaml" in said and "victim" in said
    assert not (tmp_path / "victim").exists()
    assert audit(small.root, "quick").failed(strict=False), "without --recompute the entry is named too"


def test_a_leftover_of_the_lock_with_a_path_outside_is_refused_and_nothing_is_removed(
    small: Small, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    entry = f"  gone:\n    cmd: touch x\n    outs:\n    - path: {victim}\n      md5: {'0' * 32}.dir\n"
    with (small.root / "dvc.lock").open("a") as stream:
        stream.write(entry)
    small.commit("A leftover")
    assert "outside of the checkout" in refused(small)
    assert victim.is_dir()


@pytest.mark.parametrize("path", ["../elsewhere", "/tmp/elsewhere"])
def test_a_path_outside_of_the_checkout_is_refused_and_nothing_runs(small: Small, path: str) -> None:
    small.edit(
        "dvc.yaml",
        "      - reports/${suite}/summary.txt",
        f"      - {path}: {{cache: false}}\n      - reports/${{suite}}/summary.txt",
    )
    assert "outside of the checkout" in refused(small)


@pytest.mark.slow
def test_the_command_tells_whose_code_runs_and_exits_1_on_a_forgery(small: Small) -> None:
    forge(small)
    small.commit("A better result")
    done = small.run("pipeline", "audit", "--recompute", "all", "--json", check=False)
    assert done.returncode == 1
    assert "the code of this checkout runs now, with your rights" in done.stderr
    assert "run again: evaluate@mini: differs" in done.stderr
    assert len(json.loads(done.stdout)["remade"]) == 8
    assert small.run("pipeline", "audit", "--recompute", "some", check=False).returncode == 2


@pytest.mark.slow
def test_the_advice_for_a_forgery_makes_the_recorded_files_anew(small: Small) -> None:
    """Forged files agree with dvc.lock, so that a run finds nothing to do."""
    forge(small)
    small.commit("A better result")
    found = audited(small)
    (cause,) = [cause for cause in found.causes if cause.kind == "recomputation" and "evaluate@mini" in cause.subject]
    assert cause.remedy.startswith("dvc repro --force --single-item dvc.yaml:evaluate@mini, then sentfold run")
    small.run(*cause.remedy.partition(",")[0].split())
    small.run("dvc", "repro")
    small.commit("The true result")
    assert not audited(small).failed(strict=True)


# --- the comparison -------------------------------------------------------------------------------------


def test_the_first_difference_of_two_files_is_named_with_both_values(tmp_path: Path) -> None:
    assert first_place("a.csv", b"x,y\n1,2\n", b"x,y\n1,3\n") == "a.csv, line 2: '1,2' recorded, '1,3' written again"
    assert first_place("a.csv", b"x\n1\n", b"x\n") == "a.csv: '2 lines' recorded, '1 lines' written again"
    assert first_place("a.csv", b"x", None) == "a.csv is recorded, and was not written again"
    assert first_place("a.csv", None, b"x") == "a.csv is not recorded, and was written again"
    contents = []
    for last in (3.0, 4.0):
        pq.write_table(pa.table({"a": [1.0, math.nan], "v": [1.0, last]}), tmp_path / "t")
        contents.append((tmp_path / "t").read_bytes())
    said = first_place("t.parquet", *contents)
    assert said == "t.parquet, column v, row 1: '3.0' recorded, '4.0' written again"


@pytest.mark.parametrize(
    ("recorded", "remade", "gap"),
    [
        ("a 1.5, b -2", "a 1.5, b -2", 0.0),
        ("a 1.5, b -2", "a 1.25, b -2.5", 0.5),
        ("M10,20L30,40", "M10,20L30,41.5", 1.5),
        ("better by 1.0", "worse by 1.0", math.inf),
        ("1.0\n2.0\n", "1.0\n", math.inf),
        (f"x {'0a' * 16} 1", f"x {'1b' * 16} 1", 0.0),
        ("+0.20", "−0.20", 0.4),
    ],
)
def test_the_gap_of_two_texts_is_that_of_their_numbers_and_infinite_where_their_words_differ(
    recorded: str, remade: str, gap: float
) -> None:
    assert largest_gap(recorded, remade) == largest_gap(remade, recorded) == pytest.approx(gap)


def test_other_bytes_by_other_packages_are_told_with_the_packages(small: Small) -> None:
    """They stay wrong: a forged commit could pin any version."""
    commit_forgery(small, "reports/quick/summary.txt", "", "better\n")
    before = audited(small, which="report")
    assert before.count("wrong") > 0
    (small.root / "requirements.lock").write_text("PyYAML==5.1\n")
    small.commit("Pins")
    found = audited(small, which="report")
    (cause,) = found.causes
    assert found.count("wrong") == before.count("wrong") and found.failed(strict=False)
    assert "packages of other versions than it pins (pyyaml " in cause.message and "pinned 5.1" in cause.message
    assert cause.remedy.startswith("install the requirements.lock")
