"""A statistic of weighted items: on the sample itself, and on every replicate of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.evaluate.bootstrap import Design, corpus_seed, draw_weights
from pipeline.evaluate.case import Case
from pipeline.evaluate.parameters import EvaluateParameters

Float64 = npt.NDArray[np.float64]
Statistic = Callable[[Float64], dict[str, Float64]]


@dataclass(frozen=True)
class Judged:
    """One corpus judged.

    scores      {protocol: value}, in [-1, 1] or [0, 1] (mutual information: nats); None: undefined
    replicates  {protocol: (resamples,)} of every score that is defined on the sample
    facts       what stands beside the scores; reasons: why a score is None
    """

    scores: dict[str, float | None] = field(default_factory=dict)
    replicates: dict[str, Float64] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def joined(self, other: Judged) -> Judged:
        """Both together; the facts of `other` win."""
        return Judged(
            {**self.scores, **other.scores},
            {**self.replicates, **other.replicates},
            {**self.facts, **other.facts},
            {**self.reasons, **other.reasons},
        )


def resample(design: Design, statistic: Statistic, *, items: int, resamples: int, seed: int) -> Judged:
    """Scores and replicates of a statistic.

    statistic  of (b, items) weights: {protocol: (b,)}
    The score itself is the statistic of the sample with every item once.
    """
    scores = {name: float(values[0]) for name, values in statistic(np.ones((1, items))).items()}
    chunks = [statistic(weights) for weights in draw_weights(design, resamples=resamples, seed=seed)]
    return Judged(dict(scores), {name: np.concatenate([chunk[name] for chunk in chunks]) for name in scores})


def describe_design(design: Design) -> dict[str, Any]:
    """What the scores file says of how a corpus was resampled."""
    return {"effective_units": round(design.effective_units, 1), "unit": design.unit, "units": design.units}


def resampling(case: Case, parameters: EvaluateParameters) -> dict[str, Any]:
    """How many replicates, and from which seed: the corpus's own, so that all spaces on it share them."""
    return {"resamples": parameters.resamples, "seed": corpus_seed(parameters.seed, case.corpus)}
