"""What DVC would write outside of a suite's folders is refused before DVC runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.odd_files import cache_folder, refuse_odd_listings, refuse_odd_settings, refuse_odd_suite
from sentfold.errors import SuiteError
from tests.checkout import environment, make_checkout

DIGEST = "0123456789abcdef0123456789abcdef.dir"


def write_listing(root: Path, content: str, cache: str = ".dvc/cache") -> Path:
    """A lock whose one output is the folder that a listing in the cache describes."""
    place = root / cache / "files/md5" / DIGEST[:2] / DIGEST[2:]
    place.parent.mkdir(parents=True)
    place.write_text(content)
    lock = root / "dvc.lock"
    lock.write_text(f"stages: {{download: {{outs: [{{path: data, hash: md5, md5: {DIGEST}}}]}}}}\n")
    return lock


@pytest.mark.parametrize("name", ["../../../.bashrc", "a/../../b", "/etc/passwd", "", ".", "a\0b", None, 7], ids=repr)
def test_a_folder_of_the_lock_with_a_file_outside_of_it_is_refused(tmp_path: Path, name: object) -> None:
    listing = [{"md5": 32 * "a", "relpath": "good.parquet"}, {"md5": 32 * "b", "relpath": name}]
    lock = write_listing(tmp_path, json.dumps(listing))
    with pytest.raises(SuiteError, match="outside of the folder"):
        refuse_odd_listings(tmp_path, lock)


@pytest.mark.parametrize(
    "written",
    [f'"{DIGEST[:-4]}\\x2edir"', f"'{DIGEST}'", f'"{DIGEST[:9]}\\\n    {DIGEST[9:]}"', f"&a {DIGEST}", '"../../x.dir"'],
)
def test_a_listing_is_found_however_its_hash_is_written(tmp_path: Path, written: str) -> None:
    lock = write_listing(tmp_path, '[{"relpath": "../x"}]')
    lock.write_text(f"stages:\n  a:\n    outs:\n    - path: data\n      md5: {written}\n")
    with pytest.raises(SuiteError, match="outside of the folder"):
        refuse_odd_listings(tmp_path, lock)


def test_a_listing_of_an_older_dvc_is_read_too(tmp_path: Path) -> None:
    lock = write_listing(tmp_path, '[{"relpath": "../x"}]')
    (tmp_path / ".dvc/cache/files/md5" / DIGEST[:2]).rename(tmp_path / ".dvc/cache" / DIGEST[:2])
    with pytest.raises(SuiteError, match="outside of the folder"):
        refuse_odd_listings(tmp_path, lock)


@pytest.mark.parametrize("content", ["[" * 100_000, "{}}", '["a"]', '[{"md5": "x"}]'])
def test_a_listing_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(SuiteError):
        refuse_odd_listings(tmp_path, write_listing(tmp_path, content))


def test_a_sound_listing_and_one_that_is_not_here_pass(tmp_path: Path) -> None:
    lock = write_listing(tmp_path, json.dumps([{"relpath": "a.parquet"}, {"relpath": "inner/..b.parquet"}]))
    refuse_odd_listings(tmp_path, lock)
    refuse_odd_listings(tmp_path, tmp_path / "no.lock")
    lock.write_text(lock.read_text().replace("0123", "ffff"))
    refuse_odd_listings(tmp_path, lock)


def test_the_cache_is_that_of_dvc_s_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    assert cache_folder(tmp_path) == tmp_path / ".dvc/cache"
    lock = write_listing(tmp_path, '[{"relpath": "../x"}]', cache="shared")
    refuse_odd_listings(tmp_path, lock)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config.local").write_text("[cache]\n    dir = '../shared'\n['remote \"r\"']\n    url = x%y\n")
    with pytest.raises(SuiteError):
        refuse_odd_listings(tmp_path, lock)


@pytest.mark.parametrize("name", [".dvc/cache/runs/ab/cd", ".dvc/tmp/lock", ".dvc/config.local", ".sentfold/runs/x"])
def test_a_commit_that_brings_files_which_dvc_or_a_run_writes_is_refused(tmp_path: Path, name: str) -> None:
    """An entry of the cache of runs gives a stage outputs that no dvc.lock names."""
    refuse_odd_settings(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).symlink_to("/mine") if "tmp" in name else (tmp_path / name).write_text("cmd: touch x")
    for words in (["init", "-q"], ["add", "-f", "."]):
        refuse_odd_settings(tmp_path)
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    with pytest.raises(SuiteError, match="git tracks"):
        refuse_odd_settings(tmp_path)


@pytest.mark.parametrize("name", ["reports/benchmarks/encoders.json", "sentfold/words/lists.py"])
def test_a_link_among_what_all_suites_read_is_refused(tmp_path: Path, name: str) -> None:
    """DVC would hash /dev/zero without end."""
    (tmp_path / name).parent.mkdir(parents=True)
    refuse_odd_suite("quick", tmp_path)
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(SuiteError, match=Path(name).name):
        refuse_odd_suite("quick", tmp_path)


def test_no_folder_of_data_in_a_checkout_is_imported(tmp_path: Path) -> None:
    """`json` stood in for a library; `snappy` is one that libraries try, whether it is installed or not."""
    root, mark = make_checkout(tmp_path / "checkout"), tmp_path / "imported"
    for name in ("json", "yaml", "typer", "msvcrt", "snappy", "brotli", "lz4", "zstandard", "winreg", "_winapi"):
        (root / name).mkdir()
        (root / name / "__init__.py").write_text(f"open({str(mark)!r}, 'a').write('{name} ')\nraise ImportError")
    for words in (
        ("pipeline", "check", "--suite", "quick"),
        ("flows", "run", "--help"),
        ("flows.launch", "dask", "--help"),
        ("flows.launch", "prefect", "version"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=root, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert not mark.exists(), f"{words}: {mark.read_text()}"
