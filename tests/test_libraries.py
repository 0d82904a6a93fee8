"""Settings and compiled code that other people may have put where numba and torch look for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentfold.libraries import _cache_folder, prepare_libraries
from tests.checkout import ROOT

KERNEL = """
import os
import sentfold
sentfold.compress
import numba
from numba.core import config
print(config.CHROME_TRACE)
print(os.getcwd())
print(numba.njit(lambda x: x + 1)(2))
config.reload_config()
assert os.path.isabs(config._config_fname)
assert config.CHROME_TRACE == "" and config.CACHE_DIR == os.environ.get("NUMBA_CACHE_DIR", "")
"""


def python(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_numba_takes_no_settings_from_the_working_folder_at_any_time(tmp_path: Path) -> None:
    """`cache_dir` names a folder whose pickles numba loads, and `chrome_trace` a file that numba overwrites.

    The file comes behind every check that a command could make: numba looks for it when it compiles.
    """
    own = tmp_path / "cache"
    own.mkdir(mode=0o700)
    lost = tmp_path / "notes.txt"
    lost.write_text("three years of notes")
    (tmp_path / ".numba_config.yaml").write_text(f"chrome_trace: {lost}\ncache_dir: {tmp_path}/theirs\n")
    done = python(tmp_path, "-c", KERNEL, XDG_CACHE_HOME=str(own))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["", str(tmp_path), "3"]
    assert lost.read_text() == "three years of notes"


@pytest.mark.slow
@pytest.mark.parametrize("place", [{"XDG_CACHE_HOME": ".cache"}, {"XDG_CACHE_HOME": "", "HOME": "."}])
def test_a_relative_place_for_caches_is_not_the_working_folder(tmp_path: Path, place: dict[str, str]) -> None:
    """The working folder can be a stranger's, and then numba's settings and compiled code in it are, too."""
    (tmp_path / ".cache/sentfold").mkdir(parents=True)
    (tmp_path / ".cache/sentfold/.numba_config.yaml").write_text("cache_dir: loot")
    environment = {"HOME": str(tmp_path.parent), "NUMBA_CACHE_DIR": "", **place}
    code = "import sentfold\nsentfold.compress\nfrom numba.core import config\nprint(config.CACHE_DIR)"
    done = python(tmp_path, "-c", code, **environment)
    assert done.returncode == 0 and done.stdout.strip() != "loot", done.stderr


@pytest.mark.parametrize("has_home", [True, False])
def test_compiled_code_has_a_place_where_neither_the_code_nor_the_home_can_be_written_to(
    has_home: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container whose account did not install the package: numba found no place, and its decorator raised."""
    home = tmp_path / "file"
    home.touch()  # below which nothing can be made, by root either
    monkeypatch.setenv("HOME", str(home))
    if not has_home:
        monkeypatch.delenv("HOME")
        monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # raises KeyError, as for a number without an account
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr("sentfold.libraries.os.access", lambda *_: False)
    _cache_folder.cache_clear()
    try:
        prepare_libraries()
    finally:
        _cache_folder.cache_clear()
    assert Path.home() == (home if has_home else Path(os.environ["NUMBA_CACHE_DIR"]).parent)
    for name in ("NUMBA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        folder = Path(os.environ[name]).parent
        assert folder.stat().st_mode & 0o077 == 0 and folder.stat().st_uid == os.getuid()


@pytest.mark.parametrize("name", ["TORCHINDUCTOR_CACHE_DIR", "POLARS_OOC_SPILL_DIR"])
def test_the_folder_of_a_library_is_no_name_that_another_user_can_take(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "")
    monkeypatch.delenv(name)
    prepare_libraries()
    assert Path(os.environ[name]).is_relative_to(Path.home())


def test_polars_removes_folders_from_its_own_place_alone(tmp_path: Path) -> None:
    """Folders called 2019 in a folder of the user were lost, to which /var/tmp/polars-USER/spill was a link."""
    left = tmp_path / "sentfold/polars/99999999"  # the number of no process
    left.mkdir(parents=True)
    run = "import os; os.environ.pop('POLARS_OOC_SPILL_DIR', None)\nfrom sentfold.libraries import prepare_libraries\n"
    done = python(tmp_path, "-c", f"{run}prepare_libraries()\nimport polars", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert not left.exists()
