"""What a page knows of its numbers: the facts that a reader is shown who follows one to its lineage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pipeline.artifacts import corpus_path, read_record
from pipeline.report.families import baseline_of
from pipeline.report.grid import Table
from pipeline.report.page_tables import Notes
from pipeline.report.panels import PAPERS
from pipeline.report.protocols import protocol_words
from pipeline.report.published import load_published
from pipeline.report.results import Results
from pipeline.report.spaces import space_parameters
from pipeline.report.verdicts import Evidence

# Hashes of model files: they stand in params.yaml, and hide what a reader looks for.
HIDDEN = ("sha256",)


def page_facts(evidence: Evidence, tables: Sequence[Table], notes: Notes, lineage: Any) -> dict[str, Any]:
    """Everything that the links of these tables lead to, JSON-able.

    lineage  the content of lineage.json for a page that stays here; None for one that goes into git, for its
             hashes differ between processors
    """
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
        "corpora": _corpora(results, {corpus for _, corpus, _ in scores} | {corpus for _, corpus in sources}),
        "lineage": lineage,
        "printed": {
            number: [PAPERS[f.source], f.table, f.model, f.dataset, f.metric, f.printed, f.protocol]
            for number, f in ((int(rest[0]), figures[int(rest[0])]) for kind, *rest in links if kind == "printed")
        },
        "protocols": {protocol: protocol_words(protocol) for _, _, protocol in scores},
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
            parameters = _shown(space_parameters(results.suite, space))
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
        others = (baseline_of(results.suite, space), evidence.controls.get((space, corpus)))
        differences = [_difference(results, space, other, corpus, protocol) for other in others]
        own = [score["value"], score["low"], score["high"], *differences]
        found[space]["corpora"][corpus]["scores"][protocol] = own
    return found


def _difference(results: Results, space: str, other: str | None, corpus: str, protocol: str) -> list[Any] | None:
    """What a score is held against, and its paired difference to that with its interval; None without one."""
    cell = None if other is None else results.difference(space, other, corpus, protocol)
    return None if cell is None or cell.value is None else [other, cell.value, cell.low, cell.high]


def _shown(parameters: Any) -> Any:
    if not isinstance(parameters, dict):
        return parameters
    return {key: _shown(value) for key, value in parameters.items() if key not in HIDDEN and value is not None}


def _corpora(results: Results, corpora: Iterable[str]) -> dict[str, Any]:
    suite, found = results.suite, {}
    for corpus in sorted(corpora):
        notes = read_record(corpus_path(suite.suite, corpus, "sentences"), kind="sentences")["notes"]
        found[corpus] = {"source": notes.get("source", ""), "text": notes.get("text", "")}
    return found
