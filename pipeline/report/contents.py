"""Every table of a suite's report, in the order of reading."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.papers.plan import load_plans
from pipeline.report.artifacts_table import artifacts_table
from pipeline.report.evidence import Evidence
from pipeline.report.geometry_table import geometry_table
from pipeline.report.measures_table import measures_table
from pipeline.report.order_table import order_table
from pipeline.report.own_tables import own_plans
from pipeline.report.panels import build_table
from pipeline.report.results import Results
from pipeline.report.selection_table import selection_table
from pipeline.report.special_tables import cluster_table, example_table, speed_table
from sentfold.report.table import Table

# Tables without a plan -> the table with a plan that each follows, so that the report has the papers' order.
FOLLOWS = {"sbert-lp-3": "sbert-lp-4", "lase-5.1": "lase-4.1", "hyperboloid-5": "hyperboloid-1"}


def build_tables(evidence: Evidence) -> list[Table]:
    """The suite's own tables, then the seed papers' in the order of print, then the records of the artifacts.

    A suite with none of the papers' corpora leaves out their tables of scores and of speed: pages of nothing
    but blanks tell nobody anything.
    """
    own = [build_table(evidence, name, plan, compared=True) for name, plan in own_plans(evidence).items()]
    more = (selection_table(evidence), measures_table(evidence), geometry_table(evidence))
    tables = [*own, *(table for table in more if table is not None)]
    special = {table.name: table for table in _special_tables(evidence)}
    if not has_papers(evidence.results):
        return [*tables, *special.values(), artifacts_table(evidence)]
    for name, plan in load_plans().items():
        tables.append(build_table(evidence, name, plan))
        tables += [special[FOLLOWS[name]]] if FOLLOWS.get(name) in special else []
    return [*tables, speed_table(evidence), artifacts_table(evidence)]


def _special_tables(evidence: Evidence) -> Iterator[Table]:
    found = (cluster_table(evidence), order_table(evidence), example_table(evidence))
    yield from (table for table in found if table is not None)


def has_papers(results: Results) -> bool:
    """Whether the suite has a corpus of a seed paper's table."""
    columns = [column for plan in load_plans().values() for panel in plan.panels for column in panel.columns]
    return any(column.corpus in results.suite.corpora for column in columns)
