"""Audits and traces in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.lineage.audit import Audit, Verdict
from pipeline.lineage.numbers import Number
from pipeline.lineage.scope import STATES, Cause, join_lines
from pipeline.lineage.trace import Edge, Node, Trace

# Causes of one kind beyond this many are counted, not listed; the JSON has them all.
SHOWN = 8
# How much of a long value a line of the tree shows; the JSON has it whole.
WIDTH = 160

WORDS: dict[Verdict, str] = {
    "verified": "verified", "wrong": "wrong", "unwitnessed": "without witness", "uncommitted": "uncommitted",
    "unmade": "not made yet", "absent": "absent here",
}  # fmt: skip


def audit_text(found: Audit) -> str:
    """Counts, then the causes by state: each once, with the numbers that rest on it."""
    head = f" (commit {found.commit[:10]})" if found.commit else ""
    counts = ", ".join(
        f"{found.count(verdict)} {words}"
        for verdict, words in WORDS.items()
        if verdict in ("verified", "wrong") or found.count(verdict)
    )
    if found.faults_apart:
        counts += f"; wrong files on which no number rests: {found.faults_apart}"
    lines = [f"suite {found.suite}, {found.tree}{head}: {len(found.findings)} reported numbers", f"  {counts}"]
    lines += [f"  note: {remark}" for remark in (*found.remarks, found.signature) if remark]
    lines += [f"  run again: {line}" for line in _remade(found)]
    for state in STATES:
        causes = {cause: numbers for cause, numbers in found.causes.items() if cause.state == state}
        if causes:
            lines += ["", f"{WORDS[state].capitalize()}, by first cause:"]
            lines += [line for kind in dict.fromkeys(c.kind for c in causes) for line in _kind(kind, causes)]
    return join_lines(lines)


def _remade(found: Audit) -> Iterator[str]:
    for outcome in dict.fromkeys(remade.outcome for remade in found.remade):
        stages = [remade.stage for remade in found.remade if remade.outcome == outcome]
        shown = ", ".join(stages[:4]) + (f" and {len(stages) - 4} more" if len(stages) > 4 else "")
        yield f"{len(stages)} stage{'s' if len(stages) > 1 else ''}, {outcome}: {shown}"


def _kind(kind: str, causes: dict[Cause, list[Number]]) -> Iterator[str]:
    own = [(cause, numbers) for cause, numbers in causes.items() if cause.kind == kind]
    for cause, numbers in own[:SHOWN]:
        yield f"  {kind}  {cause.subject}"
        yield f"      {cause.message}"
        yield f"      {_resting(numbers)}"
        yield f"      to do: {cause.remedy}"
    if len(own) > SHOWN:
        touched = len({number for _, numbers in own[SHOWN:] for number in numbers})
        yield f"  {kind}  and {len(own) - SHOWN} more, under {touched} numbers (all of them: --json)"


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
        "signature": found.signature,
        "remade": [vars(remade) for remade in found.remade],
        "causes": [{**vars(cause), "numbers": len(numbers)} for cause, numbers in found.causes.items()],
        "numbers": [
            vars(finding.number) | {"verdict": finding.verdict, "causes": [places[cause] for cause in finding.causes]}
            for finding in found.findings
        ],
    }


# --- traces -------------------------------------------------------------------------------------------


def trace_text(found: Trace) -> str:
    """The tree below a number. A thing that two branches rest on is described once."""
    number, node = found.number, found.nodes["number"]
    place = f"{number.row} × {number.column}" + ("" if number.field == "value" else f", {number.field}")
    lines = [f"{number.text}   {place}   ({node.facts['table']})"]
    lines += [f"   {node.state}: {node.facts['score']}"] if "score" in node.facts else []
    lines += _branches(found, "number", "", set())
    states = [node for node in found.nodes.values() if node.state not in ("", "as recorded")]
    lines += ["", *(f"{node.title}: {node.state}" for node in states)] if states else []
    return join_lines(lines)


def _branches(found: Trace, key: str, indent: str, described: set[str]) -> Iterator[str]:
    edges = found.below(key)
    for place, edge in enumerate(edges):
        last = place == len(edges) - 1
        node = found.nodes[edge.below]
        again = node.key in described
        yield f"{indent}{'└─' if last else '├─'} {_line(node, edge)}{', see above' if again else ''}"
        if again:
            continue
        described.add(node.key)
        inner = indent + ("   " if last else "│  ")
        bar = "│  " if found.below(node.key) else "   "
        yield from (f"{inner}{bar}{fact}" for fact in describe_facts(node))
        yield from _branches(found, node.key, inner, described)


def _line(node: Node, edge: Edge) -> str:
    return f"{title_of(node)}  [{edge.hash}]" + (f"  {node.state}" if node.state not in ("", "as recorded") else "")


def title_of(node: Node) -> str:
    """The name of a thing, with its kind where the name alone does not say it."""
    return f"{node.kind} {node.title}" if node.kind in ("stage", "model") else node.title


def describe_facts(node: Node) -> Iterator[str]:
    """A line for each fact of a thing, long values cut; of a file nothing but its hashes is known, which edges have."""
    for name, value in node.facts.items():
        if node.kind == "file" or (node.kind == "code" and name == "files"):
            continue
        text = _value(value)
        yield f"{name}: {text if len(text) <= WIDTH else f'{text[: WIDTH - 3]}...'}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items())
    return ", ".join(map(_value, value)) if isinstance(value, list) else str(value)
