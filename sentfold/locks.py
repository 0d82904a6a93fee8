"""A lock on an open file, which is free as soon as its holder is gone."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import IO

from sentfold.errors import ArtifactError, first_line

CHECKOUT_LOCK = Path(".dvc/tmp/sentfold.lock")  # which a run of stages holds
HELD_BY = "SENTFOLD_LOCK_HELD"  # tells all processes below the holder of the lock which process that is
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


def runs_elsewhere(root: Path) -> bool:
    """Whether a process that did not start this one holds the checkout `root`."""
    if HELD_BY in os.environ:
        return False
    try:
        file = os.open(root / CHECKOUT_LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False  # nobody ran anything here, or another account did
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(file)
    return False
