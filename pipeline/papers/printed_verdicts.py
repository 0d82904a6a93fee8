"""What a paper's own figures say of its claims: they can contradict one; bearing it out is no reproduction."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from pipeline.papers.claims import Claim, PrintedClaim
from pipeline.papers.plan import load_figures
from pipeline.papers.published import Figure, select


@dataclass(frozen=True)
class Outcome:
    """A verdict, the sentence with the numbers it rests on, and, where it is not testable, what would fill it."""

    verdict: Literal["reproduced", "contradicted", "not testable here"]
    because: str
    command: str = ""


def judge_printed(claim: Claim) -> Outcome:
    """Compare figures of one printed table, those of one protocol alone."""
    printed = _needed(claim)
    gaps, unlike = [], []
    for dataset in printed.datasets:
        ours = _find(claim.source, printed.table, printed.model, dataset)
        for model in printed.than:
            theirs = _find(claim.source, printed.table, model, dataset)
            if ours is None or theirs is None:
                continue
            if not alike(ours, theirs, notes=not printed.alike):
                unlike.append(dataset)
            else:
                # As printed, in decimals: a difference of binary fractions would turn 19.7 into 19.69999.
                gaps.append((f"{model} on {dataset}", Decimal(ours.shown) - Decimal(theirs.shown)))
    return _weigh(printed, gaps, sorted(set(unlike), key=printed.datasets.index))


def alike(one: Figure, other: Figure, *, notes: bool = True) -> bool:
    """Whether two printed figures are of one protocol, as far as is known; without `notes`, aggregation apart."""
    single = one.dataset in load_figures().single_sets or not notes
    return (one.statement, one.metric) == (other.statement, other.metric) and (single or one.note == other.note)


def _weigh(printed: PrintedClaim, gaps: list[tuple[str, Decimal]], unlike: list[str]) -> Outcome:
    needed = Decimal(str(printed.by))
    good = [gap for _, gap in gaps if gap >= needed and gap > 0]
    bad = [f"{name} ({gap:+})" for name, gap in gaps if not (gap >= needed and gap > 0)]
    said_alike = f"; compared by {printed.alike}" if printed.alike else ""
    enough = printed.enough or len(gaps) + len(unlike)
    if len(good) + len(unlike) < enough:
        short = f"less than {printed.by:g} points above" if needed else "not above"
        return Outcome("contradicted", f"By the paper's own figures {short} {', '.join(bad)}{said_alike}.")
    if unlike:
        return Outcome(
            "not testable here",
            f"Its rows are of unlike protocols on {', '.join(unlike)}, as far as is known.",
        )
    span = f"{min(good):+} to {max(good):+}" if len(good) > 1 else f"{good[0]:+}"
    return Outcome(
        "not testable here", f"The paper's own figures bear it out ({span}){said_alike}; nothing here measures it."
    )


def judge_whole(claim: Claim) -> Outcome:
    """Whether a printed accuracy is a whole number of right answers out of `items`, to its printed digits."""
    printed = _needed(claim)
    figure = _find(claim.source, printed.table, printed.model, printed.datasets[0])
    if figure is None or not printed.items:
        return Outcome("not testable here", "No such figure is carried, or the number of items is not known.")
    shown = Decimal(figure.shown)
    step = Decimal(1).scaleb(int(shown.as_tuple().exponent))
    right = round(shown * printed.items / 100)
    nearest = [(Decimal(100 * n) / printed.items).quantize(step, ROUND_HALF_UP) for n in (right - 1, right, right + 1)]
    possible = ", ".join(str(value) for value in nearest)
    if shown in nearest:
        return Outcome("not testable here", f"{shown} is {right} of {printed.items}; nothing here measures it.")
    return Outcome(
        "contradicted", f"No number of right answers out of {printed.items} gives {shown}: near are {possible}."
    )


def _find(source: str, table: str, model: str, dataset: str) -> Figure | None:
    found = select(source, table, keep=lambda figure: (figure.model, figure.dataset) == (model, dataset))
    return found[0] if found else None


def _needed(claim: Claim) -> PrintedClaim:
    return claim.printed or PrintedClaim(table="", model="", datasets=[])
