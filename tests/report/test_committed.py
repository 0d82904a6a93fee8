"""The committed reports as a reader meets them: the pages in a real browser, and the numbers of README.md and docs/."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.papers.published import select
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


@pytest.mark.parametrize("suite", (*SUITES, "benchmarks"))
def test_committed_figures_are_svg_alone_and_small(suite: str) -> None:
    folder = ROOT / "reports" / suite
    files = [path for path in folder.rglob("*") if path.suffix in {".svg", ".png", ".pdf", ".jpg"}]
    assert files and all(path.suffix == ".svg" and path.stat().st_size <= 300_000 for path in files)


def test_the_page_of_paper_mirror_is_fast_enough() -> None:
    path = ROOT / "reports/benchmarks/page.json"
    if not path.exists():
        pytest.skip("not measured yet: python -m benchmarks.page reports/paper-mirror/index.html --json FILE")
    took = json.loads(path.read_text(encoding="utf-8"))["milliseconds"]
    assert took["answer"] <= 1000 and took["sort"] <= 100 and took["search"] <= 100


# --- README.md, docs/findings.md and docs/findings/ ---------------------------------------------------

# Page -> how many cells of its tables, and how many differences of its text, a test must find to have read it.
PAGES = {
    "README.md": (40, 5),
    "docs/findings.md": (120, 0),
    "docs/findings/folding.md": (90, 9),
    "docs/findings/what-helps.md": (0, 5),
    "docs/findings/word-vectors.md": (45, 9),
    "docs/findings/papers.md": (0, 0),
}
RETRIEVAL = "docs/findings/retrieval.md"
RETRIEVAL_TABLE = ROOT / "reports/paper-mirror/tables/retrieval.csv"
TABLE = re.compile(r"^<!-- (scores|retrieval): (\S+) -->\n((?:\|.*\n)+)", re.MULTILINE)
TRIPLE = re.compile(r"([+-]\d+\.\d+) \[([+-]\d+\.\d+), ([+-]\d+\.\d+)\]")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
REFRESH = ROOT / ".ci/refresh_findings.py"


def read_page(name: str) -> str:
    """A page without its fenced blocks: they show what commands print."""
    return FENCE.sub("", (ROOT / name).read_text(encoding="utf-8"))


def tables_of(name: str, source: str = "scores") -> list[tuple[str, list[list[str]]]]:
    """The tables of a page that are marked with a source: the protocol, and the rows of cells, the head first."""
    found = []
    for mark, protocol, text in TABLE.findall(read_page(name)):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        found += [(protocol, [rows[0], *rows[2:]])] if mark == source else []
    return found


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


def expected_cell(row: dict[str, str], other: str) -> str:
    """The cell of a row of scores.csv: its score, or its difference to another space with the interval."""
    if not other:
        return row["value"]
    if row["difference_to"] == other:
        columns = ("difference", "difference_low", "difference_high")
    else:
        assert row["control"] == other
        columns = ("control_difference", "control_low", "control_high")
    return "{:+.2f} [{:+.2f}, {:+.2f}]".format(*[float(row[column]) for column in columns])


@pytest.mark.parametrize("page", [*PAGES, RETRIEVAL])
def test_every_cell_of_a_page_s_tables_is_what_the_report_says(page: str) -> None:
    known = {(row["space"], row["corpus"], row["protocol"]): row for row in scores("paper-mirror")}
    checked = 0
    for protocol, (head, *rows) in tables_of(page):
        for name, *cells in rows:
            if "MTEB" in name:
                continue  # copies of published figures
            space, _, other = name.partition(" − ")
            for column, cell in zip(head[1:], cells, strict=True):
                corpus, _, own = column.partition(", ")
                assert cell == expected_cell(known[space, corpus, own or protocol], other), (name, column)
                checked += 1
    assert checked >= PAGES.get(page, (25, 0))[0]


def test_findings_copy_the_published_scores_of_mteb() -> None:
    _, (head, *rows) = tables_of("docs/findings.md")[0]
    figures = select("mteb", "results", keep=lambda figure: figure.metric == "spearman")
    published = {figure.dataset: figure for figure in figures}
    (cells,) = (cells for name, *cells in rows if "MTEB" in name)
    for corpus, cell in zip(head[1:], cells, strict=True):
        assert cell == (published[corpus].shown if corpus in published else ""), corpus


@pytest.mark.parametrize("page", PAGES)
def test_every_difference_with_an_interval_that_a_page_states_is_in_a_table_of_a_report(page: str) -> None:
    everything = set().union(*[printed_triples(suite) for suite in SUITES])
    stated = TRIPLE.findall(TABLE.sub("", read_page(page)))
    assert len(stated) >= PAGES[page][1]
    for texts in stated:
        digits = [len(text.partition(".")[2]) for text in texts]
        wanted = tuple(float(text) for text in texts)
        assert wanted in everything or any(
            tuple(round(number, places) for number, places in zip(triple, digits, strict=True)) == wanted
            for triple in everything
        ), texts


def test_the_findings_count_the_outcomes_of_claims_as_the_report_does() -> None:
    content = json.loads((ROOT / "reports/paper-mirror/claims.json").read_text(encoding="utf-8"))
    stated = " ".join(read_page("docs/findings/papers.md").split())
    for heading, outcomes in content["counts"].items():
        listed = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
        assert (f"{heading}: {listed}" if heading else listed) in stated, heading


def test_the_page_of_retrieval_says_what_its_table_says() -> None:
    tables = tables_of(RETRIEVAL, "retrieval")
    with RETRIEVAL_TABLE.open(encoding="utf-8", newline="") as stream:
        known = {(row["panel"], row["row"], row["corpus"]): row for row in csv.DictReader(stream)}
    for _, (head, *rows) in tables:
        for name, *cells in rows:
            for pool, cell in zip(head[1:], cells, strict=True):
                row = known["b" if " − " in name else "a", name, pool]
                low, high = (f"{float(row[bound]):+.2f}" for bound in ("low", "high"))
                assert cell == (f"{float(row['value']):+.2f} [{low}, {high}]" if " − " in name else row["value"])


def test_the_refresh_script_restores_a_wrong_cell_and_names_what_no_table_has(tmp_path: Path) -> None:
    for name in (*PAGES, "reports/paper-mirror/claims.json", "reports/paper-mirror/tables/scores.csv",
                 "reports/paper-mirror/tables/retrieval.csv"):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    page = tmp_path / "README.md"
    before = page.read_text(encoding="utf-8")
    row = next(line for line in before.splitlines() if line.startswith("| minilm-pca − minilm |"))
    page.write_text(before.replace(row, "| minilm-pca − minilm |") + "\nIt gains +12.34 [+5.67, +8.90].\n", "utf-8")
    done = subprocess.run([sys.executable, REFRESH, tmp_path], capture_output=True, text=True, check=False)
    assert row in page.read_text(encoding="utf-8")
    assert done.returncode == 1 and "README.md: no table has +12.34 [+5.67, +8.90]" in done.stdout


def test_the_refresh_script_has_nothing_to_change() -> None:
    done = subprocess.run([sys.executable, REFRESH, ROOT, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
