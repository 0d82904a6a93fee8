"""What a report says of the machine that made it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.stages.report import describe_environment


@pytest.mark.parametrize("build", ["2.13.0", "2.13.0+cpu"])
def test_two_builds_of_one_version_give_the_same_lineage(
    build: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / f"torch-{build}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {build}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert describe_environment()["libraries"]["torch"] == "2.13.0"
