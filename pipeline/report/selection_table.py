"""Table of what was chosen on development data, and of what choosing on each test set would have bought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.report.comparisons import is_tuned, judge_family, smallest_difference
from pipeline.report.entries import measured_entry
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results
from pipeline.report.sweeps import CLASS_PROTOCOL, Sweep
from sentfold.measures.registry import describe_protocol
from sentfold.report.table import Caveat, Entry, Group, Head, Line, Panel, Table

ABOUT = (
    "A grid is scored on its development corpus alone, and its best point becomes the space (selected). What the best "
    "point of each test set would have scored there is shown with it (oracle): papers that tune on the test set print "
    "that. No space is made from an oracle."
)
LETTERS = {"neighbors": "k", "components": "p", "regularization": "r", "scaling": "scaling", "power": "power",
           "removed": "removed", "amount": "amount", "epsilon": "ε"}  # fmt: skip


def selection_table(evidence: Evidence) -> Table | None:
    """For each development corpus: the choice on it, with the rules without labels, and panels for its test sets."""
    found = [sweep for sweep in evidence.sweeps.values() if any(value is not None for value in sweep.values)]
    if not found:
        return None
    groups: dict[tuple[str, str], list[Sweep]] = {}
    for sweep in found:
        groups.setdefault((sweep.corpus, sweep.protocol), []).append(sweep)
    panels = []
    for (_, protocol), sweeps in groups.items():
        panels.append(_choices(evidence, sweeps))
        for scored_by, corpora in (
            (protocol, [corpus for sweep in sweeps for corpus in sweep.tests]),
            (CLASS_PROTOCOL, [corpus for sweep in sweeps for corpus in sweep.classes]),
        ):
            panels += _tests(evidence, sweeps, scored_by, list(dict.fromkeys(corpora)))
    return Table("selection", "Hyper-parameters: selected and oracle", ABOUT, tuple(panels))


def describe_point(point: Mapping[str, Any]) -> str:
    """Settings of a point in short, e.g. "k = 30, p = 128, r = 0.001, scaling = unit"."""
    order = list(LETTERS)
    return ", ".join(f"{LETTERS[name]} = {point[name]}" for name in sorted(point, key=order.index))


def _choices(evidence: Evidence, sweeps: Sequence[Sweep]) -> Panel:
    """Scores on the development corpus: of the choice, of the parameters fixed beforehand, of the rejected rules."""
    made_of = evidence.made_of
    corpus, protocol = sweeps[0].corpus, sweeps[0].protocol
    heads = [Head("points of the grid", corpus, "count", "count"), Head("best of the grid", corpus, protocol)]
    heads += [Head("fixed beforehand", corpus, protocol), Head("encoder", corpus, protocol)]
    rules = RULES if any(sweep.rules for sweep in sweeps) else {}
    heads += [Head(f"chosen by {words}", corpus, protocol) for words in rules.values()]
    lines = tuple(
        Line(
            f"{sweep.space}: {describe_point(sweep.chosen)}",
            made_of.get(sweep.space, ""),
            _choice(evidence, sweep, rules),
        )
        for sweep in sweeps
    )
    group = Group(evidence.measured_here, False, lines)
    return Panel(
        f"Choice on the development corpus {corpus}", describe_protocol(protocol), tuple(heads), (group,),
        tuple(_rules_shown(sweep) for sweep in sweeps if sweep.rules),
        ("Scores of a grid have no interval: they choose, and measure nothing. Scores on the test sets have one.",),
    )  # fmt: skip


RULES = {"residual_variance": "residual variance", "procrustes": "Procrustes statistic"}


def _choice(evidence: Evidence, sweep: Sweep, shown_rules: Mapping[str, str]) -> tuple[Entry, ...]:
    results, best = evidence.results, sweep.values[sweep.best]
    points, encoder = len(sweep.points), results.suite.encoder_of(sweep.space)
    of = (f"{encoder}/{sweep.corpus}",)
    count = Entry(str(points), float(points), about=f"combinations in the grid of {sweep.space}", of=of)
    chosen = _score(best, f"best of {points} points on {sweep.corpus}: {describe_point(sweep.chosen)}", of)
    chosen = replace(chosen, caveats=(Caveat("†", (sweep.space,), sweep.corpus),))
    others = [
        _known(results, space, sweep.corpus, sweep.protocol) for space in (_fixed(evidence, sweep.space), encoder)
    ]
    rules = [
        _score(sweep.rules.get(rule), f"score on {sweep.corpus} of the point with the smallest {words}", of)
        if rule in sweep.rules
        else Entry(reason=f"{words} is a rule for locally linear embedding", command="")
        for rule, words in shown_rules.items()
    ]
    return (count, chosen, *others, *rules)


def _fixed(evidence: Evidence, tuned: str) -> str:
    """The space by the same method of the same encoder whose parameters were fixed beforehand; "" without one."""
    suite, parameters = evidence.results.suite, evidence.parameters
    method = parameters.get(tuned, {}).get("method")
    same = (space for space in suite.derived_spaces if suite.encoder_of(space) == suite.encoder_of(tuned))
    own = (space for space in same if space != tuned and parameters.get(space, {}).get("method") == method)
    return next((space for space in own if not is_tuned(parameters[space])), "")


def _rules_shown(sweep: Sweep) -> str:
    best = sweep.values[sweep.best] or 0.0
    parts = [f"{RULES[rule]} loses {best - value:.2f} points" for rule, value in sweep.rules.items()]
    return f"{sweep.space}: of the rules that need no labels, {', '.join(parts)} against the best of the grid."


def _tests(evidence: Evidence, sweeps: Sequence[Sweep], protocol: str, corpora: Sequence[str]) -> list[Panel]:
    """On test sets of one protocol: what was selected, and the oracle; [] without such sets."""
    if not corpora:
        return []
    results, known = evidence.results, describe_protocol(protocol)
    encoders = {sweep.space: results.suite.encoder_of(sweep.space) for sweep in sweeps}
    selected = {s.space: [measured_entry(results, s.space, corpus, protocol) for corpus in corpora] for s in sweeps}
    best = {f"{s.space}, oracle": [_oracle_entry(s, corpus, encoders[s.space]) for corpus in corpora] for s in sweeps}
    # An oracle is no score: named apart, so that no reader of the CSV joins them to one.
    heads = [Head(corpus, corpus, protocol) for corpus in corpora]
    oracles = [replace(head, protocol=f"{known}: oracle, chosen on {head.corpus} itself") for head in heads]
    shown = tuple(_inflation_shown(sweep, corpora) for sweep in sweeps)
    family = judge_family(results, list(encoders.items()), [(corpus, protocol) for corpus in corpora])
    kind = "" if protocol.startswith("spearman") else f", {known}"
    notes = tuple(filter(None, [smallest_difference(family, "encoder")]))
    return [
        replace(_panel(evidence, f"Selected: scores on the test sets{kind}", heads, selected), notes=notes),
        replace(
            _panel(evidence, f"Oracle: the best of the grid on each test set itself{kind}", oracles, best), shows=shown
        ),
    ]


def _panel(evidence: Evidence, title: str, heads: Sequence[Head], rows: Mapping[str, list[Entry]]) -> Panel:
    lines = tuple(Line(name, evidence.made_of.get(name, ""), tuple(entries)) for name, entries in rows.items())
    protocol = describe_protocol(heads[0].protocol).partition(":")[0]
    return Panel(title, protocol, tuple(heads), (Group(evidence.measured_here, False, lines),))


def _oracle_entry(sweep: Sweep, corpus: str, source: str) -> Entry:
    """The best of a grid on a test set, named an oracle; no interval, for it is the largest of many.

    source  the space whose vectors every point of the grid was made from
    """
    place = sweep.best_on(corpus)
    if place is None:
        return Entry(reason=f"no point of the grid fits {corpus}", command="")
    about = f"oracle: the best of {len(sweep.points)} points on {corpus} itself, {describe_point(sweep.points[place])}"
    return _score(sweep.values_on(corpus)[place], about, (f"{source}/{corpus}",))


def _inflation_shown(sweep: Sweep, corpora: Sequence[str]) -> str:
    gains = [gain for corpus in corpora if (gain := sweep.inflation(corpus)) is not None]
    if not gains:
        return f"{sweep.space}: the chosen parameters fit none of the test sets."
    if max(gains) == 0:
        return f"{sweep.space}: choosing on the test set itself would have added nothing."
    return (
        f"{sweep.space}: choosing on the test set itself would have added {min(gains):.2f} to {max(gains):.2f} points, "
        f"{sum(gains) / len(gains):.2f} on average."
    )


def _known(results: Results, space: str, corpus: str, protocol: str) -> Entry:
    if not space:
        return Entry(reason="the suite has no space by this method with parameters fixed beforehand")
    return measured_entry(results, space, corpus, protocol)


def _score(value: float | None, about: str, of: tuple[str, ...]) -> Entry:
    if value is None:
        return Entry(reason="the point does not fit the corpus", command="")
    return Entry(f"{value:.2f}", round(value, 2), about=about, of=of)
