"""Stage `evaluate`: every score of one space on every corpus, with bootstrap replicates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    read_vectors,
    resamples_path,
    scores_path,
    space_path,
    write_absence,
    write_table,
)
from pipeline.base.cases import load_case, task_of
from pipeline.base.params import load_parameters
from pipeline.base.suite import Suite
from sentfold.compare.bootstrap import percentile_interval
from sentfold.errors import ArtifactError, located
from sentfold.files import Vectors, write_json
from sentfold.measures.base.case import Case
from sentfold.measures.base.scores import CaseScores
from sentfold.measures.geometry import GeometrySettings, describe_geometry
from sentfold.measures.registry import EvaluateParameters, evaluate_parameters, find_measure

# Scores are stored times 100 and rounded: the last digits of float32 sums differ between instruction sets, and the
# committed files must not.
DIGITS = 2


def evaluate(chosen: Suite, space: str) -> dict[str, Any]:
    """Score one space on every corpus; write its scores and its replicates. Returns the scores.

    Reads the corpora, the space, and the space of the encoder that the space was made from.
    Raises SuiteError if the suite has no such space.
    """
    suite, encoder = chosen.suite, chosen.encoder_of(space)
    parameters = load_parameters(evaluate_parameters(), "evaluate")
    content: dict[str, Any] = {}
    for corpus in chosen.corpora:
        vectors_path, replicates_path = space_path(suite, space, corpus), resamples_path(suite, space, corpus)
        case = load_case(suite, space, corpus)
        if isinstance(case, str):
            content[corpus] = {"absent": case, "task": task_of(corpus_path(suite, corpus, "items"))}
            write_absence(replicates_path, case, kind="resamples", inputs=[vectors_path])
            continue
        case = replace(case, fitted=space not in parameters.unfitted, perceptron=space in parameters.perceptron)
        case = replace(case, training=_training_of(case, chosen, space))
        source = None if encoder == space else _vectors_of(suite, encoder, corpus)
        with threadpool_limits(1), located(f"corpus {corpus}, space {space}"):
            outcome = score_case(case, parameters, source=source)
        content[corpus] = {**outcome.facts, "scores": summarise(outcome, confidence=parameters.confidence)}
        inputs = [corpus_path(suite, corpus, "items"), vectors_path]
        write_replicates(replicates_path, outcome, parameters, inputs=inputs)
    write_json(scores_path(suite, space), {"corpora": content, "space": space, "suite": suite})
    return content


def score_case(case: Case, parameters: EvaluateParameters, *, source: Vectors | None) -> CaseScores:
    """The scores of one corpus by the measure of its task, and the geometry of its vectors.

    source  (n, d) vectors of the encoder that the space was made from; None for an encoder's own space
    Raises ArtifactError if the items lack a column that the measure reads.
    """
    measure = find_measure(case.task)
    missing = [column for column in measure.item_columns if column not in case.items]
    if missing:
        raise ArtifactError(
            "the items of a corpus lack a column of their task",
            expected=f"{case.task}: {', '.join(measure.item_columns)}",
            got=f"no {', '.join(missing)}",
            remedy="correct the source of the corpus, or COLUMNS in the measure's file",
        )
    outcome = measure.score(case, parameters.pick(measure.settings))
    outcome = outcome.with_facts(dimension=case.vectors.shape[1], task=case.task)
    if not measure.geometry:
        return outcome
    settings = parameters.pick(GeometrySettings)
    geometry = describe_geometry(case, settings, positive=measure.positive_pairs(case), source=source)
    return outcome.with_facts(geometry=geometry)


def summarise(outcome: CaseScores, *, confidence: float) -> dict[str, Any]:
    """The entry of each score in the scores file: the score times 100, rounded, with its interval; or null and why."""
    scores: dict[str, Any] = {}
    for name, value in outcome.scores.items():
        if value is None:
            reason = outcome.reasons.get(name, "undefined: the scores do not vary")
            scores[name] = {"high": None, "low": None, "reason": reason, "value": None}
            continue
        interval = percentile_interval(outcome.replicates[name], confidence=confidence)
        low, high = (None, None) if interval is None else map(_scaled, interval)
        scores[name] = {"high": high, "low": low, "value": _scaled(value)}
    return scores


def write_replicates(path: Path, outcome: CaseScores, parameters: EvaluateParameters, *, inputs: list[Path]) -> None:
    """Write one column of replicate scores per protocol, not multiplied by 100, and one row per replicate."""
    if not outcome.replicates:
        write_absence(path, "nothing to resample", kind="resamples", inputs=inputs)
        return
    table = pa.table({name: pa.array(values) for name, values in sorted(outcome.replicates.items())})
    made_with = parameters.model_dump()
    write_table(path, table, kind="resamples", parameters=made_with, inputs=inputs, notes=outcome.facts)


def _training_of(case: Case, chosen: Suite, space: str) -> Case | str | None:
    """The training corpus of a case, in the same space; the reason if it is absent; None if the case needs none."""
    name = case.notes.get("supervised")
    if name is None:
        return None
    if name not in chosen.corpora:
        return f"its training pairs, the corpus '{name}', are not in this suite"
    return load_case(chosen.suite, space, name)


def _vectors_of(suite: str, space: str, corpus: str) -> Vectors | None:
    path = space_path(suite, space, corpus)
    return None if absence(path, kind="vectors") is not None else read_vectors(path)


def _scaled(value: float) -> float:
    return round(100 * float(value), DIGITS)
