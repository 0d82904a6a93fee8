"""What `sentfold run` and `sentfold show` print of a report: its table, and how many texts were encoded otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sentfold.errors import escape_controls

CUT = "texts cut at the model's limit"


def summary_text(root: Path, suite: str) -> str:
    """The table of a suite's report, lines on what a reader has to know of its scores, and where the report is.

    Lines name corpora whose scores fall as texts are more alike, and count texts that encoders cut or did not know.
    The report may be a stranger's: control characters are escaped. Raises OSError if there is none.
    """
    folder = root / "reports" / suite
    table = (folder / "summary.txt").read_text(encoding="utf-8", errors="replace")
    lines = [*_reversed(folder / "scores"), *_counted(folder / "lineage.json")]
    return "\n".join([escape_controls(table), *map(escape_controls, lines), f"report: reports/{suite}/report.md"])


def _reversed(folder: Path) -> list[str]:
    """A line for each corpus of which an encoder's own cosine falls as the scores of pairs rise, beyond chance."""
    lines, paths = dict[str, str](), sorted(folder.glob("*.json"))
    for path in paths:
        if any(path.stem.startswith(f"{other.stem}-") for other in paths):
            continue  # made from another space
        for corpus, space in _read(path, "corpora").items():
            high = _object(_object(_object(space).get("scores")).get("spearman.all.cosine")).get("high")
            if isinstance(high, (int, float)) and high < 0:
                lines.setdefault(
                    corpus,
                    f"{corpus}: cosine falls as the scores rise, by {path.stem}. If these are distances, a space that "
                    "destroys such cosines counts as better: turn the scores round, so that larger means more alike",
                )
    return list(lines.values())


def _counted(path: Path) -> list[str]:
    """A line for each way in which texts or words were encoded otherwise: where there were most of them."""
    found = dict[str, list[tuple[int, str]]]()
    for place, space in _read(path, "spaces").items():
        notes = _object(_object(space).get("notes"))
        for what, count in {CUT: notes.get("truncated"), **_object(notes.get("fallbacks"))}.items():
            if isinstance(count, int) and count > 0:
                found.setdefault(what, []).append((count, place))
    more = {what: f"; also in {len(places) - 1} others" * (len(places) > 1) for what, places in found.items()}
    most = {what: max(places) for what, places in found.items()}
    return [f"{what}: {count:,} in {place}{more[what]} (lineage.json)" for what, (count, place) in most.items()]


def _read(path: Path, key: str) -> dict[str, Any]:
    """The object under a key of a JSON file; an empty one if there is none."""
    try:
        return _object(_object(json.loads(path.read_bytes())).get(key))
    except (OSError, ValueError, RecursionError):
        return {}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
