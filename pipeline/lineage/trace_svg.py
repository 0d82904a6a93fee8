"""A trace as a picture: left the number, to its right what it rests on. No colours, so it survives any printer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from pipeline.lineage.trace import Node, Trace

WIDTH, LINE, PAD, GAP_X, GAP_Y = 250, 14, 8, 110, 14
LETTERS = 40

STYLE = """
svg { background: #fff; color: #111; font: 11px system-ui, sans-serif }
text { fill: currentColor } .small { font-size: 9px } .hash { font: 8px ui-monospace, monospace }
.box { fill: none; stroke: currentColor } .stage { stroke-width: 2.5 } .code { stroke-dasharray: 4 3 }
.number { stroke-width: 4 } .edge { fill: none; stroke: currentColor; opacity: .45 }
.bad { font-weight: bold } .title { font-weight: 600 }
@media (prefers-color-scheme: dark) { svg { background: #111; color: #eee } }
"""


@dataclass(frozen=True)
class Box:
    """A node with its place and its lines."""

    node: Node
    lines: tuple[str, ...]
    x: float
    y: float

    @property
    def height(self) -> float:
        """In pixels."""
        return LINE * len(self.lines) + 2 * PAD


def trace_svg(found: Trace) -> str:
    """The graph as SVG, readable in grey, light or dark as the reader's system is. Kinds differ by their outlines."""
    boxes = place_boxes(found)
    width = max(box.x for box in boxes.values()) + WIDTH + PAD
    height = max(box.y + box.height for box in boxes.values()) + PAD
    about = f"What the number {found.number.text}, {found.number.row} × {found.number.column}, rests on"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(about)}">',
        f"<title>{escape(about)}</title><style>{STYLE}</style>",
        *(_edge(boxes[edge.above], boxes[edge.below], edge.hash) for edge in found.edges),
        *(_box(box) for box in boxes.values()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def place_boxes(found: Trace) -> dict[str, Box]:
    """Every node in the column of its longest way from the number, below the ones that came before it."""
    depth = depths(found)
    filled: dict[int, float] = {}
    boxes = {}
    for key, node in sorted(found.nodes.items(), key=lambda item: depth[item[0]]):
        column = depth[key]
        box = Box(node, _lines(node), PAD + column * (WIDTH + GAP_X), filled.get(column, PAD))
        boxes[key] = box
        filled[column] = box.y + box.height + GAP_Y
    return boxes


def depths(found: Trace) -> Mapping[str, int]:
    """The length of the longest way from the number to each node."""
    depth = dict.fromkeys(found.nodes, 0)
    for _ in found.nodes:
        moved = False
        for edge in found.edges:
            if depth[edge.below] < depth[edge.above] + 1:
                depth[edge.below], moved = depth[edge.above] + 1, True
        if not moved:
            break
    return depth


def _lines(node: Node) -> tuple[str, ...]:
    facts = [
        f"{name}: {value}" for name, value in node.facts.items() if not isinstance(value, dict | list) and name != "md5"
    ]
    state = [] if node.state in ("", "as recorded") else [node.state]
    return tuple(_short(text) for text in (node.title, *state, *facts[:4]))


def _short(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS // 2 - 1]}…{text[-LETTERS // 2 :]}"


def _box(box: Box) -> str:
    round_ = {"file": 8, "number": 0, "stage": 0, "source": 20, "model": 20}.get(box.node.kind, 0)
    bad = box.node.state == "not as recorded"
    rows = []
    for row, text in enumerate(box.lines):
        style = "title" if row == 0 else "small bad" if bad and row == 1 else "small"
        y = box.y + PAD + LINE * (row + 0.8)
        rows.append(f'<text class="{style}" x="{box.x + PAD}" y="{y:.1f}">{escape(text)}</text>')
    place = f'x="{box.x}" y="{box.y}" width="{WIDTH}" height="{box.height}" rx="{round_}"'
    outline = f'<rect class="box {box.node.kind}" {place}/>'
    return f"<g><title>{escape(box.node.title)}</title>{outline}{''.join(rows)}</g>"


def _edge(above: Box, below: Box, hash_: str) -> str:
    x1, y1 = above.x + WIDTH, above.y + above.height / 2
    x2, y2 = below.x, below.y + below.height / 2
    middle = (x1 + x2) / 2
    line = f'<path class="edge" d="M{x1},{y1:.1f} C{middle},{y1:.1f} {middle},{y2:.1f} {x2},{y2:.1f}"/>'
    kind, _, digest = hash_.partition(" ")
    label = f'<text class="hash" x="{x2 - GAP_X + 10}" y="{y2 - 3:.1f}">{escape(f"{kind} {digest[:10]}")}</text>'
    return f"<g><title>{escape(hash_)}</title>{line}{label}</g>"
