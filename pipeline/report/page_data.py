"""The data of a page: scores with their differences, tables, claims and facts of lineage, JSON-able.

Hashes stay in lineage.json, because machines differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipeline.papers.ledger import claim_command, paragraphs
from pipeline.papers.published import PAPERS, load_published
from pipeline.papers.verdicts import NOT_TESTABLE, Decided
from pipeline.report.answer import Signs, state_answer
from pipeline.report.comparisons import BASELINE, CONTROL, TUNED_CONTROL
from pipeline.report.contents import own_plans
from pipeline.report.entries import find_caveats
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results
from sentfold.measures.registry import describe_protocol, find_measure, unit_of
from sentfold.report.page import Notes, table_content
from sentfold.report.table import Panel, Table

# Hashes of model files: they are in params.yaml, and hide what a reader looks for.
HIDDEN = ("sha256",)
ROLES = (BASELINE, CONTROL, TUNED_CONTROL)


def page_data(evidence: Evidence, tables: Sequence[Table], decided: Sequence[Decided]) -> dict[str, Any]:
    """Everything that the page draws but its figures. A suite that decides no claim has no tables of papers."""
    results, notes = evidence.results, Notes()
    judged = list(judged_panels(evidence, tables))
    plans = own_plans(evidence)
    drawn = {name for name, plan in plans.items() if not any(panel.against for panel in plan.panels)}
    tasks = list_tasks(results)
    protocols = list(dict.fromkeys(protocol for own in tasks.values() for protocol in own))
    signs = find_signs(results, judged)
    sources = {paper_of(table) for table in tables} | {one.claim.source for one in decided}
    papers = [[source, title] for source, title in PAPERS.items() if source in sources]
    shown = [table for table in tables if table.name not in drawn and (decided or not paper_of(table))]
    content = [{**table_content(table, notes), "paper": paper_of(table)} for table in shown]
    printed = [_printed_rows(table, protocols, notes) for table, role, _, _ in judged if role == BASELINE]
    return {
        "answer": asdict(state_answer(results, tasks, signs)),
        "claims": [_claim(one, results.suite.suite) for one in decided],
        "confidence": f"{results.confidence:.0%}",
        "corpora": {corpus: _corpus(evidence, corpus) for corpus in results.suite.corpora},
        "judged": _judged(judged),
        "notes": notes.content(),
        "order": list(results.suite.corpora),
        "papers": papers if decided else [],
        "printed": _printed_figures(notes),
        "printed_rows": dict(pair for rows in printed for pair in rows.items()),
        "protocols": {protocol: [describe_protocol(protocol), unit_of(protocol)] for protocol in protocols},
        "resamples": results.resamples,
        "scores": {protocol: _scores(evidence, signs, protocol) for protocol in protocols},
        "spaces": [_space(evidence, space) for space in results.suite.spaces],
        "suite": results.suite.suite,
        "tables": content,
        "tasks": [[find_measure(task).title, results.corpora_of(task), own] for task, own in tasks.items()],
    }


def paper_of(table: Table) -> str:
    """The source of the paper that printed a table; "" for a table of the suite's own."""
    return next((source for source in PAPERS if table.name.startswith(f"{source}-")), "")


def list_tasks(results: Results) -> dict[str, list[str]]:
    """Task -> its protocols that a space of the suite has a place for, in the order of the scores."""
    tasks: dict[str, list[str]] = {}
    for space in results.suite.spaces:
        for corpus in results.suite.corpora:
            facts = results.facts(space, corpus)
            for protocol in facts.get("scores", {}):
                own = tasks.setdefault(facts["task"], [])
                own += [] if protocol in own else [protocol]
    return {task: sorted(own, key=lambda name: _rank(task, name)) for task, own in tasks.items()}


def _rank(task: str, protocol: str) -> tuple[int, str]:
    """The protocols of a task's own tables come first, in the order of the tables."""
    listed = [name for table in find_measure(task).tables for panel in table.panels for name in panel.protocols]
    return (listed.index(protocol) if protocol in listed else len(listed), protocol)


# --- what the tables say of differences ---------------------------------------------------------


def judged_panels(evidence: Evidence, tables: Sequence[Table]) -> Iterator[tuple[Table, str, Panel, tuple[str, ...]]]:
    """Table, role, panel and protocols, of each panel of scores of the suite's own tables and of its differences.

    Left out: a panel that compares its rows with another protocol, as the panels of similarities do.
    """
    plans = own_plans(evidence)
    for table in (table for table in tables if table.name in plans):
        protocols: tuple[str, ...] = ()
        apart = {panel.title for panel in plans[table.name].panels if panel.against}
        for panel in (panel for panel in table.panels if panel.title not in apart):
            role = next((role for role in ROLES if panel.title.startswith(f"Difference to the {role}:")), "")
            protocols = protocols if role else tuple(dict.fromkeys(head.protocol for head in panel.heads))
            if role != BASELINE:  # its differences are those of the panel of scores
                yield table, role or BASELINE, panel, protocols


def find_signs(results: Results, judged: Sequence[tuple[Table, str, Panel, tuple[str, ...]]]) -> Signs:
    """The marks ▲ and ▼ of these panels, which judge all their differences together."""
    signs: dict[tuple[str, str, str, str], int] = {}
    for _, _, panel, _ in judged:
        for entry in panel.entries:
            kind, *key = entry.link.split("/")
            if kind == "score" and entry.sign:
                space, corpus, protocol = key
                signs.setdefault((space, results.baselines[space], corpus, protocol), entry.sign)
            elif kind == "difference" and entry.sign:
                signs.setdefault((key[0], key[1], key[2], key[3]), entry.sign)
    return signs


