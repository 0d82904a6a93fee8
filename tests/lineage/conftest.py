"""One small suite that has run, copied for every test."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.lineage.audit import audit
from tests.lineage.small import Small, make_small
from tests.lineage.tamper import CHOOSE


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The small suite, run and committed; never changed."""
    return make_small(tmp_path_factory.mktemp("small") / "checkout")


@pytest.fixture
def small(finished: Small, tmp_path: Path) -> Small:
    """A copy of it."""
    return finished.copy(tmp_path / "copy")


@pytest.fixture
def choosing(small: Small) -> Small:
    """The small suite with a stage that writes under reports/, and whose output decides a space."""
    small.edit("dvc.yaml", "  fold:\n", CHOOSE + "  fold:\n")
    small.edit("dvc.yaml", "deps: [stage.py, code/rules.py, \"data/${suite}/spaces/${key}\"]",
               "deps: [stage.py, code/rules.py, \"reports/${suite}/sweeps/chosen.txt\", "
               "\"data/${suite}/spaces/${key}\"]")  # fmt: skip
    small.run("dvc", "repro", "-q")
    small.commit("A choice")
    assert not audit(small.root, "quick").failed(strict=True)
    return small
