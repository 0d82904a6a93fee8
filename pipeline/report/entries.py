"""Entries of tables: scores, differences, printed figures, and blanks with their reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.base.suite import Suite
from pipeline.papers.absent_rows import absent_entry
from pipeline.papers.published import Figure
from pipeline.report.results import Results
from sentfold.compare.bootstrap import percentile_interval
from sentfold.compare.multiplicity import deal
from sentfold.measures.registry import describe_protocol
from sentfold.report.table import Caveat, Entry

HEADLINE = "spearman.all.cosine"


def measured_entry(results: Results, space: str, corpus: str, protocol: str, *, unit: str = "x100") -> Entry:
    """A score measured here with its interval, or a blank that names its reason and what would fill it."""
    suite = results.suite
    if space not in suite.spaces:
        return missing_space(suite, space)
    if corpus not in suite.corpora:
        return Entry(reason=f"the suite names no corpus '{corpus}'")  # whether its source holds one is not known here
    score = results.score(space, corpus, protocol)
    if score.value is None:
        return _blank_score(results, space, corpus, protocol, score.reason)
    scale, places, digits = scale_of(unit)
    low, high = (None if bound is None else bound / scale for bound in (score.low, score.high))
    value = score.value / scale
    return Entry(
        f"{value:.{places}f}", value, low, high, link=f"score/{space}/{corpus}/{protocol}", digits=digits,
        caveats=find_caveats(results, space, corpus, protocol),
    )  # fmt: skip


def find_caveats(results: Results, space: str, corpus: str, protocol: str) -> tuple[Caveat, ...]:
    """Whether the corpus chose the space's parameters, and whether the space is another one there by construction.

    A rotation keeps cosines and distances and no more, so two such spaces are called one only where they score alike.
    """
    chosen = [Caveat("†", (space,), corpus)] if results.chosen_on.get(space) == corpus else []
    twins = results.twins.get((space, corpus))
    alike = twins is not None and results.scores_alike(*twins, corpus, protocol)
    return (*chosen, *([Caveat("≡", twins, corpus)] if twins is not None and alike else []))


def scale_of(unit: str) -> tuple[float, int, int]:
    """What a stored score is divided by to come to a unit, and the digits of a number and of its interval."""
    return (100.0, 4, 3) if unit == "nats" else (1.0, 2, 1)


def difference_entry(
    results: Results, spaces: tuple[str, str], corpus: str, protocol: str, *, role: str, unit: str = "x100"
) -> Entry:
    """The score of one space less that of another, with its paired interval; a blank where either has no score.

    role  what the other space is, e.g. "baseline"
    """
    sides = [measured_entry(results, space, corpus, protocol, unit=unit) for space in spaces]
    blank = next((entry for entry in sides if entry.blank), None)
    if blank is not None:
        return blank
    space, other = spaces
    difference = results.difference((space, protocol), (other, protocol), corpus)
    caveats = dict.fromkeys(
        caveat for side in sides for caveat in side.caveats if caveat.mark == "†" or set(caveat.spaces) == set(spaces)
    )
    scale, places, digits = scale_of(unit)
    numbers = (difference.value, difference.low, difference.high)
    value, low, high = (None if number is None else number / scale for number in numbers)
    return Entry(
        f"{value:+.{places}f}", value, low, high, digits=digits,
        link=f"difference/{space}/{other}/{corpus}/{protocol}",
        about=f"{describe_protocol(protocol)} on {corpus} in {space} less that in its {role} {other}; the "
        "interval is of the difference itself, both on the same bootstrap resamples",
        of=(f"{space}/{corpus}", f"{other}/{corpus}"), caveats=tuple(caveats),
    )  # fmt: skip


def _blank_score(results: Results, space: str, corpus: str, protocol: str, reason: str) -> Entry:
    suite, facts = results.suite, results.facts(space, corpus)
    again = f"sentfold run --suite {suite.suite}"
    if protocol in facts.get("scores", {}):
        unfitted = "evaluate.unfitted" in reason
        command = f"take the space off that list, run {again}" if unfitted else ""
        return Entry(reason=reason, command=command)
    if "absent" in facts:
        return Entry(reason=reason, command=_to_find(results, corpus))
    return Entry(reason=f"{corpus} is not scored by {protocol}", command=again)


def _to_find(results: Results, corpus: str) -> str:
    """What fills the scores of a space without vectors: its source's text, or nothing where the encoder has them."""
    encoder = next((e for e in results.suite.encoders if "absent" not in results.facts(e, corpus)), None)
    if encoder is None and results.suite.source == "mirror":
        return f"put what is missing into the mirror, run sentfold run --suite {results.suite.suite}"
    return "sentfold run --suite paper" if encoder is None else ""


def missing_space(suite: Suite, space: str) -> Entry:
    """The blank of a row that the suite does not make."""
    absent = absent_entry(suite, space)
    if absent is not None:
        return absent
    name = f"name it in {suite.written}, run sentfold run --suite {suite.suite}"
    return Entry(reason=suite.blanks.get(space, "the suite does not make this space"), command=name)


def printed_entry(figure: Figure) -> Entry:
    """A figure of a paper, with the digits that were printed."""
    return Entry(figure.shown, figure.value, link=f"printed/{figure.number}")


def average_entry(results: Results, space: str, columns: Sequence[tuple[str, str]], entries: Sequence[Entry]) -> Entry:
    """The mean of a whole row with its interval; a blank if any cell of the row is blank.

    columns  corpus and protocol of each entry. The corpora are independent data, so their replicates are
             averaged in orders of their own.
    """
    values = [entry.value for entry in entries if entry.value is not None]
    if len(values) < len(entries):
        return Entry(reason="an incomplete row has no average", command="")
    drawn = [deal(results.replicates[space, corpus][protocol], corpus) for corpus, protocol in columns]
    interval = percentile_interval(np.mean(drawn, axis=0), confidence=results.confidence)
    low, high = (None, None) if interval is None else (100 * bound for bound in interval)
    mean = float(np.mean(values))
    about = (
        f"mean of the scores of {space} on {', '.join(corpus for corpus, _ in columns)}; its interval is that of the "
        "mean of their bootstrap replicates, each corpus resampled independently of the others"
    )
    of = tuple(f"{space}/{corpus}" for corpus, _ in columns)
    caveats = dict.fromkeys(caveat for entry in entries for caveat in entry.caveats)
    return Entry(f"{mean:.2f}", round(mean, 2), low, high, about=about, of=of, caveats=tuple(caveats))
