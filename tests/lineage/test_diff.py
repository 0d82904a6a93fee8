"""What two commits disagree about, over commits whose changes are known."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from pipeline.lineage.diff import MOST_ASKED, MOST_SHOWN, Change, CommitLog, Difference, Moved, diff, diff_text
from pipeline.lineage.hashes import LineageError
from tests.lineage.small import Small


def score(found: Difference, space: str, corpus: str) -> Moved:
    (moved,) = (
        moved
        for moved in found.moved
        if (moved.number.space, moved.number.corpus, moved.number.field, moved.number.origin)
        == (space, corpus, "value", "score")
    )
    return moved


def told(moved: Moved) -> list[tuple[str, str]]:
    return [(change.kind, change.subject) for change in moved.why]


def changed(small: Small, path: str, old: str, new: str) -> Difference:
    """Edit, run, commit, and compare with the commit before."""
    small.edit(path, old, new)
    small.run("dvc", "repro", "-q")
    small.commit(f"Change {path}")
    return diff(small.root, "HEAD~1", "HEAD", "quick")


@pytest.mark.slow
def test_a_parameter_moves_exactly_the_scores_below_it(small: Small) -> None:
    found = changed(small, "params.yaml", "step: 1.0e-1", "step: 0.6")
    moved = score(found, "mini-lp", "first")
    # Four sentences, each half a step lower.
    assert (moved.before, moved.after, moved.delta) == ("20.10", "18.10", -2.0)
    assert (moved.low, moved.high, moved.outside) == (19.1, 21.1, True)
    assert told(moved) == [("parameter", "params.yaml: fold.step")]
    (change,) = moved.why
    assert (change.before, change.after) == ("0.1", "0.6")
    assert {m.number.space for m in found.moved if m.number.origin == "score"} == {"mini-lp"}
    assert "small.csv" in {m.number.table.rpartition("/")[2] for m in found.moved if m.number.origin == "derived"}


@pytest.mark.slow
def test_numbers_with_the_same_changes_share_them(small: Small) -> None:
    """There can be 250,000 numbers, each with 50,000 changes."""
    found = changed(small, "params.yaml", "step: 1.0e-1", "step: 0.6")
    assert len(found.moved) > 4
    assert len({id(moved.why) for moved in found.moved}) == len({moved.why for moved in found.moved})


@pytest.mark.slow
def test_a_move_is_held_against_the_interval_that_the_score_had(small: Small) -> None:
    found = changed(small, "params.yaml", "step: 1.0e-1", "step: 0.2")
    assert score(found, "mini-lp", "first").delta == -0.4
    assert score(found, "mini-lp", "first").outside is False
    assert "inside its interval [19.10, 21.10]" in diff_text(found, small.root)


@pytest.mark.slow
def test_code_is_named_with_the_commit_that_changed_it(small: Small) -> None:
    found = changed(small, "stage.py", 'params["evaluate"]["shift"]', '2 * params["evaluate"]["shift"]')
    moved = score(found, "mini", "first")
    assert told(moved) == [("code", "stage.py")]
    assert moved.delta == 0.5
    assert "Change stage.py" in diff_text(found, small.root)
    # A lock names inputs as it likes, and git takes its time for each.
    log = CommitLog(small.root, "HEAD~1..HEAD")
    assert "Change stage.py" in log.of("stage.py")
    assert not CommitLog(small.root, "HEAD~1..HEAD").of("sta*.py")  # a name of a lock, and no pattern
    small.run("git", "commit", "-q", "--amend", "-m", "a" * 100_000)
    assert len(CommitLog(small.root, "HEAD~1..HEAD").of("stage.py")) < 200
    for number in range(2 * MOST_ASKED):
        log.of(f"code/{number}.py")
    assert len(log.known) == MOST_ASKED
    many = replace(moved, why=tuple(Change("code", f"code/{number}.py", "a", "b") for number in range(15_000)))
    text = diff_text(replace(found, moved=(many,)), small.root)
    assert text.count("code code/") == MOST_SHOWN and f"and {15_000 - MOST_SHOWN:,} more" in text


@pytest.mark.slow
def test_several_changes_above_a_number_are_all_named_and_those_beside_it_are_not(small: Small) -> None:
    small.edit("params.yaml", "second: 6", "second: 7")
    small.edit("code/texts.py", "TEXT = 1", "TEXT = 2")
    found = changed(small, "params.yaml", "scale: 2.0", "scale: 3.0")
    moved = score(found, "mini", "second")
    assert set(told(moved)) == {
        ("parameter", "params.yaml: sizes.second"), ("parameter", "params.yaml: encoders.mini.scale"),
        ("code", "code/texts.py"), ("code", "code"),
    }  # fmt: skip
    assert ("parameter", "params.yaml: fold.step") not in told(moved)


@pytest.mark.slow
def test_data_that_changed_though_nothing_above_it_did_is_told_so(small: Small) -> None:
    # Another machine: the same stages write other bytes.
    for path in ("stage.py",):
        small.edit(path, 'os.environ.get("SENTFOLD_DISTURBED", 0)', 'os.environ.get("SENTFOLD_DISTURBED", "0")')
    small.run("dvc", "repro", "-q")
    small.commit("Same results")
    small.run("dvc", "repro", "-q", "--force", "embed@first-mini", SENTFOLD_DISTURBED="0.5")
    small.run("dvc", "repro", "-q")
    small.commit("On another machine")
    found = diff(small.root, "HEAD~1", "HEAD", "quick")
    moved = score(found, "mini", "first")
    # 0.5 x (1 + 2 + 3 + 4).
    assert moved.delta == 5.0
    assert told(moved) == [("data", "data/quick/spaces/mini/first.txt")]
    assert "nothing that makes it changed" in diff_text(found, small.root)


def test_a_forged_number_is_said_to_have_no_cause(small: Small) -> None:
    small.edit("reports/quick/tables/small.csv", "31.50", "39.50")
    small.commit("A better mean")
    found = diff(small.root, "HEAD~1", "HEAD", "quick")
    (moved,) = found.moved
    assert (moved.before, moved.after, moved.why) == ("31.50", "39.50", ())
    assert "nothing above changed" in diff_text(found, small.root)


def test_a_score_that_one_of_its_tables_prints_otherwise_is_told(small: Small) -> None:
    small.edit("reports/quick/tables/sts.csv", "mini,20.50", "mini,90.50")
    small.commit("A better score")
    (moved,) = diff(small.root, "HEAD~1", "HEAD", "quick").moved
    assert (moved.before, moved.after, moved.number.table.rpartition("/")[2]) == ("", "90.50", "sts.csv")


def test_other_names_of_rows_and_a_table_that_is_gone_move_no_number_and_are_told(small: Small) -> None:
    table = small.root / "reports/quick/tables/sts.csv"
    lines = table.read_text().splitlines()
    (one, first), (other, second) = (line.split(",", 1) for line in lines[1:3])
    table.write_text("\n".join([lines[0], f"{other},{first}", f"{one},{second}", *lines[3:]]) + "\n")
    small.commit("Other names")
    found = diff(small.root, "HEAD~1", "HEAD", "quick")
    assert found.files == ("reports/quick/tables/sts.csv",)
    assert "  reports/quick/tables/sts.csv" in diff_text(found, small.root)
    table.unlink()
    small.commit("No table")
    assert diff(small.root, "HEAD~1", "HEAD", "quick").files == ("reports/quick/tables/sts.csv",)


@pytest.mark.slow
def test_new_rows_are_told_apart_from_moved_ones(small: Small) -> None:
    found = changed(small, "plan.yaml", "corpora: [first, second]", "corpora: [first]")
    gone = score(found, "mini", "second")
    assert (gone.before, gone.after, gone.delta, gone.outside) == ("42.50", "", None, None)
    assert "42.50 -> none" in diff_text(found, small.root)


def test_two_equal_commits_differ_in_nothing(finished: Small) -> None:
    found = diff(finished.root, "HEAD", "HEAD", "quick")
    # 12 scores with their bounds, 4 differences, 8 bounds of them, 2 means, 1 printed figure.
    assert (found.moved, found.unmoved) == ((), 12 + 4 + 8 + 2 + 1)
    assert found.files == ()


@pytest.mark.slow
def test_the_command_prints_what_moved_and_why(small: Small) -> None:
    changed(small, "params.yaml", "step: 1.0e-1", "step: 0.6")
    said = small.run("pipeline", "diff", "HEAD~1").stdout
    assert "parameter params.yaml: fold.step: 0.1 -> 0.6" in said
    assert "mini-lp × first spearman.all.cosine: 20.10 -> 18.10 (-2.00), outside its interval [19.10, 21.10]" in said
    assert small.run("pipeline", "diff", "HEAD~1", "no-such", check=False).returncode == 2


def test_a_commit_without_the_suite_is_an_error_that_names_it(small: Small) -> None:
    with pytest.raises(LineageError, match="suite 'paper'"):
        diff(small.root, "HEAD", "HEAD", "paper")


def test_a_commit_whose_interval_is_no_number_ends_in_no_traceback(small: Small) -> None:
    scores = next((small.root / "reports").rglob("scores/mini-lp.json"))
    sound = scores.read_text()
    for low in ('"x"', "1" + 400 * "0", "null"):
        scores.write_text(re.sub(r'"low": [\d.]+', f'"low": {low}', sound))
        small.commit("State")
        scores.write_text(sound)
        small.commit("Sound")
        found = diff(small.root, "HEAD~1", "HEAD", "quick")
        assert all(moved.low is None for moved in found.moved if moved.number.space == "mini-lp")
