"""Rows that need vectors or models which are not here: each printed model has one, and what it says to do works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.base.params import load_parameters, read_yaml
from pipeline.base.suite import load_suite
from pipeline.check import check_everything
from pipeline.papers.absent_rows import NO_STAGE, absent_entry, describe_absent, load_absent_rows
from pipeline.papers.plan import TablePlan, load_plans
from pipeline.plan import write_plan
from pipeline.report.evidence import Evidence
from pipeline.report.made_of import describe_words
from pipeline.report.panels import build_table
from pipeline.stages.encode import WordEncoderParameters
from pipeline.stages.word_vectors import load_blocks
from pipeline.words.published import find_location
from sentfold.report.table import Table
from tests.checkout import make_checkout_with_suites
from tests.report.made_up import make_results, make_suite

# GEM's ablation prints them without saying which weights they are: nobody can name a row that is the same.
NAMELESS = {"one weight + SDR", "two weights + SDR"}
ROWS = load_absent_rows()
PLANS = load_plans()


def printed_models(plan: TablePlan) -> set[str]:
    return {figure.model for panel in plan.panels for figure in plan.printed_in(panel)}


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
                assert all(entry.blank and entry.reason and entry.command for entry in blanks)
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


# --- the commands -----------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_checkout_with_suites(tmp_path / "checkout")
    monkeypatch.chdir(folder)
    return folder


def added(group: dict[str, Any], line: str) -> tuple[str, dict[str, Any]]:
    """What a line of a command asks for: name and block, "NAME: BLOCK" or "NAME as OTHER but for BLOCK"."""
    new = re.fullmatch(r"([a-z0-9-]+): (\{.*\})", line)
    if new:
        return new[1], yaml.safe_load(new[2])
    like = re.fullmatch(r"([a-z0-9-]+) as ([a-z0-9-]+) but for (\{.*\})", line)
    assert like is not None, line
    block = yaml.safe_load(yaml.safe_dump(group[like[2]]))
    for key, value in yaml.safe_load(like[3]).items():
        if key == "clustering":
            block["clusters"]["clustering"] = value
        else:
            (block if key in block else block["settings"])[key] = value
    return like[1], block


def test_following_the_commands_of_all_rows_over_word_vectors_gives_a_suite_that_checks(checkout: Path) -> None:
    suite = load_suite("quick")
    parameters, content = read_yaml(Path("params.yaml")), yaml.safe_load(Path("suite.yaml").read_text())
    for name in ROWS.word_encoders:
        entry = absent_entry(suite, name)
        assert entry is not None
        *fetches, write, naming, run = entry.command.split(", then ")
        assert run == "sentfold run --suite quick"
        for line in write.removeprefix("write into params.yaml ").split(" and "):
            group, _, rest = line.partition(".")
            made, block = added(parameters[group], rest)
            parameters[group][made] = block
        assert naming == f"name {name} among the spaces of suite.yaml"
        content["spaces"].append(name)
        Path("params.yaml").write_text(yaml.safe_dump(parameters))
        encoder = load_parameters(WordEncoderParameters, f"word_encoders.{name}")
        settings = encoder.method_settings(name).model_dump(mode="json")
        assert describe_words({**encoder.model_dump(), "settings": settings}) == describe_absent(name)
        needed = {block.file for block in load_blocks(encoder.vectors).values() if block.file is not None}
        fetched = {fetch.removeprefix("sentfold fetch-vectors ").partition(" ")[0]: fetch for fetch in fetches}
        assert set(fetched) == needed
        # Without a known sha256 a file is refused unless its own is to be recorded.
        assert all(find_location(file).sha256 or "--record-hash" in fetch for file, fetch in fetched.items())
    Path("suite.yaml").write_text(yaml.safe_dump(content))
    write_plan("quick")
    assert set(ROWS.word_encoders) <= set(check_everything("quick").spaces)


def test_following_the_commands_of_a_transformer_gives_a_suite_that_checks(checkout: Path) -> None:
    suite = load_suite("quick")
    for name in ROWS.encoders:
        entry = absent_entry(suite, name)
        assert entry is not None
        save, write, pin, naming, _ = entry.command.split(", then ")
        code = re.fullmatch(r'python -c "(.*)"', save)
        assert code is not None
        compile(code[1], name, "exec")
        assert pin.startswith(f"sentfold pin-encoder {name}, ")
        made = re.fullmatch(r"write into params\.yaml encoders\.([a-z0-9-]+): (\{.*\})", write)
        assert made is not None and made[1] == name
        block = yaml.safe_load(made[2])
        assert repr(block["folder"]) in code[1]
        parameters, content = read_yaml(Path("params.yaml")), yaml.safe_load(Path("suite.yaml").read_text())
        parameters["encoders"][name] = block
        assert naming.endswith("among the spaces of suite.yaml")
        content["spaces"] += [name, f"{name}-lp"]
        Path("params.yaml").write_text(yaml.safe_dump(parameters))
        Path("suite.yaml").write_text(yaml.safe_dump(content))
    write_plan("quick")
    assert set(ROWS.encoders) <= set(check_everything("quick").encoders)
