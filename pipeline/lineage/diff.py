"""Which reported numbers two commits disagree about, by how much, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipeline.lineage.changes import Change, Changes
from pipeline.lineage.numbers import Number, read_numbers, tables_folder
from pipeline.lineage.scores import Scores
from pipeline.lineage.stages import load_graph
from pipeline.lineage.trees import Revision

Key = tuple[str, str, str, str, int]


@dataclass(frozen=True)
class Moved:
    """A number that differs.

    before, after  as printed; "" where a commit has no such number
    low, high      its interval in the older commit, if it is a score that has one
    why            the changes above it, by the locks of both commits
    """

    number: Number
    before: str
    after: str
    low: float | None
    high: float | None
    why: tuple[Change, ...]

    @property
    def delta(self) -> float | None:
        """After minus before; None where one of them is no number."""
        with suppress(ValueError):
            return round(float(self.after) - float(self.before), 10)
        return None

    @property
    def outside(self) -> bool | None:
        """Whether the new value lies outside of the old interval; None where there is none."""
        if self.low is None or self.high is None or self.delta is None:
            return None
        return not self.low <= float(self.after) <= self.high


@dataclass(frozen=True)
class Difference:
    """All that moved between two commits. unmoved: how many numbers both have alike."""

    suite: str
    old: str
    new: str
    moved: tuple[Moved, ...]
    unmoved: int

    def by_cause(self) -> dict[tuple[Change, ...], list[Moved]]:
        """The numbers that moved, by what changed above them; the most numerous first."""
        found: dict[tuple[Change, ...], list[Moved]] = {}
        for moved in self.moved:
            found.setdefault(moved.why, []).append(moved)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def diff(root: Path, old: str, new: str, suite: str) -> Difference:
    """Compare the reports of a suite in two commits. Reads git alone. Raises LineageError.

    Cost: reading both commits' tables, scores and locks; under a second for a thousand numbers.
    """
    first, second = Revision(root, old), Revision(root, new)
    before, after = keyed(read_numbers(first, suite)), keyed(read_numbers(second, suite))
    causes = Causes(Changes(load_graph(first, suite), load_graph(second, suite)), suite)
    scores = Scores(first, suite)
    moved = []
    for key in dict.fromkeys([*before, *after]):
        was, now = before.get(key), after.get(key)
        then, since = ("" if number is None else number.text for number in (was, now))
        number = now or was
        if number is not None and then != since:
            low, high = interval(scores, number)
            moved.append(Moved(number, then, since, low, high, causes.of(number)))
    return Difference(suite, first.commit, second.commit, tuple(moved), len({*before, *after}) - len(moved))


def keyed(numbers: Sequence[Number]) -> dict[Key, Number]:
    """Numbers by what they are. A score is one number, in however many tables it is printed.

    Any other is known by table, row, column, field, and its count among those of one name: lines move, names stay.
    """
    seen: Counter[tuple[str, str, str, str]] = Counter()
    found: dict[Key, Number] = {}
    for number in numbers:
        if number.origin in ("score", "difference"):
            place = f"{number.corpus} {number.protocol} {number.unit}"
            found.setdefault((number.origin, f"{number.space} {number.other}", place, number.field, 0), number)
            continue
        name = (number.table, number.row, number.column, number.field)
        found[*name, seen[name]] = number
        seen[name] += 1
    return found


def interval(scores: Scores, number: Number) -> tuple[float | None, float | None]:
    """The interval of a score in a commit."""
    if number.origin != "score" or number.field != "value":
        return None, None
    score = scores.score(number.space, number.corpus, number.protocol) or {}
    scale = 100.0 if number.unit == "nats" else 1.0
    low, high = (score.get(bound) for bound in ("low", "high"))
    return (low / scale, high / scale) if low is not None and high is not None else (None, None)


class Causes:
    """The changes above each number."""

    def __init__(self, changes: Changes, suite: str) -> None:
        self.changes = changes
        self.suite = suite

    def of(self, number: Number) -> tuple[Change, ...]:
        """A score rests on what evaluated it; any other number on the report and all that it read."""
        stages = self._stages(number)
        return tuple(dict.fromkeys(change for stage in stages for change in self.changes.above(stage)))

    def _stages(self, number: Number) -> list[str]:
        graphs = (self.changes.old, self.changes.new)
        paths = [f"reports/{self.suite}/scores/{space}.json" for space in (number.space, number.other) if space]
        if number.origin not in ("score", "difference"):
            paths = [tables_folder(self.suite)]
        return sorted({name for graph in graphs for path in paths for name in graph.makers_of(path)})
