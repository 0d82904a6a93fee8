"""Table of what was chosen on development data, beside what choosing on each test set would have bought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.report.entries import measured_entry
from pipeline.report.families import judge_family
from pipeline.report.grid import Entry, Group, Head, Line, Panel, Table
from pipeline.report.notes import no_smallest, smallest_difference
from pipeline.report.protocols import protocol_words
from pipeline.report.results import Results
from pipeline.report.sweeps import Sweep

ABOUT = (
    "A grid is scored on the development corpus alone, and its best point becomes the space (selected). What the best "
    "point of each test set would have scored there stands beside it (oracle): papers that tune on the test set print "
    "that. The difference is the inflation; no space is made from an oracle."
)
LETTERS = {"neighbors": "k", "components": "p", "regularization": "r", "scaling": "scaling", "power": "power",
           "removed": "removed", "amount": "amount", "beta": "β"}  # fmt: skip

UNRESAMPLED = no_smallest(
    "the points of a grid are scored once on a test set and not resampled, and an oracle is the largest of many"
)


def selection_table(results: Results, sweeps: Mapping[str, Sweep], made_of: Mapping[str, str]) -> Table | None:
    """The choice on development data, a panel for the rules without labels, and one for the test sets."""
    found = [sweep for sweep in sweeps.values() if any(value is not None for value in sweep.values)]
    if not found:
        return None
    panels = [_choices(results, found, made_of), *_tests(results, found, made_of)]
    return Table("selection", "Hyper-parameters: selected and oracle", ABOUT, tuple(panels))


def describe_point(point: Mapping[str, Any]) -> str:
    """Settings of a point in short, e.g. "k = 30, p = 128, r = 0.001, scaling = unit"."""
    order = list(LETTERS)
    return ", ".join(f"{LETTERS[name]} = {point[name]}" for name in sorted(point, key=order.index))


def _choices(results: Results, sweeps: Sequence[Sweep], made_of: Mapping[str, str]) -> Panel:
    """Scores on the development corpus: of the choice, of the parameters fixed beforehand, of the rejected rules."""
    corpus, protocol = sweeps[0].corpus, sweeps[0].protocol
    heads = [Head("points of the grid", corpus, "count", "count"), Head("best of the grid", corpus, protocol)]
    heads += [Head("fixed beforehand", corpus, protocol), Head("encoder", corpus, protocol)]
    heads += [Head(f"chosen by {words}", corpus, protocol) for words in RULES.values()]
    lines = tuple(
        Line(f"{sweep.space}: {describe_point(sweep.chosen)}", made_of.get(sweep.space, ""), _choice(results, sweep))
        for sweep in sweeps
    )
    group = Group(f"Measured here, suite {results.suite.suite}", False, lines)
    return Panel(
        f"Choice on the development corpus {corpus}", protocol_words(protocol), tuple(heads), (group,),
        tuple(_rules_shown(sweep) for sweep in sweeps if sweep.rules),
        ("Scores of a grid have no interval: they choose, and measure nothing. The intervals stand on the test sets.",
         no_smallest("the best of a grid is picked for being the largest, so no interval of its lead would be honest")),
    )  # fmt: skip


RULES = {"residual_variance": "residual variance", "procrustes": "Procrustes statistic"}


def _choice(results: Results, sweep: Sweep) -> tuple[Entry, ...]:
    best, fixed = sweep.values[sweep.best], sweep.space.removesuffix("-selected")
    count = Entry(str(len(sweep.points)), float(len(sweep.points)), about=f"combinations in the grid of {sweep.space}")
    chosen = _score(best, f"best of {len(sweep.points)} points on {sweep.corpus}: {describe_point(sweep.chosen)}")
    encoder = results.suite.encoder_of(sweep.space)
    others = [_known(results, space, sweep.corpus, sweep.protocol) for space in (fixed, encoder)]
    rules = [
        _score(sweep.rules.get(rule), f"score on {sweep.corpus} of the point with the smallest {words}")
        if rule in sweep.rules
        else Entry(reason=f"{words} is a rule for locally linear embedding", command="")
        for rule, words in RULES.items()
    ]
    return (count, chosen, *others, *rules)


def _rules_shown(sweep: Sweep) -> str:
    best = sweep.values[sweep.best] or 0.0
    parts = [f"{RULES[rule]} loses {best - value:.2f} points" for rule, value in sweep.rules.items()]
    return f"{sweep.space}: of the rules that need no labels, {', '.join(parts)} against the best of the grid."


def _tests(results: Results, sweeps: Sequence[Sweep], made_of: Mapping[str, str]) -> list[Panel]:
    panels = []
    corpora = list(dict.fromkeys(corpus for sweep in sweeps for corpus in sweep.tests))
    if not corpora:
        return []
    protocol = sweeps[0].protocol
    for title, entry in (
        ("Selected: scores on the test sets", _selected),
        ("Oracle: the best of the grid on each test set itself", oracle_entry),
        ("Inflation: oracle less selected", inflation_entry),
    ):
        heads = tuple(Head(corpus, corpus, protocol) for corpus in corpora)
        lines = tuple(
            Line(
                sweep.space if entry is _selected else f"{sweep.space.removesuffix('-selected')}, oracle",
                made_of.get(sweep.space, "") if entry is _selected else "",
                tuple(entry(results, sweep, corpus) for corpus in corpora),
            )
            for sweep in sweeps
        )
        group = Group(f"Measured here, suite {results.suite.suite}", False, lines)
        notes = _selected_notes(results, sweeps, corpora) if entry is _selected else (UNRESAMPLED,)
        shows = tuple(_inflation_shown(sweep, corpora) for sweep in sweeps) if entry is inflation_entry else ()
        panels.append(Panel(title, protocol_words(protocol), heads, (group,), shows, notes))
    return panels


def _selected(results: Results, sweep: Sweep, corpus: str) -> Entry:
    return _known(results, sweep.space, corpus, sweep.protocol)


def _selected_notes(results: Results, sweeps: Sequence[Sweep], corpora: Sequence[str]) -> tuple[str, ...]:
    """How well these test sets can tell a chosen space from its encoder."""
    suite, protocol = results.suite, sweeps[0].protocol
    pairs = [(sweep.space, suite.encoder_of(sweep.space)) for sweep in sweeps]
    family = judge_family(results, pairs, [(corpus, protocol) for corpus in corpora])
    return (smallest_difference(family, "encoder"),)


def oracle_entry(results: Results, sweep: Sweep, corpus: str) -> Entry:
    """The best of a grid on a test set, named an oracle; no interval, for it is the largest of many."""
    place = sweep.best_on(corpus)
    if place is None:
        return Entry(reason=f"no point of the grid fits {corpus}", command="")
    about = f"oracle: the best of {len(sweep.points)} points on {corpus} itself, {describe_point(sweep.points[place])}"
    return _score(sweep.tests[corpus][place], about)


def inflation_entry(results: Results, sweep: Sweep, corpus: str) -> Entry:
    """The oracle less the chosen point's score; a blank where the choice does not fit the test set."""
    gain = sweep.inflation(corpus)
    if gain is None:
        return Entry(reason=f"the chosen parameters do not fit {corpus}", command="")
    about = f"what choosing among {len(sweep.points)} points on {corpus} itself adds to the score of {sweep.space}"
    return Entry(f"{gain:+.2f}", gain, about=about)


def _inflation_shown(sweep: Sweep, corpora: Sequence[str]) -> str:
    gains = [gain for corpus in corpora if (gain := sweep.inflation(corpus)) is not None]
    if not gains:
        return f"{sweep.space}: the chosen parameters fit none of the test sets."
    return (
        f"{sweep.space}: choosing on the test set itself would have added {min(gains):.2f} to {max(gains):.2f} points, "
        f"{sum(gains) / len(gains):.2f} on average."
    )


def _known(results: Results, space: str, corpus: str, protocol: str) -> Entry:
    return measured_entry(results, space, corpus, protocol)


def _score(value: float | None, about: str) -> Entry:
    if value is None:
        return Entry(reason="the point does not fit the corpus", command="")
    return Entry(f"{value:.2f}", round(value, 2), about=about)
