"""The index of cells: every number of every CSV file has its origin, and its origin gives the number."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict

import pytest

from pipeline.lineage.numbers import SCHEMA
from pipeline.papers.published import load_published
from pipeline.report.cells import (
    CONTROLLED,
    DIFFERENCE,
    SCORE,
    IndexedCell,
    index_table,
    index_text,
    long_table,
    wide_table,
)
from pipeline.report.contents import build_tables
from pipeline.report.evidence import Evidence
from sentfold.report.render import tidy_csv
from tests.report.made_up import make_evidence, make_results
from tests.report.test_more_tables import make_sweep

YEARS = ("sts12", "sts13", "sts14", "sts15", "sts16")
PROTOCOLS = ("spearman.all.cosine", "pearson.all.cosine", "pearson.mean.cosine", "spearman.wmean.cosine")
VALUES = {"minilm": 80.0, "minilm-lp": 70.0, "minilm-lp-selected": 74.0, "minilm-pca": 75.0, "wl-average": 60.0}


def make() -> Evidence:
    scores = {(space, corpus, p): v for space, v in VALUES.items() for corpus in ("dev", *YEARS) for p in PROTOCOLS}
    scores |= {(space, "news", "mi.kmeans"): 2 * v for space, v in VALUES.items()}
    results = make_results(scores)
    for space in VALUES:
        results.scores[space]["news"]["task"] = "clustering"
    sweep = make_sweep(tests={"sts12": (74.0, 75.0)})
    return make_evidence(results, sweeps={"minilm-lp-selected": sweep}, published_by=frozenset({"mteb"}))


def files_of(evidence: Evidence) -> dict[str, tuple[str, list[IndexedCell]]]:
    """Name of a CSV file -> its text and its cells."""
    tables = {f"{table.name}.csv": (tidy_csv(table), index_table(table)) for table in build_tables(evidence)}
    return {**tables, "scores.csv": long_table(evidence), "sts.csv": wide_table(evidence)}


EVIDENCE = make()
FILES = files_of(EVIDENCE)


@pytest.mark.parametrize("name", FILES)
def test_the_index_holds_every_number_of_a_file_with_its_text_and_no_other(name: str) -> None:
    text, cells = FILES[name]
    rows = list(csv.DictReader(io.StringIO(text)))
    found = {(cell.line, column): written for cell in cells for column, written in cell.texts.items()}
    assert sum(len(cell.texts) for cell in cells) == len(found)
    numbers = EVIDENCE.results.suite.corpora if name == "sts.csv" else (*SCORE, *DIFFERENCE, *CONTROLLED)
    printed = {
        (line, column): row[column]
        for line, row in enumerate(rows, 2)
        for column in numbers
        if row.get(column)
    }  # fmt: skip
    assert found == printed
    for cell in cells:
        row = rows[cell.line - 2]
        assert cell.row == row.get("row", row.get("space"))
        assert cell.protocol == row.get("protocol", cell.protocol) and cell.corpus == row.get("corpus", cell.corpus)


@pytest.mark.parametrize("name", FILES)
def test_the_origin_of_a_number_gives_the_number(name: str) -> None:
    results = EVIDENCE.results
    for cell in FILES[name][1]:
        [value] = [text for column, text in cell.texts.items() if not column.endswith(("low", "high"))]
        scale = 100.0 if cell.unit == "nats" else 1.0
        if cell.origin == "score":
            space, corpus, protocol = cell.key
            assert float(value) == pytest.approx(results.facts(space, corpus)["scores"][protocol]["value"] / scale)
        if cell.origin == "difference":
            space, other, corpus, protocol = cell.key
            one, two = (results.facts(name, corpus)["scores"][protocol]["value"] for name in (space, other))
            assert float(value) == pytest.approx((one - two) / scale)
        if cell.origin == "printed" and cell.key:
            assert load_published()[int(cell.key[0])].shown == value


def test_every_origin_occurs_and_an_oracle_is_no_score() -> None:
    cells = {name: cells for name, (_, cells) in FILES.items()}
    assert {cell.origin for own in cells.values() for cell in own} == {"score", "difference", "derived", "printed"}
    oracles = [cell for cell in cells["selection.csv"] if "oracle" in cell.protocol]
    assert oracles and {cell.origin for cell in oracles} == {"derived"}
    assert all(part.count("/") == 1 for cell in oracles for part in cell.key)


def test_the_index_reads_back_by_the_schema_that_the_audit_knows() -> None:
    index = {name: cells for name, (_, cells) in FILES.items()}
    text = index_text("made-up", index)
    content = json.loads(text)
    assert (content["suite"], content["schema"], list(content["tables"])) == ("made-up", SCHEMA, list(index))
    names = content["fields"]
    for name, cells in index.items():
        read = [dict(zip(names, cell, strict=True)) for cell in content["tables"][name]]
        assert read == [{**asdict(cell), "key": list(cell.key)} for cell in cells]
