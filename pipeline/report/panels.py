"""Tables of scores, built from their plan: measured rows, printed rows, and what the numbers show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.base.suite import Suite
from pipeline.papers.absent_rows import describe_absent
from pipeline.papers.plan import REFEREE, Column, PanelPlan, TablePlan, average_column
from pipeline.papers.published import PAPERS, Figure
from pipeline.report.comparisons import (
    BASELINE,
    CONTROL,
    TUNED_CONTROL,
    Judged,
    Others,
    judge_sides,
    multiple_comparisons,
    smallest_difference,
)
from pipeline.report.entries import average_entry, difference_entry, measured_entry, printed_entry
from pipeline.report.evidence import Evidence
from pipeline.report.made_of import listed
from pipeline.report.results import Results
from pipeline.report.sentences import count_differences, describe_panel, judge_panel, scored_columns
from sentfold.measures.registry import all_measures, describe_protocol, shorten_protocol
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

Pair = tuple[str, str]


def build_table(evidence: Evidence, name: str, plan: TablePlan, *, compared: bool = False) -> Table:
    """One table from its plan.

    compared  whether each panel of scores is followed by its differences to the baselines and to the controls
    """
    results, made_of = evidence.results, evidence.made_of
    spaces = rows_of(results.suite, plan)
    panels: list[Panel] = []
    for panel in plan.panels:
        rows = _scored_rows(results, panel, spaces) if plan.source == REFEREE else spaces
        panels.append(_build_panel(results, plan, panel, rows, made_of))
        others = _others(evidence) if compared and panel.differences else {}
        compared_rows = [difference_panel(results, panel, rows, other, role) for role, other in others.items()]
        panels += filter(None, compared_rows)
    return Table(name, table_title(plan), plan.about, tuple(panels))


def _scored_rows(results: Results, panel: PanelPlan, spaces: Sequence[str]) -> list[str]:
    """The spaces that a suite's own panel is about: not those that params.yaml does not ask for its scores of."""

    def asked(space: str, column: Column) -> bool:
        facts = results.facts(space, column.corpus)
        return "scores" not in facts or column.protocol in facts["scores"]

    return [space for space in spaces if any(asked(space, column) for column in panel.columns)]


def _others(evidence: Evidence) -> dict[str, Others]:
    """Role -> (space, corpus) -> the space that it is compared with there."""
    results = evidence.results
    corpora = results.suite.corpora
    baselines = {(space, corpus): other for space, other in results.baselines.items() for corpus in corpora}
    return {BASELINE: baselines, CONTROL: evidence.controls, TUNED_CONTROL: evidence.tuned_controls}


def table_title(plan: TablePlan) -> str:
    """What a table is called: "SBERT-LP 1: Textual similarity", or its own title if no paper printed it."""
    return plan.title if plan.source == REFEREE else f"{PAPERS[plan.source]} {plan.table}: {plan.title}"


def _printed_title(table: TablePlan) -> str:
    if table.source == REFEREE:
        return f"As {PAPERS[table.source]} publishes it"
    numbered = table.table[0].isdigit()
    return f"Printed in {PAPERS[table.source]}, {f'table {table.table}' if numbered else f'{table.table} table'}"


