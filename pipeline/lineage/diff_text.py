"""A difference of two commits in words, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.lineage.changes import Change
from pipeline.lineage.diff import Difference, Moved
from pipeline.lineage.trees import git

# Scores and causes listed of a group; the JSON has them all.
SHOWN = 12
UNEXPLAINED = "nothing above changed; `sentfold audit` says whether both are sound:"
WORDS = {True: "outside", False: "inside"}


def diff_text(found: Difference, root: Path) -> str:
    """Groups of numbers that one set of changes moved: first the changes, then the numbers."""
    head = f"suite {found.suite}, {found.old[:10]} to {found.new[:10]}"
    lines = [f"{head}: {len(found.moved)} reported numbers differ, {found.unmoved} are alike"]
    for why, moved in found.by_cause().items():
        lines += ["", "changed above:" if why else UNEXPLAINED]
        lines += [f"  {_change(change, found, root)}" for change in _short(why)]
        if len(why) > SHOWN:
            lines.append(f"  and {len(why) - SHOWN} more (all of them: --json FILE)")
        lines += ["moved:", *(f"  {line}" for line in _numbers(moved))]
    return "\n".join(lines)


def _short(why: Sequence[Change]) -> Sequence[Change]:
    order = ("parameter", "command", "data", "stage", "code")
    return sorted(why, key=lambda change: order.index(change.kind))[:SHOWN]


def _change(change: Change, found: Difference, root: Path) -> str:
    if change.kind == "code":
        log = git(root, "log", "--format=%h %s", f"{found.old}..{found.new}", "--", change.subject) or b""
        commits = log.decode("utf-8", "replace").splitlines()
        more = f" and {len(commits) - 1} more" if len(commits) > 1 else ""
        return f"code {change.subject}" + (f"  ({commits[0]}{more})" if commits else "")
    if change.kind == "data":
        return f"data {change.subject}: other bytes, though nothing that makes it changed (another machine or source?)"
    return f"{change.kind} {change.subject}: {_brief(change.before)} -> {_brief(change.after)}"


def _brief(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _numbers(moved: Sequence[Moved]) -> Iterator[str]:
    """Each score once, the farthest first, then how many other numbers followed."""
    scores = [one for one in moved if one.number.origin == "score" and one.number.field == "value"]
    ordered = sorted(scores, key=lambda one: -abs(one.delta or 0.0))
    for one in ordered[:SHOWN]:
        yield _score(one)
    if len(ordered) > SHOWN:
        yield f"and {len(ordered) - SHOWN} more scores (all of them: --json FILE)"
    rest = Counter(_sort(one) for one in moved if one not in scores)
    if rest:
        yield "other numbers: " + ", ".join(f"{count} {sort}" for sort, count in rest.most_common())


def _sort(moved: Moved) -> str:
    if moved.number.origin in ("score", "difference"):
        return "differences" if moved.number.origin == "difference" else "bounds of scores"
    return f"of {moved.number.table.rpartition('/')[2]}"


def _score(moved: Moved) -> str:
    number = moved.number
    name = f"{number.space} × {number.corpus} {number.protocol}"
    if moved.delta is None:
        return f"{name}: {moved.before or 'none'} -> {moved.after or 'none'}"
    text = f"{name}: {moved.before} -> {moved.after} ({moved.delta:+.2f})"
    if moved.outside is None:
        return text
    return f"{text}, {WORDS[moved.outside]} its interval [{moved.low:.2f}, {moved.high:.2f}]"


def diff_content(found: Difference) -> dict[str, Any]:
    """The difference as data: every change once, and every number with its changes' positions."""
    changes = list(dict.fromkeys(change for moved in found.moved for change in moved.why))
    places = {change: place for place, change in enumerate(changes)}
    return {
        "suite": found.suite,
        "old": found.old,
        "new": found.new,
        "unmoved": found.unmoved,
        "changes": [vars(change) for change in changes],
        "numbers": [
            {
                "table": moved.number.table,
                "row": moved.number.row,
                "column": moved.number.column,
                "field": moved.number.field,
                "before": moved.before,
                "after": moved.after,
                "delta": moved.delta,
                "interval": [moved.low, moved.high],
                "outside_interval": moved.outside,
                "changes": [places[change] for change in moved.why],
            }
            for moved in found.moved
        ],
    }
