"""Stage `evaluate`: every score of one space on every corpus, with bootstrap replicates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import threadpool_limits

from pipeline.artifacts import (
    Vectors,
    absence,
    corpus_path,
    read_record,
    read_table,
    read_vectors,
    resamples_path,
    scores_path,
    space_path,
    write_absence,
    write_json,
    write_table,
)
from pipeline.errors import ArtifactError
from pipeline.evaluate.bootstrap import Design, draw_weights, item_design, make_design, percentile_interval
from pipeline.evaluate.classification import correct_items
from pipeline.evaluate.parameters import EvaluateParameters
from pipeline.evaluate.similarity import cosines, resample_similarity, score_similarity, subset_scores
from pipeline.params import load_parameters
from pipeline.suite import Suite

Float64 = npt.NDArray[np.float64]

# Scores are stored on the x100 scale, rounded: float32 sums differ between instruction sets in the
# last digits, and a committed file should not.
DIGITS = 2


@dataclass(frozen=True)
class Judged:
    """One corpus judged: scores in [-1, 1] or [0, 1], replicates of each, and facts beside them."""

    scores: dict[str, float | None]
    replicates: dict[str, Float64]
    facts: dict[str, Any]


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
        reason = absence(vectors_path, kind="vectors")
        if reason is not None:
            content[corpus] = {"absent": reason, "task": task_of(corpus_path(suite, corpus, "items"))}
            write_absence(replicates_path, reason, kind="resamples", inputs=[vectors_path])
            continue
        items_path = corpus_path(suite, corpus, "items")
        judged = judge(items_path, vectors_path, parameters)
        content[corpus] = summarise(judged, confidence=parameters.confidence)
        write_replicates(replicates_path, judged, parameters, inputs=[items_path, vectors_path])
    write_json(scores_path(suite, space), {"corpora": content, "space": space, "suite": suite})
    return content


def judge(items_path: Path, vectors_path: Path, parameters: EvaluateParameters) -> Judged:
    """Score one space on one corpus, by the corpus's task."""
    task = task_of(items_path)
    items = read_table(items_path, kind=f"items.{task}").to_pydict()
    vectors = read_vectors(vectors_path)
    _check_rows(vectors, items, vectors_path)
    notes = read_record(items_path, kind=f"items.{task}")["notes"]
    with threadpool_limits(1):
        if task == "similarity":
            judged = judge_similarity(items, vectors, notes, parameters)
        elif task == "classification":
            judged = judge_classification(items, vectors, parameters)
        elif task == "example":
            judged = judge_examples(items, vectors)
        else:
            judged = Judged({}, {}, {"n": len(items["split"]), "blank": f"no protocol scores the task '{task}'"})
    return replace(judged, facts={**judged.facts, "dimension": vectors.shape[1], "task": task})


def task_of(items_path: Path) -> str:
    """The task of a corpus, as its items declare it in the kind of their artifact."""
    for task in ("similarity", "classification", "example", "paraphrase", "clustering", "ranking", "inference"):
        try:
            read_record(items_path, kind=f"items.{task}")
        except ArtifactError as error:
            if "another kind" not in error.what:
                raise
        else:
            return task
    raise ArtifactError("items of no known task", where=str(items_path))


def _check_rows(vectors: Vectors, items: dict[str, list[Any]], vectors_path: Path) -> None:
    last = max(max(items[column]) for column in ("row", "row1", "row2") if column in items)
    if last >= len(vectors):
        raise ArtifactError(
            "a space has fewer vectors than its corpus has sentences",
            where=str(vectors_path),
            expected=f"at least {last + 1}",
            got=str(len(vectors)),
            remedy="run `dvc repro`: the space was made from another version of the corpus",
        )


