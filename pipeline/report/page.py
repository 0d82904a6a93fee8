"""The report as one self-contained page: no network, no foreign script, a policy that refuses both."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from pipeline.papers.ledger import INTRODUCTION, TALLY, claim_command, count_outcomes, describe_scope, paragraphs
from pipeline.papers.published import PAPERS, load_published
from pipeline.papers.verdicts import OWN_CONDITIONS, Decided
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results
from sentfold.measures.registry import describe_protocol
from sentfold.report.drawing import PAGE_COLOURS
from sentfold.report.page import Notes, inline_svg, prose, table_section
from sentfold.report.table import Table

PAGE_FILE = Path(__file__).with_name("page.html")
STYLE_FILE = Path(__file__).with_name("page.css")
SCRIPT_FILE = Path(__file__).with_name("page.js")
# Outcome of a claim -> the class of its colour and sign.
CLASSES = {
    "reproduced": "holds", "carries over": "holds", "contradicted": "fails", "does not carry over": "fails",
    "undecided": "undecided", "not testable here": "untestable",
}  # fmt: skip
# Hashes of model files: they are in params.yaml, and hide what a reader looks for.
HIDDEN = ("sha256",)


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
) -> str:
    """The whole page, the first picture at its top."""
    notes, suite = Notes(), evidence.results.suite.suite
    style, script = (path.read_text(encoding="utf-8") for path in (STYLE_FILE, SCRIPT_FILE))
    sections = "".join(table_section(table, notes) for table in tables)
    facts = page_facts(evidence, tables, notes)
    return Template(PAGE_FILE.read_text(encoding="utf-8")).substitute(
        choices=outcome_boxes(),
        claims=claim_lists(decided, suite),
        claims_count=len(decided),
        contents=_contents(tables),
        facts=_data(facts),
        figures="".join(_figure(picture) for picture in pictures[1:]),
        first_figure="".join(_figure(picture) for picture in pictures[:1]),
        introduction=prose(INTRODUCTION),
        scope=prose(describe_scope(decided)),
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
    """The counts of what is said of prints and of claims, a list for each heading."""
    parts = []
    for heading, counts in count_outcomes(decided).items():
        items = "".join(
            f'<li class="{CLASSES.get(word, "print")}"><b>{count}</b><span class="verdict">{word}</span></li>'
            for word, count in counts.items()
        )
        about = f'<p class="muted">{heading[0].upper()}{heading[1:]}</p>' if heading else ""
        parts.append(f'{about}<ul class="tally">{items}</ul>')
    return "".join(parts)


def _figure(picture: Picture) -> str:
    drawing = inline_svg(picture.svg, name=picture.name, title=picture.title, colours=PAGE_COLOURS)
    caption = f"<b>{prose(picture.title)}.</b> {prose(picture.caption)}"
    name = escape(picture.name)
    return f'<figure id="figure-{name}"><div class="art">{drawing}</div><figcaption>{caption}</figcaption></figure>'


# --- claims -------------------------------------------------------------------------------------


def outcome_boxes() -> str:
    """Boxes that choose which claims are shown, one for each outcome of claims."""
    return "".join(
        f'<label><input type="checkbox" checked value="{_choice(word, own=heading == OWN_CONDITIONS)}">'
        f"{word}{f', {heading}' if heading == OWN_CONDITIONS else ''}</label>"
        for heading, words in TALLY.items()
        for word in words
        if word in CLASSES
    )


def _choice(outcome: str, *, own: bool) -> str:
    return f"{'own-' if own else ''}{outcome.replace(' ', '-')}"


def claim_lists(decided: Sequence[Decided], suite: str) -> str:
    """Every claim with its verdict, a list for each paper."""
    parts = []
    for source, paper in PAPERS.items():
        own = "".join(_claim(one, suite) for one in decided if one.claim.source == source)
        if own:
            parts.append(f'<h3>{escape(paper)}</h3><ul class="claims">{own}</ul>')
    return "".join(parts)


def _claim(one: Decided, suite: str) -> str:
    said = "".join(
        f"<p>{f'<b>{prose(heading)}</b> ' if heading else ''}{prose(text)}</p>" for heading, text in paragraphs(one)
    )
    chosen = _choice(one.outcome, own=one.conditions == OWN_CONDITIONS)
    return (
        f'<li class="{CLASSES[one.outcome]} {chosen}" id="claim-{escape(one.name)}">'
        f'<p class="verdict">{one.outcome}</p><div><p class="says">{prose(one.claim.says)}</p>'
        f'<p class="muted">{prose(one.claim.where)}; said of {prose(one.claim.made_on)}</p>'
        f"{said}<p><code>{escape(claim_command(one.name, suite))}</code></p></div></li>"
    )


# --- facts --------------------------------------------------------------------------------------


def page_facts(evidence: Evidence, tables: Sequence[Table], notes: Notes) -> dict[str, Any]:
    """Everything that the links of these tables lead to, JSON-able. Hashes stay in lineage.json: machines differ."""
    results = evidence.results
    links = [entry.link.split("/") for table in tables for entry in table.entries if entry.link]
    scores = [
        (space, corpus, protocol) for kind, *rest in links if kind == "score" for space, corpus, protocol in [rest]
    ]
    sources = [(space, corpus) for *_, of in notes.computed for space, corpus in [one.split("/") for one in of]]
    figures = {figure.number: figure for figure in load_published()}
    return {
        "about": [[about, interval, list(of)] for about, interval, of in notes.computed],
        "blanks": [list(pair) for pair in notes.blanks],
        "confidence": f"{results.confidence:.0%}",
        "corpora": _corpora(evidence, {corpus for _, corpus, _ in scores} | {corpus for _, corpus in sources}),
        "printed": {
            number: [PAPERS[f.source], f.table, f.model, f.dataset, f.metric, f.printed, f.protocol]
            for number, f in ((int(rest[0]), figures[int(rest[0])]) for kind, *rest in links if kind == "printed")
        },
        "protocols": {protocol: describe_protocol(protocol) for _, _, protocol in scores},
        "resamples": results.resamples,
        "spaces": _spaces(evidence, scores, sources),
        "suite": results.suite.suite,
    }


def _spaces(
    evidence: Evidence, scores: Iterable[tuple[str, str, str]], sources: Iterable[tuple[str, str]]
) -> dict[str, Any]:
    """What made each space, and each corpus of it that a number links to, with the scores that are linked themselves.

    sources  (space, corpus) of the vectors that other numbers were computed from
    """
    results, made_of, found = evidence.results, evidence.made_of, dict[str, Any]()
    linked = [(space, corpus) for space, corpus, _ in scores]
    for space, corpus in dict.fromkeys([*linked, *sources]):
        if space not in found:
            parameters = _shown(evidence.parameters.get(space, {}))
            found[space] = {"corpora": {}, "made_of": made_of.get(space, ""), "parameters": parameters}
        facts = results.facts(space, corpus)
        drawn = facts.get("drawn", {})
        found[space]["corpora"][corpus] = {
            "dimension": facts.get("dimension"),
            "effective": drawn.get("effective_units"),
            "n": facts.get("n"),
            "scheme": facts.get("scheme"),
            "scores": {},
            "unit": drawn.get("unit"),
            "units": drawn.get("units"),
        }
    for space, corpus, protocol in dict.fromkeys(scores):
        score = results.facts(space, corpus)["scores"][protocol]
        others = (results.baselines.get(space), evidence.controls.get((space, corpus)))
        differences = [_difference(results, space, other, corpus, protocol) for other in others]
        own = [score["value"], score["low"], score["high"], *differences]
        found[space]["corpora"][corpus]["scores"][protocol] = own
    return found


def _difference(results: Results, space: str, other: str | None, corpus: str, protocol: str) -> list[Any] | None:
    """The space that a score is compared with, and the paired difference with its interval; None without one."""
    found = None if other is None else results.difference((space, protocol), (other, protocol), corpus)
    return None if found is None or found.value is None else [other, found.value, found.low, found.high]


def _shown(parameters: Any) -> Any:
    if not isinstance(parameters, Mapping):
        return parameters
    return {key: _shown(value) for key, value in parameters.items() if key not in HIDDEN and value is not None}


def _corpora(evidence: Evidence, corpora: Iterable[str]) -> dict[str, Any]:
    notes = {corpus: evidence.corpora.get(corpus, {}) for corpus in sorted(corpora)}
    return {corpus: {"source": own.get("source", ""), "text": own.get("text", "")} for corpus, own in notes.items()}
