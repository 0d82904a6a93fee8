"""The measures: one file per task, found by the name of the file. No other list of tasks exists.

A measure is a module sentfold/measures/<task>.py. It must define:
  TITLE     the task's name in tables
  COLUMNS   the columns that a source gives for each item: name -> Text, str, int or float. Items have the same
            columns and `split`; in place of a text they have the row of its vector: `row`, or `row1` and `row2`
  Settings  its settings, a subclass of ScoreSettings: keys of the block `evaluate` of params.yaml. If two measures
            have the same key, the key means the same in both
  score     (Case, Settings) -> CaseScores: scores by protocol, bootstrap replicates, facts, reasons for missing scores
and it may define:
  positive_pairs  Case -> (words, (m, 2) rows): pairs of texts that mean the same, for the alignment of a space
  GEOMETRY        False where the corpora of the task are too small to have a geometry
  TABLES          the tables of the report about the task, each a TaskTable
  WORDS           part of a protocol -> the part in words, e.g. "kmeans" -> "k-means"
  SHORT           part of a protocol -> its short name, for the head of a narrow column
  UNITS           protocol -> the unit of its scores, where that is not x100

The report calls `all_measures` and `find_measure`, and reads `.title`, `.tables` and `.units` of a measure.
`describe_protocol`, `shorten_protocol` and `unit_of` give the texts for a protocol. The titles of the facts of the
geometry are in geometry.py, FACTS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, create_model

from sentfold.errors import ParameterError
from sentfold.measures.base.case import Case
from sentfold.measures.base.scores import CaseScores, ScoreSettings
from sentfold.measures.geometry import GeometrySettings
from sentfold.settings import Parameters, Slug

Positive = tuple[str, npt.NDArray[np.int64]]
Settings = TypeVar("Settings", bound=Parameters)
Slugs = Annotated[tuple[Slug, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]


class Text(str):
    """The type of a column of sentences; a task has one or two such columns."""


@dataclass(frozen=True)
class TaskPanel:
    """One panel of a table: its title, and its protocols, each a column for every corpus of the task.

    against  the protocol that each row is compared with; "" for none
    """

    title: str
    protocols: tuple[str, ...]
    against: str = ""


@dataclass(frozen=True)
class TaskTable:
    """One table about every corpus of a task and every space; `name` is the name of its files."""

    name: str
    title: str
    about: str
    panels: tuple[TaskPanel, ...]


@dataclass(frozen=True)
class Measure:
    """The definitions in a measure's file; see the docstring of this module."""

    task: str
    title: str
    columns: Mapping[str, type]
    settings: type[ScoreSettings]
    score: Callable[[Case, ScoreSettings], CaseScores]
    positive_pairs: Callable[[Case], Positive]
    geometry: bool
    tables: tuple[TaskTable, ...]
    words: Mapping[str, str]
    short: Mapping[str, str]
    units: Mapping[str, str]

    @property
    def item_columns(self) -> tuple[str, ...]:
        """The columns of the items: those of the source, with rows of vectors instead of texts, and `split`."""
        texts = [name for name, kind in self.columns.items() if kind is Text]
        rows = {name: f"row{place + 1}" if len(texts) > 1 else "row" for place, name in enumerate(texts)}
        return (*(rows.get(name, name) for name in self.columns), "split")


class EvaluateParameters(Parameters):
    """The block `evaluate` of params.yaml: the keys below, and the keys of the geometry and of every measure.

    confidence  level of every confidence interval
    unfitted    spaces on which no regression is fitted, because regressions take most of the time
    perceptron  spaces on which a perceptron is trained; a perceptron takes longer than a regression
    """

    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    unfitted: Slugs = ()
    perceptron: Slugs = ()
    resamples: int
    seed: int

    def pick(self, settings: type[Settings]) -> Settings:
        """Extract the settings of one measure, or of the geometry, from the block."""
        return settings.model_validate({name: getattr(self, name) for name in settings.model_fields})


def known_tasks() -> tuple[str, ...]:
    """The names of the files of this package whose text defines `score`; no file is imported."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return tuple(file.stem for file in files if "\ndef score(" in file.read_text(encoding="utf-8"))


@cache
def find_measure(task: str) -> Measure:
    """The measure of a task. Raises ParameterError if there is none."""
    if task not in known_tasks():
        raise ParameterError(
            f"there is no measure for the task '{task}'",
            where="sentfold/measures",
            expected=f"one of: {', '.join(known_tasks())}",
            got=task,
            remedy="correct the name, or add sentfold/measures/<task>.py with TITLE, COLUMNS, Settings and score",
        )
    module = import_module(f"sentfold.measures.{task}")
    return Measure(
        task=task,
        title=module.TITLE,
        columns=module.COLUMNS,
        settings=module.Settings,
        score=module.score,
        positive_pairs=getattr(module, "positive_pairs", _no_pairs),
        geometry=getattr(module, "GEOMETRY", True),
        tables=getattr(module, "TABLES", ()),
        words=getattr(module, "WORDS", {}),
        short=getattr(module, "SHORT", {}),
        units=getattr(module, "UNITS", {}),
    )


def all_measures() -> tuple[Measure, ...]:
    """Every measure, in the order of the tasks' names."""
    return tuple(find_measure(task) for task in known_tasks())


@cache
def evaluate_parameters() -> type[EvaluateParameters]:
    """The model of the block `evaluate`, with the keys of every measure; an unknown key is refused."""
    models: list[type[Parameters]] = [GeometrySettings, *(measure.settings for measure in all_measures())]
    fields: dict[str, Any] = {
        name: (field.rebuild_annotation(), field.default)
        for model in models
        for name, field in model.model_fields.items()
    }
    return create_model("EvaluateParameters", __base__=EvaluateParameters, **fields)


def describe_protocol(protocol: str) -> str:
    """A protocol in words: "spearman.all.cosine" is "Spearman of cosine, all pairs"."""
    words = {part: text for measure in all_measures() for part, text in measure.words.items()}
    parts = [words.get(part, part) for part in _parts(protocol)]
    if len(parts) == 3:
        return f"{parts[0]} of {parts[2]}, {parts[1]}"
    return f"{parts[0]} of {parts[1]}" if len(parts) == 2 else parts[0]


def shorten_protocol(protocol: str) -> str:
    """The short name of a protocol's metric for a narrow column, e.g. "NMI"."""
    metric = _parts(protocol)[0]
    return next((measure.short[metric] for measure in all_measures() if metric in measure.short), metric)


def unit_of(protocol: str) -> str:
    """The unit of a protocol's scores: "x100", unless its measure says otherwise."""
    return next((measure.units[protocol] for measure in all_measures() if protocol in measure.units), "x100")


def _parts(protocol: str) -> list[str]:
    return protocol.split(".", 2)  # the last part may contain a point: lorentz-0.01


def _no_pairs(case: Case) -> Positive:
    return "", np.empty((0, 2), dtype=np.int64)
