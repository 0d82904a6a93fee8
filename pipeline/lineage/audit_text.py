"""An audit in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.lineage.audit import Audit, Verdict
from pipeline.lineage.causes import Cause
from pipeline.lineage.numbers import Number

# Causes of one kind beyond this many are counted, not listed; the JSON has them all.
SHOWN = 8

WORDS: dict[Verdict, str] = {"verified": "verified", "absent": "absent here", "wrong": "wrong"}


def audit_text(found: Audit) -> str:
    """Counts, then what is wrong, then what is absent: each cause once, with the numbers that rest on it."""
    head = f" (commit {found.commit[:10]})" if found.commit else ""
    counts = ", ".join(f"{found.count(verdict)} {words}" for verdict, words in WORDS.items())
    if found.faults_apart:
        counts += f"; {found.faults_apart} wrong beside them, on which no number rests"
    lines = [f"suite {found.suite}, {found.tree}{head}: {len(found.findings)} reported numbers", f"  {counts}"]
    lines += [f"  note: {remark}" for remark in found.remarks]
    lines += [f"  run again: {line}" for line in _remade(found)]
    for title, wrong in (("Wrong", True), ("Absent here", False)):
        causes = {cause: numbers for cause, numbers in found.causes.items() if cause.wrong is wrong}
        if causes:
            lines += ["", f"{title}, by first cause:"]
            lines += [line for kind in dict.fromkeys(c.kind for c in causes) for line in _kind(kind, causes)]
    return "\n".join(lines)


def _remade(found: Audit) -> Iterator[str]:
    for outcome in dict.fromkeys(remade.outcome for remade in found.remade):
        stages = [remade.stage for remade in found.remade if remade.outcome == outcome]
        shown = ", ".join(stages[:4]) + (f" and {len(stages) - 4} more" if len(stages) > 4 else "")
        yield f"{len(stages)} stages, {outcome}: {shown}"


def _kind(kind: str, causes: dict[Cause, list[Number]]) -> Iterator[str]:
    own = [(cause, numbers) for cause, numbers in causes.items() if cause.kind == kind]
    for cause, numbers in own[:SHOWN]:
        yield f"  {kind}  {cause.subject}"
        yield f"      {cause.message}"
        yield f"      {_resting(numbers)}"
        yield f"      to do: {cause.remedy}"
    if len(own) > SHOWN:
        touched = len({number for _, numbers in own[SHOWN:] for number in numbers})
        yield f"  {kind}  and {len(own) - SHOWN} more, under {touched} numbers (all of them: --json FILE)"


def _resting(numbers: list[Number]) -> str:
    if not numbers:
        return "no number rests on it"
    shown = "; ".join(number.label for number in numbers[:2])
    rest = f" and {len(numbers) - 2} more" if len(numbers) > 2 else ""
    return f"{len(numbers)} number{'s' if len(numbers) > 1 else ''}: {shown}{rest}"


def audit_content(found: Audit) -> dict[str, Any]:
    """The audit as data: every cause, and every number with its verdict and its causes' positions."""
    places = {cause: place for place, cause in enumerate(found.causes)}
    return {
        "suite": found.suite,
        "tree": found.tree,
        "commit": found.commit,
        "counts": {**{verdict: found.count(verdict) for verdict in WORDS}, "faults_apart": found.faults_apart},
        "remarks": list(found.remarks),
        "remade": [vars(remade) for remade in found.remade],
        "causes": [{**vars(cause), "numbers": len(numbers)} for cause, numbers in found.causes.items()],
        "numbers": [
            {
                "table": finding.number.table,
                "line": finding.number.line,
                "row": finding.number.row,
                "column": finding.number.column,
                "field": finding.number.field,
                "text": finding.number.text,
                "origin": finding.number.origin,
                "verdict": finding.verdict,
                "causes": [places[cause] for cause in finding.causes],
            }
            for finding in found.findings
        ],
    }
