"""What a page knows of its numbers: the facts that a reader is shown who follows one to its lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.artifacts import corpus_path, read_record
from pipeline.report.grid import Table
from pipeline.report.page_tables import Notes
from pipeline.report.panels import PAPERS
from pipeline.report.protocols import protocol_words
from pipeline.report.published import load_published
from pipeline.report.results import Results
from pipeline.report.spaces import space_parameters

# Hashes of model files: they stand in params.yaml, and hide what a reader looks for.
HIDDEN = ("sha256",)


def page_facts(
    results: Results, tables: Sequence[Table], made_of: Mapping[str, str], notes: Notes, lineage: Any
) -> dict[str, Any]:
    """Everything that the links of these tables lead to, JSON-able.

    lineage  the content of lineage.json for a page that stays here; None for one that goes into git, for its
             hashes differ between processors
    """
    links = [entry.link.split("/") for table in tables for entry in table.entries if entry.link]
    scores = [
        (space, corpus, protocol) for kind, *rest in links if kind == "score" for space, corpus, protocol in [rest]
    ]
    figures = {figure.number: figure for figure in load_published()}
    return {
        "about": [list(pair) for pair in notes.computed],
        "blanks": [list(pair) for pair in notes.blanks],
        "confidence": f"{results.confidence:.0%}",
        "corpora": _corpora(results, {corpus for _, corpus, _ in scores}),
        "lineage": lineage,
        "printed": {
            number: [PAPERS[f.source], f.table, f.model, f.dataset, f.metric, f.printed, f.protocol]
            for number, f in ((int(rest[0]), figures[int(rest[0])]) for kind, *rest in links if kind == "printed")
        },
        "protocols": {protocol: protocol_words(protocol) for _, _, protocol in scores},
        "resamples": results.resamples,
        "spaces": _spaces(results, scores, made_of),
        "suite": results.suite.suite,
    }


def _spaces(results: Results, scores: Iterable[tuple[str, str, str]], made_of: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for space, corpus, protocol in dict.fromkeys(scores):
        if space not in found:
            parameters = _shown(space_parameters(results.suite, space))
            found[space] = {"corpora": {}, "made_of": made_of.get(space, ""), "parameters": parameters}
        facts = results.facts(space, corpus)
        drawn = facts.get("drawn", {})
        about = found[space]["corpora"].setdefault(
            corpus,
            {
                "dimension": facts.get("dimension"),
                "effective": drawn.get("effective_units"),
                "n": facts["n"],
                "scheme": facts.get("scheme"),
                "scores": {},
                "unit": drawn.get("unit"),
                "units": drawn.get("units"),
            },
        )
        score = facts["scores"][protocol]
        about["scores"][protocol] = [score["value"], score["low"], score["high"]]
    return found


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
