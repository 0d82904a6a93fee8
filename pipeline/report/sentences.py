"""What a panel shows, in plain sentences made from its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.papers.plan import PanelPlan
from pipeline.report.comparisons import (
    BASELINE,
    Judged,
    column_name,
    judge_family,
    judge_sides,
    multiple_comparisons,
    score_text,
    smallest_difference,
)
from pipeline.report.made_of import listed
from pipeline.report.results import Results
from sentfold.measures.registry import describe_protocol

Columns = list[tuple[str, str]]


def judge_panel(results: Results, plan: PanelPlan, spaces: Sequence[str], baseline: str | None) -> tuple[Judged, ...]:
    """Every row's difference to its baseline on every scored column of a panel, judged together."""
    columns = scored_columns(results, plan, spaces) if plan.measured else []
    if plan.against:
        own = [space for space in spaces if space in results.suite.spaces]
        return judge_sides(
            results,
            [((s, p), (s, plan.against), corpus) for s in own for corpus, p in columns if p != plan.against],
        )
    return judge_family(results, baselines(results, spaces, baseline), columns)


def describe_panel(
    results: Results, plan: PanelPlan, spaces: Sequence[str], family: Sequence[Judged]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a panel shows and how its differences were judged: sentences for readers, notes for referees."""
    if not plan.measured:
        return (f"Printed figures alone: {plan.why}.",), ()
    columns = scored_columns(results, plan, spaces)
    if not columns:
        return ("None of this can be measured on the corpora of this suite; the notes say what would fill it.",), ()
    shows = [] if plan.against else [_unanswered(results, spaces, columns), _starts(results, spaces, columns)]
    if family:
        others = listed(list(dict.fromkeys(judged.against for judged in family)))
        shows.append(count_differences(family, describe_protocol(plan.against) if plan.against else others))
    other = f"score by {describe_protocol(plan.against)}" if plan.against else BASELINE
    judged = (multiple_comparisons(results, family, other), smallest_difference(family, other))
    notes = (untested_note(results, columns), *judged)
    return tuple(filter(None, shows)), tuple(filter(None, notes))


def untested_note(results: Results, columns: Columns) -> str:
    """The warning under a panel whose only corpus chose the parameters of some of its spaces; "" elsewhere."""
    corpus = columns[0][0]
    spaces = [space for space, chooser in results.chosen_on.items() if chooser == corpus]
    if not spaces or results.corpora_of(results.facts(spaces[0], corpus).get("task", "")) != [corpus]:
        return ""
    return (
        f"Warning: {corpus} chose the parameters of {listed(spaces)}, and the suite has no other corpus of its kind to "
        "test them on. Add one to the corpora of the suite."
    )


def baselines(results: Results, spaces: Sequence[str], own: str | None) -> list[tuple[str, str]]:
    """Each space with what it is compared with: the table's own baseline, else that of its kind."""
    pairs = []
    for space in spaces:
        base = results.baselines.get(space) if own is None or own == space else own
        if base is not None and space in results.suite.spaces and own != space:
            pairs.append((space, base))
    return pairs


def scored_columns(results: Results, plan: PanelPlan, spaces: Sequence[str]) -> Columns:
    """Corpus and protocol of the columns in which at least one of these spaces has a score."""
    return [
        (column.corpus, column.protocol)
        for column in plan.columns
        if any(_value(results, space, column.corpus, column.protocol) is not None for space in spaces)
    ]


def _value(results: Results, space: str, corpus: str, protocol: str) -> float | None:
    named = space in results.suite.spaces and corpus in results.suite.corpora
    return results.score(space, corpus, protocol).value if named else None


def _unanswered(results: Results, spaces: Sequence[str], columns: Columns) -> str:
    """How many queries no order can answer, and how high a mean average precision can therefore get."""
    parts = []
    for corpus, protocol in columns:
        known = (results.facts(space, corpus) for space in spaces if space in results.suite.spaces)
        facts = next((found for found in known if "queries_without_relevant" in found), None)
        if facts is not None and protocol == "map.cosine":
            lost, queries = facts["queries_without_relevant"], facts["n"]
            best = 100 * (queries - lost) / queries
            parts.append(f"{lost} of {queries} queries of {corpus} (no order can score above {best:.2f} there)")
    return f"Queries without a relevant candidate score 0 in every space: {listed(parts)}." if parts else ""


def _starts(results: Results, spaces: Sequence[str], columns: Columns) -> str:
    """How far the scores of a panel vary over starts of k-means; "" where no score has several starts."""
    parts, starts = [], 0
    for corpus, protocol in columns:
        facts = [results.facts(space, corpus) for space in spaces if space in results.suite.spaces]
        known = [own for own in facts if protocol in own.get("spread_over_seeds", {})]
        if known:
            spreads = [own["spread_over_seeds"][protocol] for own in known]
            least, most = (score_text(protocol, spread) for spread in (min(spreads), max(spreads)))
            parts.append(f"{column_name(corpus, protocol, columns)} {least} to {most}")
            starts = max(own["seeds"] for own in known)
    if not parts:
        return ""
    return (
        f"Standard deviation over single starts of k-means, least and greatest of the rows: {', '.join(parts)}. "
        f"A score is the mean of {starts} starts, which varies by 1/√{starts} of that."
    )


def count_differences(family: Sequence[Judged], baselines: str) -> str:
    """How many differences of a panel are above zero, below, and neither; of a single one, whether it can be called."""
    above, below = (sum(judged.sign == sign for judged in family) for sign in (1, -1))
    few = sum(judged.few for judged in family)
    rest = len(family) - above - below - few
    end = f", and {few} rest on too few independent texts to say" if few else ""
    if len(family) == 1:
        return "The difference rests on too few independent texts to be called." if few else ""
    return (
        f"Of {len(family)} differences to {baselines}, judged together, {above} are above zero beyond chance, "
        f"{below} below; {rest} cannot be told from zero{end}."
    )
