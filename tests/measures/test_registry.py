"""The registry of measures: what a file states is what the tables, the parameters and a new measure get."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sentfold.errors import ParameterError
from sentfold.measures.registry import (
    all_measures,
    describe_protocol,
    evaluate_parameters,
    find_measure,
    known_tasks,
    shorten_protocol,
    unit_of,
)

ROOT = Path(__file__).parents[2]

NEW = '''"""Length: how well the length of a vector predicts the number of words of its text."""

from pydantic import Field

from sentfold.measures.base.case import Case
from sentfold.measures.base.scores import CaseScores, ScoreSettings
from sentfold.measures.registry import TaskPanel, TaskTable, Text

TITLE = "Length"
COLUMNS = {"text": Text, "words": int}
WORDS = {"r2": "explained variance", "length": "vector length"}
TABLES = (TaskTable("length", "Lengths", "", (TaskPanel("By length", ("r2.length",)),)),)


class Settings(ScoreSettings):
    degree: int = Field(default=1, ge=1, le=5)


def score(case: Case, settings: Settings) -> CaseScores:
    return CaseScores({"r2.length": 1.0 / settings.degree})
'''
USE = """
from sentfold.measures.registry import describe_protocol, evaluate_parameters, find_measure, known_tasks

assert "length" in known_tasks(), known_tasks()
measure = find_measure("length")
block = evaluate_parameters()(resamples=100, seed=0, degree=4)
assert measure.score(None, block.pick(measure.settings)).scores == {"r2.length": 0.25}
assert [panel.protocols for table in measure.tables for panel in table.panels] == [("r2.length",)]
assert measure.item_columns == ("row", "words", "split")
assert describe_protocol("r2.length") == "explained variance of vector length"
"""


def test_a_new_measure_is_one_file(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sentfold", tmp_path / "sentfold", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "sentfold/measures/length.py").write_text(NEW, encoding="utf-8")
    run = subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_task_without_a_file_is_refused_with_the_tasks_that_there_are() -> None:
    for name in ("geometry", "registry", "no-such-task"):  # files of the package that score nothing, and no file
        with pytest.raises(ParameterError) as caught:
            find_measure(name)
        assert all(task in str(caught.value) for task in known_tasks())


def test_every_protocol_of_a_table_has_words_for_each_of_its_parts() -> None:
    for measure in all_measures():
        for table in measure.tables:
            for panel in table.panels:
                for protocol in (*panel.protocols, *filter(None, [panel.against])):
                    named = {"cosine", *measure.words}
                    assert set(protocol.split(".", 2)) <= named, (measure.task, protocol)


def test_items_name_their_texts_by_rows_of_the_vectors() -> None:
    assert find_measure("classification").item_columns == ("row", "label", "split")
    assert find_measure("inference").item_columns == ("row1", "row2", "label", "split")
    columns = find_measure("ranking").item_columns
    assert columns == ("query_id", "row1", "candidate_id", "row2", "relevance", "rank", "split")


def test_tables_have_different_names_because_each_is_a_file() -> None:
    names = [table.name for measure in all_measures() for table in measure.tables]
    assert len(names) == len(set(names))


def test_a_part_of_a_protocol_means_the_same_in_every_measure() -> None:
    for field in ("words", "short"):
        meanings: dict[str, set[str]] = {}
        for measure in all_measures():
            for part, text in getattr(measure, field).items():
                meanings.setdefault(part, set()).add(text)
        assert [part for part, texts in meanings.items() if len(texts) > 1] == []


def test_a_setting_of_two_measures_is_one_key_with_one_range_and_one_default() -> None:
    model = evaluate_parameters()
    for measure in all_measures():
        for name, field in measure.settings.model_fields.items():
            shared = model.model_fields[name]
            assert (field.annotation, field.default) == (shared.annotation, shared.default), (measure.task, name)
            assert [repr(rule) for rule in field.metadata] == [repr(rule) for rule in shared.metadata]


def test_protocols_are_described_in_words() -> None:
    assert describe_protocol("spearman.all.cosine") == "Spearman of cosine, all pairs"
    assert describe_protocol("spearman.all.lorentz-0.01") == "Spearman of Lorentzian similarity, β = 0.01, all pairs"
    assert describe_protocol("accuracy.logistic") == "accuracy of logistic regression"
    assert (shorten_protocol("nmi.kmeans"), shorten_protocol("accuracy.logistic")) == ("NMI", "accuracy")
    assert (unit_of("mi.kmeans"), unit_of("nmi.kmeans")) == ("nats", "x100")
