"""The scores and replicates of a suite, and the space that each space is compared with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.base.artifacts import absence, read_record, read_table, resamples_path, scores_path
from pipeline.base.suite import Suite
from sentfold.compare.bootstrap import percentile_interval
from sentfold.errors import ArtifactError

# Below this many effective units a percentile interval rests on too few draws to call a winner.
MIN_EFFECTIVE_UNITS = 30

Float64 = npt.NDArray[np.float64]
Side = tuple[str, str]  # a space and the protocol that it is scored in


@contextmanager
def reading(what: str, path: Path, *, remedy: str = "run `dvc repro`, which makes it") -> Iterator[None]:
    """Raises ArtifactError where the file of the path is missing, or does not hold what the body takes from it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtifactError(f"{what} cannot be read", where=str(path), got=repr(error), remedy=remedy) from None


@dataclass(frozen=True)
class Score:
    """One number on the x100 scale with its interval, or the reason why there is none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Results:
    """Everything that was scored.

    scores      space -> corpus -> what the stage evaluate stored
    replicates  (space, corpus) -> protocol -> bootstrap replicates, which intervals of differences come from
    baselines   space -> the space that it is compared with, for the spaces that have one
    chosen_on   space -> the corpus that its parameters were chosen on, for the spaces that have one
    twins       (space, corpus) -> two spaces, itself one of them, that are one by construction there
    """

    suite: Suite
    scores: dict[str, dict[str, Any]]
    replicates: dict[tuple[str, str], dict[str, Float64]]
    confidence: float
    baselines: Mapping[str, str] = field(default_factory=dict)
    chosen_on: Mapping[str, str] = field(default_factory=dict)
    twins: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    @property
    def resamples(self) -> int:
        """How many bootstrap replicates each interval rests on; 0 where nothing was resampled."""
        return next((len(column) for columns in self.replicates.values() for column in columns.values()), 0)

    def facts(self, space: str, corpus: str) -> dict[str, Any]:
        """What evaluate stored about one space on one corpus."""
        facts: dict[str, Any] = self.scores.get(space, {}).get(corpus, {"absent": "not evaluated"})
        return facts

    def corpora_of(self, task: str) -> list[str]:
        """The suite's corpora with that task, in the suite's order, those that the source lacks included."""
        return [
            corpus
            for corpus in self.suite.corpora
            if any(self.facts(space, corpus).get("task") == task for space in self.suite.spaces)
        ]

    def score(self, space: str, corpus: str, protocol: str) -> Score:
        """The score of one space on one corpus in one protocol."""
        facts = self.facts(space, corpus)
        if "absent" in facts:
            return Score(reason=facts["absent"])
        stored = facts["scores"].get(protocol)
        if stored is None:
            return Score(reason="the source names no subsets" if ".all." not in protocol else "not scored")
        if stored["value"] is None:
            return Score(reason=stored.get("reason", "undefined: the scores do not vary"))
        return Score(stored["value"], stored["low"], stored["high"])

    def scores_alike(self, space: str, other: str, corpus: str, protocol: str) -> bool:
        """Whether two spaces score the same but for rounding: within a twentieth of a point."""
        one, two = (self.score(name, corpus, protocol).value for name in (space, other))
        return one is not None and two is not None and abs(one - two) <= 0.05

    def paired_replicates(self, one: Side, two: Side, corpus: str) -> Float64 | None:
        """Replicates of the difference of two sides in points; None where a side has none, or an undefined one.

        Both were scored on the same resamples, so these are replicates of the difference itself.
        """
        columns = [self.replicates.get((space, corpus), {}).get(protocol) for space, protocol in (one, two)]
        if columns[0] is None or columns[1] is None:
            return None
        paired: Float64 = 100 * (columns[0] - columns[1])
        return paired if np.isfinite(paired).all() else None

    def difference(self, one: Side, two: Side, corpus: str) -> Score:
        """The first side less the second, with the percentile interval of its paired replicates.

        Every table, figure, page and claim takes the interval of a difference from here.
        """
        scores = [self.score(space, corpus, protocol) for space, protocol in (one, two)]
        first, second = (score.value for score in scores)
        if first is None or second is None:
            return Score(reason=scores[0].reason or scores[1].reason)
        paired = self.paired_replicates(one, two, corpus)
        interval = None if paired is None else percentile_interval(paired, confidence=self.confidence)
        low, high = (None, None) if interval is None else (round(bound, 2) for bound in interval)
        return Score(round(first - second, 2), low, high)


def find_baselines(suite: Suite, word_baselines: Sequence[str]) -> dict[str, str]:
    """Space -> the space that it is compared with.

    The suite's `baseline`, if it names one, for every other space. Otherwise the encoder that a space was made from,
    and for an encoder over word vectors the first of `word_baselines` that the suite has.
    """
    if suite.baseline is not None:
        return {space: suite.baseline for space in suite.spaces if space != suite.baseline}
    words = next((space for space in word_baselines if space in suite.spaces), None)
    found = {space: words if space in suite.word_encoders else suite.encoder_of(space) for space in suite.spaces}
    own = set(suite.spaces)
    return {space: other for space, other in found.items() if other is not None and other in own - {space}}


def load_results(
    suite: Suite,
    *,
    confidence: float,
    word_baselines: Sequence[str] = (),
    chosen_on: Mapping[str, str] | None = None,
) -> Results:
    """Scores of exactly the spaces that the suite lists. Raises ArtifactError if one is missing."""
    scores = {space: _read_scores(suite, space) for space in suite.spaces}
    replicates: dict[tuple[str, str], dict[str, Float64]] = {}
    for corpus in suite.corpora:
        drawn: Any = None
        for space in suite.spaces:
            path = resamples_path(suite.suite, space, corpus)
            if absence(path, kind="resamples") is not None:
                continue
            made_by = read_record(path, kind="resamples")["parameters"]
            drawn = made_by if drawn is None else drawn
            if drawn != made_by:
                raise _unlike(path, drawn, made_by)
            table = read_table(path, kind="resamples")
            replicates[space, corpus] = {name: table.column(name).to_numpy() for name in table.column_names}
    return Results(suite, scores, replicates, confidence, find_baselines(suite, word_baselines), chosen_on or {})


def _read_scores(suite: Suite, space: str) -> dict[str, Any]:
    path = scores_path(suite.suite, space)
    remedy = f"run `dvc repro evaluate@{space}`"
    with reading(f"the scores of '{space}'", path, remedy=remedy):
        content = json.loads(path.read_text(encoding="utf-8"))
        named, corpora = (content["space"], content["suite"]), dict(content["corpora"])
    if named != (space, suite.suite):
        raise ArtifactError(
            "a scores file is not the one of its name",
            where=str(path),
            expected=f"suite {suite.suite}, space {space}",
            remedy=remedy,
        )
    return corpora


def _unlike(path: Path, expected: Any, got: Any) -> ArtifactError:
    return ArtifactError(
        "two spaces were resampled differently, so their difference has no interval",
        where=str(path),
        expected=str(expected),
        got=str(got),
        remedy="run `dvc repro`, so that every space is evaluated with the same parameters",
    )
