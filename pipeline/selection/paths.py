"""Where the files of a sweep lie."""

from __future__ import annotations

from pathlib import Path


def sweep_folder(suite: str, encoder: str, selection: str) -> Path:
    """The folder of surface.json and selected.json (development data) and of oracle.json (test data)."""
    return Path("reports") / suite / "sweeps" / f"{encoder}-{selection}"
