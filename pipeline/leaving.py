"""How a process ends: with its parent, or at once, without being taken apart."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
from typing import NoReturn


def die_with(parent: int) -> bool:
    """Make the kernel kill this process when its parent dies; False if it is dead already. On Linux; elsewhere True."""
    if sys.platform != "linux":
        return True
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)
    return os.getppid() == parent


def leave(code: int) -> NoReturn:
    """Exit at once, but for what was printed, which is written, or else the exit is Python's own, with code 120.

    Python would free every object first, a quarter of a second where scipy and numba are loaded. Handlers of
    `atexit` that have not run by now do not.
    """
    if wrote_everything():
        os._exit(code)
    sys.exit(code)


def wrote_everything() -> bool:
    """Whether all that was printed could be written."""
    logging.shutdown()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # closed from the start
                stream.flush()
    except (OSError, ValueError):
        return False
    return True
