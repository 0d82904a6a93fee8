"""The scores of one corpus in one space, their bootstrap replicates, and the settings that every measure has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.compare.bootstrap import Design, corpus_seed, draw_weights
from sentfold.measures.base.case import Case
from sentfold.settings import Parameters

Float64 = npt.NDArray[np.float64]
Statistic = Callable[[Float64], dict[str, Float64]]


class ScoreSettings(Parameters):
    """The settings of every measure.

    resamples  number of bootstrap replicates
    seed       seed of the replicates and of every other random draw of the measure
    """

    resamples: int = Field(default=2000, ge=100, le=1_000_000)
    seed: int = Field(default=0, ge=0, lt=2**32)


@dataclass(frozen=True)
class CaseScores:
    """The scores of one corpus in one space.

    scores      protocol -> value, in [-1, 1] or [0, 1] (mutual information: nats); None where it is undefined
    replicates  protocol -> (resamples,) replicates of each score that is not None
    facts       further facts about the corpus and its scores, as JSON
    reasons     protocol -> why its score is None
    """

    scores: dict[str, float | None] = field(default_factory=dict)
    replicates: dict[str, Float64] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def joined(self, other: CaseScores) -> CaseScores:
        """The scores of both; if both have a value under one key, the value of `other` is kept."""
        return CaseScores(
            {**self.scores, **other.scores},
            {**self.replicates, **other.replicates},
            {**self.facts, **other.facts},
            {**self.reasons, **other.reasons},
        )

    def with_facts(self, **facts: Any) -> CaseScores:
        """The same scores with more facts."""
        return self.joined(CaseScores(facts=facts))


def blank(protocols: tuple[str, ...], reason: str) -> CaseScores:
    """CaseScores in which each of these protocols has the score None, all for one reason."""
    return CaseScores(dict.fromkeys(protocols), reasons=dict.fromkeys(protocols, reason))


def resample(case: Case, settings: ScoreSettings, design: Design, statistic: Statistic) -> CaseScores:
    """The scores of a statistic and their bootstrap replicates.

    statistic  turns (b, n) weights of the n items of the design into protocol -> (b,) scores
    The score is the statistic of the sample itself, in which every item has weight 1; None if it is not finite, as the
    correlation with human scores that are all equal. The resamples of a
    corpus are the same for all spaces.
    """
    sample = {name: float(values[0]) for name, values in statistic(np.ones((1, len(design.members)))).items()}
    scores = {name: value if isfinite(value) else None for name, value in sample.items()}
    draws = draw_weights(design, resamples=settings.resamples, seed=seed_of(case, settings))
    chunks = [statistic(weights) for weights in draws]
    replicates = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in scores}
    return CaseScores(scores, replicates, {"drawn": describe_design(design)})


def seed_of(case: Case, settings: ScoreSettings) -> int:
    """The seed of a corpus's replicates: different for each corpus, the same for all spaces."""
    return corpus_seed(settings.seed, case.corpus)


def describe_design(design: Design) -> dict[str, Any]:
    """How a corpus was resampled, as a fact."""
    return {"effective_units": round(design.effective_units, 1), "unit": design.unit, "units": design.units}
