"""The differences of one panel, judged together: each row of ours against its baseline, on each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.report.multiple import Adjusted, Contrast, adjust
from pipeline.report.results import MIN_EFFECTIVE_UNITS, Results
from pipeline.suite import Suite

# What an encoder over word vectors has to beat: their plain mean.
WORD_BASELINE = "wl-average"

Side = tuple[str, str]  # a space and the protocol that it is scored in


@dataclass(frozen=True)
class Judged:
    """One difference of a panel: `space` less `against` on `corpus` in `protocol`, and whether it can be called.

    few  too few effective units to resample for any interval to be trusted
    """

    space: str
    against: str
    corpus: str
    protocol: str
    result: Adjusted
    few: bool

    @property
    def sign(self) -> int:
        """1 above its baseline, -1 below, 0 not to be told from it."""
        return 0 if self.few else self.result.sign


def baseline_of(suite: Suite, space: str) -> str | None:
    """What a space is measured against: its encoder, or the mean of words.

    None for these themselves, and for what the suite does not make.
    """
    if space not in suite.spaces:
        return None
    if space in suite.word_encoders:
        return WORD_BASELINE if space != WORD_BASELINE and WORD_BASELINE in suite.spaces else None
    encoder = suite.encoder_of(space)
    return encoder if space != encoder else None


def judge_family(
    results: Results, pairs: Sequence[tuple[str, str]], columns: Sequence[tuple[str, str]]
) -> tuple[Judged, ...]:
    """Differences of pairs of spaces on columns (corpus, protocol), with simultaneous intervals over all of them.

    What has no score, or no replicates that are all defined, stays out.
    """
    wanted = [((ours, protocol), (than, protocol), corpus) for ours, than in pairs for corpus, protocol in columns]
    return judge_sides(results, wanted)


def judge_across(
    results: Results, ours: tuple[str, str], others: Sequence[tuple[str, str]], corpora: Sequence[str]
) -> tuple[Judged, ...]:
    """The same for one side against several, each a space in a protocol of its own."""
    return judge_sides(results, [(ours, other, corpus) for other in others for corpus in corpora])


def judge_sides(results: Results, wanted: Sequence[tuple[Side, Side, str]]) -> tuple[Judged, ...]:
    """The same for any differences at all: two sides, each a space in a protocol, and the corpus."""
    found = [(names, contrast) for names in wanted if (contrast := contrast_of(results, *names)) is not None]
    judged = adjust([contrast for _, contrast in found], confidence=results.confidence)
    return tuple(
        Judged(ours[0], than[0], corpus, ours[1], result, few_units(results, ours[0], corpus))
        for ((ours, than, corpus), _), result in zip(found, judged, strict=True)
    )


def contrast_of(results: Results, ours: Side, than: Side, corpus: str) -> Contrast | None:
    """The difference of two sides in points, with its paired replicates; None if it cannot be formed."""
    made = {ours[0], than[0]} <= set(results.suite.spaces) and corpus in results.suite.corpora
    if not made:
        return None
    cells = [results.cell(space, corpus, protocol).value for space, protocol in (ours, than)]
    columns = [results.replicates.get((space, corpus), {}).get(protocol) for space, protocol in (ours, than)]
    if cells[0] is None or cells[1] is None or columns[0] is None or columns[1] is None:
        return None
    paired = 100 * (columns[0] - columns[1])
    return Contrast(round(cells[0] - cells[1], 2), paired, corpus) if np.isfinite(paired).all() else None


def few_units(results: Results, space: str, corpus: str) -> bool:
    """Whether a corpus has too few effective units for its intervals to call a difference."""
    drawn = results.facts(space, corpus).get("drawn", {})
    return bool(drawn.get("effective_units", MIN_EFFECTIVE_UNITS) < MIN_EFFECTIVE_UNITS)
