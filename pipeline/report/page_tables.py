"""Tables of a page, as HTML; every text of theirs is escaped here."""

from __future__ import annotations

from html import escape
from string import ascii_lowercase

from pipeline.report.grid import Entry, Group, Head, Line, Panel, Table
from pipeline.report.layout import blank_text
from pipeline.report.page_text import minus, prose

UNITS = {"x100": "×100", "count": "", "cosine": "", "rating or cosine": ""}


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
        if entry.link or not entry.about:
            return entry.link
        return f"about/{self.computed.setdefault((entry.about, entry.interval, entry.of), len(self.computed))}"


def table_section(table: Table, notes: Notes) -> str:
    """One table with its panels, what each shows, and its notes."""
    panels = "".join(
        _panel(table, letter, panel, notes) for letter, panel in zip(ascii_lowercase, table.panels, strict=False)
    )
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
    interval = f'<span class="ci">{minus(escape(entry.interval))}</span>' if entry.interval else ""
    return f'<td data-v="{entry.value if entry.value is not None else ""}">{number}{interval}</td>'


def _notes(panel: Panel) -> str:
    reasons = dict.fromkeys(
        blank_text(entry)
        for group in panel.groups
        for line in group.lines
        for entry in line.entries
        if entry.blank and entry.reason != "not printed"
    )
    items = "".join(f"<li>{prose(reason)}</li>" for reason in reasons)
    blanks = f"<p>Blank places:</p><ul>{items}</ul>" if items else ""
    notes = "".join(f"<p>{prose(note)}</p>" for note in panel.notes)
    if not notes and not blanks:
        return ""
    summary = "How differences were judged, and what is blank" if notes else "What is blank, and what would fill it"
    return f'<details class="notes"><summary>{summary}</summary>{notes}{blanks}</details>'
