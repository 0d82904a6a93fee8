"""How often a fault is injected: a few times by default, twenty times in the set that takes hours."""

from __future__ import annotations

from typing import Any

import pytest

DEFAULT = 3
SLOW = 20


def injections(*case: object, default: int = DEFAULT, slow: int = SLOW) -> list[Any]:
    """Parameters of the injections of one case, `(*case, number)` each; those from `default` on are marked slow.

    All of them together take longer than continuous integration may, which runs each case at least once: those
    beyond are marked `hours` too.
    """
    return [pytest.param(*case, number, marks=_marks(number, default)) for number in range(slow)]


def _marks(number: int, default: int) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] * (number >= default) + [pytest.mark.hours] * (number >= max(default, 1))
