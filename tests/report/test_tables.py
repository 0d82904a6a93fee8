"""The papers' tables: every printed figure once, no two protocols in a column, no average of an incomplete row."""

from __future__ import annotations

import csv
import io
from collections import Counter
from functools import cache

import pytest

from pipeline.papers.plan import load_plans
from pipeline.papers.published import load_published
from pipeline.report.contents import build_tables, own_plans
from pipeline.report.evidence import Evidence
from pipeline.report.panels import build_table
from pipeline.report.results import Results
from sentfold.report.render import tidy_csv
from sentfold.report.table import Line, Table
from tests.report.made_up import make_results

YEARS = ("sts12", "sts13", "sts14", "sts15", "sts16")
MADE_OF = {"minilm": "all-MiniLM-L6-v2", "wl-average": "mean of words; WordLlama"}


def make_small(*, missing: str = "") -> Results:
    """minilm, its LP and PCA, and the mean of words on the STS years; `missing`: one that the source lacks."""
    values = {"minilm": 80.0, "minilm-lp": 70.0, "minilm-pca": 80.0, "wl-average": 60.0}
    scores = {
        (space, corpus, protocol): value
        for space, value in values.items()
        for corpus in YEARS
        for protocol in ("spearman.all.cosine", "pearson.mean.cosine", "spearman.wmean.cosine", "pearson.all.cosine")
        if corpus != missing
    }
    return make_results(scores, absent={missing: f"the mirror lacks {missing}"} if missing else None)


def all_tables(results: Results) -> list[Table]:
    return build_tables(Evidence(results, made_of=MADE_OF, published_by=frozenset({"mteb"})))


@cache
def small_tables() -> list[Table]:
    return all_tables(make_small())


def printed_numbers(table: Table) -> list[int]:
    links = [entry.link for entry in table.entries if entry.link.startswith("printed/")]
    return [int(link.partition("/")[2]) for link in links]


def test_every_printed_figure_stands_in_exactly_one_place() -> None:
    shown = Counter(number for table in small_tables() for number in printed_numbers(table))
    # MTEB's figures on corpora that this suite lacks have no column, and the three cosines need their corpus.
    elsewhere = {
        figure.number
        for figure in load_published()
        if (figure.source == "mteb" and figure.dataset not in YEARS)
        or (figure.source, figure.table) == ("hyperboloid", "1")
    }
    assert set(shown) == {figure.number for figure in load_published()} - elsewhere
    assert set(shown.values()) == {1}


def test_no_column_holds_figures_of_two_protocols() -> None:
    figures = load_published()
    for table in small_tables():
        for panel in table.panels:
            for column in range(len(panel.heads)):
                entries = [line.entries[column] for group in panel.groups if group.printed for line in group.lines]
                printed = [figures[int(e.link.partition("/")[2])] for e in entries if e.link.startswith("printed/")]
                assert len({(figure.statement, figure.metric) for figure in printed}) <= 1, panel.title
                # On a single set there is nothing to aggregate, so what is said of aggregation does not matter.
                if panel.heads[column].corpus not in {"stsb", "sickr"}:
                    assert len({figure.note for figure in printed}) <= 1, panel.title


def test_a_panel_whose_protocol_the_paper_does_not_state_has_no_row_of_ours() -> None:
    for name, plan in load_plans().items():
        for panel in plan.panels:
            unsaid = panel.printed is not None and "not stated" in panel.printed.statement
            single = {column.corpus for column in panel.columns} <= {"stsb", "sickr"}
            noted = panel.printed is not None and bool(panel.printed.note)
            assert not (panel.measured and unsaid and not single and not noted), name


def find(table: Table, panel: int, line: str) -> Line:
    return next(row for group in table.panels[panel].groups for row in group.lines if row.name == line)


