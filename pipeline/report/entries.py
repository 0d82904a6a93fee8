"""Entries of tables: what was measured, what was printed, and why a place is blank and what would fill it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.evaluate.bootstrap import percentile_interval
from pipeline.report.absent_rows import absent_entry
from pipeline.report.grid import Entry
from pipeline.report.multiple import deal
from pipeline.report.published import Figure
from pipeline.report.results import Results
from pipeline.suite import Suite

UNTRAINED = "no stage trains encoders yet"


def measured_entry(results: Results, space: str, corpus: str, protocol: str, *, unit: str = "x100") -> Entry:
    """A score of ours with its interval, or a blank that names its reason and what would fill it."""
    suite = results.suite
    if space not in suite.spaces:
        return missing_space(suite, space)
    if corpus not in suite.corpora:
        return Entry(reason=f"the suite names no corpus '{corpus}'", command=_name_corpus(suite, corpus))
    cell = results.cell(space, corpus, protocol)
    if cell.value is None:
        if protocol in results.facts(space, corpus).get("scores", {}):
            return Entry(reason=cell.reason, command=_to_define(cell.reason, suite))
        if "absent" in results.facts(space, corpus):
            return Entry(reason=cell.reason, command=_to_find(results, space, corpus))
        return Entry(reason=f"{corpus} is not scored by {protocol}", command=f"sentfold repro --suite {suite.suite}")
    scale = 100.0 if unit == "nats" else 1.0
    low, high = (None if bound is None else bound / scale for bound in (cell.low, cell.high))
    text = f"{cell.value / scale:.4f}" if unit == "nats" else f"{cell.value:.2f}"
    digits = 3 if unit == "nats" else 1
    return Entry(text, cell.value / scale, low, high, link=f"score/{space}/{corpus}/{protocol}", digits=digits)


def _to_define(reason: str, suite: Suite) -> str:
    """What fills a score that has a place and no value."""
    if "evaluate.unfitted" in reason:
        return f"take the space off that list, run sentfold repro --suite {suite.suite}"
    return "none: the score is undefined"


def _to_find(results: Results, space: str, corpus: str) -> str:
    """What fills the scores of a space without vectors: its source's text, or nothing where the encoder has them."""
    encoder = next((e for e in results.suite.encoders if "absent" not in results.facts(e, corpus)), None)
    if encoder is None and results.suite.source == "mirror":
        return f"put what is missing into the mirror, run sentfold repro --suite {results.suite.suite}"
    return "sentfold repro --suite paper" if encoder is None else f"none: {space} is not made of this corpus"


def missing_space(suite: Suite, space: str) -> Entry:
    """The blank of a row that the suite does not make."""
    absent = absent_entry(suite, space)
    if absent is not None:
        return absent
    if space.startswith("bert-stsb"):
        return Entry(reason=UNTRAINED, command="none yet, it needs a stage that fine-tunes encoders")
    if space in suite.blanks or space.startswith("sbert-"):
        reason = suite.blanks.get(space, "its weights are not in this suite's source")
        encoder = space.removesuffix("-lp")
        command = (
            f"sentfold pin-encoder {encoder}, put the lines that it prints into params.yaml; in "
            f"suites/paper/suite.yaml name {encoder} among the encoders and {space} among the spaces, and take "
            "it out of blanks; run sentfold repro --suite paper"
        )
        return Entry(reason=reason, command=command)
    name = f"name it in {suite.file}, run sentfold repro --suite {suite.suite}"
    return Entry(reason="the suite does not make this space", command=name)


def _name_corpus(suite: Suite, corpus: str) -> str:
    return f"name {corpus} in {suite.file}, run sentfold repro --suite {suite.suite}"


def printed_entry(figure: Figure) -> Entry:
    """A figure of a paper, with the digits that were printed."""
    return Entry(figure.shown, figure.value, link=f"printed/{figure.number}")


def average_entry(results: Results, space: str, columns: Sequence[tuple[str, str]], entries: Sequence[Entry]) -> Entry:
    """The mean of a whole row with its interval; a blank if any place of the row is blank.

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
    return Entry(f"{mean:.2f}", round(mean, 2), low, high, about=about, of=of)
