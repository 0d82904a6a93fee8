"""What each space is held against, its baseline and its controls; the differences of a panel, judged together."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.report.multiple import Adjusted, Contrast, adjust
from pipeline.report.results import MIN_EFFECTIVE_UNITS, Cell, Results
from pipeline.report.sweeps import SELECTED
from pipeline.suite import Suite

# What an encoder over word vectors has to beat: their plain mean.
WORD_BASELINE = "wl-average"
# Methods that reduce dimension by neighbourhoods, and the one that reduces it and sees none.
BY_NEIGHBORHOODS = ("lle", "lle-landmark", "npe", "lpp")
CONTROL = "pca"

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
    results: Results,
    ours: tuple[str, str],
    others: Sequence[tuple[str, str]],
    corpora: Sequence[str],
    *,
    starts: float = 0.0,
) -> tuple[Judged, ...]:
    """The same for one side against several, each a space in a protocol of its own; for starts see `judge_sides`."""
    return judge_sides(results, [(ours, other, corpus) for other in others for corpus in corpora], starts=starts)


def judge_sides(
    results: Results, wanted: Sequence[tuple[Side, Side, str]], *, starts: float = 0.0
) -> tuple[Judged, ...]:
    """The same for any differences at all: two sides, each a space in a protocol, and the corpus.

    starts  standard deviation of a score over random starts, of which one was made, in points; intervals allow for it
    """
    found = [(names, contrast) for names in wanted if (contrast := contrast_of(results, *names)) is not None]
    judged = adjust([allow_for(contrast, starts) for _, contrast in found], confidence=results.confidence)
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


def allow_for(contrast: Contrast, starts: float) -> Contrast:
    """A contrast whose replicates vary by the random start too: the same deviations for all contrasts of its data."""
    if not starts:
        return contrast
    drawn = np.random.default_rng(zlib.crc32(contrast.data.encode())).standard_normal(len(contrast.replicates))
    return replace(contrast, replicates=contrast.replicates + starts * drawn)


def few_units(results: Results, space: str, corpus: str) -> bool:
    """Whether a corpus has too few effective units for its intervals to call a difference."""
    drawn = results.facts(space, corpus).get("drawn", {})
    return bool(drawn.get("effective_units", MIN_EFFECTIVE_UNITS) < MIN_EFFECTIVE_UNITS)


# --- controls ---------------------------------------------------------------------------------------


def control_pairs(suite: Suite, methods: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each space that reduces dimension by neighbourhoods, with each PCA of its encoder, of whatever dimension.

    methods  space -> the method that its artifacts name. PCA reduces dimension and sees no neighbourhood; what
             keeps the dimension has the encoder's own cosine for a control.
    """
    for ours in suite.spaces:
        for theirs in suite.spaces:
            same_encoder = suite.encoder_of(ours) == suite.encoder_of(theirs)
            if same_encoder and methods.get(ours) in BY_NEIGHBORHOODS and methods.get(theirs) == CONTROL:
                yield ours, theirs


def find_controls(
    results: Results, methods: Mapping[str, str], partitions: Sequence[tuple[str, str]] = ()
) -> dict[tuple[str, str], str]:
    """(space, corpus) -> its control there: the first PCA of the same dimension, or the first partition by chance.

    partitions  (word encoder, the same over clusters that know no meaning), from `word_controls.control_pairs`
    """
    found: dict[tuple[str, str], str] = {}
    for ours, theirs in (*control_pairs(results.suite, methods), *partitions):
        for corpus in results.suite.corpora:
            sizes = dimensions(results, ours, theirs, corpus)
            if sizes is not None and sizes[0] == sizes[1]:
                found.setdefault((ours, corpus), theirs)
    return found


def both_tuned(space: str, control: str) -> bool:
    """Whether both chose their parameters, each its own dimension among them, on the suite's development corpus."""
    return space.endswith(SELECTED) and control.endswith(SELECTED)


def dimensions(results: Results, space: str, control: str, corpus: str) -> tuple[int, int] | None:
    """Coordinates of both spaces on a corpus; None where either has no vectors."""
    ours, theirs = (results.facts(name, corpus).get("dimension") for name in (space, control))
    return None if ours is None or theirs is None else (ours, theirs)


def controlled(results: Results, space: str, control: str, corpus: str, protocol: str) -> Cell:
    """The difference of a space to PCA of the same dimension; blank where the dimensions differ."""
    sizes = dimensions(results, space, control, corpus)
    if sizes is not None and sizes[0] != sizes[1]:
        tuned = "; as its tuned control it stands in the next table" if both_tuned(space, control) else ""
        return Cell(reason=f"not the control of its dimension: dimensions {sizes[0]} and {sizes[1]} differ{tuned}")
    return results.difference(space, control, corpus, protocol)


def name_control(results: Results, space: str, control: str, corpora: Sequence[str], made_of: str) -> str:
    """What a control is, for the sentence "Against ...:"; never "the control" where it has another dimension.

    made_of  what the control was made of, in words: "principal components, p = 384; all-MiniLM-L6-v2"
    """
    found = {dimensions(results, space, control, corpus) for corpus in corpora if corpus in results.suite.corpora}
    sizes = {pair for pair in found if pair is not None}
    unlike = {pair for pair in sizes if pair[0] != pair[1]}
    ours, theirs = next(iter(sizes)) if len(sizes) == 1 else ("", "")
    if both_tuned(space, control):
        own = f"of its own dimension{f', {theirs} beside {ours}' if ours else ''}"
        same = f"of the same dimension{f', {ours}' if ours else ''}, and so the control of that dimension too"
        method = made_of.partition(",")[0] or "a space"
        return f"{control}, {method} tuned on the same development data (a tuned control, {own if unlike else same})"
    if unlike and space not in results.suite.word_encoders:
        return f"{control}, of another dimension{f' ({theirs} beside {ours})' if ours else ''}"
    return f"the control {control}"
