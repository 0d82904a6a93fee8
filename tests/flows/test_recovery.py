import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from flows.lock import hold_checkout
from flows.recovery import COPIES, PATHS_IN_USE, recover
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.stages import alike, load_graph
from pipeline.lineage.trees import WorkingTree
from sentfold.errors import SuiteError

DVC = (sys.executable, "-m", "dvc")

# As DVC writes it, with what a cut can fall into: names, values, lists, mappings.
LOCK = """\
schema: '2.0'
stages:
  download@kitchen:
    cmd: python -m pipeline download kitchen
    deps:
    - path: pipeline/base/artifacts.py
      hash: md5
      md5: 0123456789abcdef0123456789abcdef
      size: 12
    params:
      suite.yaml:
        source: package
    outs:
    - path: data/quick/corpora/kitchen
      hash: md5
      md5: 0123456789abcdef0123456789abcdef.dir
      nfiles: 2
  vocabulary:
    cmd: python -m pipeline vocabulary
    outs:
    - path: data/quick/words/vocabulary
      hash: md5
      md5: fedcba9876543210fedcba9876543210.dir
      nfiles: 1
"""
BESIDE = "suites/other"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout of two suites, as far as this module cares, after a run."""
    (tmp_path / ".dvc/tmp").mkdir(parents=True)
    (tmp_path / BESIDE).mkdir(parents=True)
    for folder in (".", BESIDE):
        (tmp_path / folder / "dvc.lock").write_text(LOCK)
    recover(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("folder", [".", BESIDE])
def test_a_lock_cut_short_anywhere_is_put_back_or_holds_whole_stages_alone(root: Path, folder: str) -> None:
    path = root / folder / "dvc.lock"
    whole = yaml.safe_load(LOCK)["stages"]
    put_back, lengths = 0, range(0, len(LOCK), 7)  # lines have many lengths, so each place in a line is met
    for length in lengths:
        path.write_text(LOCK)
        recover(root)
        path.write_text(LOCK[:length])
        recover(root)
        stages = yaml.safe_load(path.read_text())["stages"]
        put_back += path.read_text() == LOCK
        # DVC takes a stage whose entry lacks a line for one that changed, and runs it.
        assert all(stage["cmd"] == whole[name]["cmd"] for name, stage in stages.items())
    assert put_back > len(lengths) * 0.9


def test_a_lock_that_is_replaced_is_kept(root: Path) -> None:
    """Some editors write no line break at the end, and a merge by hand is in no other file."""
    first = LOCK[: LOCK.index("  vocabulary")].rstrip("\n")
    (root / "dvc.lock").write_text(LOCK)
    recover(root)
    (root / "dvc.lock").write_text(first)
    recover(root)
    assert (root / "dvc.lock").read_text() == LOCK
    assert (root / COPIES / "dvc.lock.replaced").read_text() == first


def test_a_lock_cut_short_anywhere_without_a_copy_keeps_its_whole_stages(tmp_path: Path) -> None:
    lock, whole = tmp_path / "dvc.lock", yaml.safe_load(LOCK)["stages"]
    second = LOCK.index("  vocabulary")
    for length in range(0, len(LOCK), 7):
        shutil.rmtree(tmp_path / COPIES, ignore_errors=True)
        lock.write_text(LOCK[:length])
        recover(tmp_path)
        stages = yaml.safe_load(lock.read_text())["stages"]
        assert (stages or {}).keys() <= whole.keys()
        if length >= second:
            assert stages["download@kitchen"] == whole["download@kitchen"]


@pytest.mark.slow
def test_dvc_reads_a_lock_of_which_no_stage_was_whole(tmp_path: Path) -> None:
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    run([*DVC, "init", "--no-scm", "--quiet"])
    (tmp_path / "dvc.yaml").write_text("stages: {first: {cmd: echo 1 > out, outs: [out]}}")
    (tmp_path / "dvc.lock").write_text(LOCK[:30])
    recover(tmp_path)
    assert "first" in run([*DVC, "status"]).stdout


def test_other_damage_than_a_cut_without_a_copy_is_named_and_left(tmp_path: Path) -> None:
    damaged = LOCK.replace("    cmd: python -m pipeline download kitchen", "    cmd: [")
    (tmp_path / "dvc.lock").write_text(damaged)
    with pytest.raises(LineageError, match="is not valid YAML"):
        recover(tmp_path)
    assert (tmp_path / "dvc.lock").read_text() == damaged


def test_the_copy_follows_every_sound_lock(root: Path) -> None:
    newer = LOCK.replace("size: 12", "size: 13")
    (root / "dvc.lock").write_text(newer)
    recover(root)
    (root / "dvc.lock").write_text("")
    recover(root)
    assert (root / "dvc.lock").read_text() == newer
    assert (root / BESIDE / "dvc.lock").read_text() == LOCK, "each suite has a copy of its own"


def test_the_holder_of_a_checkout_finds_it_mended(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "dvc.lock").write_text(LOCK[:100])
    with hold_checkout(root, wait=False, purpose="test"):
        assert (root / "dvc.lock").read_text() == LOCK
    assert (
        "dvc.lock was damaged; the last whole one was put back; the damaged file is kept as .dvc/tmp"
        in capsys.readouterr().out
    )


def merge(root: Path, *, style: str) -> str:
    """Let git fail to merge two branches that changed one line of dvc.lock; returns what it left of the file."""

    def git(*words: str, code: int = 0) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", f"merge.conflictStyle={style}")
        assert subprocess.run(["git", *identity, *words], cwd=root, check=False, capture_output=True).returncode == code

    git("init", "-q", "-b", "main")
    git("add", "dvc.lock")
    git("commit", "-qm", "before")
    for branch, size in (("theirs", 13), ("ours", 14)):
        git("checkout", "-qb", branch, "main")
        (root / "dvc.lock").write_text(LOCK.replace("size: 12", f"size: {size}"))
        git("commit", "-qam", branch)
    git("merge", "theirs", code=1)
    return (root / "dvc.lock").read_text()


@pytest.mark.parametrize("style", ["merge", "diff3"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_merge_conflict_is_left_to_the_user_and_stops_the_run(root: Path, style: str, ending: str) -> None:
    conflict = merge(root, style=style).replace("\n", ending)
    assert "size: 13" in conflict and "size: 14" in conflict
    (root / "dvc.lock").write_bytes(conflict.encode())
    with (
        pytest.raises(SuiteError, match=r"dvc\.lock holds a merge conflict") as caught,
        hold_checkout(root, wait=False, purpose="test"),
    ):
        pytest.fail("the run began")
    assert (root / "dvc.lock").read_bytes() == conflict.encode()
    line = conflict.split(ending).index("<<<<<<< HEAD") + 1
    assert caught.value.where == f"dvc.lock, line {line}"
    assert "git checkout --ours dvc.lock" in caught.value.remedy
    # With one side taken the run begins, and what was decided is what is kept.
    subprocess.run(["git", "checkout", "-q", "--theirs", "dvc.lock"], cwd=root, check=True)
    with hold_checkout(root, wait=False, purpose="test"):
        assert "size: 13" in (root / "dvc.lock").read_text()


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> theirs"])
def test_one_marker_that_was_overlooked_is_a_conflict_too(root: Path, marker: str) -> None:
    path = root / BESIDE / "dvc.lock"
    path.write_text(LOCK.replace("  vocabulary:", f"{marker}\n  vocabulary:"))
    with pytest.raises(SuiteError, match=f"{BESIDE}/dvc.lock holds a merge conflict"):
        recover(root)
    odd = root / "suites/x$(touch PWNED)/dvc.lock"
    odd.parent.mkdir()
    path.rename(odd)
    with pytest.raises(SuiteError) as refused:
        recover(root)
    assert "git checkout --ours 'suites/x$(touch PWNED)/dvc.lock', or" in refused.value.remedy


@pytest.mark.parametrize("content", ["", '{"wri', '{"write": {}, "read": {'])
def test_a_damaged_table_of_paths_in_use_is_removed_and_a_sound_one_stays(root: Path, content: str) -> None:
    table = root / PATHS_IN_USE
    table.write_text(content)
    recover(root)
    assert not table.exists()
    table.write_text(json.dumps({"write": {}, "read": {}}))
    recover(root)
    assert table.exists()


@pytest.mark.parametrize("text", ["yes", "no", "on", "1:30", "12:30:45", ".5e3"])
def test_a_lock_with_texts_that_dvc_leaves_without_quotes_is_sound(root: Path, text: str) -> None:
    newer = LOCK.replace("source: package", f"source: {text}\n        {text}: 1")
    (root / "dvc.lock").write_text(newer)
    recover(root)
    assert (root / "dvc.lock").read_text() == newer
    (root / "dvc.yaml").write_text("stages: {}\n")
    entry = load_graph(WorkingTree(root), "quick").locked["download@kitchen"]
    assert alike(entry.params["suite.yaml"], {"source": text, text: 1})
