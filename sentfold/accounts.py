"""Files that other accounts of the machine can exchange, and private copies of them."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sentfold.errors import EncoderError, first_line


@contextmanager
def private_copy(folder: Path) -> Iterator[Path]:
    """The folder, without links on the way to it; where another account can exchange a file in it, a copy of it.

    The copy lasts as long as the block.
    Whoever checks the files of a folder and then has a library load them needs it. Cost: that of a copy, at most.
    Raises EncoderError.
    """
    folder = folder.resolve()  # what is judged is what is checked and loaded: a link can lead elsewhere a moment later
    if not others_can_exchange(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="sentfold-model-") as private:
        copy = Path(private, folder.name)
        try:
            shutil.copytree(folder, copy, ignore_dangling_symlinks=True)
        except (OSError, shutil.Error) as error:
            raise EncoderError(
                "a model's folder, in which other accounts can write, cannot be copied to a folder of your own",
                where=str(folder), expected=f"room in {tempfile.gettempdir()}, or in the folder that TMPDIR names",
                got=first_line(error)[:200],
            ) from None  # fmt: skip
        yield copy


def others_can_exchange(folder: Path) -> bool:
    """Whether an account other than this one and root can put another file in the place of one in a folder.

    Files of the group of this account count as its own, as many systems give each account a group.
    """
    folder = folder.resolve()
    inside = [folder, *folder.rglob("*")]
    behind = {path.resolve().parent for path in inside if path.is_symlink()}
    return any(_is_open(path) for path in (*inside, *behind)) or any(
        _is_open(path, sticky=True) for path in folder.parents
    )


def _is_open(path: Path, *, sticky: bool = False) -> bool:
    """sticky: whether a folder such as /tmp counts as closed, as accounts replace only their own files in it."""
    try:
        state = path.stat()
    except OSError:  # a link to nothing, or a folder that this account may not enter
        return True
    if state.st_uid not in (0, os.geteuid()):
        return True
    writable = state.st_mode & stat.S_IWOTH or (state.st_mode & stat.S_IWGRP and state.st_gid not in _own_groups())
    return bool(writable) and not (sticky and state.st_mode & stat.S_ISVTX)


def _own_groups() -> tuple[int, int]:
    return 0, os.getegid()
