"""Table of similarities other than cosine, each compared with the cosine of the same vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pipeline.papers.plan import load_figures
from pipeline.report.comparisons import Judged, judge_sides, no_smallest
from pipeline.report.entries import HEADLINE, measured_entry
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results
from sentfold.compare.multiplicity import POWER
from sentfold.measures.registry import describe_protocol, find_measure
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

MEASURES = find_measure("similarity").short  # the similarities other than cosine
ABOUT = (
    "Spearman over all pairs by similarities other than cosine. ▲ and ▼: above or below the cosine of the same "
    "vectors beyond chance. Where all vectors have one length, all similarities but |cosine| and −Manhattan rank pairs "
    "as cosine does: the Lorentzian distance is then a growing function of the angle, whatever its β."
)


def measures_table(evidence: Evidence) -> Table | None:
    """Every space by every similarity, a panel for each of a few corpora; None where nothing was scored so."""
    results = evidence.results
    similar = [c for c in results.corpora_of("similarity") if any(_scored(results, s, c) for s in results.suite.spaces)]
    corpora = [corpus for corpus in load_figures().measures if corpus in similar] or similar
    panels = tuple(_panel(evidence, corpus) for corpus in corpora)
    return Table("measures", "Similarities other than cosine", ABOUT, panels) if panels else None


def _scored(results: Results, space: str, corpus: str) -> bool:
    return any(results.score(space, corpus, f"spearman.all.{name}").value is not None for name in MEASURES)


def _panel(evidence: Evidence, corpus: str) -> Panel:
    results, made_of = evidence.results, evidence.made_of
    protocols = [f"spearman.all.{name}" for name in MEASURES]
    spaces = [space for space in results.suite.spaces if _scored(results, space, corpus)]
    sides = [((space, protocol), (space, HEADLINE), corpus) for space in spaces for protocol in protocols]
    family = judge_sides(results, sides)
    signs = {(judged.space, judged.protocol): judged.sign for judged in family}
    lines = [
        Line(space, made_of.get(space, ""), _entries(results, space, corpus, protocols, signs)) for space in spaces
    ]
    heads = [Head("cosine", corpus, HEADLINE)]
    heads += [Head(title, corpus, f"spearman.all.{name}") for name, title in MEASURES.items()]
    group = Group(evidence.measured_here, False, tuple(lines))
    said = "; ".join(dict.fromkeys(describe_protocol(head.protocol) for head in heads))
    return Panel(f"{corpus}: Spearman by similarity", said, tuple(heads), (group,), _shows(family), _notes(family))


def _entries(
    results: Results, space: str, corpus: str, protocols: Sequence[str], signs: Mapping[tuple[str, str], int]
) -> tuple[Entry, ...]:
    entries = [measured_entry(results, space, corpus, protocol) for protocol in (HEADLINE, *protocols)]
    marked = [
        replace(entry, sign=signs.get((space, protocol), 0))
        for entry, protocol in zip(entries[1:], protocols, strict=True)
    ]
    return (entries[0], *marked)


def _shows(family: Sequence[Judged]) -> tuple[str, ...]:
    """How often each similarity is above cosine beyond chance, by how much at most, and how often below."""
    sentences = []
    for name, title in MEASURES.items():
        own = [judged for judged in family if judged.protocol == f"spearman.all.{name}"]
        above, below = ([judged for judged in own if judged.sign == sign] for sign in (1, -1))
        if not above and not below:
            sentences.append(f"{title}: not to be told from cosine in any of {len(own)} spaces.")
            continue
        best = max(above, key=lambda judged: judged.result.value, default=None)
        gain = "" if best is None else f", at most {best.result.value:+.2f} ({best.space})"
        sentences.append(f"{title}: of {len(own)} spaces above cosine in {len(above)}{gain}, below in {len(below)}.")
    return tuple(sentences)


def _notes(family: Sequence[Judged]) -> tuple[str, ...]:
    if not family:
        return (no_smallest("no space has both a cosine and another similarity scored on it"),)
    return (
        f"Multiple comparisons: the {len(family)} differences of this panel to the cosine of the same space are judged "
        "together (max-T over paired bootstrap resamples). A similarity that gives the very same ranking in every "
        "resample has a difference of exactly zero and takes no part.",
        _smallest(family),
    )


def _smallest(family: Sequence[Judged]) -> str:
    """By similarity: |cosine| varies far more between resamples than a Lorentzian distance does."""
    sizes = []
    for name, title in MEASURES.items():
        own = [judged.result.detectable for judged in family if judged.protocol == f"spearman.all.{name}"]
        moving = [size for size in own if size > 0]
        sizes += [f"{title} {np.median(moving):.2g}"] if moving else []
    if not sizes:
        return no_smallest("every similarity ranks exactly as cosine does, in every space and every resample")
    return (
        f"Smallest difference to cosine that a space would show here with {POWER:.0%} power after adjustment, in "
        f"points, median over spaces: {', '.join(sizes)}."
    )
