"""Made-up suites and results whose answers are known by construction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.report.results import Results
from pipeline.suite import Suite
from tests.checkout import MAKERS

DRAWS = 1000
UNIT = {"unit": "items", "units": 1000, "effective_units": 1000.0}


def make_suite(spaces: tuple[str, ...], corpora: tuple[str, ...], *, blanks: Mapping[str, str] | None = None) -> Suite:
    """A suite of minilm with lp, pca and whatever else is named in `spaces`."""
    words = tuple(space for space in spaces if space.startswith("wl-"))
    makers = MAKERS.model_copy(update={"word_encoders": words or ("wl-average",)})
    return Suite.model_construct(
        suite="made-up", root=".", file="suite.yaml", source="mirror", skip_missing=True, corpora=corpora, counts="own",
        makers=makers, spaces=spaces, blanks=dict(blanks or {}),
    )  # fmt: skip


def make_results(
    scores: Mapping[tuple[str, str, str], float],
    *,
    noise: float = 0.3,
    blanks: Mapping[str, str] | None = None,
    absent: Mapping[str, str] | None = None,
    effective: Mapping[str, float] | None = None,
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
    return Results(make_suite(spaces, corpora, blanks=blanks), content, replicates, confidence=0.95)


def _task(protocol: str) -> str:
    return "classification" if protocol.startswith("accuracy") else "similarity"
