"""Ways around an audit that compares single records: each is closed, and each absence stays one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.lineage.audit import audit
from pipeline.lineage.file_checks import begins
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.recompute import recompute
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import load_graph
from pipeline.lineage.trees import WorkingTree
from tests.checkout import ROOT
from tests.lineage.small import Small
from tests.lineage.tamper import CHOOSE, faults, forge, record_run, verdict_of


@pytest.mark.parametrize("committed", [False, True])
def test_what_a_stage_before_the_report_wrote_into_the_reports_is_looked_at(choosing: Small, committed: bool) -> None:
    choosing.edit("reports/quick/sweeps/chosen.txt", "second", "third")
    if committed:
        choosing.commit("Another choice")
    found = audit(choosing.root, "quick")
    assert faults(found) == [("artifact", "reports/quick/sweeps")]
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "wrong"
    assert verdict_of(found, "sts.csv", "mini", "first") == "verified"


def test_an_output_that_no_number_rests_on_is_looked_at_too(small: Small) -> None:
    small.edit("dvc.yaml", "  report:\n", CHOOSE + "  report:\n")
    small.run("dvc", "repro", "-q")
    small.commit("A choice that nobody reads")
    small.edit("reports/quick/sweeps/chosen.txt", "second", "third")
    found = audit(small.root, "quick")
    assert faults(found) == [("artifact", "reports/quick/sweeps")]
    assert found.count("wrong") == 0
    assert found.failed(strict=False)


# --- a file and its record, changed together ----------------------------------------------------------


def test_a_file_and_its_entry_forged_together_are_held_against_the_committed_entry(small: Small) -> None:
    forge(small)
    found = audit(small.root, "quick")
    assert ("lock", "dvc.lock, stage evaluate@mini") in faults(found)
    assert {kind for kind, _ in faults(found)} == {"lock"}
    assert verdict_of(found, "sts.csv", "mini", "first") == "wrong"
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "verified"


def relabel(small: Small, *edits: tuple[str, str, str]) -> None:
    """Edit tables, and put their new hash into dvc.lock; commit both. No score is touched."""
    with tables_forged(small):
        for table, old, new in edits:
            small.edit(f"reports/quick/tables/{table}", old, new)


@contextmanager
def tables_forged(small: Small) -> Iterator[None]:
    """Put the hash of the tables as they are at the end into dvc.lock, and commit both."""
    before = WorkingTree(small.root).digest("reports/quick/tables")
    yield
    after = WorkingTree(small.root).digest("reports/quick/tables")
    assert before is not None and after is not None
    small.edit("dvc.lock", before.md5, after.md5)
    small.commit("Forged")


@pytest.mark.parametrize(
    "edits",
    {
        "two rows exchanged": [
            ("sts.csv", "mini,", "x,"), ("sts.csv", "mini-lp,", "mini,"), ("sts.csv", "x,", "mini-lp,")
        ],
        "another corpus": [("scores.csv", "mini,first,", "mini,second,")],
        "the space that a difference is to": [("scores.csv", ",mini,", ",mini-lp,")],
        "a figure of a paper, in the index too": [
            ("small.csv", ",11.1,", ",19.9,"), ("cells.json", '[0], {"value": "11.1"}', '[0], {"value": "19.9"}')
        ],
        "a score that the index calls computed": [
            ("sts.csv", "mini,20.50", "mini,90.50"),
            ("cells.json", '"score", ["mini", "first", "spearman.all.cosine"], {"first": "20.50"',
             '"derived", [], {"first": "90.50"'),
        ],
    }.values(),
)  # fmt: skip
def test_what_stands_beside_a_score_is_held_by_making_the_report_again(
    small: Small, edits: list[tuple[str, str, str]]
) -> None:
    """The scores are the true ones. Their hash alone holds names, figures of papers and the index of cells."""
    relabel(small, *edits)
    looked = audit(small.root, "quick")
    assert not looked.failed(strict=True)
    assert any("`--recompute report`" in remark for remark in looked.remarks)
    found = audit(small.root, "quick", again=lambda scope: recompute(scope, which="report"))
    assert found.failed(strict=False)
    assert not any("`--recompute report`" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    "edits",
    [
        [("sts.csv", "mini-lp,", "mini-x,99.99,99.99\nmini-lp,")],  # an invented row
        [  # a column of numbers that the index does not have
            ("small.csv", "table,panel,", "best,table,panel,"), ("small.csv", "\nsmall,", "\n90.50,small,"),
            *[("small.csv", "\nsmall,", "\n,small,")] * 6,
        ],
    ],
)  # fmt: skip
def test_a_number_that_the_index_of_cells_does_not_have_is_wrong(
    small: Small, edits: list[tuple[str, str, str]]
) -> None:
    relabel(small, *edits)
    found = audit(small.root, "quick")
    assert found.failed(strict=False)
    assert any("the index of cells has no such cell" in cause.message for cause in found.causes if cause.kind == "cell")


def test_a_cell_of_a_line_that_no_table_has_is_refused(small: Small) -> None:
    """It has no number, and the table has none in that place: they agreed, and one number more was verified."""
    cell = '[99, "mini", "first", "spearman.all.cosine", "x100", "derived", [], {"value": ""}]'
    relabel(small, ("cells.json", '{"sts.csv": [', f'{{"sts.csv": [{cell}, '))
    with pytest.raises(LineageError, match="a table cannot be read") as caught:
        audit(small.root, "quick")
    assert "line 99 has no number" in caught.value.got


def test_scores_of_a_space_that_no_stage_writes_are_wrong(small: Small) -> None:
    """A stage that writes a file of nearly that name vouches for none."""
    ghost = "{cmd: echo, outs: [{reports/quick/scores/ghost: {cache: false}}]}"
    small.edit("dvc.yaml", "  report:\n", f"  ghost: {ghost}\n  report:\n")
    row = '[2, "mini", "first", "spearman.all.cosine", "x100", "score", ["mini", "first", "spearman.all.cosine"]'
    relabel(small, ("sts.csv", "mini,", "ghost,"), ("cells.json", row, row.replace("mini", "ghost")))
    assert verdict_of(audit(small.root, "quick"), "sts.csv", "ghost", "first") == "wrong"


@pytest.mark.parametrize("name", ["more/best.csv", "best.CSV"])
def test_a_table_of_another_folder_or_ending_is_read(small: Small, name: str) -> None:
    table = small.root / "reports/quick/tables" / name
    with tables_forged(small):
        table.parent.mkdir(exist_ok=True)
        table.write_text("space,first\nmini,90.50\n")
    assert verdict_of(audit(small.root, "quick"), name.rpartition("/")[2], "mini", "", "first") == "wrong"


def test_a_report_without_numbers_is_not_verified(small: Small) -> None:
    """The tables for readers are still there, and nothing vouches for what they print."""
    tables = small.root / "reports/quick/tables"
    with tables_forged(small):
        for table in tables.glob("*.csv"):
            table.unlink()
        (tables / "cells.json").write_text('{"schema": 1, "fields": [], "tables": {}}')
    found = audit(small.root, "quick")
    assert (found.findings, found.causes) == ((), {})
    assert found.failed(strict=True)


def test_a_space_that_is_a_path_to_other_scores_is_refused(small: Small) -> None:
    """No stage writes that file, so nothing would be wrong with it, and the number verified."""
    (small.root / "notes").mkdir()
    scores = (small.root / "reports/quick/scores/mini.json").read_text()
    (small.root / "notes/x.json").write_text(scores.replace('"value": 20.5', '"value": 90.5'))
    key = '["mini", "first", "spearman.all.cosine"], {"first": "20.50"'
    forged = key.replace("mini", "../../../notes/x").replace("20.50", "90.50")
    relabel(
        small,
        ("sts.csv", "mini,20.50", "../../../notes/x,90.50"),
        ("cells.json", f'[2, "mini", "first", "spearman.all.cosine", "x100", "score", {key}',
         f'[2, "../../../notes/x", "first", "spearman.all.cosine", "x100", "score", {forged}'),
    )  # fmt: skip
    with pytest.raises(LineageError, match="table cannot be read"):
        audit(small.root, "quick")


def test_a_forged_entry_of_an_artifact_that_is_not_here_is_not_repeated_as_a_fact(small: Small) -> None:
    lock, path = small.root / "dvc.lock", "data/quick/spaces/mini-lp"
    before = load_graph(WorkingTree(small.root), "quick").locked["fold@mini"].outs[path].md5
    lock.write_text(lock.read_text().replace(before, f"{'0' * 32}.dir"))
    shutil.rmtree(small.root / path)
    found = audit(small.root, "quick")
    assert ("lock", "dvc.lock, stage fold@mini") in faults(found)
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "wrong"
    (absent,) = (cause for cause in found.causes if cause.subject == path)
    assert absent.state == "absent"
    assert f"dvc.lock says md5 {'0' * 32}.dir of it, the committed one {before}" in absent.message


def run_elsewhere(small: Small) -> None:
    """Run a stage again as on a processor that computes other bytes, and what reads it."""
    name = "embed@second-mini"
    small.run("dvc", "repro", "-q", "--force", "--no-run-cache", "--single-item", name, SENTFOLD_DISTURBED="1e-3")
    small.run("dvc", "repro", "-q")


@pytest.mark.parametrize("supported", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_other_bytes_of_the_same_inputs_are_wrong_but_on_a_processor_outside_of_the_numeric_profile(
    small: Small, monkeypatch: pytest.MonkeyPatch, supported: bool
) -> None:
    run_elsewhere(small)
    record_run(small, "embed@second-mini")  # a record that says that they were made here changes nothing
    monkeypatch.setattr("pipeline.lineage.file_checks.is_supported", lambda: supported)
    found = audit(small.root, "quick")
    assert ("lock", "dvc.lock, stage embed@second-mini") in faults(found)
    assert verdict_of(found, "sts.csv", "mini", "second") == ("wrong" if supported else "uncommitted")


@pytest.mark.parametrize("suite", ["quick", "paper-mirror"])
def test_of_the_project_s_stages_those_that_download_begin(suite: str) -> None:
    graph = load_graph(WorkingTree(ROOT), suite)
    found = {name.partition("@")[0] for name in graph.stages if begins(graph, name)}
    assert {"plan", "download"} <= found
    assert not found & {"embed", "encode", "evaluate", "report", "knn_graph", "transform", "sweep", "train"}
    assert all(begins(graph, name) for name in graph.stages if name.startswith("download@"))


@pytest.mark.slow
def test_data_of_a_mirror_that_was_filled_are_uncommitted_until_they_are_committed(small: Small) -> None:
    """The advice was to take the old dvc.lock, with which DVC put the blank back, again and again."""
    name = "download@second"
    small.run("dvc", "repro", "-q", "--force", "--no-run-cache", "--single-item", name, SENTFOLD_FILLED="second")
    small.run("dvc", "repro", "-q")
    found = audit(small.root, "quick")
    assert found.count("wrong") == 0 and not found.failed(strict=False)
    (cause,) = [cause for cause in found.causes if name in cause.subject]
    assert cause.state == "uncommitted" and cause.remedy.startswith("commit dvc.lock if the stage's source")
    small.commit("Filled")
    assert not audit(small.root, "quick").failed(strict=True)


# --- folders over several outputs ---------------------------------------------------------------------------


def test_the_record_of_a_whole_folder_is_checked_once_all_of_it_is_here(small: Small) -> None:
    lock = small.root / "dvc.lock"
    entry = load_graph(WorkingTree(small.root), "quick").locked["report"].deps["data/quick/spaces"]
    lock.write_text(lock.read_text().replace(entry.md5, f"{'0' * 32}.dir"))
    assert faults(audit(small.root, "quick")) == [("lock", "dvc.lock, stage report")]
    shutil.rmtree(small.root / "data/quick/spaces/mini-lp")
    found = audit(small.root, "quick")
    assert faults(found) == [("lock", "dvc.lock")]
    assert verdict_of(found, "small.csv", "mini-lp", "average spearman.all.cosine") == "uncommitted"
    (small.root / ".git").rename(small.root / "git")
    (cause,) = (cause for cause in audit(small.root, "quick").causes if cause.kind == "artifact")
    assert (cause.subject, cause.state) == ("data/quick/spaces/mini-lp", "absent")


@pytest.mark.slow
def test_a_file_that_no_stage_wrote_is_named_where_a_stage_has_read_it(small: Small) -> None:
    stray = small.root / "data/quick/spaces/zz/a"
    stray.parent.mkdir()
    stray.write_text("1.0\n")
    small.run("dvc", "repro", "-q")
    small.commit("Run with a stray file")
    (cause,) = audit(small.root, "quick").causes
    assert (cause.kind, cause.subject) == ("lock", "dvc.lock, stage report")
    assert "no stage writes (data/quick/spaces/zz/a)" in cause.message
    assert cause.remedy == "remove data/quick/spaces/zz/a, then sentfold run --suite quick"
    shutil.rmtree(stray.parent)
    (cause,) = audit(small.root, "quick").causes
    assert "embed@" not in cause.message, "those who wrote what lies there are innocent"


@pytest.mark.slow
@pytest.mark.parametrize("here", [True, False])
def test_what_a_stage_that_is_gone_left_in_a_folder_is_named(small: Small, here: bool) -> None:
    old = "{deps: [plan.yaml], outs: [data/quick/spaces/old], cmd: cp plan.yaml data/quick/spaces/old}"
    small.edit("dvc.yaml", "  report:\n", f"  old: {old}\n  report:\n")
    small.run("dvc", "repro", "-q")
    definition = (small.root / "dvc.yaml").read_text().splitlines(keepends=True)
    (small.root / "dvc.yaml").write_text("".join(line for line in definition if not line.startswith("  old:")))
    small.commit("A stage is gone")
    if not here:
        (small.root / "data/quick/spaces/old").unlink()
    (cause,) = audit(small.root, "quick").causes
    assert cause.subject == "dvc.lock, stage report"
    assert ("no stage writes (data/quick/spaces/old)" in cause.message) == here
    assert cause.remedy == ("remove data/quick/spaces/old, then " if here else "") + "sentfold run --suite quick"


# --- things that are no files ---------------------------------------------------------------------------------


def dangle(place: Path) -> None:
    place.symlink_to("nowhere")


def loop(place: Path) -> None:
    place.symlink_to(place.parent)


def chase(place: Path) -> None:
    place.symlink_to(place)


ODDITIES = {
    "a link to nowhere": dangle,
    "a link to a folder that contains it": loop,
    "too many levels of symbolic links": chase,
    "not a regular file": os.mkfifo,
}


@pytest.mark.parametrize("why", ODDITIES)
def test_what_cannot_be_read_is_wrong_and_not_absent(small: Small, why: str) -> None:
    make: Callable[[Path], None] = ODDITIES[why]
    make(small.root / "data/quick/spaces/mini-lp/odd")
    found = audit(small.root, "quick")
    assert faults(found) == [("artifact", "data/quick/spaces/mini-lp")]
    (cause,) = found.causes
    assert f"cannot be read: data/quick/spaces/mini-lp/odd ({why}" in cause.message


def test_a_pipe_in_place_of_a_score_file_is_wrong(small: Small) -> None:
    path = small.root / "reports/quick/scores/mini.json"
    path.unlink()
    os.mkfifo(path)
    found = audit(small.root, "quick")
    assert ("score", "reports/quick/scores/mini.json") in faults(found)
    assert "cannot be read" in next(cause.message for cause in found.causes if cause.kind == "score")


def test_an_editors_lock_among_the_code_is_named_with_the_remedy(small: Small) -> None:
    (small.root / "code/.#rules.py").symlink_to("someone@host.1234:1700000000")
    found = audit(small.root, "quick")
    assert faults(found) == [("code", "code")]
    (cause,) = found.causes
    assert (
        "cannot be read: code/.#rules.py (a link to someone@host.1234:1700000000, which is not there)" in cause.message
    )
    assert cause.remedy == "git stash -a -- code"
    (remade, *_) = recompute(Scope(small.root, "quick"), which="sample")
    assert remade.outcome == "equal", "a second run goes on without it"


def test_the_remedy_for_edited_and_unknown_code_puts_the_committed_code_back(small: Small) -> None:
    (small.root / "code/more.py").write_text("MORE = 1\n")
    small.edit("code/texts.py", "1", "2")
    remedies = {cause.subject: cause.remedy for cause in audit(small.root, "quick").causes}
    assert remedies == {path: f"git stash -a -- {path}" for path in ("code", "code/texts.py")}
    small.run(*remedies["code"].split())
    assert not audit(small.root, "quick").failed(strict=True)


@pytest.mark.slow
def test_the_advice_for_an_entry_that_is_not_the_committed_one_is_a_run(small: Small) -> None:
    """`git checkout -- dvc.lock` would take entries of new stages away. Here a value was tried, and taken back."""
    small.edit("params.yaml", "step: 1.0e-1", "step: 0.6")
    small.run("dvc", "repro", "-q")
    small.run("git", "checkout", "--", "params.yaml")
    causes = audit(small.root, "quick").causes
    locks = [cause for cause in causes if cause.kind == "lock" and cause.state == "wrong"]
    assert locks
    assert {cause.remedy for cause in locks} == {"sentfold run --suite quick"}


# --- absence stays absence ------------------------------------------------------------------------------------


def test_without_git_no_number_is_verified(small: Small) -> None:
    shutil.rmtree(small.root / ".git")
    found = audit(small.root, "quick")
    assert found.count("absent") == len(found.findings)
    (cause,) = found.causes
    assert (cause.subject, cause.state) == ("git history", "absent")
    assert found.failed(strict=True)


def test_a_folder_of_another_repository_is_no_checkout(small: Small, tmp_path: Path) -> None:
    """Code that is committed there was called uncommitted, and was to be removed."""
    shutil.rmtree(small.root / ".git")
    outer = Small(tmp_path)
    outer.run("git", "init", "-q")
    outer.commit("The project in a folder of another one")
    (cause,) = audit(small.root, "quick").causes
    assert (cause.subject, cause.state) == ("git history", "absent")
    with pytest.raises(LineageError, match="not the root of its git repository"):
        audit(small.root, "quick", revision="HEAD")


def test_a_score_file_that_is_not_here_is_one_absence(small: Small) -> None:
    path = "reports/quick/scores/mini.json"
    (small.root / path).unlink()
    found = audit(small.root, "quick")
    (cause,) = found.causes
    assert (cause.subject, cause.state) == (path, "absent")
    assert cause.remedy == f"git checkout --ignore-skip-worktree-bits HEAD -- {path}"
    assert verdict_of(found, "sts.csv", "mini", "first") == "absent"
    assert verdict_of(found, "sts.csv", "mini-lp", "first") == "verified"
    assert verdict_of(found, "scores.csv", "mini-lp", "first spearman.all.cosine", "difference") == "absent"
    small.run(*cause.remedy.split())
    assert not audit(small.root, "quick").failed(strict=True)


def test_an_absent_page_of_the_report_takes_no_table_with_it(small: Small) -> None:
    (small.root / "reports/quick/summary.txt").unlink()
    found = audit(small.root, "quick")
    assert found.count("verified") == len(found.findings)
    (cause,) = found.causes
    assert (cause.subject, cause.state) == ("reports/quick/summary.txt", "absent")
    assert found.failed(strict=True)
    assert not found.failed(strict=False)


TIMES = [f"reports/benchmarks/{number}.json" for number in range(9)]


@pytest.mark.slow
@pytest.mark.parametrize("declared", ["reports/benchmarks", ", ".join(TIMES)], ids=["folder", "files"])
def test_measured_times_have_plain_names_alone_for_the_report_prints_them(small: Small, declared: str) -> None:
    sound = [
        '{"processor": "Intel(R) Xeon(R) @ 2.20GHz", "threads": [1, 2], "note": null}',
        '{"processor": "AMD EPYC 7B13, 2.4 GHz", "rates": {"power means": {"text in, whitespace": 1.5}}}',
    ]
    forged = [
        '{"processor": "AMD\\n\\n| space | first |\\n|---|---|\\n| mini-lp | 99.00 |"}',
        '{"processor": "AMD", "rates": {"<table><tr><td>99.00": {}}}',
        '{"processor": ["AMD", {"is": "' + "fast " * 21 + '"}]}',
        '{"processor": ["mini scores 99.00 on first", "and on second"]}',
        '{"processor": "AMD", "rates": {"=50.85+48.31": {"text in": 4.2}}}',
        '{"processor": ',
        "[" * 100_000,
    ]
    small.edit("dvc.yaml", "deps: [stage.py, code/layout.py,", f"deps: [stage.py, code/layout.py, {declared},")
    (small.root / "reports/benchmarks").mkdir()
    for place, measured in zip(TIMES, [*sound, *forged], strict=True):
        (small.root / place).write_text(measured)
    small.run("dvc", "repro", "-q")
    commit = small.commit("Measured times")
    expected = [("file", place) for place in TIMES[len(sound) :]]
    assert sorted(faults(audit(small.root, "quick"))) == expected
    assert sorted(faults(audit(small.root, "quick", revision=commit))) == expected


@pytest.mark.slow
def test_a_link_to_nothing_in_the_place_of_measured_times_is_a_cause_as_other_inputs_are(small: Small) -> None:
    """An error would hide the verdict on all other numbers."""
    times = small.root / "reports/benchmarks/a.json"
    times.parent.mkdir()
    times.write_text("{}")
    small.edit(
        "dvc.yaml", "deps: [stage.py, code/layout.py,", "deps: [stage.py, code/layout.py, reports/benchmarks/a.json,"
    )
    small.run("dvc", "repro", "-q")
    small.commit("Measured times")
    times.unlink()
    times.symlink_to("nowhere")
    assert faults(audit(small.root, "quick")) == [("code", "reports/benchmarks/a.json")]
