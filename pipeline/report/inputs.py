"""Reading of all inputs of a report, once: scores, records of artifacts, sweeps, partitions of words, benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.base.artifacts import corpus_path, read_record, read_table, space_path
from pipeline.base.params import load_parameters
from pipeline.base.suite import Suite
from pipeline.report.comparisons import find_controls, find_tuned_controls
from pipeline.report.evidence import Evidence, Partition
from pipeline.report.made_of import describe_spaces, find_twins
from pipeline.report.parameters import ReportParameters
from pipeline.report.results import Results, load_results, reading
from pipeline.report.retrieval import load_search_costs, load_searches
from pipeline.report.sensitivity import load_sensitivities
from pipeline.report.sweeps import load_sweeps
from pipeline.report.trainings import load_trainings
from pipeline.words.artifacts import CLUSTER_COLUMNS, clusters_path, partition_name
from sentfold.measures.registry import evaluate_parameters

BENCHMARK = Path("reports/benchmarks/encoders.json")
BENCHMARK_COMMAND = f"python -m benchmarks.encoders --json {BENCHMARK}"
# The LASE thesis's figures and its table have 4 clusters; 10 is the smallest of S3E and VLAWE.
PARTITION_SIZES = (4, 10)

Record = Mapping[str, Any]


def gather_evidence(suite: Suite) -> Evidence:
    """Read everything that the report of a suite rests on. Raises ArtifactError where a file is missing or wrong."""
    parameters = load_parameters(ReportParameters, "report")
    evaluated = load_parameters(evaluate_parameters(), "evaluate")
    records = {
        (s, c): read_record(space_path(suite.suite, s, c), kind="vectors") for s in suite.spaces for c in suite.corpora
    }
    corpora = {
        c: read_record(corpus_path(suite.suite, c, "sentences"), kind="sentences")["notes"] for c in suite.corpora
    }
    made_by = {space: _parameters_of(suite, space, records) for space in suite.spaces}
    chosen_on = {space: str(own["chosen_on"]) for space, own in made_by.items() if own.get("chosen_on")}
    results = load_results(
        suite, confidence=evaluated.confidence, word_baselines=parameters.word_baselines, chosen_on=chosen_on
    )
    results = replace(results, twins=find_twins(suite, made_by, _source_shapes(results, records)))
    models = {encoder: entry.model for encoder, entry in parameters.published.items()}
    return Evidence(
        results=results,
        records=records,
        corpora=corpora,
        parameters=made_by,
        made_of=describe_spaces(suite, made_by, models),
        controls=find_controls(results, made_by),
        tuned_controls=find_tuned_controls(results, made_by),
        searches=load_searches(suite, confidence=evaluated.confidence),
        search_costs=load_search_costs(),
        sweeps=load_sweeps(suite),
        sensitivities=load_sensitivities(suite),
        trainings=load_trainings(suite),
        partitions={name: _read_partition(suite, name) for name in suite.clusterings},
        benchmark=load_benchmark(),
        referees=parameters.referees,
        published_by=frozenset(parameters.published[e].source for e in suite.encoders if e in parameters.published),
    )


def _source_shapes(
    results: Results, records: Mapping[tuple[str, str], Record]
) -> dict[tuple[str, str], tuple[int, int]]:
    """(space, corpus) -> sentences and dimension of the vectors that the space was made from, where both are known."""
    suite, shapes = results.suite, dict[tuple[str, str], tuple[int, int]]()
    for (space, corpus), record in records.items():
        dimension = results.facts(suite.encoder_of(space), corpus).get("dimension")
        if "absent" not in record["notes"] and dimension is not None:
            shapes[space, corpus] = (int(record["rows"]), int(dimension))
    return shapes


def _parameters_of(suite: Suite, space: str, records: Mapping[tuple[str, str], Record]) -> dict[str, Any]:
    """The parameters that a space's artifacts name; {} if every corpus of it is absent."""
    own = (records[space, corpus] for corpus in suite.corpora)
    return next((dict(record["parameters"]) for record in own if "absent" not in record["notes"]), {})


def _read_partition(suite: Suite, clustering: str) -> Partition | None:
    for size in PARTITION_SIZES:
        path = clusters_path(suite.suite, clustering, partition_name(size, 0), "clusters")
        if path.exists():
            table = read_table(path, kind="clusters", columns=CLUSTER_COLUMNS).to_pydict()
            vectors = str(read_record(path, kind="clusters")["parameters"].get("vectors", ""))
            return Partition(path, vectors, size, dict(zip(table["word"], table["cluster"], strict=True)))
    return None


def load_benchmark(path: Path = BENCHMARK) -> dict[str, Any]:
    """What the benchmark of the encoders wrote. Raises ArtifactError where it was never run."""
    with reading("a benchmark's result", path, remedy=f"run `{BENCHMARK_COMMAND}`"):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        rates = {row["method"]: row["per_second"] for row in content["methods"]}
        seconds = {row["method"]: row.get("seconds", {}) for row in content["methods"]}
        processor = str(content["processor"])
    return {"processor": processor, "rates": rates, "seconds": seconds}
