"""Differences of spaces to their baselines and controls, judged together, and the notes that say how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pipeline.base.suite import Suite
from pipeline.report.results import MIN_EFFECTIVE_UNITS, Results, Score, Side
from sentfold.compare.multiplicity import POWER, Adjusted, Contrast, adjust
from sentfold.manifold.base.protocol import find_method, known_methods
from sentfold.measures.registry import describe_protocol

BASELINE, CONTROL, TUNED_CONTROL = "baseline", "control", "tuned control"

# (space, corpus) -> the space that it is compared with there
Others = Mapping[tuple[str, str], str]
# space -> the parameters that its artifacts name
SpaceParameters = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Judged:
    """One difference of a family: `space` less `against` on `corpus` in `protocol`, and whether it can be called.

    difference  with its interval, the one that tables print
    result      the same difference judged together with its family
    alone       it is the only one of its family
    few         too few effective units to resample for any interval to be trusted
    """

    space: str
    against: str
    corpus: str
    protocol: str
    difference: Score
    result: Adjusted
    alone: bool
    few: bool

    @property
    def sign(self) -> int:
        """1 above its baseline, -1 below, 0 not to be told from it; never called where its own interval holds 0."""
        own = int((self.difference.low or 0) > 0) - int((self.difference.high or 0) < 0)
        return own if not self.few and (self.alone or own == self.result.sign) else 0

    @property
    def text(self) -> str:
        """The difference with its interval: "-9.24 [-11.10, -7.45]"."""
        return f"{self.difference.value:+.2f} [{self.difference.low:+.2f}, {self.difference.high:+.2f}]"


def judge_family(
    results: Results, pairs: Sequence[tuple[str, str]], columns: Sequence[tuple[str, str]]
) -> tuple[Judged, ...]:
    """Differences of pairs of spaces on columns (corpus, protocol), called together; see `judge_sides`."""
    wanted = [((one, protocol), (two, protocol), corpus) for one, two in pairs for corpus, protocol in columns]
    return judge_sides(results, wanted)


def judge_across(results: Results, one: Side, others: Sequence[Side], corpora: Sequence[str]) -> tuple[Judged, ...]:
    """Differences of one side to several on some corpora, called together; see `judge_sides`."""
    return judge_sides(results, [(one, other, corpus) for other in others for corpus in corpora])


def judge_sides(results: Results, wanted: Sequence[tuple[Side, Side, str]]) -> tuple[Judged, ...]:
    """Differences of two sides on a corpus each, called together: by max-T over all of them.

    Left out: what has no score, what has a replicate that is undefined, and a space on the corpus that its
    parameters were chosen on, which is no evidence for it.
    """
    found = [(names, contrast) for names in wanted if (contrast := contrast_of(results, *names)) is not None]
    judged = adjust([contrast for _, contrast in found], confidence=results.confidence)
    return tuple(
        Judged(
            one[0], two[0], corpus, one[1], results.difference(one, two, corpus), result, len(found) == 1,
            few_units(results, one[0], corpus),
        )
        for ((one, two, corpus), _), result in zip(found, judged, strict=True)
    )  # fmt: skip


def contrast_of(results: Results, one: Side, two: Side, corpus: str) -> Contrast | None:
    """The difference of two sides in points, with its paired replicates; None if it cannot be judged."""
    spaces = {one[0], two[0]}
    made = spaces <= set(results.suite.spaces) and corpus in results.suite.corpora
    if not made or any(results.chosen_on.get(space) == corpus for space in spaces):
        return None
    value, paired = results.difference(one, two, corpus).value, results.paired_replicates(one, two, corpus)
    return None if value is None or paired is None else Contrast(value, paired, corpus)


def few_units(results: Results, space: str, corpus: str) -> bool:
    """Whether a corpus has too few effective units for its intervals to call a difference."""
    drawn = results.facts(space, corpus).get("drawn", {})
    return bool(drawn.get("effective_units", MIN_EFFECTIVE_UNITS) < MIN_EFFECTIVE_UNITS)


# --- controls ---------------------------------------------------------------------------------------


@cache
def _role_of_method(method: str) -> str:
    return find_method(method).ROLE if method in known_methods() else ""


def role_of(parameters: Mapping[str, Any]) -> str:
    """What the method of a space says that it is: fold, control or adjustment; "" for an encoder's own space.

    A fold reduces dimension by neighbourhoods; a control reduces dimension and sees none.
    """
    return _role_of_method(str(parameters.get("method", "")))


def is_tuned(parameters: Mapping[str, Any]) -> bool:
    """Whether the parameters were chosen on a development corpus."""
    return bool(parameters.get("chosen_on"))


def tuned_alike(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether the parameters of both spaces were chosen on one development corpus."""
    return is_tuned(one) and one["chosen_on"] == two.get("chosen_on")


def control_pairs(suite: Suite, parameters: SpaceParameters) -> Iterator[tuple[str, str]]:
    """Each space that reduces dimension by neighbourhoods with each PCA of its encoder, of whatever dimension.

    A space that keeps the dimension has the encoder's own cosine for a control.
    """
    for space in suite.derived_spaces:
        for other in suite.derived_spaces:
            same_encoder = suite.encoder_of(space) == suite.encoder_of(other)
            one, two = parameters.get(space, {}), parameters.get(other, {})
            if same_encoder and (role_of(one), role_of(two)) == ("fold", "control"):
                yield space, other


