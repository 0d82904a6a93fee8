"""Table of the geometry of spaces: spread, directions, hubs, and what a space keeps of its encoder's neighbourhoods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.papers.plan import load_figures
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results
from sentfold.measures.geometry import FACTS, GeometryFact
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

COLUMNS = {"dimension": GeometryFact("dimension", "coordinates of a vector", "count", 0)} | FACTS
ABOUT = (
    "Facts about the vectors; a larger number is not a better one. Alignment: the smaller it is, the closer are pairs "
    "that mean the same. Uniformity: the lower it is, the more evenly the vectors are spread over the sphere. Mean "
    "cosine: 0 where directions cancel out, near 1 in a narrow cone. Hubness: near 0 where no text is a neighbour of "
    "many others. Trustworthiness and continuity compare a space with its encoder. Distances are between unit vectors. "
    "All is measured once, on one sample of the sentences, so no number has an interval."
)


def geometry_table(evidence: Evidence) -> Table | None:
    """Every space, a panel for each of a few corpora; None where no geometry was measured."""
    results = evidence.results
    measured = [c for c in results.suite.corpora if any(_facts(results, s, c) for s in results.suite.spaces)]
    corpora = [corpus for corpus in load_figures().geometry if corpus in measured] or measured[:3]
    panels = tuple(_panel(evidence, corpus) for corpus in corpora)
    return Table("geometry", "Geometry of every space", ABOUT, panels) if panels else None


def _facts(results: Results, space: str, corpus: str) -> dict[str, Any]:
    facts = results.facts(space, corpus)
    geometry: dict[str, Any] = facts.get("geometry", {})
    return {"dimension": facts.get("dimension"), **geometry} if geometry else {}


def _panel(evidence: Evidence, corpus: str) -> Panel:
    results, made_of = evidence.results, evidence.made_of
    found = {space: _facts(results, space, corpus) for space in results.suite.spaces}
    known = {space: facts for space, facts in found.items() if facts}
    heads = tuple(Head(fact.title, corpus, fact.about, fact.unit) for fact in COLUMNS.values())
    lines = tuple(
        Line(space, made_of.get(space, ""), tuple(_entry(facts, name, space, corpus) for name in COLUMNS))
        for space, facts in known.items()
    )
    one = next(iter(known.values()))
    protocol = (
        f"on {one['sampled']} of {one['sentences']} distinct sentences; uniformity over {one['uniformity_pairs']}; "
        f"alignment over {one['alignment_pairs']}; {one['neighbors']} neighbours"
    )
    group = Group(evidence.measured_here, False, lines)
    return Panel(f"Geometry on {corpus}", protocol, heads, (group,))


def _entry(facts: Mapping[str, Any], name: str, space: str, corpus: str) -> Entry:
    fact = COLUMNS[name]
    value = facts.get(name)
    if value is None:
        kept = name in ("trustworthiness", "continuity")
        reason = "it was made from no other space" if kept else "too few texts, or no positive pairs"
        return Entry(reason=f"no {fact.title}: {reason}", command="")
    text = f"{round(value, fact.digits) + 0.0:.{fact.digits}f}"  # plus 0: a rounded -0.0003 is 0
    return Entry(text, float(value), about=f"{fact.about}, of {space} on {corpus}", of=(f"{space}/{corpus}",))
