"""Table of what spaces look like: spread, directions, hubs, and what a manifold kept of its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.report.grid import Entry, Group, Head, Line, Panel, Table
from pipeline.report.notes import no_smallest
from pipeline.report.results import Results

COLUMNS = {
    "dimension": ("dimension", "coordinates of a vector", "count", 0),
    "alignment": ("alignment", "mean squared distance of the two texts of a positive pair", "unit vectors", 3),
    "uniformity": ("uniformity", "log of the mean of exp(−2 d²) over all pairs of a sample", "unit vectors", 3),
    "mean_cosine": ("mean cosine", "mean cosine over all pairs of a sample", "cosine", 3),
    "effective_rank": ("effective rank", "exp of the entropy of the singular values", "count", 1),
    "hubness": ("hubness", "skewness of how often a text is among the nearest of others", "skewness", 2),
    "trustworthiness": ("trustworthiness", "neighbours here that were neighbours in the source", "share", 3),
    "continuity": ("continuity", "neighbours in the source that are neighbours here", "share", 3),
}
PREFERRED = ("stsb", "sickr", "trec")
ABOUT = (
    "Facts beside the scores; none is better for being large. Alignment: the smaller, the closer are pairs that mean "
    "the same; uniformity: the lower, the more evenly spread over the sphere; mean cosine: 0 where directions cancel "
    "out, towards 1 in a narrow cone; hubness: about 0 where no text is everybody's neighbour. Trustworthiness and "
    "continuity hold a space against the encoder's that it was made from. Distances are between unit vectors."
)

UNJUDGED = no_smallest(
    "geometry is measured once, on one sample of the sentences, and not resampled, so its numbers have no intervals "
    "and no difference of theirs is called"
)


def geometry_table(results: Results, made_of: Mapping[str, str]) -> Table | None:
    """Every space, a panel for each of a few corpora; None where no geometry was measured."""
    measured = [c for c in results.suite.corpora if any(_facts(results, s, c) for s in results.suite.spaces)]
    corpora = [corpus for corpus in PREFERRED if corpus in measured] or measured[:3]
    panels = tuple(_panel(results, corpus, made_of) for corpus in corpora)
    return Table("geometry", "Geometry of every space", ABOUT, panels) if panels else None


def _facts(results: Results, space: str, corpus: str) -> dict[str, Any]:
    facts = results.facts(space, corpus)
    geometry: dict[str, Any] = facts.get("geometry", {})
    return {"dimension": facts.get("dimension"), **geometry} if geometry else {}


def _panel(results: Results, corpus: str, made_of: Mapping[str, str]) -> Panel:
    found = {space: _facts(results, space, corpus) for space in results.suite.spaces}
    known = {space: facts for space, facts in found.items() if facts}
    heads = tuple(Head(title, corpus, about, unit) for title, about, unit, _ in COLUMNS.values())
    lines = tuple(
        Line(space, made_of.get(space, ""), tuple(_entry(facts, name, space, corpus) for name in COLUMNS))
        for space, facts in known.items()
    )
    one = next(iter(known.values()))
    protocol = (
        f"on {one['sampled']} of {one['sentences']} distinct sentences; uniformity over {one['uniformity_pairs']}; "
        f"alignment over {one['alignment_pairs']}; {one['neighbors']} neighbours"
    )
    group = Group(f"Measured here, suite {results.suite.suite}", False, lines)
    return Panel(f"Geometry on {corpus}", protocol, heads, (group,), _shows(known), (UNJUDGED,))


def _entry(facts: Mapping[str, Any], name: str, space: str, corpus: str) -> Entry:
    title, about, _, digits = COLUMNS[name]
    value = facts.get(name)
    if value is None:
        kept = name in ("trustworthiness", "continuity")
        reason = "it was made from no other space" if kept else "too few texts, or no positive pairs"
        return Entry(reason=f"no {title}: {reason}", command="")
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # plus 0: a rounded -0.0003 is 0
    return Entry(text, float(value), about=f"{about}, of {space} on {corpus}", of=(f"{space}/{corpus}",))


def _shows(known: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """The narrowest cone, the most hubs, and which made space kept the most and the least of its source."""
    sentences = []
    for name, words in (("mean_cosine", "Narrowest cone"), ("hubness", "Most hubs")):
        held = {space: facts[name] for space, facts in known.items() if facts.get(name) is not None}
        if held:
            space = max(held, key=lambda one: float(held[one]))
            sentences.append(f"{words}: {space} ({COLUMNS[name][0]} {held[space]:.2f}).")
    kept = {space: facts["continuity"] for space, facts in known.items() if facts.get("continuity") is not None}
    if len(kept) > 1:
        most, least = max(kept, key=lambda s: float(kept[s])), min(kept, key=lambda s: float(kept[s]))
        sentences.append(
            f"Of the neighbourhoods of the encoder, {most} keeps the most (continuity {kept[most]:.3f}), {least} the "
            f"least ({kept[least]:.3f})."
        )
    return tuple(sentences)