def rows_of(suite: Suite, plan: TablePlan) -> list[str]:
    """The suite's spaces of the wanted groups, in its order, then the wanted ones that it lacks."""
    trained = set(suite.stages.get("train", {}))
    own = {space for space in suite.spaces if suite.encoder_of(space) == space}
    groups = {
        "encoders": own - trained - set(suite.word_encoders),
        "trained": trained,
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
    shows, notes = describe_panel(results, plan, spaces, family)
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


def heads_of(plan: PanelPlan) -> tuple[Head, ...]:
    """The columns' heads; the metric is named where one corpus has several columns."""
    heads = [
        Head(_head_title(column, plan.columns), column.corpus, column.protocol, column.unit) for column in plan.columns
    ]
    if plan.average is not None:
        heads.append(Head("average", "average", plan.columns[0].protocol))
    return tuple(heads)


def _head_title(column: Column, columns: Sequence[Column]) -> str:
    """The corpus; with the metric where it has several columns, or with the similarity where they share the metric."""
    protocols = [other.protocol for other in columns if other.corpus == column.corpus]
    if len(protocols) == 1:
        return column.corpus
    metrics = [protocol.partition(".")[0] for protocol in protocols]
    if metrics.count(column.protocol.partition(".")[0]) == 1:
        return f"{column.corpus} {shorten_protocol(column.protocol)}"
    last = column.protocol.split(".", 2)[-1]  # it may hold a point: lorentz-0.01
    return f"{column.corpus} {next((m.short[last] for m in all_measures() if last in m.short), last)}"


def measured_row(
    results: Results, space: str, plan: PanelPlan, signs: Mapping[tuple[str, str, str], int]
) -> tuple[Entry, ...]:
    """The measured entries of one row, and their average where the panel has one and no cell is blank.

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
    return "; ".join(dict.fromkeys(describe_protocol(head.protocol) for head in heads))


# --- differences --------------------------------------------------------------------------------


def difference_panel(
    results: Results, plan: PanelPlan, spaces: Sequence[str], others: Others, role: str = CONTROL
) -> Panel | None:
    """Each row's score less that of its baseline or control, on every column of a panel; None where no row has one.

    others  (space, corpus) -> the space that it is compared with there
    role    what that space is: BASELINE, CONTROL or TUNED_CONTROL
    A panel that compares its rows with another protocol repeats the scores of an earlier panel, so it has no
    differences of its own; nor has a panel whose scores do not depend on the space.
    """
    if not plan.measured or plan.against:
        return None
    columns = scored_columns(results, plan, spaces)
    found = [(s, others[s, corpus]) for corpus, _ in columns for s in spaces if (s, corpus) in others]
    pairs = sorted(set(found), key=lambda pair: (spaces.index(pair[0]), found.index(pair)))
    wanted = [(pair, column) for pair in pairs for column in columns if others.get((pair[0], column[0])) == pair[1]]
    family = judge_sides(results, [((s, p), (c, p), corpus) for (s, c), (corpus, p) in wanted])
    if not any(judged.result.detectable > 0 for judged in family):
        return None
    lines = tuple(Line(f"{s} − {c}", "", _differences(results, plan, (s, c), others, family, role)) for s, c in pairs)
    heads = heads_of(plan)[: len(plan.columns)]
    # A difference is no score: named apart, so that no reader of the CSV joins it to one.
    own = tuple(Head(h.title, h.corpus, f"{describe_protocol(h.protocol)}, less the {role}'s", h.unit) for h in heads)
    names = list(dict.fromkeys(judged.against for judged in family))
    shows = count_differences(family, f"the {role}s {listed(names)}" if len(names) > 1 else f"the {role} {names[0]}")
    notes = (multiple_comparisons(results, family, role), smallest_difference(family, role))
    return Panel(
        f"Difference to the {role}: {plan.title}",
        f"{protocol_list(heads)}; each score less its {role}'s, resampled in pairs",
        own,
        (Group(f"Measured here, suite {results.suite.suite}", False, lines),),
        tuple(filter(None, [shows])),
        tuple(filter(None, notes)),
    )


def _differences(
    results: Results, plan: PanelPlan, pair: Pair, others: Others, family: Sequence[Judged], role: str
) -> tuple[Entry, ...]:
    """A difference with its sign per column; a blank where the other space is not the control on that corpus."""
    signs = {(j.corpus, j.protocol): j.sign for j in family if (j.space, j.against) == pair}
    entries = []
    for column in plan.columns:
        entry = difference_entry(results, pair, column.corpus, column.protocol, role=role, unit=column.unit)
        if not entry.blank and others.get((pair[0], column.corpus)) != pair[1]:
            reason = f"{pair[1]} is not the control of {pair[0]} on {column.corpus}: their dimensions differ"
            entry = Entry(reason=reason)
        entries.append(replace(entry, sign=signs.get((column.corpus, column.protocol), 0)))
    return tuple(entries)
