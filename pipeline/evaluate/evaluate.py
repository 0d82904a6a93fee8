"""Stage `evaluate`: every score of one space on every corpus, with bootstrap replicates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from threadpoolctl import threadpool_limits

from pipeline.artifacts import (
    Vectors,
    absence,
    corpus_path,
    read_vectors,
    resamples_path,
    scores_path,
    space_path,
    write_absence,
    write_json,
    write_table,
)
from pipeline.errors import located
from pipeline.evaluate.bootstrap import percentile_interval
from pipeline.evaluate.case import Case, load_case, task_of
from pipeline.evaluate.describe import describe_geometry
from pipeline.evaluate.judge import judge
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.evaluate.resample import Judged
from pipeline.params import load_parameters
from pipeline.suite import Suite

# Scores are stored on the x100 scale, rounded: float32 sums differ between instruction sets in the
# last digits, and a committed file should not.
DIGITS = 2


def evaluate(chosen: Suite, space: str) -> dict[str, Any]:
    """Score one space on every corpus; write its scores and its replicates. Returns the scores.

    Raises SuiteError if the suite has no such space.
    """
    suite = chosen.suite
    chosen.check_space(space)
    parameters = load_parameters(EvaluateParameters, "evaluate")
    content: dict[str, Any] = {}
    for corpus in chosen.corpora:
        vectors_path, replicates_path = space_path(suite, space, corpus), resamples_path(suite, space, corpus)
        case = load_case(suite, space, corpus)
        if isinstance(case, str):
            content[corpus] = {"absent": case, "task": task_of(corpus_path(suite, corpus, "items"))}
            write_absence(replicates_path, case, kind="resamples", inputs=[vectors_path])
            continue
        with threadpool_limits(1), located(f"corpus {corpus}, space {space}"):
            judged = judge(
                case, parameters, pool=_pool_of(case, chosen, space), fitted=space not in parameters.unfitted
            )
            facts = {**judged.facts, "dimension": case.vectors.shape[1], "task": case.task}
            if case.task != "example":
                facts["geometry"] = describe_geometry(case, parameters, source=_source_of(chosen, space, corpus))
        content[corpus] = {**facts, "scores": summarise(judged, confidence=parameters.confidence)}
        inputs = [corpus_path(suite, corpus, "items"), vectors_path]
        write_replicates(replicates_path, judged, parameters, facts, inputs=inputs)
    write_json(scores_path(suite, space), {"corpora": content, "space": space, "suite": suite})
    return content


def summarise(judged: Judged, *, confidence: float) -> dict[str, Any]:
    """What the scores file says of each score: x100, rounded, with its interval; or null, and why."""
    scores: dict[str, Any] = {}
    for name, value in judged.scores.items():
        if value is None:
            reason = judged.reasons.get(name, "undefined: the scores do not vary")
            scores[name] = {"high": None, "low": None, "reason": reason, "value": None}
            continue
        interval = percentile_interval(judged.replicates[name], confidence=confidence)
        low, high = (None, None) if interval is None else map(_scaled, interval)
        scores[name] = {"high": high, "low": low, "value": _scaled(value)}
    return scores


def write_replicates(
    path: Path, judged: Judged, parameters: EvaluateParameters, facts: dict[str, Any], *, inputs: list[Path]
) -> None:
    """One column of replicate scores per protocol (x1), one row per replicate."""
    if not judged.replicates:
        write_absence(path, "nothing to resample", kind="resamples", inputs=inputs)
        return
    columns = {name: pa.array(values) for name, values in sorted(judged.replicates.items())}
    write_table(
        path, pa.table(columns), kind="resamples", parameters=parameters.model_dump(), inputs=inputs, notes=facts
    )


def _pool_of(case: Case, chosen: Suite, space: str) -> Case | str | None:
    """The corpus that a head for this one is trained on, in the same space; or why there is none."""
    name = case.notes.get("supervised")
    if name is None:
        return None
    if name not in chosen.corpora:
        return f"its training pairs, the corpus '{name}', are not in this suite"
    return load_case(chosen.suite, space, name)


def _source_of(chosen: Suite, space: str, corpus: str) -> Vectors | None:
    """The vectors that a derived space was made from, or None for an encoder's own.

    They are no dependency of the stage in dvc.yaml, where a stage of the matrix knows its own name alone. The
    derived space is one, and it changes whenever its source does.
    """
    source = chosen.encoder_of(space)
    path = space_path(chosen.suite, source, corpus)
    return None if source == space or absence(path, kind="vectors") is not None else read_vectors(path)


def _scaled(value: float) -> float:
    return round(100 * float(value), DIGITS)
