"""Tables and figures as HTML, for a page that allows no foreign script and no style attribute; texts are escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from xml.etree import ElementTree

from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

UNITS = {"x100": "×100", "count": "", "cosine": "", "rating or cosine": ""}

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"


# --- text ---------------------------------------------------------------------------------------


def prose(text: str) -> str:
    """Escaped text; `code` and *emphasis* as elements, and a minus sign before a number instead of a hyphen."""
    safe = escape(text)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    safe = re.sub(r"(?<!\w)\*([^*]+)\*(?!\w)", r"<em>\1</em>", safe)
    return minus(safe)


def minus(text: str) -> str:
    """A minus sign for every hyphen before a number that follows no letter or digit."""
    return re.sub(r"(?<![\w-])-(?=\d)", "−", text)


# --- tables -------------------------------------------------------------------------------------


class Notes:
    """What the links of a page lead to that is no score and no printed figure, each numbered once."""

    def __init__(self) -> None:
        self.blanks: dict[tuple[str, str], int] = {}
        self.computed: dict[tuple[str, str, tuple[str, ...]], int] = {}

    def blank(self, entry: Entry) -> str:
        """The link of a blank: to its reason and command."""
        return f"blank/{self.blanks.setdefault((entry.reason, entry.command), len(self.blanks))}"

    def link(self, entry: Entry) -> str:
        """The link of a number: to its score or figure, or to what it was computed from."""
        if not entry.about:
            return entry.link
        return f"about/{self.computed.setdefault((entry.about, entry.interval, entry.of), len(self.computed))}"


def table_section(table: Table, notes: Notes) -> str:
    """One table with its panels, what each shows, and its notes."""
    panels = "".join(_panel(table, letter, panel, notes) for letter, panel in table.lettered())
    name = escape(table.name)
    return (
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{prose(table.title)}</h2>'
        f"<p>{prose(table.about)}</p>{panels}</section>"
    )


def _panel(table: Table, letter: str, panel: Panel, notes: Notes) -> str:
    name = escape(f"{table.name}-{letter}")
    bodies = "".join(_body(group, panel, notes) for group in panel.groups)
    heads = "".join(_head(head) for head in panel.heads)
    shows = "".join(f"<p>{prose(sentence)}</p>" for sentence in panel.shows)
    return (
        f'<h3 id="{name}">({letter}) {prose(panel.title)}</h3>'
        f'<p class="protocol">Protocol: {prose(panel.protocol)}.</p>'
        + (f'<div class="shows"><h4>What this shows</h4>{shows}</div>' if shows else "")
        + f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{name}"><table><thead><tr>'
        f'<th scope="col"><button type="button">row</button></th>{heads}</tr></thead>{bodies}</table></div>'
        + "".join(f'<p class="caveats">{prose(caveat)}</p>' for caveat in panel.caveats)
        + _notes(panel)
    )


def _head(head: Head) -> str:
    unit = UNITS.get(head.unit, head.unit)
    small = f" <small>{escape(unit)}</small>" if unit and unit != "×100" and unit not in head.title else ""
    return f'<th scope="col"><button type="button">{escape(head.title)}{small}</button></th>'


def _body(group: Group, panel: Panel, notes: Notes) -> str:
    rows = "".join(_row(line, panel, notes) for line in group.lines)
    title = f'<tr class="group"><th scope="rowgroup" colspan="{1 + len(panel.heads)}">{escape(group.title)}</th></tr>'
    return f'<tbody class="{"printed" if group.printed else "measured"}">{title}{rows}</tbody>'


def _row(line: Line, panel: Panel, notes: Notes) -> str:
    made_of = f" <small>{escape(line.made_of)}</small>" if line.made_of else ""
    cells = "".join(
        _cell(entry, f"{line.name}, {head.title}", notes) for head, entry in zip(panel.heads, line.entries, strict=True)
    )
    return f'<tr><th scope="row">{escape(line.name)}{made_of}</th>{cells}</tr>'


def _cell(entry: Entry, where: str, notes: Notes) -> str:
    if entry.blank:
        label = escape(f"blank: {where}", quote=True)
        return f'<td><a class="blank" href="#{notes.blank(entry)}" aria-label="{label}">–</a></td>'
    number = minus(escape(entry.text))
    link = notes.link(entry)
    if link:
        number = f'<a class="n" href="#{escape(link, quote=True)}">{number}</a>'
    said = {1: ("up", "above, beyond chance"), -1: ("down", "below, beyond chance")}.get(entry.sign)
    if said is not None:
        number += f'<span class="{said[0]}" role="img" aria-label="{said[1]}">{entry.mark}</span>'
    for caveat in entry.caveats:
        number += f'<span class="caveat" role="img" aria-label="{escape(caveat.text, quote=True)}">{caveat.mark}</span>'
    interval = f'<span class="ci">{minus(escape(entry.interval))}</span>' if entry.interval else ""
    return f'<td data-v="{entry.value if entry.value is not None else ""}">{number}{interval}</td>'


def _notes(panel: Panel) -> str:
    notes = "".join(f"<p>{prose(note)}</p>" for note in panel.notes)
    return f'<details class="notes"><summary>How differences were judged</summary>{notes}</details>' if notes else ""


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
