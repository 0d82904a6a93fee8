"""SBERT-LP's table 4: pairs whose order locality preserving repairs and breaks, found and counted, named by row."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from pipeline.report.comparisons import no_smallest
from pipeline.report.evidence import Cases, Evidence
from sentfold.compare.multiplicity import POWER
from sentfold.compare.orders import Order, Orders, about_many
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

ABOUT = (
    "The paper shows two sentence pairs whose order LP puts right. Here every two pairs of a corpus that people rate "
    "differently are compared, and both the repairs and the breaks are counted. Pairs are named by corpus and row; a "
    "page made with `sentfold page` shows their texts."
)
EXAMPLES = no_smallest("these are single pairs, picked for being extreme, and no average of anything")


def order_table(evidence: Evidence, space: str) -> Table | None:
    """The table: counts for every derived space, then the largest repairs and breaks of `space`."""
    cases = evidence.cases
    if cases is None:
        return None
    panels = [_count_panel(cases, evidence)]
    orders = cases.orders.get(space)
    if orders is not None:
        panels += [
            _example_panel(cases, space, orders.best, f"Largest repairs by {space}"),
            _example_panel(cases, space, orders.worst, f"Largest breaks by {space}"),
        ]
    return Table("sbert-lp-4", "SBERT-LP 4: Orders repaired and broken", ABOUT, tuple(panels))


def _count_panel(cases: Cases, evidence: Evidence) -> Panel:
    titles = ("right before", "right after", "repaired", "broken")
    heads = [Head(title, cases.corpus, "share of comparable pairs of pairs") for title in titles]
    heads.append(Head("net repaired", cases.corpus, "repaired less broken, share of comparable pairs of pairs"))
    lines = tuple(
        Line(space, evidence.made_of.get(space, ""), _count_entries(cases, space, orders))
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
        (_smallest(cases, evidence.results.confidence),),
    )


def _smallest(cases: Cases, confidence: float) -> str:
    """From the widths of the intervals, for no replicates of these counts are kept: normal, adjusted by Bonferroni."""
    widths = [o.high - o.low for o in cases.orders.values() if o.low is not None and o.high is not None]
    if not widths:
        return no_smallest("no count here has an interval")
    tail, normal = (1 - confidence) / 2, NormalDist()
    spread = float(np.median(widths)) / (2 * normal.inv_cdf(1 - tail))
    reach = normal.inv_cdf(1 - tail / len(widths)) + normal.inv_cdf(POWER)
    return (
        f"Smallest net share repaired that a space would show here with {POWER:.0%} power, adjusted for {len(widths)} "
        f"spaces (Bonferroni, from the width of the intervals), in points, median over spaces: {reach * spread:.1f}."
    )


def _count_entries(cases: Cases, space: str, orders: Orders) -> tuple[Entry, ...]:
    counts = (orders.before, orders.after, orders.repaired, orders.broken)
    source = (
        f"of {orders.comparable:,} pairs of pairs of {cases.corpus} that people rate differently, by cosines in "
        f"{cases.encoder} before and {space} after, to six digits"
    )
    of = (f"{cases.encoder}/{cases.corpus}", f"{space}/{cases.corpus}")
    shares = [(100 * n / orders.comparable, f"about {about_many(n)} {source}") for n in counts]
    entries = [Entry(f"{share:.2f}", share, about=about, of=of) for share, about in shares]
    net = f"repaired less broken, {source}; the interval resamples what recurs in the corpus"
    return (*entries, Entry(f"{orders.net:+.2f}", orders.net, orders.low, orders.high, about=net, of=of))


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


def _example_panel(cases: Cases, space: str, found: tuple[Order, ...], title: str) -> Panel:
    names = [f"{part} {row}" for row in ("higher", "lower") for part in ("rating", cases.encoder, space)]
    protocols = ("human rating", f"cosine in {cases.encoder}", f"cosine in {space}") * 2
    heads = tuple(
        Head(name, cases.corpus, protocol, "rating or cosine") for name, protocol in zip(names, protocols, strict=True)
    )
    lines = tuple(
        Line(f"{cases.corpus} row {o.higher} over row {o.lower}", "", _example(cases, space, o)) for o in found
    )
    about = "rows of the corpus's items, from 0; people rate the higher one more alike"
    return Panel(title, about, heads, (Group("Found here", False, lines),), (), (EXAMPLES,))


def _example(cases: Cases, space: str, order: Order) -> tuple[Entry, ...]:
    entries = []
    for row in (order.higher, order.lower):
        rating, *both = (float(v[row]) for v in (cases.human, cases.similarity[cases.encoder], cases.similarity[space]))
        names = (f"rating of row {row}", f"cosine of row {row} in {cases.encoder}", f"cosine of row {row} in {space}")
        texts = (f"{rating:.2f}", *(f"{value:.3f}" for value in both))
        of = [() if made is None else (f"{made}/{cases.corpus}",) for made in (None, cases.encoder, space)]
        entries += [
            Entry(text, value, about=f"{name}, items of {cases.corpus}", of=source)
            for text, value, name, source in zip(texts, (rating, *both), names, of, strict=True)
        ]
    return tuple(entries)
