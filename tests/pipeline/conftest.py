"""A checkout to plan suites in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkout import make_checkout


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with the quick suite, and the working directory."""
    folder = make_checkout(tmp_path / "checkout", corpora="lee, wordsim")
    monkeypatch.chdir(folder)
    return folder
