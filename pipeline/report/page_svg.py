"""A drawn figure as part of a page: no style attributes, which a strict policy refuses, and colours of the page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from pipeline.report.figures import COLOURS, GRID, INK, MUTED

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
# What is black on white in a file follows the reader's light or dark page.
_THEMED = {colour: f"var(--series-{i})" for i, colour in enumerate(COLOURS)} | {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    "#ffffff": "var(--card)",
    "#000000": "var(--ink)",
}


def inline_svg(svg: bytes, *, name: str, title: str) -> str:
    """An SVG file as an element of a page, with a name for screen readers.

    name  prefix of its ids, so that two figures on one page do not share a clip path or a glyph
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}:
                parent.remove(child)
    for node in root.iter():
        _plain_attributes(node, name)
    width, height = (root.attrib.pop(side).removesuffix("pt") for side in ("width", "height"))
    root.attrib.setdefault("viewBox", f"0 0 {width} {height}")
    root.attrib |= {"role": "img", "aria-label": title}
    return ElementTree.tostring(root, encoding="unicode")


def _plain_attributes(node: ElementTree.Element, name: str) -> None:
    for declaration in node.attrib.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font":
            continue  # text is drawn as paths
        if key:
            node.set(key, value)
    # matplotlib keeps these two of all paths in the style element that is left out.
    if node.tag == f"{{{_SVG}}}svg":
        node.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
    for key, value in list(node.attrib.items()):
        if key == "id":
            node.set(key, f"{name}-{value}")
        elif key == f"{{{_XLINK}}}href" and value.startswith("#"):
            node.set(key, f"#{name}-{value[1:]}")
        elif value.startswith("url(#"):
            node.set(key, value.replace("url(#", f"url(#{name}-"))
        elif key in {"fill", "stroke"}:
            node.set(key, re.sub(r"#[0-9a-fA-F]{6}", lambda found: _THEMED.get(found[0].lower(), found[0]), value))
