"""Tables of scores, built from their plan: our rows, the printed rows, and what the numbers show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.report.absent_rows import describe_absent
from pipeline.report.difference_panels import Controls, difference_panel, find_baselines
from pipeline.report.entries import average_entry, measured_entry, printed_entry
from pipeline.report.grid import Entry, Group, Head, Line, Panel, Table
from pipeline.report.notes import BASELINE, CONTROL, no_smallest
from pipeline.report.plan import Column, PanelPlan, TablePlan, average_column
from pipeline.report.protocols import protocol_words, short_metric
from pipeline.report.published import Figure
from pipeline.report.results import Results
from pipeline.report.shows import describe_panel, judge_panel, spread_over_starts
from pipeline.suite import Suite

PAPERS = {
    "sbert-lp": "SBERT-LP",
    "lase": "LASE",
    "s3e": "S3E",
    "gem": "GEM",
    "hyperboloid": "Hyperboloid",
    "mteb": "MTEB",
}


def build_table(
    results: Results, name: str, plan: TablePlan, made_of: Mapping[str, str], controls: Controls | None = None
) -> Table:
    """One table from its plan.

    made_of   space -> what it was made of, in words
    controls  (space, corpus) -> its control there: each panel of scores is then followed by its differences to the
              baselines and to the controls
    """
    spaces = rows_of(results.suite, plan)
    others = {} if controls is None else {BASELINE: find_baselines(results), CONTROL: controls}
    panels: list[Panel] = []
    for panel in plan.panels:
        panels.append(_build_panel(results, plan, panel, spaces, made_of))
        heads = heads_of(panel)[: len(panel.columns)]
        held = [difference_panel(results, panel, heads, spaces, other, role) for role, other in others.items()]
        panels += filter(None, held)
    spreads = [_spread_panel(results, panel, spaces, made_of) for panel in plan.panels if panel.measured]
    return Table(name, table_title(plan), plan.about, (*panels, *filter(None, spreads)))


def table_title(plan: TablePlan) -> str:
    """What a table is called: "SBERT-LP 1: Textual similarity", or its own title if no paper printed it."""
    return plan.title if plan.source == "mteb" else f"{PAPERS[plan.source]} {plan.table}: {plan.title}"


def _printed_title(table: TablePlan) -> str:
    if table.source == "mteb":
        return "As MTEB publishes it"
    numbered = table.table[0].isdigit()
    return f"Printed in {PAPERS[table.source]}, {f'table {table.table}' if numbered else f'{table.table} table'}"


def rows_of(suite: Suite, plan: TablePlan) -> list[str]:
    """The suite's spaces of the wanted groups, in its order, then the wanted ones that it lacks."""
    groups = {
        "encoders": set(suite.encoders),
        "derived": set(suite.derived_spaces),
        "words": set(suite.word_encoders),
    }
    chosen = {space for group in plan.spaces for space in groups[group]} | set(plan.wanted)
    return [space for space in suite.spaces if space in chosen] + [s for s in plan.wanted if s not in suite.spaces]


def _build_panel(
    results: Results, table: TablePlan, plan: PanelPlan, spaces: Sequence[str], made_of: Mapping[str, str]
) -> Panel:
    groups = []
    family = judge_panel(results, plan, spaces, table.baseline)
    if plan.measured:
        signs = {(judged.space, judged.corpus, judged.protocol): judged.sign for judged in family}
        groups += _own_groups(results, plan, [*spaces, *table.answers_in(plan)], made_of, signs)
    figures = table.printed_in(plan)
    if figures:
        groups.append(Group(_printed_title(table), True, printed_lines(figures, plan)))
    shows, notes = describe_panel(results, plan, spaces, table, family)
    heads = heads_of(plan)
    stated = plan.printed.statement if plan.printed is not None and not plan.measured else protocol_list(heads)
    return Panel(plan.title, stated, heads, tuple(groups), shows, notes)


def _own_groups(
    results: Results,
    plan: PanelPlan,
    rows: Sequence[str],
    made_of: Mapping[str, str],
    signs: Mapping[tuple[str, str, str], int],
) -> list[Group]:
    """The suite's own rows, and apart from them those that it does not make, each once."""
    suite = results.suite
    made, absent = [], []
    for row in dict.fromkeys(rows):
        if row in suite.spaces:
            made.append(Line(row, made_of.get(row, ""), measured_row(results, row, plan, signs)))
        else:
            absent.append(Line(row, describe_absent(row), measured_row(results, row, plan, signs)))
    groups = [(f"Measured here, suite {suite.suite}", made), (f"Not made in suite {suite.suite}", absent)]
    return [Group(title, False, tuple(lines)) for title, lines in groups if lines]


