"""How often a fault is injected: a few once by default, each kind in continuous integration, twenty times in hours."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

CI = 3
SLOW = 20

# The moment is halved at each try, on average; a machine must be a hundred times as fast as thought to be missed.
TRIES = 8


def injections(*case: object, default: int = 0, ci: int = 1, slow: int = SLOW) -> list[Any]:
    """Parameters of the injections of one case, `(*case, number)` each.

    default  how many of them the default tests run, where a fault takes 5 to 20 s; those beyond are marked slow
    ci       how many continuous integration runs, which runs the slow ones, too; those beyond are marked hours
    slow     how many there are
    """
    return [pytest.param(*case, number, marks=_marks(number, default, max(default, ci))) for number in range(slow)]


def _marks(number: int, default: int, ci: int) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] * (number >= default) + [pytest.mark.hours] * (number >= ci)


def delays(moments: random.Random, seconds: float) -> Iterator[float]:
    """Random moments to strike at, in seconds: within `seconds`, and after each that came too late an earlier one.

    How long a process lives depends on the machine; a victim that was missed has shown that it is less than that.
    """
    for _ in range(TRIES):
        seconds = moments.uniform(0, seconds)
        yield seconds
