"""Stage `sensitivity`: a word encoder's score against its hyper-parameters, one at a time. Nothing is chosen by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import ConfigDict, Field, field_validator
from scipy.stats import pearsonr
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from pipeline.artifacts import absence, corpus_path, read_table, write_json
from pipeline.encoders.encode import WordEncoderParameters, load_lexicon, read_texts
from pipeline.encoders.lexicon import Lexicon
from pipeline.encoders.protocol import find_method
from pipeline.encoders.settings import make_settings
from pipeline.encoders.word_encoder import WordSettings
from pipeline.errors import ParameterError, SuiteError, located
from pipeline.evaluate.case import Case, task_of
from pipeline.evaluate.classification import predict_by_logistic
from pipeline.evaluate.folds import has_splits
from pipeline.evaluate.similarities import cosines
from pipeline.params import Parameters, load_parameters
from pipeline.selection.sensitivity_parameters import SensitivityParameters, surface_path
from pipeline.suite import Suite

PROTOCOLS = {"similarity": "pearson.all.cosine", "classification": "accuracy.logistic"}
DIGITS = 3  # of scores x100: what differs less, differs by the arithmetic of the processor


class LogisticParameters(Parameters):
    """What this stage needs of the block `evaluate`; see EvaluateParameters."""

    model_config = ConfigDict(extra="ignore")

    folds: int = Field(ge=2, le=100)
    inner_folds: int = Field(ge=2, le=100)
    strengths: tuple[float, ...] = Field(min_length=1)
    seed: int = Field(ge=0, lt=2**32)

    @field_validator("strengths", mode="before")
    @classmethod
    def _list_is_a_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Point:
    """One value of one hyper-parameter in one variant, the others as published, and the settings that this makes."""

    variant: str
    parameter: str
    value: int | float
    settings: WordSettings


@dataclass(frozen=True)
class Material:
    """One corpus of the suite: its distinct sentences, and the items that point at them by row."""

    corpus: str
    task: str
    texts: list[str]
    items: dict[str, list[Any]]


def sensitivity(chosen: Suite, name: str) -> dict[str, Any]:
    """Write surface.json of one word encoder of params.yaml: a score for each value of each hyper-parameter.

    Returns what was written. A corpus that the suite lacks stands in it with the reason.
    Raises ParameterError if a value is none of the method's, SuiteError if a corpus is test data.
    Cost: one fit and one encoding of each corpus per distinct setting; a nested regression where there are classes.
    Source: Yang, Zhu & Chen 2019, section 4, figure 2, doi:10.18653/v1/D19-1059
    """
    varied = load_parameters(SensitivityParameters, f"report.sensitivity.{name}")
    base = load_parameters(WordEncoderParameters, f"word_encoders.{name}")
    rules = load_parameters(LogisticParameters, "evaluate")
    points = list(points_of(name, varied, base))
    found = {corpus: load_material(chosen, corpus) for corpus in varied.corpora}
    held = [material for material in found.values() if isinstance(material, Material)]
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1), located(f"params.yaml: report.sensitivity.{name}"):
        lexicon = load_lexicon(chosen.suite, base)
        for material in held:
            fitted = varied.fitted if material.task == "classification" else tuple(varied.variants)
            own = [point for point in points if point.variant in fitted]
            rows += score_points(lexicon, base.method, material, own, rules)
    corpora = {
        corpus: {"absent": material} if isinstance(material, str) else {"protocol": PROTOCOLS[material.task]}
        for corpus, material in found.items()
    }
    content = {"corpora": corpora, "published": varied.published, "rows": rows, "vectors": base.vectors}
    write_json(surface_path(chosen.suite, name), content)
    return content


def points_of(name: str, varied: SensitivityParameters, base: WordEncoderParameters) -> Iterator[Point]:
    """Every value of every hyper-parameter in every variant, checked as the method's own settings are.

    Raises ParameterError naming the value that is none, or the encoder if it is not fitted on each corpus alone.
    """
    where = f"params.yaml: report.sensitivity.{name}"
    if base.fit_on != "corpus":
        raise ParameterError(
            "hyper-parameters are varied on one corpus at a time",
            where=f"params.yaml: word_encoders.{name}.fit_on",
            expected="corpus",
            got=base.fit_on,
            remedy=f"take the block {where.partition(': ')[2]} out, or vary another encoder",
        )
    method = find_method(base.method)
    for variant, changes in varied.variants.items():
        for parameter, values in varied.values.items():
            for value in values:
                settings: dict[str, Any] = {**base.settings, **changes, **varied.published, parameter: value}
                settings["tokenizer"] = base.tokenizer
                yield Point(variant, parameter, value, make_settings(method, settings, where=f"{where}.values"))


def load_material(chosen: Suite, corpus: str) -> Material | str:
    """A corpus of the suite, or why there is none. Raises SuiteError if scoring it would look at test data."""
    if corpus not in chosen.corpora:
        return "the suite does not list it"
    source, target = corpus_path(chosen.suite, corpus, "sentences"), corpus_path(chosen.suite, corpus, "items")
    reason = absence(source, kind="sentences")
    if reason is not None:
        return reason
    task = task_of(target)
    items = read_table(target, kind=f"items.{task}").to_pydict()
    crossed = task == "classification" and not has_splits(items["split"])
    if not crossed and (task != "similarity" or corpus != chosen.development):
        raise SuiteError(
            f"'{corpus}' is neither development data nor judged by cross-validation",
            where=f"{chosen.file}: development",
            expected=f"{chosen.development or 'a development corpus'}, or a classification corpus without a test split",
            got=f"{corpus}, a corpus of {task}",
            remedy="take it out of `corpora` in params.yaml: report.sensitivity",
        )
    return Material(corpus, task, read_texts(source), items)


def score_points(
    lexicon: Lexicon, method: str, material: Material, points: list[Point], rules: LogisticParameters
) -> list[dict[str, Any]]:
    """A row per point. The published settings are a value of every hyper-parameter: equal ones are scored once."""
    known: dict[str, float | None] = {}
    rows = []
    for point in tqdm(points, desc=material.corpus, unit=" points", disable=None):
        settings = point.settings.model_dump_json()
        if settings not in known:
            encoder = find_method(method).build(lexicon, point.settings)
            known[settings] = score_material(
                material, encoder.fit(material.texts).encode(material.texts).vectors, rules
            )
        rows.append(
            {
                "corpus": material.corpus,
                "parameter": point.parameter,
                "score": known[settings],
                "value": point.value,
                "variant": point.variant,
            }
        )
    return rows


def score_material(material: Material, vectors: Any, rules: LogisticParameters) -> float | None:
    """The score x100 of vectors, one per sentence: Pearson of cosines, or accuracy of nested logistic regression.

    vectors  (n, d); judged as float32, since that is how a space is stored, and as `evaluate` does: for a regression
             scaled to a median length of 1
    None where a correlation is undefined.
    """
    case = Case(material.corpus, material.task, material.items, {}, np.asarray(vectors, dtype=np.float32))
    if material.task == "similarity":
        cosine, _ = cosines(case.vectors, case.pairs)
        human = np.asarray(material.items["score"], dtype=np.float64)
        if not (np.ptp(cosine) > 0 and np.ptp(human) > 0):
            return None
        return round(100 * float(pearsonr(cosine, human).statistic), DIGITS)
    said = predict_by_logistic(
        case.scaled[np.asarray(material.items["row"])], case.labels, material.items["split"], folds=rules.folds,
        inner_folds=rules.inner_folds, strengths=rules.strengths, seed=rules.seed,
    )  # fmt: skip
    return round(100 * float((said.predicted == case.labels[said.items]).mean()), DIGITS)
