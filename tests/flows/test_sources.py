import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from flows.shared_cache import MARK, SharedCache
from flows.sources import pack_sources, unpack_sources
from pipeline.errors import RunError


def git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def of_python_3_11_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """tarfile as it is before Python 3.11.4: no filters, and an extractall that knows of none."""
    extract = tarfile.TarFile.extractall
    monkeypatch.delattr(tarfile, "data_filter", raising=False)

    def extract_all(archive: tarfile.TarFile, path: Path) -> None:
        extract(archive, path)

    monkeypatch.setattr(tarfile.TarFile, "extractall", extract_all)


@pytest.mark.usefixtures("of_python_3_11_3")
def test_sources_are_unpacked_by_a_tarfile_without_filters(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "text").write_text("x")
    unpack_sources(pack_sources(tmp_path), tmp_path / "copy")
    assert (tmp_path / "copy/text").read_text() == "x"


def test_sources_are_the_files_of_git_as_they_lie_there_committed_or_not(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    (root / "suites/other").mkdir(parents=True)
    (root / ".gitignore").write_text("/data/\n")
    for name in ("edited", "deleted", "as it was"):
        (root / name).write_text("committed")
    (root / "run").write_text("#!/bin/sh")
    (root / "run").chmod(0o755)
    (root / "suites/other/dvc.yaml").symlink_to("../../edited")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    (root / "edited").write_text("edited")
    (root / "deleted").unlink()
    (root / "new äöü").write_text("untracked")
    (root / "data").mkdir()
    (root / "data/large").write_text("ignored")

    copy = tmp_path / "copy"
    unpack_sources(pack_sources(root), copy)
    files = {str(path.relative_to(copy)): path.read_text() for path in copy.rglob("*") if path.is_file()}
    assert files == {
        ".gitignore": "/data/\n",
        "as it was": "committed",
        "edited": "edited",
        "new äöü": "untracked",
        "run": "#!/bin/sh",
        "suites/other/dvc.yaml": "edited",
    }
    assert str((copy / "suites/other/dvc.yaml").readlink()) == "../../edited"
    assert os.access(copy / "run", os.X_OK)


def test_a_folder_that_git_does_not_know_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(RunError, match="git cannot list"):
        pack_sources(tmp_path)


def test_another_folder_at_the_same_path_is_not_the_same_cache(tmp_path: Path) -> None:
    cache = SharedCache(tmp_path, "mark")
    assert not cache.is_seen()
    (tmp_path / MARK).write_text("another")
    assert not cache.is_seen()
    (tmp_path / MARK).write_text("mark")
    assert cache.is_seen()
