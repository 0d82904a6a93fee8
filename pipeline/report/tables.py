"""Tables of a suite, as Markdown for people and CSV for programs. No unlike protocols share a column."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence

from pipeline.report.families import baseline_of, both_tuned, control_pairs, controlled
from pipeline.report.published import find_published
from pipeline.report.results import Cell, Results

HEADLINE = "spearman.all.cosine"
SIMILARITY_PROTOCOLS = tuple(
    f"{correlation}.{aggregation}.cosine"
    for correlation in ("spearman", "pearson")
    for aggregation in ("all", "mean", "wmean")
)
PROTOCOL_NAMES = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "all": "all pairs",
    "mean": "mean over subsets",
    "wmean": "mean over subsets weighted by pairs",
}

Published = dict[str, tuple[str, str]]


def protocol_title(protocol: str) -> str:
    """A protocol in words, e.g. "Spearman of cosine, all pairs"."""
    correlation, aggregation, similarity = protocol.split(".")
    return f"{PROTOCOL_NAMES[correlation]} of {similarity}, {PROTOCOL_NAMES[aggregation]}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, first column left, the others right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same for a terminal: columns aligned by blanks."""
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in [header, ["-" * width for width in widths], *rows]
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def csv_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The same as CSV with \\n line ends."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


class Blanks:
    """Reasons of blank cells, each numbered once, printed under the table."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def mark(self, reason: str) -> str:
        """The text of a blank cell: a dash and the number of its reason."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"– [{self.reasons.index(reason) + 1}]"

    def legend(self) -> str:
        """The numbered reasons, or ''."""
        return "".join(f"[{number}] {reason}  \n" for number, reason in enumerate(self.reasons, 1))


def score_rows(
    results: Results, corpora: Sequence[str], protocol: str, blanks: Blanks, *, bold: bool, intervals: bool = False
) -> list[list[str]]:
    """One row per space, and one of blanks for each that the suite names and cannot make.

    bold  the best of a column, where it is one beyond chance; intervals: of each score, beside it
    """
    best = {corpus: results.separated_best(corpus, protocol) for corpus in corpora}

    def show(space: str, corpus: str) -> str:
        cell = results.cell(space, corpus, protocol)
        if cell.value is None:
            return blanks.mark(cell.reason)
        if intervals:
            return _show(cell, blanks, signed=False)
        return f"**{cell.value:.2f}**" if bold and best[corpus] == space else f"{cell.value:.2f}"

    rows = [[space, *(show(space, corpus) for corpus in corpora)] for space in results.suite.spaces]
    return rows + [[space, *(blanks.mark(reason) for _ in corpora)] for space, reason in results.suite.blanks.items()]


def published_rows(results: Results, corpora: Sequence[str], protocol: str, published: Published) -> list[list[str]]:
    """A row of printed figures per encoder that has any for this very protocol."""
    rows = []
    for encoder, (source, model) in published.items():
        if encoder not in (*results.suite.encoders, *results.suite.blanks):
            continue
        found = [find_published(source, model, corpus, protocol) for corpus in corpora]
        if any(found):
            rows.append(
                [f"*{encoder}, as published ({source})*", *(figure.shown if figure else "" for figure in found)]
            )
    return rows


def interval_rows(results: Results, corpora: Sequence[str], protocol: str, blanks: Blanks) -> list[list[str]]:
    """One row per space: the interval of its own score."""
    return _rows(
        results,
        corpora,
        blanks,
        lambda space, corpus: results.cell(space, corpus, protocol),
        results.suite.spaces,
        signed=False,
    )


def difference_rows(results: Results, corpora: Sequence[str], protocol: str, blanks: Blanks) -> list[list[str]]:
    """One row per derived space: difference to its encoder, with the interval of that difference."""
    derived = results.suite.derived_spaces
    return _rows(
        results,
        corpora,
        blanks,
        lambda space, corpus: results.difference(space, results.suite.encoder_of(space), corpus, protocol),
        derived,
        signed=True,
    )


