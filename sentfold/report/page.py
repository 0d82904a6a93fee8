"""Tables and figures for a page that draws them in the browser: JSON-able content, packed data, SVG without styles."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

UNITS = {"x100": "", "count": "", "cosine": "", "rating or cosine": ""}

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"


# --- text and data ------------------------------------------------------------------------------


def prose(text: str) -> str:
    """Escaped text; `code` and *emphasis* as elements, and a minus sign before a number instead of a hyphen."""
    safe = escape(text)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    safe = re.sub(r"(?<!\w)\*([^*]+)\*(?!\w)", r"<em>\1</em>", safe)
    return re.sub(r"(?<![\w-])-(?=\d)", "−", safe)


def pack(content: Any) -> str:
    """JSON with sorted keys, compressed by gzip, in base64: equal content gives equal bytes.

    pyarrow compresses, because its wheel brings a zlib of a pinned version; Python takes the machine's zlib. The
    header of the result has no time.
    """
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return b64encode(pa.Codec("gzip", compression_level=9).compress(text.encode(), asbytes=True)).decode()


# --- tables -------------------------------------------------------------------------------------


class Notes:
    """What the side panel says of the cells, each text once. A cell names its note by number.

    A note is one of: ["score", space, corpus, protocol]; ["printed", number of the figure]; ["about", what was
    computed, interval, vectors]; ["blank", reason, command].
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}

    def number(self, entry: Entry) -> int:
        """The number of an entry's note."""
        if entry.blank:
            note: tuple[Any, ...] = ("blank", entry.reason, entry.command)
        elif entry.about or not entry.link:
            note = ("about", entry.about, entry.interval, entry.of)
        else:
            note = tuple(entry.link.split("/"))
        return self._numbers.setdefault(note, len(self._numbers))

    def content(self) -> list[list[Any]]:
        """Every note, by number."""
        return [list(note) for note in self._numbers]


def table_content(table: Table, notes: Notes) -> dict[str, Any]:
    """A table as JSON-able content."""
    panels = [_panel(letter, panel, notes) for letter, panel in table.lettered()]
    return {"about": table.about, "name": table.name, "panels": panels, "title": table.title}


def _panel(letter: str, panel: Panel, notes: Notes) -> dict[str, Any]:
    return {
        "caveats": list(panel.caveats),
        "groups": [_group(group, notes) for group in panel.groups],
        "heads": [_head(head) for head in panel.heads],
        "letter": letter,
        "notes": list(panel.notes),
        "protocol": panel.protocol,
        "shows": list(panel.shows),
        "title": panel.title,
    }


def _head(head: Head) -> str:
    unit = UNITS.get(head.unit, head.unit)
    return f"{head.title}, {unit}" if unit and unit not in head.title else head.title


def _group(group: Group, notes: Notes) -> dict[str, Any]:
    return {
        "lines": [_line(line, notes) for line in group.lines],
        "printed": group.printed,
        "title": group.title,
    }


def _line(line: Line, notes: Notes) -> list[Any]:
    return [line.name, line.made_of, [cell_content(entry, notes) for entry in line.entries]]


def cell_content(entry: Entry, notes: Notes) -> list[Any]:
    """The number of the note, text, interval, sign and caveats; empty ones at the end are left out."""
    caveats = [f"{caveat.mark} {caveat.text}" for caveat in entry.caveats]
    cell = [notes.number(entry), entry.text, entry.interval, entry.sign, caveats]
    while len(cell) > 1 and not cell[-1]:
        cell.pop()
    return cell


# --- figures ------------------------------------------------------------------------------------


def inline_svg(svg: bytes, *, name: str, title: str, colours: Mapping[str, str]) -> str:
    """An SVG file as an element of a page, with a name for screen readers.

    name     prefix of its ids, so that two figures on one page do not share a clip path or a glyph
    colours  colour of the file -> colour of the page, e.g. "#ffffff" -> "var(--card)", for light and dark pages
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}:
                parent.remove(child)
    for node in root.iter():
        _plain_attributes(node, name, colours)
    width, height = (root.attrib.pop(side).removesuffix("pt") for side in ("width", "height"))
    root.attrib.setdefault("viewBox", f"0 0 {width} {height}")
    root.attrib |= {"role": "img", "aria-label": title}
    return ElementTree.tostring(root, encoding="unicode")


def _plain_attributes(node: ElementTree.Element, name: str, colours: Mapping[str, str]) -> None:
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
            node.set(key, re.sub(r"#[0-9a-fA-F]{6}", lambda found: colours.get(found[0].lower(), found[0]), value))
