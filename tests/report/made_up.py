"""Made-up suites and results whose answers are known by construction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.base.suite import Suite
from pipeline.report.comparisons import find_controls, find_tuned_controls
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results, find_baselines

DRAWS = 1000
UNIT = {"unit": "items", "units": 1000, "effective_units": 1000.0}


# What the artifacts of a space name, by the maker at the end of its name.
FOLD = {"method": "lle", "neighbors": 30, "components": 8}
MADE_BY: dict[str, dict[str, Any]] = {
    "lp": FOLD,
    "npe": {**FOLD, "method": "npe"},
    "pca": {"method": "pca", "components": 8},
    "whitening": {"method": "whitening", "components": 8, "power": 1.0},
    "smooth": {"method": "smooth", "neighbors": 5, "amount": 0.1},
}


def parameters_of(space: str) -> dict[str, Any]:
    """The parameters that the artifacts of a made-up space name."""
    encoder, _, maker = space.partition("-")
    if encoder == "wl":
        return {"method": maker.partition("-")[0], "vectors": "wordllama", "settings": {}}
    fixed = MADE_BY.get(maker.removesuffix("-selected"), {})
    return {**fixed, "chosen_on": "dev"} if maker.endswith("-selected") else fixed


def make_suite(
    spaces: tuple[str, ...],
    corpora: tuple[str, ...],
    *,
    blanks: Mapping[str, str] | None = None,
    baseline: str | None = None,
) -> Suite:
    """A suite whose spaces are named `<encoder>`, `<encoder>-<maker>`, or `wl-<method>` over word vectors."""
    source = {space: space if space.startswith("wl-") else space.partition("-")[0] for space in spaces}
    made = {space: {"source": own, "maker": space.removeprefix(own)[1:]} for space, own in source.items()}
    encoders = dict.fromkeys(own for own in source.values() if not own.startswith("wl-"))
    stages = {
        "embed": {encoder: {"encoder": encoder} for encoder in encoders},
        "encode": {space: {} for space in spaces if space.startswith("wl-")},
        "evaluate": made,
        "sweep": {space: {"maker": item["maker"]} for space, item in made.items() if "selected" in item["maker"]},
        "cluster_words": {},
        "vocabulary": {},
        "word_vectors": {},
    }
    return Suite.model_construct(
        suite="made-up", root=".", file="plan.yaml", written="suite.yaml", parent="", counted="", source="mirror",
        skip_missing=True, corpora=corpora, counts="own", spaces=spaces, blanks=dict(blanks or {}), stages=stages,
        development=None, baseline=baseline, wordless=(), sensitivities=(), paths={},
    )  # fmt: skip


def make_evidence(results: Results, **known: Any) -> Evidence:
    """Evidence of made-up results: parameters by the names of the spaces, and the controls that follow from them."""
    parameters = known.pop("parameters", {space: parameters_of(space) for space in results.suite.spaces})
    controls = {
        "controls": find_controls(results, parameters),
        "tuned_controls": find_tuned_controls(results, parameters),
    }
    return Evidence(results, parameters=parameters, **{**controls, **known})


def make_results(
    scores: Mapping[tuple[str, str, str], float],
    *,
    noise: float = 0.3,
    blanks: Mapping[str, str] | None = None,
    absent: Mapping[str, str] | None = None,
    effective: Mapping[str, float] | None = None,
    baseline: str | None = None,
) -> Results:
    """Results from scores by (space, corpus, protocol), in points.

    noise      standard deviation of each score's own bootstrap movement, in points; all scores of a corpus also
               share a movement of ten times that, which paired differences cancel
    absent     corpus -> reason; effective: corpus -> effective units, 1000 where not named
    """
    rng = np.random.default_rng(11)
    spaces = tuple(dict.fromkeys(space for space, _, _ in scores))
    corpora = tuple(dict.fromkeys([*(corpus for _, corpus, _ in scores), *(absent or {})]))
    shared = {corpus: 10 * noise * rng.standard_normal(DRAWS) for corpus in corpora}
    content: dict[str, dict[str, Any]] = {space: {} for space in spaces}
    replicates: dict[tuple[str, str], dict[str, Any]] = {}
    for (space, corpus, protocol), value in scores.items():
        column = value + shared[corpus] + noise * rng.standard_normal(DRAWS)
        replicates.setdefault((space, corpus), {})[protocol] = column / 100
        low, high = np.quantile(column, [0.025, 0.975])
        drawn = {**UNIT, "effective_units": (effective or {}).get(corpus, 1000.0)}
        facts = content[space].setdefault(
            corpus, {"task": _task(protocol), "n": 1000, "dimension": 8, "drawn": drawn, "scores": {}}
        )
        facts["scores"][protocol] = {"value": value, "low": round(float(low), 2), "high": round(float(high), 2)}
    for corpus, reason in (absent or {}).items():
        for space in spaces:
            content[space][corpus] = {"absent": reason, "task": "similarity"}
    suite = make_suite(spaces, corpora, blanks=blanks, baseline=baseline)
    return Results(suite, content, replicates, 0.95, find_baselines(suite, ["wl-average"]))


def _task(protocol: str) -> str:
    return "classification" if protocol.startswith("accuracy") else "similarity"
