"""SBERT-LP's table 4: pairs whose order each space repairs and breaks, counted."""

from __future__ import annotations

from dataclasses import replace

from pipeline.report.comparisons import no_smallest
from pipeline.report.entries import HEADLINE, find_caveats
from pipeline.report.evidence import Cases, Evidence
from pipeline.report.results import Results
from sentfold.compare.orders import Orders, about_many
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

ABOUT = (
    "The paper shows two sentence pairs whose order LP puts right. Here every two pairs of a corpus that people rate "
    "differently are compared, and both the repairs and the breaks are counted."
)
UNRESAMPLED = no_smallest("these counts have intervals, and no replicates that could be judged together")


def order_table(evidence: Evidence) -> Table | None:
    """Counts for every space that was made from the encoder; None where no corpus has them."""
    cases = evidence.cases
    if cases is None:
        return None
    return Table("sbert-lp-4", "SBERT-LP 4: Orders repaired and broken", ABOUT, (_count_panel(cases, evidence),))


def _count_panel(cases: Cases, evidence: Evidence) -> Panel:
    titles = ("right before", "right after", "repaired", "broken")
    heads = [Head(title, cases.corpus, "share of comparable pairs of pairs") for title in titles]
    heads.append(Head("net repaired", cases.corpus, "repaired less broken, share of comparable pairs of pairs"))
    lines = tuple(
        Line(space, evidence.made_of.get(space, ""), _count_entries(evidence.results, cases, space, orders))
        for space, orders in cases.orders.items()
    )
    any_orders = next(iter(cases.orders.values()))
    title = (
        f"Share of the {any_orders.comparable:,} pairs of pairs of {cases.corpus} that people rate differently, ×100, "
        f"before: {cases.encoder}"
    )
    return Panel(
        title,
        "order of cosines against order of ratings",
        tuple(heads),
        (Group(evidence.measured_here, False, lines),),
        _shows(cases),
        (UNRESAMPLED,),
    )


def _count_entries(results: Results, cases: Cases, space: str, orders: Orders) -> tuple[Entry, ...]:
    counts = (orders.before, orders.after, orders.repaired, orders.broken)
    source = (
        f"of {orders.comparable:,} pairs of pairs of {cases.corpus} that people rate differently, by cosines in "
        f"{cases.encoder} before and {space} after, to six digits"
    )
    of = (f"{cases.encoder}/{cases.corpus}", f"{space}/{cases.corpus}")
    shares = [(100 * n / orders.comparable, f"about {about_many(n)} {source}") for n in counts]
    entries = [Entry(f"{share:.2f}", share, about=about, of=of) for share, about in shares]
    net = f"repaired less broken, {source}; the interval resamples what recurs in the corpus"
    entries.append(Entry(f"{orders.net:+.2f}", orders.net, orders.low, orders.high, about=net, of=of))
    caveats = find_caveats(results, space, cases.corpus, HEADLINE)
    return tuple(replace(entry, caveats=caveats) for entry in entries)


def _shows(cases: Cases) -> tuple[str, ...]:
    """Spaces by what they do to orders, each with its counts."""
    said: dict[str, list[str]] = {}
    for space, orders in cases.orders.items():
        if orders.low is None or orders.high is None:
            word = "No interval"
        elif orders.low > 0:
            word = "More repaired than broken"
        else:
            word = "More broken than repaired" if orders.high < 0 else "Not to be told apart"
        counts = f"about {about_many(orders.repaired)} repaired, {about_many(orders.broken)} broken"
        said.setdefault(word, []).append(f"{space} ({counts})")
    return tuple(f"{word}: {', '.join(spaces)}." for word, spaces in said.items())
