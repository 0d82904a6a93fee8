"""Other dvc processes: a user's own `dvc repro` or `dvc status` takes no lock but DVC's."""

from __future__ import annotations

import re

from pipeline.errors import RunError

# What DVC says when another dvc process is in its way, and whom it names.
CONTENTION = re.compile(r"Unable to acquire lock|is busy, it is being blocked by")
BLOCKER = re.compile(r"\(PID (\d+)\): (.+)")

# What DVC says when it looks for an output's content in the cache just as another dvc process puts the same content
# there, for a stage whose output is equal: it then takes the output for the only copy. Seen in 25 of 600 stages that
# ended at the same moment in two checkouts with one cache. It says the same, and goes on saying it, where a user has
# put a file of their own in the place of an output that DVC wants to restore.
COLLISION = re.compile(r"unable to remove '[^'\n]*' without a confirmation")


class BusyError(RunError):
    """Another dvc process is in the way; later it will not be."""


def is_contention(text: str) -> bool:
    """Whether an error of DVC's says that another dvc process is in its way."""
    return CONTENTION.search(text) is not None


def describe_blocker(text: str) -> str:
    """In a few words, that another dvc process is in the way, and which if DVC named it."""
    named = BLOCKER.search(text)
    return "another dvc process is in its way" + (f" (process {named[1]}: {named[2].strip()})" if named else "")


def is_collision(text: str) -> bool:
    """Whether an error of DVC's may say that another dvc process was putting the same content into the cache."""
    return COLLISION.search(text) is not None