def test_a_whole_row_has_the_mean_of_its_values_and_an_incomplete_one_has_none() -> None:
    plan = load_plans()["lase-5.1"]
    whole = find(build_table(Evidence(make_small(), made_of=MADE_OF), "lase-5.1", plan), 0, "wl-average").entries[-1]
    assert whole.value == 60.0
    assert whole.low is not None and whole.high is not None
    # Five independent sets, each moving by about 3.01 points: 2 x 1.96 x 3.01 / sqrt(5) wide, 1000 draws.
    assert whole.high - whole.low == pytest.approx(2 * 1.96 * 3.015 / 5**0.5, rel=0.15)
    table = build_table(Evidence(make_small(missing="sts14"), made_of=MADE_OF), "lase-5.1", plan)
    torn = find(table, 0, "wl-average").entries[-1]
    assert torn.blank and torn.reason == "an incomplete row has no average"


def test_a_blank_says_why() -> None:
    for table in all_tables(make_small(missing="sts16")):
        for panel in table.panels:
            for group in (group for group in panel.groups if not group.printed):
                for line in group.lines:
                    for entry in line.entries:
                        assert not entry.blank or entry.reason, (table.name, line.name)


def test_rows_name_what_they_were_made_of_and_wordllama_is_never_called_glove() -> None:
    for table in small_tables():
        for panel in table.panels:
            for group in (group for group in panel.groups if not group.printed):
                for line in group.lines:
                    if any(not entry.blank for entry in line.entries):
                        assert "GloVe" not in line.name + line.made_of
                        assert line.made_of == MADE_OF.get(line.name, line.made_of)


def test_what_a_panel_shows_is_said_from_the_numbers() -> None:
    table = build_table(Evidence(make_small(), made_of=MADE_OF), "sbert-lp-1", load_plans()["sbert-lp-1"])
    shows = " ".join(table.panels[0].shows)
    # LP is below on five sets; PCA is level on five.
    assert "Of 10 differences to minilm, judged together, 0 are above zero beyond chance, 5 below; 5 cannot" in shows
    assert any("max-T" in note for note in table.panels[0].notes)
    assert any("Smallest difference" in note and "sts16" in note for note in table.panels[0].notes)


def test_a_corpus_of_few_independent_texts_calls_nothing() -> None:
    scores = {
        (space, "sts12", "spearman.all.cosine"): value for space, value in (("minilm", 80.0), ("minilm-lp", 70.0))
    }
    results = make_results(scores, effective={"sts12": 26.8})
    table = build_table(Evidence(results), "sbert-lp-1", load_plans()["sbert-lp-1"])
    shows = " ".join(table.panels[0].shows)
    assert "too few independent texts to be called" in shows
    assert all(entry.sign == 0 for entry in table.panels[0].entries)


def test_mutual_information_is_shown_in_nats() -> None:
    results = make_results(
        {("minilm", "20news-test", f"{name}.kmeans"): value for name, value in (("mi", 123.45), ("nmi", 40.0))}
    )
    line = find(build_table(Evidence(results, made_of={}), "sbert-lp-3", load_plans()["sbert-lp-3"]), 0, "minilm")
    assert (line.entries[0].text, line.entries[1].text) == ("1.2345", "40.00")


def test_the_csv_names_the_protocol_of_every_line_and_reads_back() -> None:
    table = build_table(Evidence(make_small(), made_of=MADE_OF), "sbert-lp-1", load_plans()["sbert-lp-1"])
    rows = list(csv.DictReader(io.StringIO(tidy_csv(table))))
    assert len(rows) == len(table.entries)
    assert all(row["protocol"] for row in rows)
    assert {row["value"] for row in rows if row["row"] == "SBERT-large-LP" and row["corpus"] == "sts13"} == {"84.59"}


def test_a_suite_without_a_papers_corpus_has_its_own_tables_alone() -> None:
    results = make_results({("minilm", "lee", "spearman.all.cosine"): 50.0})
    assert list(own_plans(Evidence(results))) == ["similarity"]
    assert [table.name for table in all_tables(results)] == ["similarity", "artifacts"]
