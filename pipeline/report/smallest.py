"""The smallest difference that each table of report.md can show: the line under it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipeline.report.families import baseline_of, both_tuned, control_pairs, controlled, judge_family, judge_sides
from pipeline.report.notes import BASELINE, CONTROL, smallest_difference
from pipeline.report.results import Results

Columns = Sequence[tuple[str, str]]
Pairs = Iterable[tuple[str, str]]


def smallest_of_pairs(results: Results, pairs: Pairs, columns: Columns, other: str) -> str:
    """Of pairs (space, what it is held against) on columns (corpus, protocol). other: what the latter is called."""
    return smallest_difference(judge_family(results, list(pairs), columns), other) + "\n"


def smallest_to_baselines(results: Results, columns: Columns) -> str:
    """Of every space to its own baseline: its encoder, or the mean of words."""
    suite = results.suite
    pairs = [(space, other) for space in suite.spaces if (other := baseline_of(suite, space)) is not None]
    return smallest_of_pairs(results, pairs, columns, BASELINE)


def smallest_to_encoders(results: Results, columns: Columns) -> str:
    """Of every space that was made from an encoder's to that."""
    suite = results.suite
    return smallest_of_pairs(results, [(s, suite.encoder_of(s)) for s in suite.derived_spaces], columns, "encoder")


def smallest_to_controls(results: Results, columns: Columns, methods: Mapping[str, str], *, tuned: bool = False) -> str:
    """Of every space by neighbourhoods to PCA: of its dimension, or with `tuned` the one tuned on the same data.

    methods  space -> the method that its artifacts name
    """
    pairs = list(control_pairs(results.suite, methods))
    if tuned:
        return smallest_of_pairs(results, [pair for pair in pairs if both_tuned(*pair)], columns, "tuned control")
    wanted = [
        ((ours, protocol), (theirs, protocol), corpus)
        for ours, theirs in pairs
        for corpus, protocol in columns
        if controlled(results, ours, theirs, corpus, protocol).value is not None
    ]
    return smallest_difference(judge_sides(results, wanted), CONTROL) + "\n"