def _spread_panel(results: Results, plan: PanelPlan, spaces: Sequence[str], made_of: Mapping[str, str]) -> Panel | None:
    """How far the scores of a panel vary over starts of k-means; None where none of them has starts."""
    kept = {
        space: [spread_over_starts(results, space, column.corpus, column.protocol) for column in plan.columns]
        for space in spaces
    }
    found = {space: row for space, row in kept.items() if any(spread is not None for spread in row)}
    if not found:
        return None
    # Named apart from the scores' own protocols: a spread is no score, and no reader may join them.
    heads = tuple(
        replace(head, protocol=f"{head.protocol.partition('.')[0]}, standard deviation over starts")
        for head in heads_of(plan)[: len(plan.columns)]
    )
    lines = tuple(
        Line(
            space,
            made_of.get(space, ""),
            tuple(_spread_entry(spread, space, column) for spread, column in zip(row, plan.columns, strict=True)),
        )
        for space, row in found.items()
    )
    group = Group(f"Measured here, suite {results.suite.suite}", False, lines)
    starts = max(spread[1] for row in found.values() for spread in row if spread is not None)
    about = f"standard deviation over {starts} starts of k-means, each scored on all items"
    shows = (f"This is of single starts; the scores are means of {starts}, which vary by 1/√{starts} of it.",)
    note = no_smallest("these are spreads over starts of one space's score, and none is held against another")
    return Panel("Spread over starts of k-means", about, heads, (group,), shows, (note,))


def _spread_entry(spread: tuple[float, int] | None, space: str, column: Column) -> Entry:
    if spread is None:
        return Entry(reason="no spread over starts was kept", command="")
    value = spread[0] / 100 if column.unit == "nats" else spread[0]
    text = f"{value:.4f}" if column.unit == "nats" else f"{value:.2f}"
    about = f"standard deviation of {column.protocol} of {space} on {column.corpus} over {spread[1]} starts of k-means"
    return Entry(text, value, about=about, of=(f"{space}/{column.corpus}",))


def heads_of(plan: PanelPlan) -> tuple[Head, ...]:
    """The columns' heads; the metric is named where one corpus stands in several columns."""
    heads = [
        Head(_head_title(column, plan.columns), column.corpus, column.protocol, column.unit) for column in plan.columns
    ]
    if plan.average is not None:
        heads.append(Head("average", "average", plan.columns[0].protocol))
    return tuple(heads)


def _head_title(column: Column, columns: Sequence[Column]) -> str:
    several = sum(column.corpus == other.corpus for other in columns) > 1
    return f"{column.corpus} {short_metric(column.protocol)}" if several else column.corpus


def measured_row(
    results: Results, space: str, plan: PanelPlan, signs: Mapping[tuple[str, str, str], int]
) -> tuple[Entry, ...]:
    """Our entries of one row, and their average where the panel has one and the row is whole.

    signs  of the differences to baselines, by space, corpus and protocol
    """
    columns = [(column.corpus, column.protocol) for column in plan.columns]
    entries = [measured_entry(results, space, c.corpus, c.protocol, unit=c.unit) for c in plan.columns]
    marked = [
        replace(entry, sign=signs.get((space, *column), 0)) for entry, column in zip(entries, columns, strict=True)
    ]
    return (*marked, *([] if plan.average is None else [average_entry(results, space, columns, marked)]))


def printed_lines(figures: Sequence[Figure], plan: PanelPlan) -> tuple[Line, ...]:
    """One line per printed model, its figures in their columns; the printed average is copied, never formed."""
    columns = [*plan.columns, *([average_column(plan)] if plan.average is not None else [])]
    lines = []
    for model in dict.fromkeys(figure.model for figure in figures):
        own = [figure for figure in figures if figure.model == model]
        found = [next((figure for figure in own if column.holds(figure)), None) for column in columns]
        entries = [Entry(reason="not printed") if figure is None else printed_entry(figure) for figure in found]
        lines.append(Line(model, "", tuple(entries)))
    return tuple(lines)


def protocol_list(heads: Sequence[Head]) -> str:
    """The protocols of some columns in words, each once."""
    return "; ".join(dict.fromkeys(protocol_words(head.protocol) for head in heads))