def judge_similarity(
    items: dict[str, list[Any]], vectors: Vectors, notes: dict[str, Any], parameters: EvaluateParameters
) -> Judged:
    """Correlations of cosines with human scores."""
    rows = np.column_stack([items["row1"], items["row2"]]).astype(np.int64)
    human = np.array(items["score"], dtype=np.float64)
    cosine, undefined = cosines(vectors, rows)
    design = make_design(notes["resample"], rows, items["subset"])
    replicates = resample_similarity(
        cosine, human, items["subset"], design, resamples=parameters.resamples, seed=parameters.seed
    )
    facts = {
        "drawn": _drawn(design),
        "n": len(human),
        "subsets": {
            name: {key: value if key == "n" else _scaled(value) for key, value in scores.items()}
            for name, scores in subset_scores(cosine, human, items["subset"]).items()
        },
        "undefined_cosines": undefined,
    }
    return Judged(score_similarity(cosine, human, items["subset"]), replicates, facts)


def judge_classification(items: dict[str, list[Any]], vectors: Vectors, parameters: EvaluateParameters) -> Judged:
    """Accuracy of the nearest-neighbour and the logistic classifier."""
    right, scored, scheme = correct_items(
        vectors[np.array(items["row"])],
        np.array(items["label"], dtype=np.int64),
        items["split"],
        folds=parameters.folds,
        knn_neighbors=parameters.knn_neighbors,
        logistic_c=parameters.logistic_c,
        seed=parameters.seed,
    )
    texts = np.array(items["row"])
    repeated = int(np.isin(texts[scored], np.delete(texts, scored)).sum())
    design = item_design([""] * len(scored))
    weights = draw_weights(design, resamples=parameters.resamples, seed=parameters.seed)
    means = [{name: drawn @ values / len(scored) for name, values in right.items()} for drawn in weights]
    facts = {
        "drawn": _drawn(design),
        "majority": _scaled(np.bincount(np.array(items["label"])[scored]).max() / len(scored)),
        "n": len(scored),
        "scheme": scheme,
        "scored_texts_also_fitted": repeated,
    }
    return Judged(
        {name: float(values.mean()) for name, values in right.items()},
        {name: np.concatenate([chunk[name] for chunk in means]) for name in right},
        facts,
    )


def judge_examples(items: dict[str, list[Any]], vectors: Vectors) -> Judged:
    """Cosines of single pairs beside what a paper printed; nothing to resample."""
    rows = np.column_stack([items["row1"], items["row2"]]).astype(np.int64)
    cosine, _ = cosines(vectors, rows)
    pairs = [
        {"cosine": round(float(value), 3), "published": printed, "variant": variant}
        for value, printed, variant in zip(cosine, items["score"], items["subset"], strict=True)
    ]
    return Judged({}, {}, {"n": len(pairs), "pairs": pairs})


def summarise(judged: Judged, *, confidence: float) -> dict[str, Any]:
    """What the scores file says of one corpus: x100, rounded, each score with its interval."""
    scores: dict[str, Any] = {}
    for name, value in judged.scores.items():
        interval = percentile_interval(judged.replicates[name], confidence=confidence)
        scores[name] = {
            "high": None if interval is None else _scaled(interval[1]),
            "low": None if interval is None else _scaled(interval[0]),
            "value": None if value is None else _scaled(value),
        }
    return {**judged.facts, "scores": scores}


def write_replicates(path: Path, judged: Judged, parameters: EvaluateParameters, *, inputs: list[Path]) -> None:
    """One column of replicate scores per protocol (x1), one row per replicate."""
    if not judged.replicates:
        write_absence(path, "nothing to resample", kind="resamples", inputs=inputs)
        return
    columns = {name: pa.array(values) for name, values in sorted(judged.replicates.items())}
    write_table(
        path, pa.table(columns), kind="resamples", parameters=parameters.model_dump(), inputs=inputs, notes=judged.facts
    )


def _drawn(design: Design) -> dict[str, Any]:
    return {"effective_units": round(design.effective_units, 1), "unit": design.unit, "units": design.units}


def _scaled(value: float) -> float:
    return round(100 * float(value), DIGITS)
