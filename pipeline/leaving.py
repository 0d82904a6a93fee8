"""End a process without taking it apart."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn


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
