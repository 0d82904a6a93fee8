"""What DVC would write outside of a suite's folders is refused before DVC runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from flows.recovery import recover
from pipeline.odd_files import LIST_FILES, refuse_odd_lock, refuse_odd_settings, refuse_odd_suite
from sentfold.errors import SentfoldError, SuiteError
from tests.checkout import environment, make_checkout

MD5 = "0123456789abcdef0123456789abcdef"
SOUND = f"{{path: data/quick/plan, hash: md5, md5: {MD5}.dir, size: 50, nfiles: 1}}"


def write_lock(root: Path, entry: str, *, rest: str = "", side: str = "outs") -> None:
    """A dvc.lock of a stage with one entry."""
    stage = f"stages:\n  plan:\n    cmd: python -m pipeline plan\n    {side}:\n    - {entry}\n"
    (root / "dvc.lock").write_text(f"schema: '2.0'\n{stage}{rest}")


@pytest.mark.parametrize(
    ("entry", "rest"),
    [
        (SOUND.replace("}", ", files: [{relpath: ../../../.bashrc, md5: " + MD5 + "}]}"), ""),
        (SOUND.replace("hash: md5, ", "files: [{relpath: a, md5: " + MD5 + "}], "), ""),
        (SOUND.replace("}", ", cloud: {r: {etag: x}}}"), ""),
        (SOUND.replace(MD5, "aax/../../../../thesis.tex"), ""),
        (SOUND.replace(f"{MD5}.dir", "../../../../../thesis.tex"), ""),
        (SOUND.replace(f"{MD5}.dir", f'"{MD5}\\x2e\\x2e/dir"'), ""),
        (SOUND.replace("hash: md5", "hash: etag"), ""),
        (SOUND.replace("data/quick/plan", "../mine"), ""),
        (SOUND.replace("data/quick/plan", "/etc"), ""),
        (SOUND, "    wdir: ../..\n"),
        (SOUND, "datasets: {}\n"),
    ],
)
@pytest.mark.parametrize("side", ["deps", "outs"])
def test_a_lock_that_leads_dvc_to_other_files_is_refused(tmp_path: Path, entry: str, rest: str, side: str) -> None:
    """DVC joins md5s and names of files to paths unread: it writes, reads and removes what they lead to."""
    write_lock(tmp_path, SOUND, side=side)
    refuse_odd_lock("quick", tmp_path)
    recover(tmp_path)
    write_lock(tmp_path, entry, rest=rest, side=side)
    with pytest.raises(SentfoldError, match=r"dvc\.lock"):
        refuse_odd_lock("quick", tmp_path)
    with pytest.raises(SentfoldError, match=r"dvc\.lock"):
        recover(tmp_path)


@pytest.mark.parametrize("name", ["suites", "reports"])
def test_a_link_in_place_of_all_suites_or_reports_is_refused(tmp_path: Path, name: str) -> None:
    refuse_odd_suite("quick", tmp_path)
    (tmp_path / name).symlink_to(".")
    with pytest.raises(SuiteError, match=name):
        refuse_odd_suite("quick", tmp_path)


def test_a_link_to_another_disk_in_place_of_data_is_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to("disk")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    refuse_odd_suite("quick", tmp_path)


def test_stages_of_a_suite_that_a_run_could_replace_are_refused(tmp_path: Path) -> None:
    """The file behind the link had the right bytes, and was in a folder to which DVC brought others."""
    folder = tmp_path / "suites/theirs"
    folder.mkdir(parents=True)
    (folder / "dvc.yaml").symlink_to("../../dvc.yaml")
    refuse_odd_suite("theirs", tmp_path)
    (folder / "dvc.yaml").unlink()
    (folder / "dvc.yaml").symlink_to("../../data/theirs/corpora/theirs/stages.yaml")
    with pytest.raises(SuiteError, match="a link to"):
        refuse_odd_suite("theirs", tmp_path)


@pytest.mark.parametrize("content", ["[" * 1_000_000, "{" * 1_000_000, "a: &a [x]\nb: [*a, *a]\n" * 1_000, "x", "[]"])
def test_a_lock_that_is_none_takes_no_time_and_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "dvc.lock").write_text(content)
    for refuse in (lambda: refuse_odd_lock("quick", tmp_path), lambda: recover(tmp_path)):
        with pytest.raises(SentfoldError, match=r"dvc\.lock"):
            refuse()


def test_a_merge_conflict_is_named_with_what_to_do(tmp_path: Path) -> None:
    write_lock(tmp_path, SOUND)
    lines = (tmp_path / "dvc.lock").read_text().splitlines(keepends=True)
    (tmp_path / "dvc.lock").write_text("".join([*lines[:3], "<<<<<<< HEAD\n", "=======\n", ">>>>>>> a\n", *lines[3:]]))
    with pytest.raises(SuiteError, match=r"(?s)merge conflict.*line 4.*git checkout --ours dvc\.lock"):
        refuse_odd_lock("quick", tmp_path)


def test_a_suite_without_a_lock_is_sound(tmp_path: Path) -> None:
    refuse_odd_lock("quick", tmp_path)


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_commands_refuse_such_a_lock_before_dvc_reads_it(tmp_path: Path, command: str) -> None:
    root = make_checkout(tmp_path / "checkout")
    write_lock(root, SOUND.replace("}", ", files: []}"))
    words = [sys.executable, "-P", "-m", "sentfold.cli.main", command, "--suite", "quick"]
    done = subprocess.run(words, cwd=root, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "key 'files'" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "name", [".dvc/cache/runs/ab/cd", ".dvc/tmp/lock", ".dvc/config.local", ".sentfold/runs/x", "data"]
)
def test_a_commit_that_brings_files_which_dvc_or_a_run_writes_is_refused(tmp_path: Path, name: str) -> None:
    """An entry of the cache of runs gives a stage outputs that no dvc.lock names."""
    refuse_odd_settings(tmp_path)
    (tmp_path / ".dvc/plots").mkdir(parents=True)
    (tmp_path / ".dvc/plots/mine.json").write_text("a template of DVC, which may be tracked")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-f", "."], cwd=tmp_path, check=True)
    refuse_odd_settings(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    if "tmp" in name or name == "data":
        (tmp_path / name).symlink_to(".")
    else:
        (tmp_path / name).write_text("cmd: touch x")
    for words in (["init", "-q"], ["add", "-f", "."]):
        refuse_odd_settings(tmp_path)
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    with pytest.raises(SuiteError, match="git tracks") as refused:
        refuse_odd_settings(tmp_path)
    advice = refused.value.remedy.partition(": ")[2]
    subprocess.run([*shlex.split(advice), "-q"], cwd=tmp_path, check=True)
    assert os.path.lexists(tmp_path / name), "the user's own file stays"
    refuse_odd_settings(tmp_path)


@pytest.mark.parametrize("reason", ["a checkout of another account", "a broken index", "no git", "a hook"])
def test_such_a_commit_is_refused_where_git_does_not_answer_or_is_asked_of_another_repository(
    tmp_path: Path, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".dvc/cache").mkdir(parents=True)
    (tmp_path / ".dvc/cache/x").write_text("x")
    for words in (["init", "-q"], ["add", "-f", "."]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    if reason == "a broken index":
        (tmp_path / ".git/index").write_bytes(b"no index")
    elif reason == "no git":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif reason == "a hook":
        subprocess.run(["git", "init", "-q", "other"], cwd=tmp_path, check=True)
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "other/.git"))
    else:
        other = {**os.environ, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
        assert subprocess.run(["git", "status"], cwd=tmp_path, env=other, capture_output=True, check=False).returncode
        subprocess.run(LIST_FILES, cwd=tmp_path, env=other, capture_output=True, check=True)
    told = "git does not say" if reason in ("a broken index", "no git") else "git tracks"
    with pytest.raises(SuiteError, match=told):
        refuse_odd_settings(tmp_path)


@pytest.mark.parametrize(("other", "own"), [(".DVC", ".dvc"), ("Data", "data"), (".d\u200cvc", ".dvc")])
def test_on_a_disk_without_case_other_names_of_such_files_are_refused_too(tmp_path: Path, other: str, own: str) -> None:
    (tmp_path / other / "tmp").mkdir(parents=True)
    (tmp_path / other / "tmp/lock").symlink_to("thesis.tex")
    for words in (["init", "-q"], ["add", "-f", "."]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    refuse_odd_settings(tmp_path)
    (tmp_path / own).mkdir()
    refuse_odd_settings(tmp_path)
    (tmp_path / own).rmdir()
    (tmp_path / own).symlink_to(other)  # so both names lead to one folder, as on such a disk
    with pytest.raises(SuiteError, match="git tracks"):
        refuse_odd_settings(tmp_path)


@pytest.mark.parametrize("name", ["reports/benchmarks/encoders.json", "sentfold/words/lists.py", "tests/a.txt"])
def test_a_link_among_what_all_suites_read_is_refused(tmp_path: Path, name: str) -> None:
    """DVC would hash /dev/zero without end."""
    (tmp_path / name).parent.mkdir(parents=True)
    refuse_odd_suite("quick", tmp_path)
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(SuiteError, match=Path(name).name):
        refuse_odd_suite("quick", tmp_path)


@pytest.mark.slow
def test_no_folder_of_data_in_a_checkout_is_imported(tmp_path: Path) -> None:
    """`json` stood in for a library; `snappy` is one that libraries try, whether it is installed or not."""
    root, mark = make_checkout(tmp_path / "checkout"), tmp_path / "imported"
    there = ("fnmatch", "hashlib", "json", "pathlib", "yaml", "typer")
    for name in (*there, "msvcrt", "nt", "snappy", "brotli", "lz4", "zstandard", "winreg", "_winapi"):
        (root / name).mkdir()
        (root / name / "__init__.py").write_text(f"open({str(mark)!r}, 'a').write('{name} ')\nraise ImportError")
    for words in (
        ("pipeline", "check", "--suite", "quick"),
        ("flows", "run", "--help"),
        ("flows.launch", "dask", "--help"),
        ("flows.launch", "prefect", "version"),
    ):
        # With -S no file of an environment has imported a module before, as the one of `make install` does.
        bare = environment() | {"PYTHONPATH": sysconfig.get_path("purelib")}
        for flags, given in (((), environment()), (("-S",), bare)):
            command = [sys.executable, *flags, "-m", *words]
            done = subprocess.run(command, cwd=root, env=given, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert not mark.exists(), f"{command}: {mark.read_text()}"
