"""The run manifest in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.lineage.manifest import Manifest

MEGA = 1_000_000


def runs_text(manifest: Manifest, suite: str) -> str:
    """One line per run, the latest last; then what did not come to an end, and lines that cannot be read."""
    if not manifest.started and not manifest.ended:
        return f"suite {suite}: no run of a stage is recorded on this machine"
    lines = [_line(run) for run in manifest.ended]
    lines += [f"{run['started'][:19]}  {_fate(run)}  {run['stage'] or run['command']}" for run in manifest.unfinished]
    if manifest.torn:
        where = ", ".join(map(str, manifest.torn))
        lines.append(f"lines that are no record, torn by a kill or edited: {where}")
    return "\n".join(lines)


def _line(run: Mapping[str, Any]) -> str:
    code = run["code"]
    commit = (code["commit"] or "no git")[:10] + (" edited" if code["dirty"] else "")
    ended = "ok" if run["exit"] == 0 else f"exit {run['exit']}"
    took = f"{run['seconds']:8.1f} s  {run['peak_memory_bytes'] / MEGA:7.0f} MB"
    return f"{run['started'][:19]}  {took}  {ended}  {commit}  {run['stage'] or run['command']}"


def _fate(run: Mapping[str, Any]) -> str:
    alive = Path(f"/proc/{run['pid']}").exists()
    return "still runs, or its number went to another" if alive else "was killed"
