"""Reading of all inputs of a report, once: scores, records of artifacts, sweeps, partitions of words, benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.base.artifacts import absence, corpus_path, read_record, read_table, read_vectors, space_path
from pipeline.base.params import load_parameters
from pipeline.base.suite import Suite
from pipeline.papers.plan import load_figures
from pipeline.report.comparisons import find_controls, find_tuned_controls
from pipeline.report.evidence import Cases, Evidence, Partition
from pipeline.report.made_of import describe_spaces, find_twins
from pipeline.report.parameters import ReportParameters
from pipeline.report.results import Results, load_results
from pipeline.report.sensitivity import load_sensitivities
from pipeline.report.sweeps import load_sweeps
from pipeline.words.artifacts import CLUSTER_COLUMNS, clusters_path, partition_name
from sentfold.compare.bootstrap import Design, make_design
from sentfold.compare.orders import Orders, compare_orders
from sentfold.errors import ArtifactError
from sentfold.measures.base.pairs import cosines
from sentfold.measures.registry import evaluate_parameters

BENCHMARK = Path("reports/benchmarks/encoders.json")
BENCHMARK_COMMAND = f"python -m benchmarks.encoders --json {BENCHMARK}"
# The LASE thesis's figures and its table have 4 clusters; 10 is the smallest of S3E and VLAWE.
PARTITION_SIZES = (4, 10)
# Pairs of a corpus whose orders are compared: a table of all pairs of pairs takes n x n bytes.
ORDER_LIMIT = 5000

Float64 = npt.NDArray[np.float64]
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
        sweeps=load_sweeps(suite),
        sensitivities=load_sensitivities(suite),
        partitions={name: _read_partition(suite, name) for name in suite.clusterings},
        cases=_find_cases(results, corpora, records, resamples=evaluated.resamples, seed=evaluated.seed),
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


def load_benchmark(path: Path = BENCHMARK) -> dict[str, Any] | None:
    """What the benchmark of the word encoders wrote, or None where it was never run. Raises ArtifactError."""
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        rates = {row["method"]: row["per_second"] for row in content["methods"]}
        seconds = {row["method"]: row.get("seconds", {}) for row in content["methods"]}
        processor = str(content["processor"])
    except (ValueError, KeyError, TypeError) as error:
        remedy = f"run `{BENCHMARK_COMMAND}`"
        raise ArtifactError(
            "a benchmark's result cannot be read", where=str(path), got=repr(error), remedy=remedy
        ) from None
    return {"processor": processor, "rates": rates, "seconds": seconds}


# --- orders of pairs ----------------------------------------------------------------------------


def _find_cases(
    results: Results,
    corpora: Mapping[str, Record],
    records: Mapping[tuple[str, str], Record],
    *,
    resamples: int,
    seed: int,
) -> Cases | None:
    """Repairs and breaks of every space made from the first encoder that has some, on one small similarity corpus."""
    suite = results.suite
    encoder = next((suite.encoder_of(space) for space in suite.derived_spaces), None)
    order = dict.fromkeys([*load_figures().orders, *suite.corpora])
    wanted = (name for name in order if name in corpora and corpora[name].get("task") == "similarity")
    usable = (name for name in wanted if encoder and _is_small(suite, name, records[encoder, name]))
    corpus = next(usable, None)
    if encoder is None or corpus is None:
        return None
    path = corpus_path(suite.suite, corpus, "items")
    items = read_table(path, kind="items.similarity").to_pydict()
    rows = np.column_stack([items["row1"], items["row2"]]).astype(np.int64)
    design = make_design(read_record(path, kind="items.similarity")["notes"]["resample"], rows, items["subset"])
    human = np.array(items["score"], dtype=np.float64)
    spaces = [space for space in suite.derived_spaces if suite.encoder_of(space) == encoder]
    similarity = {
        space: cosines(read_vectors(space_path(suite.suite, space, corpus)), rows)[0] for space in (encoder, *spaces)
    }
    orders = {
        space: _compare(human, similarity[encoder], similarity[space], design, results.confidence, (resamples, seed))
        for space in spaces
    }
    return Cases(corpus, encoder, orders)


def _is_small(suite: Suite, corpus: str, record: Record) -> bool:
    if "absent" in record["notes"] or absence(corpus_path(suite.suite, corpus, "items"), kind="items.similarity"):
        return False
    rows = read_record(corpus_path(suite.suite, corpus, "items"), kind="items.similarity")["rows"]
    return bool(rows <= ORDER_LIMIT)


def _compare(
    human: Float64, old: Float64, new: Float64, design: Design, confidence: float, drawn: tuple[int, int]
) -> Orders:
    # Spaces are stored in float32: what differs by less than that between processors is no order.
    before, after = np.round(old, 6), np.round(new, 6)
    resamples, seed = drawn
    return compare_orders(human, before, after, design, resamples=resamples, confidence=confidence, seed=seed)
