"""How often a fault is injected: a few times by default, twenty times in the slow set."""

from __future__ import annotations

from typing import Any

import pytest

DEFAULT = 3
SLOW = 20


def injections(*case: object, default: int = DEFAULT, slow: int = SLOW) -> list[Any]:
    """Parameters of the injections of one case, `(*case, number)` each; those from `default` on are marked slow."""
    return [
        pytest.param(*case, number, marks=[pytest.mark.slow] if number >= default else []) for number in range(slow)
    ]
