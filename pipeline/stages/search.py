"""Stage `search`: one way to search, in one space, on every pool of the suite, with bootstrap replicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import ConfigDict

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
from pipeline.base.params import load_parameters
from pipeline.base.suite import Suite
from pipeline.searches import PoolBlock, Search, corpora_read_by, load_pool, load_search, read_pairs
from sentfold.compare.bootstrap import corpus_seed, percentile_interval
from sentfold.errors import SuiteError, located
from sentfold.files import write_json
from sentfold.retrieval.base.measures import bootstrap_means, describe_pool, measure_queries
from sentfold.retrieval.base.pool import Pool
from sentfold.retrieval.base.protocol import search_points
from sentfold.settings import Parameters

Float64 = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating[Any]]

DIGITS = 2  # of a score times 100, as in the stage evaluate
CHOSEN_BY = "nDCG@10"


class ResampleParameters(Parameters):
    """The keys of `evaluate:` that this stage reads; the stage evaluate checks the others."""

    model_config = ConfigDict(extra="ignore")

    confidence: float
    resamples: int
    seed: int


def search(chosen: Suite, key: str) -> dict[str, Any]:
    """Score one search in one space on every pool; write its scores and its replicates. Returns the scores.

    key  an instance of the stage: a space and a block of `searches:`
    A pool is blank with its reason where the source lacks a corpus of it. Raises SuiteError for an unknown key.
    """
    suite, made = chosen.suite, _instance(chosen, key)
    method, parameters = load_search(made["search"]), load_parameters(ResampleParameters, "evaluate")
    content: dict[str, Any] = {}
    for name in made["pools"]:
        target = resamples_path(suite, key, name)
        inputs = [corpus_path(suite, name, "items"), space_path(suite, made["space"], name)]
        block = load_pool(name)
        with located(f"pool {name}, {key}"):
            found = _read_pool(suite, name, block, made["space"])
            if isinstance(found, str):
                content[name] = {"absent": found, "task": "retrieval"}
                write_absence(target, found, kind="resamples", inputs=inputs)
                continue
            facts, values = score_pool(method, *found, seed=parameters.seed)
        facts["remark"] = block.remark
        seed = corpus_seed(parameters.seed, name)
        replicates = bootstrap_means(values, resamples=parameters.resamples, seed=seed)
        content[name] = {**facts, "scores": _summarise(values, replicates, parameters.confidence)}
        columns = {protocol: pa.array(column) for protocol, column in sorted(replicates.items())}
        write_table(
            target, pa.table(columns), kind="resamples", parameters=parameters.model_dump(), inputs=inputs, notes=facts
        )
    write_json(scores_path(suite, key), {"corpora": content, "space": key, "suite": suite})
    return content


def _instance(chosen: Suite, key: str) -> dict[str, Any]:
    known = chosen.stages["search"]
    if key not in known:
        raise SuiteError(
            f"suite '{chosen.suite}' has no search '{key}'",
            where=chosen.written,
            expected=f"one of: {', '.join(known)}" if known else "spaces in `searched`",
            got=key,
            remedy=f"correct the name, or add the space to `searched` in {chosen.written} and run `sentfold plan`",
        )
    return known[key]


def score_pool(
    method: Search, test: tuple[Pool, Floating], development: tuple[Pool, Floating], *, seed: int
) -> tuple[dict[str, Any], dict[str, Float64]]:
    """The facts of a search on a pool, and (m,) values of each measure by query.

    test, development  a pool, and the vectors of all texts that the pool's rows refer to
    The grid is scored on the development pool, and the best point searches the test pool. The oracle, the best point
    of the test pool itself, is a fact and no score. Cost: that of the search, for each point and pool.
    """
    (pool, vectors), (known, others) = test, development
    bank = others[known.queries]
    trials = search_points(method.module, method.points, others, known, seed=seed)
    tried = [_mean(measure_queries(ranking, known)) for ranking in trials]
    best = int(np.argmax(tried))
    rankings = search_points(method.module, method.points, vectors, pool, bank=bank, seed=seed)
    scored = [measure_queries(ranking, pool) for ranking in rankings]
    oracle = int(np.argmax([_mean(values) for values in scored]))
    drawn = {"effective_units": float(len(pool.queries)), "unit": "queries", "units": len(pool.queries)}
    facts = {
        **describe_pool(rankings[best], pool),
        "chosen": method.points[best].model_dump(),
        "development": {
            "documents": len(known.documents),
            "queries": len(known.queries),
            "values": [round(100 * value, DIGITS) for value in tried],
        },
        "dimension": int(vectors.shape[1]),
        "drawn": drawn,
        "learns": method.module.LEARNS,
        "n": len(pool.queries),
        "oracle": {
            "chosen": method.points[oracle].model_dump(),
            "value": round(100 * _mean(scored[oracle]), DIGITS),
        },
        "points": len(method.points),
        "task": "retrieval",
    }
    return facts, scored[best]


def _read_pool(
    suite: str, name: str, block: PoolBlock, space: str
) -> tuple[tuple[Pool, Floating], tuple[Pool, Floating]] | str:
    """Both pools with their vectors, or the reason why something of them is absent."""
    for corpus in corpora_read_by(name, block):
        reason = absence(space_path(suite, space, corpus), kind="vectors")
        if reason is not None:
            return reason
    pairs = read_pairs(suite, name, block)
    if isinstance(pairs, str):
        return pairs
    test, development = pairs
    vectors = {corpus: read_vectors(space_path(suite, space, corpus)) for corpus in corpora_read_by(name, block)}
    return (test.pool, vectors[test.corpus]), (development.pool, vectors[development.corpus])


def _mean(values: dict[str, Float64]) -> float:
    return float(values[CHOSEN_BY].mean())


def _summarise(values: dict[str, Float64], replicates: dict[str, Float64], confidence: float) -> dict[str, Any]:
    """Measure -> its mean over queries times 100, with its interval."""
    summary = {}
    for protocol, column in values.items():
        interval = percentile_interval(replicates[protocol], confidence=confidence)
        low, high = (None, None) if interval is None else (round(100 * bound, DIGITS) for bound in interval)
        summary[protocol] = {"high": high, "low": low, "value": round(100 * float(column.mean()), DIGITS)}
    return summary
