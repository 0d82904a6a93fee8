"""The suite's own tables: every corpus it has, every space it makes, the headline protocols."""

from __future__ import annotations

from pipeline.papers.plan import REFEREE, Column, PanelPlan, Printed, TablePlan
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results
from sentfold.measures.registry import TaskPanel, all_measures, describe_protocol, unit_of

MTEB = "cosine, all pairs"
SIMILARITY_PROTOCOLS = tuple(
    f"{correlation}.{aggregation}.cosine"
    for correlation in ("spearman", "pearson")
    for aggregation in ("all", "mean", "wmean")
)


def own_plans(evidence: Evidence) -> dict[str, TablePlan]:
    """Plans of the suite's own tables, those that it has scores for."""
    results = evidence.results
    similar = results.corpora_of("similarity")
    found: dict[str, tuple[str, str, list[PanelPlan]]] = {}
    if similar:
        title = "Similarity in every space of the suite"
        about = "MTEB's printed results are the referee for an encoder that it has: the same model, data and protocol."
        protocols = [p for p in SIMILARITY_PROTOCOLS if any(_is_scored(results, corpus, p) for corpus in similar)]
        panels = [_similarity(evidence, similar, protocol) for protocol in protocols]
        found |= {"similarity": (title, about, panels)} if panels else {}
    for measure in all_measures():
        for table in measure.tables:
            panels = [panel for wanted in table.panels for panel in _panels(results, measure.task, wanted)]
            if panels:
                found.setdefault(table.name, (table.title, table.about, panels))
    return {
        name: TablePlan(
            source=REFEREE, table="results", title=title, about=about, spaces=["encoders", "derived", "words"],
            panels=panels,
        )
        for name, (title, about, panels) in found.items()
    }  # fmt: skip


def _panels(results: Results, task: str, wanted: TaskPanel) -> list[PanelPlan]:
    """A panel of the corpora of a task that have a place for these scores; none without such corpora."""
    columns = [
        Column(corpus=corpus, protocol=protocol, unit=unit_of(protocol))
        for corpus in results.corpora_of(task)
        for protocol in wanted.protocols
        if _is_scored(results, corpus, protocol)
    ]
    return [PanelPlan(title=wanted.title, columns=columns, against=wanted.against)] if columns else []


def _is_scored(results: Results, corpus: str, protocol: str) -> bool:
    """Whether any space has a place for this score, be it blank."""
    return any(protocol in results.facts(space, corpus).get("scores", {}) for space in results.suite.spaces)


def _similarity(evidence: Evidence, similar: list[str], protocol: str) -> PanelPlan:
    """Cosine in one protocol; MTEB's figures are of all pairs, and are shown where the suite has its model."""
    correlation, aggregation, _ = protocol.split(".")
    # MTEB's Spearman figures name the revision of the model, its Pearson figures do not.
    revision = "; revision 8b3219a92973c328a8e22fadcfa821b5dc75636a" if correlation == "spearman" else ""
    corpora = [c for c in similar if aggregation == "all" or _is_scored(evidence.results, c, protocol)]
    referee = aggregation == "all" and REFEREE in evidence.published_by
    return PanelPlan(
        title=describe_protocol(protocol),
        columns=[Column(corpus=corpus, protocol=protocol) for corpus in corpora],
        differences=aggregation == "all",
        printed=Printed(statement=MTEB + revision) if referee else None,
    )
