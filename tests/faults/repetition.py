"""How often a fault is injected: once in continuous integration, twenty times in hours."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

SLOW = 20

# The moment is halved at each try, on average; a machine must be a hundred times as fast as thought to be missed.
TRIES = 8


def injections(*case: object, slow: int = SLOW) -> list[Any]:
    """Parameters of the injections of one case, `(*case, number)` each: the first is marked slow, all others hours.

    slow     how many there are
    """
    return [pytest.param(*case, number, marks=_marks(number)) for number in range(slow)]


def _marks(number: int) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow, *[pytest.mark.hours] * (number > 0)]


def delays(moments: random.Random, seconds: float) -> Iterator[float]:
    """Random moments to strike at, in seconds: within `seconds`, and after each that came too late an earlier one.

    How long a process lives depends on the machine; a victim that was missed has shown that it is less than that.
    """
    for _ in range(TRIES):
        seconds = moments.uniform(0, seconds)
        yield seconds
