"""The committed reports as a reader meets them: the pages in a real browser, and README's numbers in the tables."""

from __future__ import annotations

import csv
import json
import re
import time

import pytest

from tests.browser import Page, needs_chromium
from tests.checkout import ROOT

SUITES = ("quick", "paper-mirror")


# --- the pages --------------------------------------------------------------------------------------


@needs_chromium
@pytest.mark.parametrize("suite", SUITES)
def test_a_committed_page_is_small_opens_sorts_and_leads_to_lineage(browser: Page, suite: str) -> None:
    file = ROOT / "reports" / suite / "index.html"
    assert file.stat().st_size <= 1_000_000
    browser.resize(390, 844, phone=True)
    browser.requests.clear()
    browser.complaints.clear()
    browser.open(file.as_uri())
    deadline = time.monotonic() + 20
    while not browser.evaluate("document.documentElement.dataset.ready"):
        assert time.monotonic() < deadline
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390

    browser.evaluate("document.querySelectorAll('#board .sort')[1].click()")
    column = "[...document.querySelectorAll('#board tbody.measured td:nth-child(2)')].map((cell) => cell.dataset.v)"
    values = [float(value) for value in browser.evaluate(column) if value]
    assert len(values) > 10 and values == sorted(values, reverse=True)

    browser.evaluate("document.querySelector('#board td.best .n').click()")
    shown = browser.evaluate("document.getElementById('panel').innerText")
    assert f"data/{suite}/spaces/" in shown and f"--suite {suite}" in shown
    assert {url for url in browser.requests if not url.startswith("about:")} == {file.as_uri()}
    assert browser.complaints == []


# --- README -----------------------------------------------------------------------------------------

FOUND = re.compile(r"^## What we found$(.*?)^## ", re.MULTILINE | re.DOTALL)
TRIPLE = re.compile(r"([+-]\d+\.\d+) \[([+-]\d+\.\d+), ([+-]\d+\.\d+)\]")


def found_section() -> str:
    match = FOUND.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert match is not None
    return match[1]


def scores(suite: str) -> list[dict[str, str]]:
    path = ROOT / "reports" / suite / "tables" / "scores.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def printed_triples(suite: str) -> set[tuple[float, float, float]]:
    """Every difference with its interval that any table of a suite prints, as numbers."""
    found = set()
    for path in sorted((ROOT / "reports" / suite).glob("**/*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                for names in (
                    ("value", "low", "high"),
                    ("difference", "difference_low", "difference_high"),
                    ("control_difference", "control_low", "control_high"),
                ):
                    texts = [row.get(name) or "" for name in names]
                    if all(re.fullmatch(r"[+-]?\d+(\.\d+)?", text) for text in texts):
                        value, low, high = (float(text) for text in texts)
                        found.add((value, low, high))
    return found


def test_readme_s_table_is_what_the_report_s_table_says() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in found_section().splitlines()
        if line.startswith("| ")
    ]
    corpora, lines = rows[0][1:], rows[1:]
    known = {
        (row["space"], row["corpus"]): row for row in scores("paper-mirror") if row["protocol"] == "spearman.all.cosine"
    }
    for name, *cells in lines:
        if "as MTEB publishes" in name:
            continue  # held against published.csv by the mteb tests
        space, _, other = name.partition(" − ")
        for corpus, cell in zip(corpora, cells, strict=True):
            row = known[space, corpus]
            if other:
                assert row["difference_to"] == other, name
                numbers = [float(row[f"difference{part}"]) for part in ("", "_low", "_high")]
                assert cell == "{:+.2f} [{:+.2f}, {:+.2f}]".format(*numbers), (name, corpus)
            else:
                assert cell == row["value"], (name, corpus)
    assert len(lines) > 20


def test_every_difference_with_an_interval_that_readme_states_stands_in_a_table() -> None:
    printed = {suite: printed_triples(suite) for suite in SUITES}
    everything = set().union(*printed.values())
    stated = TRIPLE.findall(found_section())
    assert len(stated) > 60
    for texts in stated:
        digits = [len(text.partition(".")[2]) for text in texts]
        wanted = tuple(float(text) for text in texts)
        assert wanted in everything or any(
            tuple(round(number, places) for number, places in zip(triple, digits, strict=True)) == wanted
            for triple in everything
        ), texts


def test_the_readme_counts_what_is_said_of_claims_as_the_report_does() -> None:
    content = json.loads((ROOT / "reports/paper-mirror/claims.json").read_text(encoding="utf-8"))
    said = " ".join(found_section().split())
    if "counts" not in content:
        assert "are of an earlier ledger" in said
        pytest.skip("the committed claims of paper-mirror are of an earlier ledger, which had no counts by heading")
    for heading, outcomes in content["counts"].items():
        listed = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        assert (f"{heading}: {listed}" if heading else listed) in said, heading
