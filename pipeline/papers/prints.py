"""What a paper's own figures say of its claims: whether the claim agrees with what is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pipeline.papers.claims import Claim, PrintedAverages, PrintedComparison
from pipeline.papers.published import Figure, select

CONSISTENT, INCONSISTENT = "consistent", "inconsistent as printed"


@dataclass(frozen=True)
class Gap:
    """How much better one printed figure is than another: the truth lies within `slack`, for both were rounded."""

    named: str
    dataset: str
    value: Decimal
    slack: Decimal

    def may_be(self, by: list[float]) -> bool:
        """Whether numbers that round to the print have this gain: above 0, `by`, or between its two bounds."""
        if not by:
            return self.value + self.slack > 0
        low, high = Decimal(str(by[0])), Decimal(str(by[-1]))
        return self.value + self.slack >= low and self.value - self.slack <= high

    def has_to_be(self, by: list[float]) -> bool:
        """Whether all numbers that round to the print have this gain."""
        if not by:
            return self.value - self.slack >= 0
        low, high = Decimal(str(by[0])), Decimal(str(by[-1]))
        return self.value - self.slack >= low and self.value + self.slack <= high


@dataclass(frozen=True)
class PrintVerdict:
    """Whether a claim agrees with the paper's own figures, and these figures."""

    consistent: bool
    because: str

    @property
    def outcome(self) -> str:
        """The verdict in words."""
        return CONSISTENT if self.consistent else INCONSISTENT


def judge_print(claim: Claim) -> PrintVerdict | None:
    """Whether all comparisons of printed figures hold that a claim follows from; None for a claim without one."""
    if not claim.print:
        return None
    judged = [
        _judge_averages(claim.source, part)
        if isinstance(part, PrintedAverages)
        else _judge(part, list(_gaps(claim.source, part)))
        for part in claim.print
    ]
    return PrintVerdict(all(one.consistent for one in judged), " ".join(one.because for one in judged))


def _gaps(source: str, comparison: PrintedComparison) -> Iterator[Gap]:
    """Every pair of figures that the table has."""
    figures = select(source, comparison.table)
    for dataset in comparison.datasets:
        own = [figure for figure in figures if (figure.model, figure.dataset) == (comparison.model, dataset)]
        for other in figures:
            for figure in own:
                same = (figure.dataset, figure.metric) == (other.dataset, other.metric)
                if same and other.model in comparison.better_than and _wanted(figure, comparison):
                    yield _gap(figure, other)


def _wanted(figure: Figure, comparison: PrintedComparison) -> bool:
    return not comparison.metrics or figure.metric in comparison.metrics


def _gap(one: Figure, other: Figure) -> Gap:
    values = [Decimal(figure.shown) for figure in (one, other)]
    less_is_better = one.unit in {"s", "ms"}
    value = values[1] - values[0] if less_is_better else values[0] - values[1]
    return Gap(f"{other.model} on {one.dataset}", one.dataset, value, sum(map(_half_unit, values), Decimal(0)))


def _half_unit(value: Decimal) -> Decimal:
    """Half a unit of the last printed digit: how far the number is from its print at most."""
    return Decimal(1).scaleb(int(value.as_tuple().exponent)) / 2


def _judge_averages(source: str, column: PrintedAverages) -> PrintVerdict:
    """Whether each average is the mean of its row, as far as rounded figures tell."""
    rows: dict[str, dict[str, Decimal]] = {}
    for figure in select(source, column.table):
        rows.setdefault(figure.model, {})[figure.dataset] = Decimal(figure.shown)
    averages = {model: row.pop(column.average) for model, row in rows.items() if column.average in row}
    means = {model: sum(rows[model].values(), Decimal(0)) / len(rows[model]) for model in averages}
    wrong = [
        f"{model} {average}, the mean of its row {means[model]:.2f}"
        for model, average in averages.items()
        if abs(means[model] - average) > _half_unit(average) + max(map(_half_unit, rows[model].values()))
    ]
    said = f"Table {column.table}: {len(averages) - len(wrong)} of {len(averages)} averages are those of their rows"
    return PrintVerdict(not wrong, f"{said}{'; not ' if wrong else ''}{'; '.join(wrong)}.")


def _judge(comparison: PrintedComparison, gaps: list[Gap]) -> PrintVerdict:
    may, must = set(comparison.datasets), set(comparison.datasets)
    for gap in gaps:
        may -= set() if gap.may_be(comparison.by) else {gap.dataset}
        must -= set() if gap.has_to_be(comparison.by) else {gap.dataset}
    needed = comparison.holds_on or len(comparison.datasets)
    holds = len(may) >= needed and (not comparison.holds_on or len(must) <= needed)
    broken = [f"{gap.named} {gap.value:+}" for gap in gaps if not gap.may_be(comparison.by)]
    some = f", on {len(may)} of {len(comparison.datasets)} data sets" if comparison.holds_on else ""
    claimed = f", stated as {_span([Decimal(f'{gain:g}') for gain in comparison.by])}" if comparison.by else ""
    against = f": {', '.join(broken)}" if broken and not comparison.holds_on else ""
    rivals = comparison.better_than if len(comparison.better_than) < 4 else [f"{len(comparison.better_than)} others"]
    said = f"Table {comparison.table}, {comparison.model} better than {', '.join(rivals)} by "
    said += f"{_span([gap.value for gap in gaps])}{some}{claimed}"
    return PrintVerdict(holds, f"{said}{'' if holds else f'; not as claimed{against}'}.")


def _span(values: Sequence[Decimal]) -> str:
    low, high = min(values), max(values)
    return f"{low:+}" if low == high else f"{low:+} to {high:+}"
