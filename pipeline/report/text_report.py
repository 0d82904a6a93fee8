"""report.md and summary.txt of a suite, put together from its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.papers.ledger import describe_counts
from pipeline.papers.verdicts import Decided
from pipeline.report.comparisons import BASELINE, CONTROL, TUNED_CONTROL
from pipeline.report.evidence import Evidence
from sentfold.report.render import Blanks, markdown_rows, plain_rows
from sentfold.report.table import Panel, Table

# The suite's own tables that summary.txt shows, where the suite has them; the first of these tables opens report.md.
SUMMARISED = ("similarity", "classification", "hyperboloid-1")


def report_text(evidence: Evidence, tables: Sequence[Table], decided: Sequence[Decided]) -> str:
    """The whole of report.md."""
    suite = evidence.results.suite.suite
    claims = f"[Claims](claims.md) of the five papers: {'; '.join(describe_counts(decided))}. " if decided else ""
    opening = (
        f"{claims}First come the main scores with their differences and intervals, then [all other tables, and what "
        "each shows](#all-tables-and-what-each-panel-shows). [index.html](index.html) is all of it as one page, to be "
        "opened from disk.\n"
    )
    parts = [f"# Suite `{suite}`\n", opening, _introduction(evidence)]
    if evidence.results.suite.derived_spaces and evidence.results.corpora_of("similarity"):
        parts.append("![Difference of each space to its baseline](figures/differences.svg)\n")
    blanks = Blanks()
    for table in tables[:1]:
        parts += [f"## {table.title}\n", f"{table.about}\n"]
        parts += [_section(panel, blanks) for panel in _main_panels(table)]
    legend = blanks.legend()
    parts += [f"Blanks:\n\n{legend}"] if legend else []
    return "\n".join([*parts, _links(tables)])


def _introduction(evidence: Evidence) -> str:
    results = evidence.results
    suite = results.suite
    return (
        f"Source of the corpora: `{suite.source}`.\n"
        f"Brackets are {results.confidence:.0%} percentile intervals of a bootstrap that resamples what recurs (the "
        "table of corpora names the unit). The interval of a difference is paired: both spaces are scored on the same "
        "resamples. Brackets are not adjusted for the number of cells; ▲ and ▼ are. Hyper-parameters are those of "
        f"`params.yaml`, fixed beforehand{_chosen(evidence)}. Neighbour graphs and principal components are fitted on "
        "the sentences of each corpus. Scores are ×100.\n"
    )


def _chosen(evidence: Evidence) -> str:
    """What the introduction says of spaces whose parameters were chosen."""
    if not evidence.sweeps:
        return ""
    choosers: dict[str, list[str]] = {}
    for space, sweep in evidence.sweeps.items():
        choosers.setdefault(sweep.corpus, []).append(space)
    chosen = [
        f"those of {', '.join(spaces)}, whose hyper-parameters were chosen on `{corpus}` alone"
        for corpus, spaces in choosers.items()
    ]
    return (
        f", except {', and '.join(chosen)}. What choosing on each test set would have added is an oracle, "
        "shown [apart](tables/selection.md)"
    )


def _main_panels(table: Table) -> Iterator[Panel]:
    """The first panel of a table and the differences that follow it."""
    yield table.panels[0]
    for panel in table.panels[1:]:
        if not _is_difference(panel):
            return
        yield panel


def _is_difference(panel: Panel, roles: Sequence[str] = (BASELINE, CONTROL, TUNED_CONTROL)) -> bool:
    return any(panel.title.startswith(f"Difference to the {role}:") for role in roles)


def _section(panel: Panel, blanks: Blanks) -> str:
    sentences = [f"{sentence}\n" for sentence in (*panel.shows, *panel.notes)]
    return "\n".join([f"### {panel.title}\n", markdown_rows(panel, blanks), *sentences])


def _links(tables: Sequence[Table]) -> str:
    """The section that leads to the tables and says what they show, from their numbers."""
    lines = []
    for table in tables:
        links = f"[CSV](tables/{table.name}.csv), [LaTeX](tables/{table.name}.tex)"
        lines.append(f"### [{table.title}](tables/{table.name}.md) ({links})\n")
        lines += [f"- *{panel.title}.* {' '.join(panel.shows)}" for panel in table.panels if panel.shows]
        lines.append("")
    return "\n".join(["## All tables, and what each panel shows\n", *lines])


def summary_text(evidence: Evidence, tables: Sequence[Table]) -> str:
    """The main tables for a terminal."""
    blanks, parts = Blanks(), [f"Suite {evidence.results.suite.suite}, scores ×100\n"]
    for table in tables:
        if table.name in SUMMARISED:
            shown = [table.panels[0], *(p for p in _main_panels(table) if _is_difference(p, (BASELINE,)))]
            parts += [f"{table.title}\n", *(f"{panel.title}\n\n{plain_rows(panel, blanks)}" for panel in shown)]
    legend = blanks.legend().replace("  \n", "\n")
    return "\n".join([*parts, *([legend] if legend else [])])
