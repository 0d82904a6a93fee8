"""What `sentfold run` and `sentfold show` print of a report: its table, and how many texts were encoded otherwise."""

from __future__ import annotations

import json
from pathlib import Path

from sentfold.errors import escape_controls

MOST_LINES = 8


def summary_text(root: Path, suite: str) -> str:
    """The table of a suite's report, a line for each encoder that cut or did not know texts, and where the report is.

    The report may be a stranger's: control characters are escaped. Raises OSError if there is none.
    """
    folder = root / "reports" / suite
    table = (folder / "summary.txt").read_text(encoding="utf-8", errors="replace")
    counted = _counted(folder / "lineage.json")
    if len(counted) > MOST_LINES:
        counted = [*counted[:MOST_LINES], f"{len(counted) - MOST_LINES} more such lines: notes in lineage.json"]
    return "\n".join([escape_controls(table), *map(escape_controls, counted), f"report: reports/{suite}/report.md"])


def _counted(path: Path) -> list[str]:
    """A line for each encoder and corpus of which texts or words were encoded otherwise; [] if the file is unsound."""
    lines = []
    try:
        for place, space in json.loads(path.read_bytes())["spaces"].items():
            notes = space.get("notes", {})
            counts = {"texts cut at the model's limit": notes.get("truncated", 0), **notes.get("fallbacks", {})}
            if found := ", ".join(f"{what}: {count}" for what, count in counts.items() if count):
                lines.append(f"{place}: {found}")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []
    return lines
