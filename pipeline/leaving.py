"""End a process without taking it apart."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """Exit at once. Python would free every object first, a quarter of a second where scipy and numba are loaded.

    What was printed is written; handlers of `atexit` do not run. An output that cannot be written is told as Python
    does: exit code 120.
    """
    logging.shutdown()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # which tries once more, and says what is wrong
    os._exit(code)
