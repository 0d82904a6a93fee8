"""One small suite that has run, copied for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lineage.small import Small, make_small


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The small suite, run and committed; never changed."""
    return make_small(tmp_path_factory.mktemp("small") / "checkout")


@pytest.fixture
def small(finished: Small, tmp_path: Path) -> Small:
    """A copy of it."""
    return finished.copy(tmp_path / "copy")
