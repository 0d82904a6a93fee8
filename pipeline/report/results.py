"""The scores and replicates of a suite, as the tables and figures ask for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import absence, read_record, read_table, resamples_path, scores_path
from pipeline.errors import ArtifactError
from pipeline.evaluate.bootstrap import percentile_interval
from pipeline.suite import Suite

# Below this many effective units a percentile interval rests on too few draws to call a winner.
MIN_EFFECTIVE_UNITS = 30

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One number of a table on the x100 scale, or the reason why it is blank."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Results:
    """Scores by space and corpus, and the replicates that intervals of differences come from."""

    suite: Suite
    scores: dict[str, dict[str, Any]]
    replicates: dict[tuple[str, str], dict[str, Float64]]
    confidence: float

    @property
    def resamples(self) -> int:
        """How many bootstrap replicates each interval rests on; 0 where nothing was resampled."""
        return next((len(column) for columns in self.replicates.values() for column in columns.values()), 0)

    def facts(self, space: str, corpus: str) -> dict[str, Any]:
        """What evaluate stored about one space on one corpus."""
        facts: dict[str, Any] = self.scores[space].get(corpus, {"absent": "not evaluated"})
        return facts

    def corpora_of(self, task: str) -> list[str]:
        """The suite's corpora with that task, in the suite's order, those that the source lacks included."""
        return [
            corpus
            for corpus in self.suite.corpora
            if any(self.facts(space, corpus).get("task") == task for space in self.suite.spaces)
        ]

    def cell(self, space: str, corpus: str, protocol: str) -> Cell:
        """The score of one space on one corpus in one protocol."""
        facts = self.facts(space, corpus)
        if "absent" in facts:
            return Cell(reason=facts["absent"])
        score = facts["scores"].get(protocol)
        if score is None:
            return Cell(reason="the source names no subsets" if ".all." not in protocol else "not scored")
        if score["value"] is None:
            return Cell(reason=score.get("reason", "undefined: the scores do not vary"))
        return Cell(score["value"], score["low"], score["high"])

    def difference(self, space: str, other: str, corpus: str, protocol: str) -> Cell:
        """Score of `space` minus score of `other`, with its paired bootstrap interval.

        Both were scored on the same replicates, so the interval is of the difference itself.
        """
        ours, theirs = self.cell(space, corpus, protocol), self.cell(other, corpus, protocol)
        if ours.value is None or theirs.value is None:
            return Cell(reason=ours.reason or theirs.reason)
        paired = self.replicates[space, corpus][protocol] - self.replicates[other, corpus][protocol]
        interval = percentile_interval(paired, confidence=self.confidence)
        low, high = (None, None) if interval is None else (round(100 * bound, 2) for bound in interval)
        return Cell(round(ours.value - theirs.value, 2), low, high)

    def separated_best(self, corpus: str, protocol: str) -> str | None:
        """The best space, if the interval of its difference to every other space excludes 0."""
        scored = {space: self.cell(space, corpus, protocol).value for space in self.suite.spaces}
        values = {space: value for space, value in scored.items() if value is not None}
        drawn = self.facts(self.suite.spaces[0], corpus).get("drawn", {})
        if len(values) < 2 or drawn.get("effective_units", MIN_EFFECTIVE_UNITS) < MIN_EFFECTIVE_UNITS:
            return None
        best = max(values, key=lambda space: values[space])
        for other in values:
            low = None if other == best else self.difference(best, other, corpus, protocol).low
            if other != best and (low is None or low <= 0):
                return None
        return best


def load_results(suite: Suite, *, confidence: float) -> Results:
    """Scores of exactly the spaces that the suite lists. Raises ArtifactError if one is missing."""
    scores: dict[str, dict[str, Any]] = {}
    replicates: dict[tuple[str, str], dict[str, Float64]] = {}
    drawn: dict[str, Any] = {}
    for space in suite.spaces:
        path = scores_path(suite.suite, space)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ArtifactError(
                f"the scores of '{space}' cannot be read",
                where=str(path),
                got=str(error),
                remedy=f"run `dvc repro evaluate@{space}`",
            ) from None
        if not isinstance(content, dict) or (content.get("space"), content.get("suite")) != (space, suite.suite):
            raise ArtifactError(
                "a scores file is not the one of its name",
                where=str(path),
                expected=f"suite {suite.suite}, space {space}",
                remedy=f"run `dvc repro evaluate@{space}`",
            )
        scores[space] = content["corpora"]
        for corpus in suite.corpora:
            source = resamples_path(suite.suite, space, corpus)
            if absence(source, kind="resamples") is None:
                made_by = read_record(source, kind="resamples")["parameters"]
                if drawn.setdefault(corpus, made_by) != made_by:
                    raise ArtifactError(
                        "two spaces were resampled differently, so their difference has no interval",
                        where=str(source),
                        expected=str(drawn[corpus]),
                        got=str(made_by),
                        remedy="run `dvc repro`, so that every space is evaluated with the same parameters",
                    )
                table = read_table(source, kind="resamples")
                replicates[space, corpus] = {name: table.column(name).to_numpy() for name in table.column_names}
    return Results(suite, scores, replicates, confidence)
