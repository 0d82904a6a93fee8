"""The tables of a report, in order, and the plans of those that no paper printed."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.papers.plan import REFEREE, Column, PanelPlan, Printed, TablePlan, load_figures, load_plans
from pipeline.report.entries import HEADLINE
from pipeline.report.evidence import Evidence
from pipeline.report.fact_tables import artifacts_table, geometry_table
from pipeline.report.panels import build_table
from pipeline.report.results import Results
from pipeline.report.retrieval import retrieval_table
from pipeline.report.selection_table import selection_table
from pipeline.report.special_tables import cluster_table, example_table
from pipeline.report.speed import speed_table
from pipeline.report.trainings import training_table
from sentfold.measures.registry import TaskPanel, all_measures, describe_protocol, find_measure, unit_of
from sentfold.report.table import Table

# Tables without a plan -> the table with a plan that each follows, so that the report has the papers' order.
FOLLOWS = {"lase-5.1": "lase-4.1", "hyperboloid-5": "hyperboloid-1"}


def build_tables(evidence: Evidence) -> list[Table]:
    """The suite's own tables, then the seed papers' in the order of print, then the records of the artifacts.

    A suite with none of the papers' corpora leaves out their tables of scores and of speed: pages of nothing
    but blanks tell nobody anything.
    """
    own = [build_table(evidence, name, plan, compared=True) for name, plan in own_plans(evidence).items()]
    more = (
        training_table(evidence), retrieval_table(evidence), selection_table(evidence), geometry_table(evidence),
    )  # fmt: skip
    tables = [*own, *(table for table in more if table is not None)]
    special = {table.name: table for table in _special_tables(evidence)}
    if not has_papers(evidence.results):
        return [*tables, *special.values(), artifacts_table(evidence)]
    for name, plan in load_plans().items():
        tables.append(build_table(evidence, name, plan))
        tables += [special[FOLLOWS[name]]] if FOLLOWS.get(name) in special else []
    return [*tables, speed_table(evidence), artifacts_table(evidence)]


def _special_tables(evidence: Evidence) -> Iterator[Table]:
    found = (cluster_table(evidence), example_table(evidence))
    yield from (table for table in found if table is not None)


def has_papers(results: Results) -> bool:
    """Whether the suite has a corpus of a seed paper's table."""
    columns = [column for plan in load_plans().values() for panel in plan.panels for column in panel.columns]
    return any(column.corpus in results.suite.corpora for column in columns)


# --- the suite's own tables ---------------------------------------------------------------------

MTEB = "cosine, all pairs"
SIMILARITIES = tuple(find_measure("similarity").short)  # those other than cosine
MEASURES = (
    "Spearman over all pairs by similarities other than cosine, each compared with the cosine of the same vectors. "
    "Where all vectors have one length, all similarities but |cosine| and −Manhattan rank pairs as cosine does: the "
    "Lorentzian distance is then a growing function of the angle, whatever its β."
)
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
    panels = [_other_similarities(results, corpus) for corpus in shown_corpora(results, similar)]
    found |= {"measures": ("Similarities other than cosine", MEASURES, panels)} if panels else {}
    for measure in all_measures():
        for table in measure.tables:
            panels = [panel for wanted in table.panels for panel in _panels(results, measure.task, wanted)]
            if panels:
                found.setdefault(table.name, (table.title, table.about, panels))
    return {
        name: TablePlan(
            source=REFEREE, table="results", title=title, about=about, panels=panels,
            spaces=["encoders", "trained", "derived", "words"],
        )
        for name, (title, about, panels) in found.items()
    }  # fmt: skip


def shown_corpora(results: Results, similar: list[str]) -> list[str]:
    """The corpora of the table of similarities: those that seed_figures.yaml names, or all that have such scores."""
    scored = [c for c in similar if any(_is_scored(results, c, f"spearman.all.{name}") for name in SIMILARITIES)]
    return [corpus for corpus in load_figures().measures if corpus in scored] or scored


def _other_similarities(results: Results, corpus: str) -> PanelPlan:
    """Every similarity on one corpus, compared with the cosine of the same vectors."""
    columns = [Column(corpus=corpus, protocol=f"spearman.all.{name}") for name in ("cosine", *SIMILARITIES)]
    return PanelPlan(title=f"{corpus}: Spearman by similarity", columns=columns, against=HEADLINE)


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
