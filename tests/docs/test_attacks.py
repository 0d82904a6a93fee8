"""docs/attacks.md names, for every attack, tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs/attacks.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| attack |")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_every_attack_names_tests_that_exist(row: list[str]) -> None:
    assert len(row) == 4 and all(row), "attack, before, now, test"
    for named in row[3].split(", "):
        file, _, test = named.partition("::")
        pattern = rf"^def {re.escape(test)}\(" if test else r"^def test_"
        assert re.search(pattern, (ROOT / file).read_text(), re.MULTILINE), named