def _judged(judged: Sequence[tuple[Table, str, Panel, tuple[str, ...]]]) -> dict[str, dict[str, Any]]:
    """Protocol -> role -> what the panel shows, what its marks stand for, and how its differences were judged."""
    found: dict[str, dict[str, Any]] = {}
    for _, role, panel, protocols in judged:
        for protocol in protocols:
            texts = [list(panel.shows), list(panel.caveats), list(panel.notes)]
            found.setdefault(protocol, {}).setdefault(role, texts)
    return found


def _printed_rows(table: Table, protocols: Sequence[str], notes: Notes) -> dict[str, list[Any]]:
    """Protocol -> printed rows that the table shows below the measured ones: name, then corpus -> text and note."""
    rows: dict[str, list[Any]] = {}
    for panel in table.panels:
        for group in panel.groups:
            for line in group.lines if group.printed else ():
                cells = zip(panel.heads, line.entries, strict=True)
                found = {head.corpus: [entry.text, notes.number(entry)] for head, entry in cells if not entry.blank}
                if panel.heads[0].protocol in protocols:
                    rows.setdefault(panel.heads[0].protocol, []).append([f"{line.name} ({group.title})", found])
    return rows


def _printed_figures(notes: Notes) -> dict[str, list[str]]:
    """Number of each printed figure that a note names -> what its paper says of it."""
    numbers = {note[1] for note in notes.content() if note[0] == "printed"}
    return {
        str(f.number): [PAPERS[f.source], f.table, f.model, f.dataset, f.metric, f.printed, f.protocol]
        for f in load_published()
        if str(f.number) in numbers
    }


# --- scores, spaces, corpora, claims ------------------------------------------------------------


def _scores(evidence: Evidence, signs: Signs, protocol: str) -> dict[str, list[Any]]:
    """Corpus -> per space: value, low, high, caveats and a difference per role; a reason instead; or None."""
    suite = evidence.results.suite
    rows = {corpus: [_score(evidence, signs, s, corpus, protocol) for s in suite.spaces] for corpus in suite.corpora}
    return {corpus: row for corpus, row in rows.items() if any(row)}


def _score(evidence: Evidence, signs: Signs, space: str, corpus: str, protocol: str) -> Any:
    results = evidence.results
    if protocol not in results.facts(space, corpus).get("scores", {}):
        return None
    score = results.score(space, corpus, protocol)
    if score.value is None:
        return score.reason
    caveats = [f"{caveat.mark} {caveat.text}" for caveat in find_caveats(results, space, corpus, protocol)]
    pair = (space, corpus)
    others = (results.baselines.get(space), evidence.controls.get(pair), evidence.tuned_controls.get(pair))
    differences = [_difference(results, signs, space, other, corpus, protocol) for other in others]
    return [score.value, score.low, score.high, caveats, *differences]


def _difference(
    results: Results, signs: Signs, space: str, other: str | None, corpus: str, protocol: str
) -> list[Any] | None:
    """The other space, the paired difference with its interval, and its sign; None where there is no other."""
    found = None if other is None else results.difference((space, protocol), (other, protocol), corpus)
    if other is None or found is None or found.value is None:
        return None
    return [other, found.value, found.low, found.high, signs.get((space, other, corpus, protocol), 0)]


def _space(evidence: Evidence, space: str) -> list[Any]:
    """Name, what the space was made of, its parameters, and its dimension where that is one on all corpora."""
    results = evidence.results
    sizes = [results.facts(space, corpus).get("dimension") for corpus in results.suite.corpora]
    parameters = _without_hashes(evidence.parameters.get(space, {}))
    return [space, evidence.made_of.get(space, ""), parameters, sizes]


def _without_hashes(parameters: Any) -> Any:
    if not isinstance(parameters, Mapping):
        return parameters
    kept = ((key, value) for key, value in parameters.items() if key not in HIDDEN and value is not None)
    return {key: _without_hashes(value) for key, value in kept}


def _corpus(evidence: Evidence, corpus: str) -> dict[str, Any]:
    """Where a corpus came from, how many items are scored, and what is resampled; the reason for an absent one."""
    results, notes = evidence.results, evidence.corpora.get(corpus, {})
    every = [results.facts(space, corpus) for space in results.suite.spaces]
    facts = next((facts for facts in every if "absent" not in facts), {})
    drawn = facts.get("drawn", {})
    return {
        "absent": "" if facts else next((facts["absent"] for facts in every), ""),
        "effective": drawn.get("effective_units"),
        "n": facts.get("n"),
        "scheme": facts.get("scheme"),
        "source": notes.get("source", ""),
        "text": notes.get("text", ""),
        "unit": drawn.get("unit"),
        "units": drawn.get("units"),
    }


def _claim(one: Decided, suite: str) -> dict[str, Any]:
    return {
        "about": f"{one.claim.where}; said of {one.claim.made_on}",
        "command": claim_command(one.name, suite),
        "name": one.name,
        "outcome": one.outcome,
        "paper": one.claim.source,
        "said": paragraphs(one),
        "says": one.claim.says,
        "tested": one.outcome != NOT_TESTABLE,
    }
