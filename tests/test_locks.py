"""A file system without locks is named."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from flows.lock import hold_checkout
from sentfold.decision.use import hold_file
from sentfold.errors import ArtifactError
from sentfold.fold.parts import hold_target
from sentfold.locks import try_lock


def test_a_lock_is_held_once_and_free_when_its_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as one, path.open("r+") as two:
        assert try_lock(one, path)
        assert not try_lock(two, path)
        one.close()
        assert try_lock(two, path)


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_is_an_error_that_names_the_file(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lustre that is mounted with noflock answers so; no test can mount one."""

    def refuse(*_values: object) -> None:
        raise OSError(code, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / "source").mkdir()
    for hold in (
        hold_file(tmp_path / "out/verdict.json"),
        hold_target(tmp_path / "target", source=tmp_path / "source"),
        hold_checkout(tmp_path, wait=False, purpose="test"),
    ):
        with pytest.raises(ArtifactError, match="has no locks") as refused, hold:
            pass
        assert str(tmp_path) in str(refused.value.where)
