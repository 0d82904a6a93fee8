"""A lock on an open file, which is free as soon as its holder is gone."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path
from typing import IO

from sentfold.errors import ArtifactError, first_line

NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)  # what a file system without flock answers


def try_lock(file: IO[str] | int, path: Path) -> bool:
    """Whether this process has the lock now; false if another one has it.

    file, path  the open file, and its name for the error
    Raises ArtifactError on a file system without locks, such as Lustre that is mounted with noflock.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise ArtifactError(
            "the file system has no locks, which keep two commands from writing at once", where=str(path),
            got=first_line(error),
            remedy="write to a folder of another file system, such as a local disk; mount Lustre with -o flock",
        ) from None  # fmt: skip
    return True