def control_rows(
    results: Results, corpora: Sequence[str], protocol: str, blanks: Blanks, methods: Mapping[str, str]
) -> list[list[str]]:
    """One row per space that reduces dimension by neighbourhoods and PCA of the same encoder: their difference.

    methods  space -> the method that its artifacts name. Blank where the dimensions differ, for then the PCA is
             no control.
    """
    return [
        [
            f"{ours} − {theirs}",
            *(_show(controlled(results, ours, theirs, corpus, protocol), blanks, signed=True) for corpus in corpora),
        ]
        for ours, theirs in control_pairs(results.suite, methods)
    ]


def tuned_control_rows(
    results: Results, corpora: Sequence[str], protocol: str, blanks: Blanks, methods: Mapping[str, str]
) -> list[list[str]]:
    """One row per tuned space by neighbourhoods and PCA tuned on the same data, each of its own dimension."""
    return [
        [
            f"{ours} − {theirs}",
            *(_show(results.difference(ours, theirs, corpus, protocol), blanks, signed=True) for corpus in corpora),
        ]
        for ours, theirs in control_pairs(results.suite, methods)
        if both_tuned(ours, theirs)
    ]


def _rows(
    results: Results,
    corpora: Sequence[str],
    blanks: Blanks,
    cell_of: Callable[[str, str], Cell],
    spaces: Sequence[str],
    *,
    signed: bool,
) -> list[list[str]]:
    return [[space, *(_show(cell_of(space, corpus), blanks, signed=signed) for corpus in corpora)] for space in spaces]


def _show(cell: Cell, blanks: Blanks, *, signed: bool) -> str:
    if cell.value is None:
        return blanks.mark(cell.reason)
    number = f"{cell.value:+.2f}" if signed else f"{cell.value:.2f}"
    if cell.low is None or cell.high is None:
        return number
    return f"{number} [{cell.low:+.2f}, {cell.high:+.2f}]" if signed else f"{number} [{cell.low:.2f}, {cell.high:.2f}]"


def wide_csv(results: Results, corpora: Sequence[str], protocol: str) -> str:
    """The headline table for programs: spaces by corpora, blank where there is no number."""
    cells = {
        space: [results.cell(space, corpus, protocol).value for corpus in corpora] for space in results.suite.spaces
    }
    return csv_table(
        ["space", *corpora],
        [[space, *("" if value is None else f"{value:.2f}" for value in row)] for space, row in cells.items()],
    )


LONG_HEADER = (
    "space", "corpus", "task", "protocol", "n", "unit", "units", "value", "low", "high",
    "difference_to", "difference", "difference_low", "difference_high",
    "control", "control_difference", "control_low", "control_high", "reason",
)  # fmt: skip


def long_csv(results: Results, controls: Mapping[tuple[str, str], str]) -> str:
    """Every score in every protocol, one per line, with its interval and its differences to baseline and control.

    controls  (space, corpus) -> the control, as `find_controls` has it
    """
    rows: list[list[object]] = []
    for space in results.suite.spaces:
        baseline = baseline_of(results.suite, space)
        for corpus in results.suite.corpora:
            facts = results.facts(space, corpus)
            if "absent" in facts:
                rows.append([space, corpus, *[""] * (len(LONG_HEADER) - 3), facts["absent"]])
                continue
            drawn = facts.get("drawn", {})
            for protocol in facts["scores"]:
                cell = results.cell(space, corpus, protocol)
                against = Cell() if baseline is None else results.difference(space, baseline, corpus, protocol)
                control = controls.get((space, corpus), "")
                beside = results.difference(space, control, corpus, protocol) if control else Cell()
                numbers = [cell.value, cell.low, cell.high]
                differences = [against.value, against.low, against.high]
                controlled_by = [control, *_texts([beside.value, beside.low, beside.high])]
                start = [
                    space,
                    corpus,
                    facts["task"],
                    protocol,
                    facts["n"],
                    drawn.get("unit", ""),
                    drawn.get("units", ""),
                ]
                compared = [baseline or "", *_texts(differences), *controlled_by]
                rows.append([*start, *_texts(numbers), *compared, cell.reason])
    return csv_table(LONG_HEADER, rows)


def _texts(numbers: Sequence[float | None]) -> list[str]:
    return ["" if number is None else f"{number:.2f}" for number in numbers]
