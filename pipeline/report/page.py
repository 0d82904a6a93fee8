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
from typing import Any

from pipeline.report.claim_list import INTRODUCTION, ORDER
from pipeline.report.grid import Table
from pipeline.report.page_facts import page_facts
from pipeline.report.page_svg import inline_svg
from pipeline.report.page_tables import CLASSES, BlankIndex, claims_section, table_section
from pipeline.report.verdicts import Decided, Evidence

STYLE_FILE = Path(__file__).with_name("page.css")
SCRIPT_FILE = Path(__file__).with_name("page.js")
TITLE = "What holds of five papers on sentence geometry"


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
    lineage: Any = None,
) -> str:
    """The whole page. lineage: the content of lineage.json, or None to leave hashes to that file."""
    results, blanks = evidence.results, BlankIndex()
    suite = results.suite.suite
    body = [
        _header(suite, decided),
        f'<div class="layout">{_contents(tables, pictures)}<main id="main">',
        _found(decided, pictures),
        claims_section(decided, suite, INTRODUCTION),
        *(table_section(table, blanks) for table in tables),
        _pictures(pictures[1:]),
        "</main></div>",
        _footer(suite),
        _dialog(),
    ]
    facts = json.dumps(
        page_facts(results, tables, evidence.made_of, blanks, lineage),
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
    )
    return _document(f"{TITLE} · {suite}", "".join(body), facts)


def _document(title: str, body: str, facts: str) -> str:
    style, script = (path.read_text(encoding="utf-8") for path in (STYLE_FILE, SCRIPT_FILE))
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    # "<" cannot end the data block early, nor open a comment in it.
    data = facts.replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n"
        f'<script type="application/json" id="facts">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _header(suite: str, decided: Sequence[Decided]) -> str:
    return (
        '<a class="skip" href="#main">Skip to the tables</a><div class="frame"><header class="top">'
        f'<p class="kicker">sentfold · suite {escape(suite)}</p><h1>{TITLE}</h1>'
        f'<p class="lede">{len(decided)} claims, every table, ours beside theirs, each number with its interval and its '
        "control. Follow a number to its lineage.</p></header>"
    )


def _contents(tables: Sequence[Table], pictures: Sequence[Picture]) -> str:
    entries = [("found", "What was found"), ("claims", "Claims")]
    entries += [(table.name, table.title) for table in tables]
    entries += [("figures", "Figures")] if len(pictures) > 1 else []
    entries.append(("reading", "How to read this"))
    items = "".join(f'<li><a href="#{escape(name)}">{escape(title)}</a></li>' for name, title in entries)
    return f'<nav class="contents" aria-label="Contents"><h2>Contents</h2><ol>{items}</ol></nav>'


def _found(decided: Sequence[Decided], pictures: Sequence[Picture]) -> str:
    counts = Counter(one.verdict for one in decided)
    tally = "".join(
        f'<li class="{CLASSES[verdict]}"><b>{counts[verdict]}</b><span class="verdict">{verdict}</span></li>'
        for verdict in ORDER
    )
    return (
        '<section id="found" aria-labelledby="found-h"><h2 id="found-h">What was found</h2>'
        f"<p>Of {len(decided)} claims that a number can decide, on the encoders and word vectors of this suite:</p>"
        f'<ul class="tally">{tally}</ul>{"".join(_figure(picture) for picture in pictures[:1])}</section>'
    )


def _pictures(pictures: Sequence[Picture]) -> str:
    if not pictures:
        return ""
    figures = "".join(_figure(picture) for picture in pictures)
    return f'<section id="figures" aria-labelledby="figures-h"><h2 id="figures-h">Figures</h2>{figures}</section>'


def _figure(picture: Picture) -> str:
    drawing = inline_svg(picture.svg, name=picture.name, title=picture.title)
    caption = f"<b>{escape(picture.title)}.</b> {escape(picture.caption)}"
    return f'<figure id="figure-{escape(picture.name)}"><div class="art">{drawing}</div><figcaption>{caption}</figcaption></figure>'


def _footer(suite: str) -> str:
    return (
        '<footer id="reading"><h2>How to read this</h2>'
        "<p>Scores are ×100 where no unit is named. Below a score stands its percentile interval from a bootstrap that "
        "resamples what recurs: texts, groups of pairs that share texts, queries or items. A triangle marks a row that "
        "lies above (▲) or below (▼) its baseline beyond chance, all differences of a panel judged together. A dash "
        "is a blank: follow it to the reason. Columns hold one protocol each; where a paper's protocol is another or not "
        "stated, its figures have a panel of their own. Printed rows are in italics.</p>"
        "<p>Word vectors here are WordLlama's unless a row says otherwise: their rows are not the papers' GloVe rows.</p>"
        f"<p>Remade by <code>sentfold repro --suite {escape(suite)}</code>. Hashes of every artifact lie in "
        "<code>lineage.json</code> beside this page: they differ between processors, so this page, which is kept in "
        "version control, reads them from that file when asked.</p></footer></div>"
    )


def _dialog() -> str:
    return (
        '<p id="said" role="status" class="skip"></p>'
        '<dialog id="lineage" aria-labelledby="lineage-title"><button type="button" class="close" aria-label="Close">✕</button>'
        '<h2 id="lineage-title"></h2><dl id="lineage-facts"></dl>'
        '<section id="lineage-hashes" aria-label="Hashes"><ul id="hash-list"></ul>'
        '<p id="hash-ask" class="muted"><label for="hash-file">Show its inputs’ hashes: choose lineage.json, beside this '
        'page</label><br><input type="file" id="hash-file" accept=".json,application/json"></p>'
        '<p id="hash-note" role="alert"></p></section></dialog>'
    )
