"""The run manifest: what ran when, where, on what code, with what, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.lineage.lines import append_line, read_lines


def manifest_path(root: Path, suite: str) -> Path:
    """Where the runs of a suite are written down: outside of what DVC hashes and git tracks."""
    return root / ".sentfold" / "runs" / f"{suite}.jsonl"


def take_runs(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Suite -> the records of its runs; they are gone from `root` then. For a copy whose runs belong elsewhere."""
    taken = {}
    for path in sorted(manifest_path(root, "").parent.glob("*.jsonl")):
        taken[path.stem] = read_lines(path)[0]
        path.unlink()
    return taken


def add_runs(root: Path, runs: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """Append records that `take_runs` took elsewhere. Raises OSError."""
    for suite, records in runs.items():
        for record in records:
            append_line(manifest_path(root, suite), record)


@dataclass(frozen=True)
class Manifest:
    """The runs of one suite's stages on this machine.

    ended    the record of every run that came to an end, well or badly, in the order of their ends
    started  the first words of every run
    torn     numbers of lines that are no record
    """

    ended: tuple[Mapping[str, Any], ...]
    started: tuple[Mapping[str, Any], ...]
    torn: tuple[int, ...]

    @cached_property
    def unfinished(self) -> tuple[Mapping[str, Any], ...]:
        """Runs that started and said no more: they were killed, or still run."""
        ended = {record.get("run") for record in self.ended}
        return tuple(record for record in self.started if record.get("run") not in ended)

    def latest(self) -> dict[str, Mapping[str, Any]]:
        """Stage -> its last run that succeeded."""
        return {str(record["stage"]): record for record in self.ended if record.get("stage") and record["exit"] == 0}

    def making(self, path: str, sha256: str) -> Mapping[str, Any] | None:
        """The last run that wrote a file with these bytes."""
        matching = (run for run in reversed(self.ended) if run["outputs"].get(path, {}).get("sha256") == sha256)
        return next(matching, None)


def read_manifest(root: Path, suite: str) -> Manifest:
    """The manifest of a suite; empty if nothing was recorded."""
    records, torn = read_lines(manifest_path(root, suite))
    by_event: dict[str, list[Mapping[str, Any]]] = {"started": [], "ended": []}
    for record in records:
        by_event.setdefault(str(record.get("event")), []).append(record)
    return Manifest(tuple(by_event["ended"]), tuple(by_event["started"]), tuple(torn))
