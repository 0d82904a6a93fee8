"""A trace as a picture: the tree below a number, a box for each thing, each line of text inside of its box.

The page is as wide as a printed page and as high as the tree. Every line is set to the width of its letters
(`textLength`), so that no font of a reader makes it longer than its box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

from pipeline.lineage.scope import join_lines
from pipeline.lineage.text import describe_facts, title_of
from pipeline.lineage.trace import Node, Trace
from sentfold.errors import ParameterError

WIDTH = 820  # of the page, in pixels
LETTER, LINE = 6.2, 15  # width of a letter of 10.5 pixels in a monospaced font, and height of a line
PAD, GAP, INDENT = 8, 10, 22  # inside of a box, below it, and for each step down
DEEPEST = 20  # steps that are indented; what is deeper is drawn below the last of them
TITLE = "What the number"
FACT_LINES = 3  # lines of a long fact; `--json` has it whole

STYLE = """
svg { background: #fff; color: #1c2127; font: 10.5px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }
text { fill: currentColor } .title { font-weight: 700 } .pale { opacity: .72 }
rect { fill: none; stroke: currentColor } path { fill: none; stroke: currentColor; opacity: .5 }
.number { stroke-width: 3 } .stage { stroke-width: 1.8 } .code { stroke-dasharray: 4 3 }
.bad rect { stroke: #a32020; stroke-width: 3 }
@media (prefers-color-scheme: dark) { svg { background: #15181b; color: #e7e3da } .bad rect { stroke: #f29a94 } }
"""


@dataclass(frozen=True)
class Box:
    """A node on the page. lines: (text, class of its style); above: the place of the box that rests on it, -1: none."""

    node: Node
    lines: tuple[tuple[str, str], ...]
    x: float
    y: float
    above: int

    @property
    def height(self) -> float:
        """In pixels."""
        return LINE * len(self.lines) + 2 * PAD

    @property
    def width(self) -> float:
        """In pixels: to the right edge of the page."""
        return WIDTH - PAD - self.x


def refuse_other_file(target: Path) -> None:
    """Raise ParameterError for a target that does not end in .svg, or is there and not the picture of a trace."""
    if target.suffix.lower() != ".svg":
        raise ParameterError("a picture is written as SVG", where=str(target), expected="a name that ends in .svg")
    if not target.is_file() or not target.stat().st_size:
        return
    with target.open("rb") as stream:
        head = stream.read(2000)
    if not (head.startswith(b"<svg ") and TITLE.encode() in head):
        raise ParameterError(
            "the target is not the picture of a trace", where=str(target),
            expected="a new name, or a file that this command wrote", remedy="another name; or move the file away",
        )  # fmt: skip


def draw_trace(found: Trace) -> str:
    """The tree as SVG: nothing is loaded and nothing runs; light or dark as the reader's system is."""
    boxes = place_boxes(found)
    height = boxes[-1].y + boxes[-1].height + PAD
    about = f"{TITLE} {found.number.text}, {found.number.row} × {found.number.column}, rests on"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
        f'height="{height:g}" role="img" aria-label="{escape(about)}">',
        f"<title>{escape(about)}</title><style>{STYLE}</style>",
        *(_draw_line(boxes[box.above], box) for box in boxes if box.above >= 0),
        *(_draw_box(box) for box in boxes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def place_boxes(found: Trace) -> list[Box]:
    """Every node below the one that rests on it; a node that several rest on is described once."""
    boxes: list[Box] = []
    described: set[str] = set()

    def place(key: str, hash_: str, depth: int, above: int) -> None:
        node, again = found.nodes[key], key in described
        described.add(key)
        x = PAD + INDENT * min(depth, DEEPEST)
        y = boxes[-1].y + boxes[-1].height + GAP if boxes else PAD
        letters = int((WIDTH - PAD - x - 2 * PAD) / LETTER)
        box = Box(node, tuple(_lines(node, hash_, letters, again=again)), x, y, above)
        boxes.append(box)
        own = len(boxes) - 1
        for edge in () if again else found.below(key):
            place(edge.below, edge.hash, depth + 1, own)

    place("number", "", 0, -1)
    return boxes


def _lines(node: Node, hash_: str, letters: int, *, again: bool) -> Iterator[tuple[str, str]]:
    yield from ((line, "title") for line in _wrap(f"{title_of(node)}{', see above' if again else ''}", letters))
    yield from ((line, "pale") for line in _wrap(hash_, letters))
    if again:
        return
    if node.state not in ("", "as recorded"):
        yield node.state, "title"
    for fact in describe_facts(node):
        lines = _wrap(fact, letters)
        if len(lines) > FACT_LINES:
            lines = [*lines[: FACT_LINES - 1], f"{lines[FACT_LINES - 1][: letters - 3]}..."]
        yield from ((line, "") for line in lines)


def _wrap(text: str, letters: int) -> list[str]:
    """Lines of at most so many letters, none that an SVG file cannot have."""
    return wrap(join_lines([text]), letters)


def _draw_box(box: Box) -> str:
    bad = ' class="bad"' if box.node.state == "not as recorded" else ""
    outline = (
        f'<rect class="{box.node.kind}" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" '
        f'rx="{0 if box.node.kind in ("number", "stage") else 8}"/>'
    )
    texts = (
        f'<text class="{style}" x="{box.x + PAD:g}" y="{box.y + PAD + LINE * (row + 0.75):g}" '
        f'textLength="{LETTER * len(text):g}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
        for row, (text, style) in enumerate(box.lines)
        if text
    )
    return f"<g{bad}>{outline}{''.join(texts)}</g>"


def _draw_line(above: Box, below: Box) -> str:
    """From the left part of the lower edge of a box down to the left edge of one below it."""
    x, y = above.x + INDENT / 2, below.y + PAD + LINE / 2
    return f'<path d="M{x:g},{above.y + above.height:g} V{y:g} H{below.x:g}"/>'
