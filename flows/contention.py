"""Other dvc processes: a user's own `dvc repro` or `dvc status` takes no lock but DVC's."""

from __future__ import annotations

import re

from pipeline.errors import RunError

# What DVC says when another dvc process is in its way, and whom it names.
CONTENTION = re.compile(r"Unable to acquire lock|is busy, it is being blocked by")
BLOCKER = re.compile(r"\(PID (\d+)\): (.+)")


class BusyError(RunError):
    """Another dvc process is in the way; later it will not be."""


def is_contention(text: str) -> bool:
    """Whether an error of DVC's says that another dvc process is in its way."""
    return CONTENTION.search(text) is not None


def describe_blocker(text: str) -> str:
    """In a few words, that another dvc process is in the way, and which if DVC named it."""
    named = BLOCKER.search(text)
    return "another dvc process is in its way" + (f" (process {named[1]}: {named[2].strip()})" if named else "")
