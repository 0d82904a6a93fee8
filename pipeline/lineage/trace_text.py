"""A trace in words, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.lineage.trace import Edge, Node, Trace

# What a line of the tree shows of a long value; the JSON has it whole.
WIDTH = 100


def trace_text(found: Trace) -> str:
    """The tree below a number. A thing that two branches rest on is told once."""
    number = found.number
    facts = found.nodes["number"].facts
    place = f"{number.row} × {number.column}" + ("" if number.field == "value" else f", {number.field}")
    lines = [f"{number.text}   {place}   ({facts['table']})"]
    node = found.nodes["number"]
    lines += [f"   {node.state}: {node.facts['score']}"] if "score" in node.facts else []
    told: set[str] = set()
    lines += _branches(found, "number", "", told)
    states = [node for node in found.nodes.values() if node.state not in ("", "as recorded")]
    lines += ["", *(f"{node.title}: {node.state}" for node in states)] if states else []
    return "\n".join(lines)


def _branches(found: Trace, key: str, indent: str, told: set[str]) -> Iterator[str]:
    edges = found.below(key)
    for place, edge in enumerate(edges):
        last = place == len(edges) - 1
        node = found.nodes[edge.below]
        again = node.key in told
        yield f"{indent}{'└─' if last else '├─'} {_line(node, edge)}{', told above' if again else ''}"
        if again:
            continue
        told.add(node.key)
        inner = indent + ("   " if last else "│  ")
        bar = "│  " if found.below(node.key) else "   "
        yield from (f"{inner}{bar}{fact}" for fact in _facts(node))
        yield from _branches(found, node.key, inner, told)


def _line(node: Node, edge: Edge) -> str:
    title = {"stage": f"stage {node.title}", "model": f"model {node.title}"}.get(node.kind, node.title)
    return f"{title}  [{edge.hash}]" + (f"  {node.state}" if node.state not in ("", "as recorded") else "")


def _facts(node: Node) -> Iterator[str]:
    for name, value in node.facts.items():
        if node.kind == "file":
            continue
        if node.kind == "code" and name == "files":
            continue
        text = _value(value)
        yield f"{name}: {text if len(text) <= WIDTH else f'{text[: WIDTH - 3]}...'}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items())
    return ", ".join(map(_value, value)) if isinstance(value, list) else str(value)


def trace_content(found: Trace) -> dict[str, Any]:
    """The graph as data."""
    return {
        "number": vars(found.number),
        "nodes": [vars(node) | {"facts": dict(node.facts)} for node in found.nodes.values()],
        "edges": [vars(edge) for edge in found.edges],
    }
