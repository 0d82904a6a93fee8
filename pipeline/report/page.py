"""The report as one self-contained page: no network, no foreign script, a policy that refuses both."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from pipeline.report.claim_list import INTRODUCTION, ORDER
from pipeline.report.grid import Table
from pipeline.report.page_claims import CLASSES, claim_lists, verdict_boxes
from pipeline.report.page_facts import page_facts
from pipeline.report.page_svg import inline_svg
from pipeline.report.page_tables import Notes, table_section
from pipeline.report.page_text import prose
from pipeline.report.verdicts import Decided, Evidence

PAGE_FILE = Path(__file__).with_name("page.html")
STYLE_FILE = Path(__file__).with_name("page.css")
SCRIPT_FILE = Path(__file__).with_name("page.js")


@dataclass(frozen=True)
class Picture:
    """A figure of the page. title: what it is; caption: what to see in it; svg: the file's bytes."""

    name: str
    title: str
    caption: str
    svg: bytes


def write_page(
    evidence: Evidence,
    tables: Sequence[Table],
    decided: Sequence[Decided],
    pictures: Sequence[Picture],
    *,
    lineage: Any = None,
    extra: str = "",
) -> str:
    """The whole page, the first picture at its top.

    lineage  the content of lineage.json, or None to leave hashes to that file
    extra    HTML that follows the tables, escaped by whoever wrote it
    """
    notes, suite = Notes(), evidence.results.suite.suite
    style, script = (path.read_text(encoding="utf-8") for path in (STYLE_FILE, SCRIPT_FILE))
    sections = "".join(table_section(table, notes) for table in tables) + extra
    facts = page_facts(evidence, tables, notes, lineage)
    return Template(PAGE_FILE.read_text(encoding="utf-8")).substitute(
        choices=verdict_boxes(),
        claims=claim_lists(decided, suite),
        claims_count=len(decided),
        contents=_contents(tables),
        facts=_data(facts),
        figures="".join(_figure(picture) for picture in pictures[1:]),
        first_figure="".join(_figure(picture) for picture in pictures[:1]),
        introduction=prose(INTRODUCTION),
        script=script,
        script_hash=_hash(script),
        style=style,
        style_hash=_hash(style),
        suite=escape(suite),
        tables=sections,
        tally=_tally(decided),
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(facts: Any) -> str:
    text = json.dumps(facts, sort_keys=True, ensure_ascii=False, allow_nan=False)
    # "<" could end the data block early, or open a comment in it.
    return text.replace("<", "\\u003c")


def _contents(tables: Sequence[Table]) -> str:
    entries = [("found", "What was found"), ("claims", "Claims"), *((table.name, table.title) for table in tables)]
    entries += [("figures", "Figures"), ("reading", "How to read this")]
    return "".join(f'<li><a href="#{escape(name)}">{escape(title)}</a></li>' for name, title in entries)


def _tally(decided: Sequence[Decided]) -> str:
    counts = Counter(one.verdict for one in decided)
    return "".join(
        f'<li class="{CLASSES[verdict]}"><b>{counts[verdict]}</b><span class="verdict">{verdict}</span></li>'
        for verdict in ORDER
    )


def _figure(picture: Picture) -> str:
    drawing = inline_svg(picture.svg, name=picture.name, title=picture.title)
    caption = f"<b>{prose(picture.title)}.</b> {prose(picture.caption)}"
    name = escape(picture.name)
    return f'<figure id="figure-{name}"><div class="art">{drawing}</div><figcaption>{caption}</figcaption></figure>'
