"""The index of cells: for every number that a report's tables print, where the number comes from.

The stage report writes reports/<suite>/tables/cells.json. The audit and the trace read this file, so that the CSV
files are rendered once and parsed by nobody who needs the origin of a number.

    {"fields": ["line", "row", "corpus", "protocol", "unit", "origin", "key", "texts"],
     "schema": 1,
     "suite": "quick",
     "tables": {"similarity.csv": [[2, "base", "lee", "spearman.all.cosine", "x100",
                                    "score", ["base", "lee", "spearman.all.cosine"],
                                    {"value": "50.85", "low": "33.98", "high": "64.65"}], ...], ...}}

line      line of the CSV file in reports/<suite>/tables/; the header is line 1
row       the name of the row; corpus, protocol, unit: as the CSV file names the column
texts     column of the CSV file -> the text that is printed there; columns without a text are left out
origin    says what the texts are, and what `key` holds:
          score       value, low and high of one score in reports/<suite>/scores/<space>.json
                      key: space, corpus, protocol
          difference  the value is the difference of two scores' values, rounded to two digits; low and high are
                      quantiles of the difference of their bootstrap replicates
                      key: space, other space, corpus, protocol
          derived     computed by the report; key: the vectors it was computed from, each "space/corpus", or nothing
          printed     copied from a paper; key: the number of the row in pipeline/papers/published.csv, from 0, or
                      nothing for what was counted in a paper's table
A score of unit x100 is printed as it is stored; one of unit nats is a hundredth of the stored one.
A line of scores.csv holds up to three cells: a score in the columns value, low, high, and its differences in the
columns difference, difference_low, difference_high and control_difference, control_low, control_high.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from pipeline.report.comparisons import BASELINE, CONTROL
from pipeline.report.entries import HEADLINE, difference_entry, measured_entry
from pipeline.report.evidence import Evidence
from sentfold.report.render import csv_numbers, csv_text
from sentfold.report.table import Entry, Origin, Table

SCHEMA = 1
LONG_HEADER = (
    "space", "corpus", "task", "protocol", "n", "unit", "units", "value", "low", "high",
    "difference_to", "difference", "difference_low", "difference_high",
    "control", "control_difference", "control_low", "control_high", "reason", "caveats",
)  # fmt: skip
# Columns of scores.csv that hold the numbers of a score, and of its differences to the baseline and the control.
SCORE = ("value", "low", "high")
DIFFERENCE = ("difference", "difference_low", "difference_high")
CONTROLLED = ("control_difference", "control_low", "control_high")


@dataclass(frozen=True)
class IndexedCell:
    """One cell of a CSV file; the module says what each field holds."""

    line: int
    row: str
    corpus: str
    protocol: str
    unit: str
    origin: Origin
    key: tuple[str, ...]
    texts: Mapping[str, str]


def index_table(table: Table) -> list[IndexedCell]:
    """The cells of a table that print something, by their lines in its CSV file."""
    return [
        IndexedCell(
            line, cell.line.name, cell.head.corpus, cell.protocol, cell.head.unit, cell.origin, cell.entry.key,
            _texts(SCORE, csv_numbers(cell.entry)),
        )
        for line, cell in enumerate(table.cells(), 2)
        if not cell.entry.blank
    ]  # fmt: skip


def index_text(suite: str, index: Mapping[str, Iterable[IndexedCell]]) -> str:
    """The index as JSON with one cell per line, so that git shows which cells changed."""
    names = [field.name for field in fields(IndexedCell)]
    head = json.dumps({"fields": names, "schema": SCHEMA, "suite": suite})
    lines = {name: ",\n".join(_cell_text(cell) for cell in cells) for name, cells in index.items()}
    tables = ",\n".join(f"{json.dumps(name)}: [\n{text}\n]" for name, text in lines.items())
    return head[:-1] + ', "tables": {\n' + tables + "\n}}\n"


def _cell_text(cell: IndexedCell) -> str:
    values = [getattr(cell, field.name) for field in fields(IndexedCell)]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


# --- scores.csv and sts.csv ---------------------------------------------------------------------


def long_table(evidence: Evidence) -> tuple[str, list[IndexedCell]]:
    """scores.csv: every score in every protocol, one per line, with its differences to baseline and control.

    The rows of spaces come first, then those of searches; in these the column `space` has the name of the search.
    """
    rows: list[list[str]] = []
    cells: list[IndexedCell] = []
    searched = [] if evidence.searches is None else [replace(evidence, results=evidence.searches, controls={})]
    for source in (evidence, *searched):
        results = source.results
        for space in results.suite.spaces:
            for corpus in results.suite.corpora:
                facts = results.facts(space, corpus)
                if "absent" in facts:
                    rows.append([space, corpus, *[""] * (len(LONG_HEADER) - 4), facts["absent"], ""])
                for protocol in facts.get("scores", {}):
                    row, own = _long_row(source, space, corpus, protocol, line=len(rows) + 2)
                    rows.append(row)
                    cells += own
    return csv_text(LONG_HEADER, rows), cells


def _long_row(
    evidence: Evidence, space: str, corpus: str, protocol: str, *, line: int
) -> tuple[list[str], list[IndexedCell]]:
    results = evidence.results
    facts, drawn = results.facts(space, corpus), results.facts(space, corpus).get("drawn", {})
    score = measured_entry(results, space, corpus, protocol)
    others = (results.baselines.get(space, ""), evidence.controls.get((space, corpus), ""))
    against = [
        difference_entry(results, (space, other), corpus, protocol, role=role) if other else Entry()
        for other, role in zip(others, (BASELINE, CONTROL), strict=True)
    ]
    entries = dict(zip((SCORE, DIFFERENCE, CONTROLLED), (score, *against), strict=True))
    numbers = {columns: _two_digits(entry) for columns, entry in entries.items()}
    row = [space, corpus, facts["task"], protocol, str(facts["n"]), drawn.get("unit", ""), str(drawn.get("units", ""))]
    row += [*numbers[SCORE], others[0], *numbers[DIFFERENCE], others[1], *numbers[CONTROLLED], score.reason]
    row.append("; ".join(caveat.text for caveat in score.caveats))
    cells = [
        IndexedCell(line, space, corpus, protocol, "x100", _origin(entry), entry.key, _texts(columns, numbers[columns]))
        for columns, entry in entries.items()
        if not entry.blank
    ]
    return row, cells


def wide_table(evidence: Evidence) -> tuple[str, list[IndexedCell]]:
    """sts.csv, the headline table for programs: spaces by similarity corpora, blank where there is no number."""
    results = evidence.results
    corpora = results.corpora_of("similarity")
    rows, cells = [], []
    for line, space in enumerate(results.suite.spaces, 2):
        entries = {corpus: measured_entry(results, space, corpus, HEADLINE) for corpus in corpora}
        rows.append([space, *(entry.text for entry in entries.values())])
        cells += [
            IndexedCell(line, space, corpus, HEADLINE, "x100", "score", entry.key, {corpus: entry.text})
            for corpus, entry in entries.items()
            if not entry.blank
        ]
    return csv_text(["space", *corpora], rows), cells


def _origin(entry: Entry) -> Origin:
    return "score" if entry.link.startswith("score/") else "difference"


def _two_digits(entry: Entry) -> tuple[str, str, str]:
    value, low, high = ("" if n is None else f"{n:.2f}" for n in (entry.value, entry.low, entry.high))
    return value, low, high


def _texts(columns: Sequence[str], texts: Sequence[str]) -> dict[str, str]:
    return {column: text for column, text in zip(columns, texts, strict=True) if text}
