"""The pages of reference are made from the code, and leave nothing out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sentfold
from sentfold.cli.checkout import CHECKOUT_COMMANDS
from sentfold.cli.main import own_commands

ROOT = Path(__file__).parents[2]


def headings(page: str) -> set[str]:
    return {line[4:] for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("### ")}


def test_the_pages_are_current() -> None:
    command = [sys.executable, ".ci/reference_pages.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_command_and_every_public_name_has_a_section() -> None:
    assert {f"sentfold {name}" for name in (*own_commands(), *CHECKOUT_COMMANDS)} <= headings("docs/reference-cli.md")
    assert set(sentfold.EXPORTS) <= headings("docs/reference-api.md")
