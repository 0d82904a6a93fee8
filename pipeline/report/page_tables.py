"""Tables and claims of a page, as HTML; every text of theirs is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import ascii_lowercase

from pipeline.report.claim_list import ORDER, basis, claim_command
from pipeline.report.grid import Entry, Group, Head, Line, Panel, Table
from pipeline.report.layout import blank_text
from pipeline.report.panels import PAPERS
from pipeline.report.verdicts import Decided

UNITS = {"x100": "×100", "count": "", "cosine": "", "rating or cosine": ""}
CLASSES = {"reproduced": "reproduced", "contradicted": "contradicted", "not testable here": "untestable"}


class BlankIndex:
    """Reasons of blank places over the whole page, each numbered once."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], int] = {}

    def number(self, entry: Entry) -> int:
        """The number of a blank's reason and command."""
        return self.found.setdefault((entry.reason, entry.command), len(self.found))


def table_section(table: Table, blanks: BlankIndex) -> str:
    """One table with its panels, what each shows, and its notes."""
    panels = "".join(
        _panel(table, letter, panel, blanks) for letter, panel in zip(ascii_lowercase, table.panels, strict=False)
    )
    name = escape(table.name)
    return f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{escape(table.title)}</h2><p>{escape(table.about)}</p>{panels}</section>'


def _panel(table: Table, letter: str, panel: Panel, blanks: BlankIndex) -> str:
    name = escape(f"{table.name}-{letter}")
    bodies = "".join(_body(group, panel, blanks) for group in panel.groups)
    heads = "".join(_head(head) for head in panel.heads)
    shows = "".join(f"<p>{escape(sentence)}</p>" for sentence in panel.shows)
    return (
        f'<h3 id="{name}">({letter}) {escape(panel.title)}</h3>'
        f'<p class="protocol">Protocol: {escape(panel.protocol)}.</p>'
        + (f'<div class="shows"><h4>What this shows</h4>{shows}</div>' if shows else "")
        + f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{name}"><table><thead><tr>'
        f'<th scope="col"><button type="button">row</button></th>{heads}</tr></thead>{bodies}</table></div>'
        + _notes(panel)
    )


def _head(head: Head) -> str:
    unit = UNITS.get(head.unit, head.unit)
    small = f" <small>{escape(unit)}</small>" if unit and unit != "×100" and unit not in head.title else ""
    return f'<th scope="col"><button type="button">{escape(head.title)}{small}</button></th>'


def _body(group: Group, panel: Panel, blanks: BlankIndex) -> str:
    rows = "".join(_row(line, panel, blanks) for line in group.lines)
    title = f'<tr class="group"><th scope="rowgroup" colspan="{1 + len(panel.heads)}">{escape(group.title)}</th></tr>'
    return f'<tbody class="{"printed" if group.printed else "measured"}">{title}{rows}</tbody>'


def _row(line: Line, panel: Panel, blanks: BlankIndex) -> str:
    made_of = f" <small>{escape(line.made_of)}</small>" if line.made_of else ""
    cells = "".join(
        _cell(entry, f"{line.name}, {head.title}", blanks)
        for head, entry in zip(panel.heads, line.entries, strict=True)
    )
    return f'<tr><th scope="row">{escape(line.name)}{made_of}</th>{cells}</tr>'


def _cell(entry: Entry, where: str, blanks: BlankIndex) -> str:
    if entry.blank:
        label = escape(f"blank: {where}", quote=True)
        return f'<td><a class="blank" href="#blank/{blanks.number(entry)}" aria-label="{label}">–</a></td>'
    number = escape(entry.text)
    if entry.link:
        number = f'<a class="n" href="#{escape(entry.link, quote=True)}">{number}</a>'
    said = {1: ("up", "above its baseline"), -1: ("down", "below its baseline")}.get(entry.sign)
    if said is not None:
        number += f'<span class="{said[0]}" role="img" aria-label="{said[1]}">{entry.mark}</span>'
    interval = f'<span class="ci">{escape(entry.interval)}</span>' if entry.interval else ""
    return f'<td data-v="{entry.value if entry.value is not None else ""}">{number}{interval}</td>'


def _notes(panel: Panel) -> str:
    reasons = dict.fromkeys(
        blank_text(entry)
        for group in panel.groups
        for line in group.lines
        for entry in line.entries
        if entry.blank and entry.reason != "not printed"
    )
    items = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
    blanks = f"<p>Blank places:</p><ul>{items}</ul>" if items else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in panel.notes)
    if not notes and not blanks:
        return ""
    return f'<details class="notes"><summary>How differences were judged, and what is blank</summary>{notes}{blanks}</details>'


# --- claims -------------------------------------------------------------------------------------


def claims_section(decided: Sequence[Decided], suite: str, introduction: str) -> str:
    """Every claim with its verdict, by paper, and boxes that choose by verdict."""
    boxes = "".join(
        f'<label><input type="checkbox" checked value="{CLASSES[verdict]}">{verdict}</label>' for verdict in ORDER
    )
    parts = []
    for source, paper in PAPERS.items():
        own = [one for one in decided if one.claim.source == source]
        if own:
            parts.append(
                f'<h3>{escape(paper)}</h3><ul class="claims">{"".join(_claim(one, suite) for one in own)}</ul>'
            )
    intro = escape(introduction.replace("`", "").replace("*", ""))
    return (
        '<section id="claims" aria-labelledby="claims-h"><h2 id="claims-h">Claims, and what the numbers say of them</h2>'
        f'<p>{intro}</p><fieldset class="choose"><legend>Show the claims that are</legend>{boxes}</fieldset>'
        f"{''.join(parts)}</section>"
    )


def _claim(one: Decided, suite: str) -> str:
    texts = [f"{basis(one)}{one.outcome.because}", one.control, one.caveat]
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in texts if text)
    fill = f"<p>To test it: {escape(one.outcome.command)}</p>" if one.outcome.command else ""
    return (
        f'<li class="{CLASSES[one.verdict]}" id="claim-{escape(one.name)}"><p class="verdict">{one.verdict}</p><div>'
        f'<p class="says">{escape(one.claim.says)}</p><p class="muted">{escape(one.claim.where)}; made on '
        f"{escape(one.claim.made_on)}</p>{paragraphs}{fill}"
        f"<p><code>{escape(claim_command(one.name, suite))}</code></p></div></li>"
    )
