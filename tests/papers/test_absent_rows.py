"""Rows that need vectors or models which are not here: each printed model has one, and what it says to do works."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pipeline.base.params import read_yaml
from pipeline.papers.absent_rows import NO_STAGE, absent_entry, describe_absent, load_absent_rows
from pipeline.papers.plan import TablePlan, load_plans
from pipeline.report.evidence import Evidence
from pipeline.report.panels import build_table
from pipeline.words.published import find_location
from sentfold.report.table import Table
from tests.report.made_up import make_results, make_suite

# GEM's ablation prints them without saying which weights they are: nobody can name a row that is the same.
NAMELESS = {"one weight + SDR", "two weights + SDR"}
ROWS = load_absent_rows()
PLANS = load_plans()


def printed_models(plan: TablePlan) -> set[str]:
    return {figure.model for panel in plan.panels for figure in plan.printed_in(panel)}


@cache
def built(name: str) -> Table:
    """The table over a suite that has one space of ours, scored on every column."""
    columns = [(column.corpus, column.protocol) for panel in PLANS[name].panels for column in panel.columns]
    results = make_results({("wl-gem-plain", corpus, protocol): 50.0 for corpus, protocol in columns})
    return build_table(Evidence(results, made_of={"wl-gem-plain": "made up"}), name, PLANS[name])


@pytest.mark.parametrize("name", PLANS)
def test_every_model_that_a_table_prints_is_answered_by_a_row_of_ours(name: str) -> None:
    plan = PLANS[name]
    assert printed_models(plan) - NAMELESS == set(plan.answers)
    known = {*ROWS.models, *ROWS.encoders, *ROWS.word_encoders, *plan.wanted}
    pinned = {"sbert-base-nli", "sbert-large-nli"}  # whose blanks say how to pin them
    assert set(plan.answers.values()) <= known | pinned
    rows = {line.name for panel in built(name).panels for group in panel.groups for line in group.lines}
    assert set(plan.answers.values()) <= rows


@pytest.mark.parametrize("name", PLANS)
def test_a_row_that_is_not_made_stands_once_in_a_panel_with_its_reason_and_what_fills_it(name: str) -> None:
    for panel in built(name).panels:
        lines = [line for group in panel.groups if not group.printed for line in group.lines]
        assert len({line.name for line in lines}) == len(lines)
        for line in lines:
            if line.name != "wl-gem-plain":
                blanks = [entry for entry in line.entries if entry.reason != "an incomplete row has no average"]
                assert all(entry.blank and entry.reason for entry in blanks)
        titles = [group.title for group in panel.groups]
        assert [title for title in titles if title.startswith("Not made")] == [
            title for title in titles if title == "Not made in suite made-up"
        ]


def test_a_model_is_blank_where_it_is_printed_and_not_in_panels_of_other_models() -> None:
    panels = built("sbert-lp-1").panels
    rows = [{line.name for group in panel.groups if not group.printed for line in group.lines} for panel in panels]
    assert ["bert-base-flow" in names for names in rows] == [False, True, False, True]
    # Its aggregation is not stated, so it is printed in a panel without rows of ours and answered in the first.
    assert ["sbert-wk" in names for names in rows] == [True, False, False, False]


def test_every_absent_row_is_wanted_by_a_table_and_described_unlike_any_other() -> None:
    names = [*ROWS.models, *ROWS.encoders, *ROWS.word_encoders]
    assert len(set(names)) == len(names)
    assert set(names) <= {row for plan in PLANS.values() for row in plan.answers.values()}
    said = [describe_absent(name) for name in names]
    assert all(said) and len(set(said)) == len(said)
    assert set(ROWS.vectors) == {row.vectors for row in ROWS.word_encoders.values()}


def test_a_model_that_no_stage_runs_says_so_and_a_row_that_the_suite_has_is_never_said_to_be_absent() -> None:
    suite = make_suite(("minilm",), ("stsb",))
    for name in ROWS.models:
        entry = absent_entry(suite, name)
        assert entry is not None and entry.reason == NO_STAGE
    assert absent_entry(suite, "minilm") is None
    results = make_results({("glove-average", "stsb", "pearson.all.cosine"): 40.6})
    table = build_table(Evidence(results), "gem-1", PLANS["gem-1"])
    [line] = [line for group in table.panels[0].groups for line in group.lines if line.name == "glove-average"]
    assert [entry.text for entry in line.entries] == ["", "40.60"]


def test_a_row_over_word_vectors_names_files_that_can_be_fetched_and_a_block_that_exists() -> None:
    blocks, suite = read_yaml(Path("params.yaml"))["word_encoders"], make_suite(("minilm",), ("stsb",))
    for name, row in ROWS.word_encoders.items():
        assert row.like in blocks
        entry = absent_entry(suite, name)
        assert entry is not None
        files = [fetch.partition(" ")[0] for fetch in entry.command.split("sentfold fetch-vectors ")[1:]]
        for said, file in zip(ROWS.vectors[row.vectors], (file.strip(",") for file in files), strict=True):
            # Without a known sha256 a file is refused unless its own is to be recorded.
            assert find_location(file).sha256 or said == f"{file} --record-hash"
