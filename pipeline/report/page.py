"""The report as one self-contained page: no network, no foreign script, a policy that refuses both."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from pipeline.papers.ledger import INTRODUCTION, count_outcomes, describe_scope
from pipeline.papers.verdicts import Decided
from pipeline.report.evidence import Evidence
from pipeline.report.page_data import page_data
from pipeline.report.space_map import SpaceMap
from sentfold.report.drawing import PAGE_COLOURS
from sentfold.report.page import inline_svg, pack, prose
from sentfold.report.table import Table

PAGE_FILE = Path(__file__).with_name("page.html")
STYLE_FILE = Path(__file__).with_name("page.css")
SCRIPT_FILE = Path(__file__).with_name("page.js")
# The picture that the page draws itself, from its data.
INTERACTIVE = "differences"
# Outcome of a claim -> the class of its colour and sign.
CLASSES = {
    "reproduced": "holds", "carries over": "holds", "contradicted": "fails", "does not carry over": "fails",
    "undecided": "undecided", "not testable here": "untestable",
}  # fmt: skip


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
    mapped: SpaceMap | None = None,
) -> str:
    """The whole page. Its data are compressed and decoded in the browser, which draws a table when it is opened."""
    suite = evidence.results.suite.suite
    style, script = (path.read_text(encoding="utf-8") for path in (STYLE_FILE, SCRIPT_FILE))
    content = page_data(evidence, tables, decided)
    content["pictures"] = [_picture(picture) for picture in pictures if picture.name != INTERACTIVE]
    content["classes"] = CLASSES
    content["map"] = None if mapped is None else mapped.content()
    return Template(PAGE_FILE.read_text(encoding="utf-8")).substitute(
        answer=prose(content["answer"]["sentence"]),
        data=pack(content),
        papers=_papers(decided),
        papers_link='<a href="#papers">Papers</a>' if decided else "",
        script=script,
        script_hash=_hash(script),
        style=style,
        style_hash=_hash(style),
        suite=escape(suite),
        tally=_tally(decided),
        title=escape(page_title(suite, decided)),
    )


def page_title(suite: str, decided: Sequence[Decided]) -> str:
    """What the page is about: the papers where the suite decides claims, else the suite."""
    return f"What holds of five papers on sentence geometry: suite {suite}" if decided else f"Scores of suite {suite}"


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _tally(decided: Sequence[Decided]) -> str:
    """The counts of what is said of prints and of claims, a list for each heading; "" for a suite without claims."""
    if not decided:
        return ""
    parts = [f'<h2 id="tally-h">Claims of the papers</h2><p class="muted">{prose(describe_scope(decided))}</p>']
    for heading, counts in count_outcomes(decided).items():
        items = "".join(
            f'<li class="{CLASSES.get(word, "print")}"><b>{count}</b> <span class="verdict">{word}</span></li>'
            for word, count in counts.items()
        )
        name = f"{heading[:1].upper()}{heading[1:]}" or "No test"
        parts += [f'<div><h3>{name}</h3><ul class="tally">{items}</ul></div>'] if any(counts.values()) else []
    return f'<section class="ledger" aria-labelledby="tally-h">{"".join(parts)}</section>'


def _papers(decided: Sequence[Decided]) -> str:
    """The section of the papers, whose tabs the browser makes; "" for a suite without claims."""
    if not decided:
        return ""
    return (
        '<section id="papers" aria-labelledby="papers-h"><h2 id="papers-h">The papers</h2>'
        f'<details class="text"><summary>How claims are judged</summary><p>{prose(INTRODUCTION)}</p></details>'
        '<div id="tabs" role="tablist" aria-labelledby="papers-h"></div>'
        '<div id="paper" role="tabpanel" tabindex="0"></div></section>'
    )


def _picture(picture: Picture) -> dict[str, str]:
    drawing = inline_svg(picture.svg, name=picture.name, title=picture.title, colours=PAGE_COLOURS)
    return {"caption": picture.caption, "name": picture.name, "svg": drawing, "title": picture.title}
