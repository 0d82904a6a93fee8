"""Table of what the scores were made from: corpora, and fallbacks of word encoders."""

from __future__ import annotations

from pipeline.report.evidence import Evidence
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

ABOUT = "Facts that the artifacts record: corpora, and sentences without a vector of their own."


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
