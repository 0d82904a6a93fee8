"""Every row against its baseline and its control: panels of differences with intervals, beside each panel of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.report.entries import measured_entry
from pipeline.report.families import Judged, baseline_of, judge_sides
from pipeline.report.grid import Entry, Group, Head, Line, Panel
from pipeline.report.notes import CONTROL, multiple_comparisons, smallest_difference
from pipeline.report.plan import Column, PanelPlan
from pipeline.report.protocols import protocol_words
from pipeline.report.results import Results
from pipeline.report.shows import count_differences, listed, scored_columns

TITLE = "Difference to the control"
# (space, corpus) -> what the space is held against there
Controls = Mapping[tuple[str, str], str]
Pair = tuple[str, str]


def find_baselines(results: Results) -> dict[tuple[str, str], str]:
    """(space, corpus) -> its baseline, which is the same on every corpus."""
    suite = results.suite
    found = {space: other for space in suite.spaces if (other := baseline_of(suite, space)) is not None}
    return {(space, corpus): other for space, other in found.items() for corpus in suite.corpora}


def difference_panel(
    results: Results,
    plan: PanelPlan,
    heads: Sequence[Head],
    spaces: Sequence[str],
    controls: Controls,
    role: str = CONTROL,
) -> Panel | None:
    """Each row's score less that of its baseline or control, on every column of a panel; None where no row has one.

    heads     of the panel's columns, in their order
    controls  (space, corpus) -> the other there, as `find_controls` or `find_baselines` has it
    role      what the other is: BASELINE or CONTROL
    A panel that holds its rows against another protocol has the same scores as one before it, so none of its own;
    nor has one whose scores do not depend on the space, for then nothing is compared.
    """
    if not plan.measured or plan.against:
        return None
    columns = scored_columns(results, plan, spaces)
    found = [(s, controls[s, corpus]) for corpus, _ in columns for s in spaces if (s, corpus) in controls]
    pairs = sorted(set(found), key=lambda pair: (spaces.index(pair[0]), found.index(pair)))
    family = judge_pairs(results, pairs, columns, controls)
    if not any(judged.result.detectable > 0 for judged in family):
        return None
    lines = tuple(
        Line(f"{s} − {c}", "", _entries(results, plan.columns, (s, c), controls, family, role)) for s, c in pairs
    )
    group = Group(f"Measured here, suite {results.suite.suite}", False, lines)
    said = "; ".join(dict.fromkeys(protocol_words(head.protocol) for head in heads))
    # A difference is no score: named apart, so that no reader of the CSV joins it to one.
    own = tuple(Head(h.title, h.corpus, f"{protocol_words(h.protocol)}, less the {role}'s", h.unit) for h in heads)
    others = list(dict.fromkeys(judged.against for judged in family))
    shows = count_differences(family, f"the {role}s {listed(others)}" if len(others) > 1 else f"the {role} {others[0]}")
    notes = (multiple_comparisons(results, family, role), smallest_difference(family, role))
    return Panel(
        f"Difference to the {role}: {plan.title}", f"{said}; each score less its {role}'s, resampled in pairs", own,
        (group,), tuple(filter(None, [shows])), tuple(filter(None, notes)),
    )  # fmt: skip


def judge_pairs(
    results: Results, pairs: Sequence[Pair], columns: Sequence[tuple[str, str]], controls: Controls
) -> tuple[Judged, ...]:
    """Differences of pairs (space, other) on the columns (corpus, protocol) where the other is the space's there."""
    return judge_sides(
        results,
        [
            ((ours, protocol), (theirs, protocol), corpus)
            for ours, theirs in pairs
            for corpus, protocol in columns
            if controls.get((ours, corpus)) == theirs
        ],
    )


def _entries(
    results: Results, columns: Sequence[Column], pair: Pair, controls: Controls, family: Sequence[Judged], role: str
) -> tuple[Entry, ...]:
    signs = {(j.corpus, j.protocol): j.sign for j in family if (j.space, j.against) == pair}
    return tuple(
        _entry(results, column, pair, controls, signs.get((column.corpus, column.protocol), 0), role)
        for column in columns
    )


def _entry(results: Results, column: Column, pair: Pair, controls: Controls, sign: int, role: str) -> Entry:
    """A difference with its paired interval; a blank with its reason where either side or the other is missing."""
    ours, theirs = pair
    sides = [measured_entry(results, space, column.corpus, column.protocol, unit=column.unit) for space in pair]
    blank = next((entry for entry in sides if entry.blank), None)
    if blank is not None:
        return blank
    if controls.get((ours, column.corpus)) != theirs:
        return Entry(reason=f"{theirs} is not the control of {ours} on {column.corpus}: their dimensions differ")
    cell = results.difference(ours, theirs, column.corpus, column.protocol)
    scale, places, digits = (100.0, 4, 3) if column.unit == "nats" else (1.0, 2, 1)
    value, low, high = (None if number is None else number / scale for number in (cell.value, cell.low, cell.high))
    about = (
        f"{protocol_words(column.protocol)} on {column.corpus} in {ours} less that in its {role} {theirs}; the "
        "interval is of the difference itself, both on the same bootstrap resamples"
    )
    of = (f"{ours}/{column.corpus}", f"{theirs}/{column.corpus}")
    return Entry(f"{value:+.{places}f}", value, low, high, about=about, of=of, sign=sign, digits=digits)
