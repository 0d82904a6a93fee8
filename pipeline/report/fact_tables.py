"""Tables of facts, which no interval goes with: what the scores were made from, and the geometry of every space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.papers.plan import load_figures
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results
from sentfold.measures.geometry import FACTS, GeometryFact
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

ABOUT = "Facts that the artifacts record: corpora, and sentences without a vector of their own."
COLUMNS = {"dimension": GeometryFact("dimension", "coordinates of a vector", "count", 0)} | FACTS
GEOMETRY = (
    "Facts about the vectors; a larger number is not a better one. Alignment: the smaller it is, the closer are pairs "
    "that mean the same. Uniformity: the lower it is, the more evenly the vectors are spread over the sphere. Mean "
    "cosine: 0 where directions cancel out, near 1 in a narrow cone. Hubness: near 0 where no text is a neighbour of "
    "many others. Trustworthiness and continuity compare a space with its encoder. Distances are between unit vectors. "
    "All is measured once, on one sample of the sentences, so no number has an interval."
)


def artifacts_table(evidence: Evidence) -> Table:
    """Corpora always, and fallbacks where a word encoder had some."""
    panels = (_corpora(evidence), _fallbacks(evidence))
    return Table("artifacts", "Corpora and fallbacks", ABOUT, tuple(filter(None, panels)))


def _text(text: object, about: str = "", of: tuple[str, ...] = ()) -> Entry:
    return Entry(str(text), about=about, of=of)


def _panel(evidence: Evidence, title: str, protocol: str, heads: tuple[str, ...], lines: list[Line]) -> Panel:
    group = Group(evidence.measured_here, False, tuple(lines))
    return Panel(title, protocol, tuple(Head(head, "", head, "") for head in heads), (group,))


def _corpora(evidence: Evidence) -> Panel:
    heads = ("task", "items by split", "distinct sentences", "resampled by", "source and text")
    lines = [Line(corpus, "", _corpus_entries(evidence, corpus)) for corpus in evidence.results.suite.corpora]
    return _panel(evidence, "Corpora", "records of the corpora", heads, lines)


def _corpus_entries(evidence: Evidence, corpus: str) -> tuple[Entry, ...]:
    notes, results = evidence.corpora.get(corpus, {"absent": "not read"}), evidence.results
    if "absent" in notes:
        again = f"sentfold run --suite {results.suite.suite}, with the missing files in its source"
        return (Entry(reason=notes["absent"], command=again),) * 5
    facts = next(
        (found for space in results.suite.spaces if "absent" not in (found := results.facts(space, corpus))), {}
    )
    drawn = facts.get("drawn", {})
    unit = f"{drawn['units']} {drawn['unit']} ({drawn['effective_units']:.0f} effective)" if drawn else "nothing"
    task = notes["task"] + (f" ({facts['blank']})" if "blank" in facts else "")
    counts = (evidence.notes(space, corpus).get("sentences") for space in results.suite.spaces)
    sentences = next((count for count in counts if count is not None), "unknown")
    splits = ", ".join(f"{name} {count}" for name, count in notes["splits"].items())
    about = f"recorded with the corpus {corpus}"
    texts = (task, splits, sentences, unit, f"{notes['source']}; {notes['text']}")
    return tuple(_text(text, about) for text in texts)


def _fallbacks(evidence: Evidence) -> Panel | None:
    """Where an encoder over word vectors had to fall back on a rule of last resort, and how often."""
    suite, lines = evidence.results.suite, []
    for space in suite.word_encoders:
        for corpus in suite.corpora:
            notes = evidence.notes(space, corpus)
            happened = [f"{number} {what}" for what, number in notes.get("fallbacks", {}).items() if number]
            if happened:
                about, of = f"recorded with the vectors of {space} on {corpus}", (f"{space}/{corpus}",)
                entries = (_text(corpus), _text(notes["sentences"], about, of), _text("; ".join(happened), about, of))
                lines.append(Line(space, evidence.made_of.get(space, ""), entries))
    heads = ("corpus", "sentences", "of them (words where it says tokens)")
    return _panel(evidence, "Fallbacks of the word encoders", "records of the spaces", heads, lines) if lines else None


# --- geometry ---------------------------------------------------------------------------------


def geometry_table(evidence: Evidence) -> Table | None:
    """Every space, a panel for each of a few corpora; None where no geometry was measured."""
    results = evidence.results
    measured = [c for c in results.suite.corpora if any(_facts(results, s, c) for s in results.suite.spaces)]
    corpora = [corpus for corpus in load_figures().geometry if corpus in measured] or measured[:3]
    panels = tuple(_geometry_panel(evidence, corpus) for corpus in corpora)
    return Table("geometry", "Geometry of every space", GEOMETRY, panels) if panels else None


def _facts(results: Results, space: str, corpus: str) -> dict[str, Any]:
    facts = results.facts(space, corpus)
    geometry: dict[str, Any] = facts.get("geometry", {})
    return {"dimension": facts.get("dimension"), **geometry} if geometry else {}


def _geometry_panel(evidence: Evidence, corpus: str) -> Panel:
    results, made_of = evidence.results, evidence.made_of
    found = {space: _facts(results, space, corpus) for space in results.suite.spaces}
    known = {space: facts for space, facts in found.items() if facts}
    heads = tuple(Head(fact.title, corpus, fact.about, fact.unit) for fact in COLUMNS.values())
    lines = tuple(
        Line(space, made_of.get(space, ""), tuple(_geometry_entry(facts, name, space, corpus) for name in COLUMNS))
        for space, facts in known.items()
    )
    one = next(iter(known.values()))
    protocol = (
        f"on {one['sampled']} of {one['sentences']} distinct sentences; uniformity over {one['uniformity_pairs']}; "
        f"alignment over {one['alignment_pairs']}; {one['neighbors']} neighbours"
    )
    group = Group(evidence.measured_here, False, lines)
    return Panel(f"Geometry on {corpus}", protocol, heads, (group,))


def _geometry_entry(facts: Mapping[str, Any], name: str, space: str, corpus: str) -> Entry:
    fact = COLUMNS[name]
    value = facts.get(name)
    if value is None:
        kept = name in ("trustworthiness", "continuity")
        reason = "it was made from no other space" if kept else "too few texts, or no positive pairs"
        return Entry(reason=f"no {fact.title}: {reason}", command="")
    text = f"{round(value, fact.digits) + 0.0:.{fact.digits}f}"  # plus 0: a rounded -0.0003 is 0
    return Entry(text, float(value), about=f"{fact.about}, of {space} on {corpus}", of=(f"{space}/{corpus}",))