def partition_pairs(suite: Suite, parameters: SpaceParameters) -> Iterator[tuple[str, str]]:
    """(word encoder, the same encoder over clusters of words that know no meaning)."""
    for control in suite.word_encoders:
        clusters = parameters.get(control, {}).get("clusters") or {}
        if clusters.get("control"):
            plain = {**parameters[control], "clusters": {**clusters, "control": None}}
            for space in suite.word_encoders:
                own = parameters.get(space, {})
                if {**own, "clusters": {"control": None, **(own.get("clusters") or {})}} == plain:
                    yield space, control


def find_controls(results: Results, parameters: SpaceParameters) -> dict[tuple[str, str], str]:
    """(space, corpus) -> its control there: the first PCA of the same dimension, or the first partition by chance."""
    found: dict[tuple[str, str], str] = {}
    suite = results.suite
    for space, other in (*control_pairs(suite, parameters), *partition_pairs(suite, parameters)):
        for corpus in suite.corpora:
            sizes = dimensions(results, space, other, corpus)
            if sizes is not None and sizes[0] == sizes[1]:
                found.setdefault((space, corpus), other)
    return found


def find_tuned_controls(results: Results, parameters: SpaceParameters) -> dict[tuple[str, str], str]:
    """(tuned space by neighbourhoods, corpus) -> PCA tuned on the same data, each of its own dimension."""
    pairs = control_pairs(results.suite, parameters)
    tuned = [(space, other) for space, other in pairs if tuned_alike(parameters[space], parameters[other])]
    return {(space, corpus): other for space, other in reversed(tuned) for corpus in results.suite.corpora}


def dimensions(results: Results, space: str, control: str, corpus: str) -> tuple[int, int] | None:
    """Coordinates of both spaces on a corpus; None where either has no vectors."""
    one, two = (results.facts(name, corpus).get("dimension") for name in (space, control))
    return None if one is None or two is None else (one, two)


def name_control(results: Results, space: str, control: str, corpora: Sequence[str], *, tuned: bool) -> str:
    """What a control is, for the sentence "Against ...:"; never "the control" where it has another dimension.

    tuned  whether both spaces chose their parameters on the same development data
    """
    how = ", tuned on the same development data" if tuned else ""
    sizes = {pair for corpus in corpora if (pair := dimensions(results, space, control, corpus)) is not None}
    unlike = [pair for pair in sizes if pair[0] != pair[1]]
    if not unlike or space in results.suite.word_encoders:
        return f"the control {control}{how}"
    return f"{control}{how}, of another dimension ({unlike[0][1]}, not {unlike[0][0]})"


# --- notes under tables -----------------------------------------------------------------------------


def multiple_comparisons(results: Results, family: Sequence[Judged], other: str = BASELINE) -> str:
    """How the differences of a table were judged together; "" where there are none, or a single one.

    other  what its rows are compared with: baseline or control
    """
    if len(family) < 2:
        return ""
    return (
        f"Multiple comparisons: the {len(family)} differences between rows and their {other} are judged together "
        f"by the largest studentised deviation (max-T) over {results.resamples} paired bootstrap resamples, at "
        f"{results.confidence:.0%} for all of them at once: ▲ is above it beyond chance, ▼ below it. "
        "A difference whose own interval holds 0 has neither mark. Brackets are not adjusted."
    )


def smallest_difference(family: Sequence[Judged], other: str = BASELINE) -> str:
    """The smallest difference that each column of a table can show; "" where nothing moves.

    Adjusted for all differences of the family at once; the median over rows, since every row has a spread of its own.
    """
    columns = list(dict.fromkeys((judged.corpus, judged.protocol) for judged in family))
    sizes = []
    for corpus, protocol in columns:
        own = [judged.result.detectable for judged in family if (judged.corpus, judged.protocol) == (corpus, protocol)]
        moving = [size for size in own if size > 0]
        if moving:
            sizes.append(f"{column_name(corpus, protocol, columns)} {score_text(protocol, float(np.median(moving)))}")
    if not sizes:
        return ""
    return (
        f"Smallest difference to its {other} that a row would show here with {POWER:.0%} power after "
        f"adjustment, in points, median over rows: {', '.join(sizes)}."
    )


def column_name(corpus: str, protocol: str, columns: Sequence[tuple[str, str]]) -> str:
    """The corpus, with its metric where it has several columns, or its protocol where they share the metric."""
    protocols = [other for name, other in columns if name == corpus]
    metric = protocol.partition(".")[0]
    if len(protocols) < 2:
        return corpus
    alone = sum(other.partition(".")[0] == metric for other in protocols) == 1
    return f"{corpus} ({metric if alone else describe_protocol(protocol)})"


def score_text(protocol: str, size: float) -> str:
    """A difference or a spread of scores: mutual information is printed in nats, and stored on the x100 scale."""
    return f"{size / 100:.3f} nats" if protocol.startswith("mi.") else f"{size:.1f}"
