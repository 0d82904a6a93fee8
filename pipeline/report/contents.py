"""Every table of a suite's report, in the order of reading."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.report.case_table import case_table
from pipeline.report.geometry_table import geometry_table
from pipeline.report.grid import Table
from pipeline.report.measures_table import measures_table
from pipeline.report.own_tables import HERO, own_plans
from pipeline.report.panels import build_table
from pipeline.report.plan import load_plans
from pipeline.report.results import Results
from pipeline.report.selection_table import selection_table
from pipeline.report.small_tables import example_table
from pipeline.report.speed_tables import speed_tables
from pipeline.report.verdicts import Evidence

# Tables without a plan, before and after those with one, so that the report follows the papers' order.
AROUND: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sbert-lp-3": ((), ("sbert-lp-4",)),
    "lase-5.1": (("lase-4.1",), ("lase-speed",)),
    "s3e-classification": ((), ("s3e-speed",)),
    "gem-4": ((), ("gem-5",)),
    "hyperboloid-5": (("hyperboloid-1",), ()),
}


def build_tables(evidence: Evidence, referees: Mapping[str, str]) -> list[Table]:
    """The suite's own tables, then the seed papers' in the order of print.

    A suite with none of the papers' corpora leaves out their tables of scores and of speed: pages of nothing
    but blanks tell nobody anything.
    """
    results, made_of = evidence.results, evidence.made_of
    tables = [build_table(results, name, plan, made_of, evidence.controls) for name, plan in own_plans(results).items()]
    more = (
        selection_table(results, evidence.sweeps, made_of),
        measures_table(results, made_of),
        geometry_table(results, made_of),
    )
    tables += [table for table in more if table is not None]
    special = {"lase-4.1": evidence.clusters}
    for table in (case_table(evidence.cases, results, HERO.ours, made_of), example_table(results, referees)):
        if table is not None:
            special[table.name] = table
    if not has_papers(results):
        return [*tables, *special.values()]
    special |= {table.name: table for table in speed_tables(evidence.benchmark)}
    for name, plan in load_plans().items():
        before, after = AROUND.get(name, ((), ()))
        tables += [special[other] for other in before if other in special]
        tables.append(build_table(results, name, plan, made_of))
        tables += [special[other] for other in after if other in special]
    return tables


def has_papers(results: Results) -> bool:
    """Whether the suite has a corpus of a seed paper's table."""
    columns = [column for plan in load_plans().values() for panel in plan.panels for column in panel.columns]
    return any(column.corpus in results.suite.corpora for column in columns)
