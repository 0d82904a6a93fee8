"""CPU seconds of every protocol on the corpora of a suite, one thread, beside what the project allows itself.

    python -m benchmarks.evaluate [--suite paper-mirror] [--spaces minilm wl-average ...] [--only snli trec ...]
                                  [--json reports/benchmarks/evaluate.json]

Reads the suite's artifacts as the stage `evaluate` does, writes none of them, and writes what it measured as JSON.
The compiled loops are warmed up first: they are kept on disk, so a run pays for their compilation once in a
checkout's life.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.manifold import measure_machine
from pipeline.base.artifacts import absence, read_vectors, space_path
from pipeline.base.cases import load_case
from pipeline.base.params import load_parameters
from pipeline.base.suite import load_suite
from sentfold.errors import ArtifactError
from sentfold.measures.base.case import Case
from sentfold.measures.geometry import GeometrySettings, describe_geometry
from sentfold.measures.registry import EvaluateParameters, evaluate_parameters, find_measure

# CPU seconds per space: similarity of all corpora together, the others each.
BUDGETS = {"similarity": 5.0, "classification": 40.0, "paraphrase": 40.0, "clustering": 20.0}
PARTS = ("judge", "head", "geometry")


def time_corpus(suite: str, space: str, corpus: str, parameters: EvaluateParameters) -> dict[str, Any] | None:
    """CPU seconds of judging one corpus, of its trained head and of its geometry; None where it has no vectors."""
    try:
        case = load_case(suite, space, corpus)
    except ArtifactError:
        return None
    if isinstance(case, str) or not find_measure(case.task).geometry:
        return None
    pool, measure = _pool(case, suite, space), find_measure(case.task)
    settings, shape = parameters.pick(measure.settings), parameters.pick(GeometrySettings)
    encoder = load_suite(suite).encoder_of(space)
    source = None if encoder == space else read_vectors(space_path(suite, encoder, corpus))
    alone = replace(case, fitted=space not in parameters.unfitted)
    headed = replace(alone, training=pool)
    positive = measure.positive_pairs(case)
    seconds = {}
    for name, job in (
        ("judge", lambda: measure.score(alone, settings)),
        ("head", lambda: measure.score(headed, settings)),
        ("geometry", lambda: describe_geometry(case, shape, positive=positive, source=source)),
    ):
        if name != "head" or pool is not None:
            start = time.process_time()
            job()
            seconds[name] = time.process_time() - start
    if "head" in seconds:
        seconds["head"] -= seconds["judge"]
    rounded = {name: round(value, 2) for name, value in seconds.items()}
    return {"task": case.task, "n": len(case.items["split"]), "dimension": case.vectors.shape[1], **rounded}


def _pool(case: Case, suite: str, space: str) -> Case | None:
    name = case.notes.get("supervised")
    if name is None or name not in load_suite(suite).corpora or absence(space_path(suite, space, name), kind="vectors"):
        return None
    pool = load_case(suite, space, name)
    return pool if isinstance(pool, Case) else None


def summarise(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """By task: the largest corpus's seconds (similarity: the sum over corpora), and the allowance."""
    tasks: dict[str, Any] = {}
    for row in found.values():
        tasks.setdefault(row["task"], []).append(row["judge"])
    return {
        task: {
            "allowed": BUDGETS.get(task),
            "seconds": round(sum(each) if task == "similarity" else max(each), 2),
        }
        for task, each in tasks.items()
    }


def time_space(suite: str, space: str, corpora: Sequence[str], parameters: EvaluateParameters) -> dict[str, Any]:
    """Every corpus of one space, printed as it is measured, with the sums that the budgets are about."""
    found: dict[str, dict[str, Any]] = {}
    for corpus in corpora:
        row = time_corpus(suite, space, corpus, parameters)
        if row is not None:
            found[corpus] = row
            times = "  ".join(f"{name} {row[name]:6.2f}" for name in PARTS if name in row)
            print(f"{space}  {corpus:<16} {row['task']:<15} n {row['n']:>6}  CPU s: {times}", flush=True)
    total = sum(row.get(name, 0) for row in found.values() for name in PARTS)
    summary = {
        "dimension": max((row["dimension"] for row in found.values()), default=0),
        "regressions": space not in parameters.unfitted,
        "tasks": summarise(found),
        "total_cpu_s": round(total, 1),
    }
    print(json.dumps({space: summary}, indent=1), flush=True)
    return {"corpora": found, **summary}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="paper-mirror")
    parser.add_argument("--spaces", nargs="+", default=["minilm"])
    parser.add_argument("--only", nargs="+", help="corpora; all of the suite by default")
    parser.add_argument("--json", type=Path, default=Path("reports/benchmarks/evaluate.json"))
    arguments = parser.parse_args()
    parameters = load_parameters(evaluate_parameters(), "evaluate")
    with threadpool_limits(1):
        corpora = arguments.only or load_suite(arguments.suite).corpora
        time_corpus(arguments.suite, arguments.spaces[0], corpora[0], parameters)
        spaces = {space: time_space(arguments.suite, space, corpora, parameters) for space in arguments.spaces}
    result = {
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "spaces": spaces,
        "suite": arguments.suite,
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result | measure_machine(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
