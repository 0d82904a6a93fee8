"""Which reported numbers two commits disagree about, by how much, and what changed above each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pipeline.lineage.numbers import Number, Scores, read_numbers, tables_folder
from pipeline.lineage.scope import MISSING, brief, join_lines, leaves
from pipeline.lineage.stages import Entry, Graph, Locked, load_graph
from pipeline.lineage.trees import Revision, git
from sentfold.decision.progress import counted

Kind = Literal["parameter", "command", "data", "stage", "code"]
ORDER: tuple[Kind, ...] = ("parameter", "command", "data", "stage", "code")

MOST_SHOWN = 20  # changes of a group of numbers
MOST_ASKED = 100  # paths whose commits git is asked for
LONGEST_SUBJECT = 100  # characters of the first line of a commit that are shown
UNEXPLAINED = "nothing above changed; `sentfold audit` says whether both are sound:"


@dataclass(frozen=True)
class Change:
    """One change, named once however many stages it touches. before, after: values, hashes or commands, as text."""

    kind: Kind
    subject: str
    before: str
    after: str


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
        """Whether the new value is outside of the old interval; None where there is none."""
        if self.low is None or self.high is None or self.delta is None:
            return None
        return not self.low <= float(self.after) <= self.high


@dataclass(frozen=True)
class Difference:
    """All that moved between two commits. unmoved: how many numbers are alike in both.

    files  of the report that are not the same in both, without the files of scores
    """

    suite: str
    old: str
    new: str
    moved: tuple[Moved, ...]
    unmoved: int
    files: tuple[str, ...] = ()


def diff(root: Path, old: str, new: str, suite: str) -> Difference:
    """Compare the reports of a suite in two commits. Reads git alone. Raises LineageError.

    Cost: reading both commits' tables, scores and locks; under a second for a thousand numbers.
    """
    first, second = Revision(root, old), Revision(root, new)
    before, after = _keyed(read_numbers(first, suite)), _keyed(read_numbers(second, suite))
    changes = Changes(load_graph(first, suite), load_graph(second, suite))
    scores = Scores(first, suite)
    keys = dict.fromkeys([*before, *after])
    moved = []
    for key in counted(keys, len(keys), "number"):
        was, now = before.get(key), after.get(key)
        then, since = ("" if number is None else number.text for number in (was, now))
        number = now or was
        if number is not None and then != since:
            moved.append(Moved(number, then, since, *_interval(scores, number), changes.above_number(number)))
    return Difference(
        suite, first.commit, second.commit, tuple(moved), len(keys) - len(moved), _other_files(first, second, suite)
    )


def _other_files(first: Revision, second: Revision, suite: str) -> tuple[str, ...]:
    """The files of a report, but for scores, of which two commits have other bytes, or one has none."""
    folder = f"reports/{suite}"
    was, now = (dict(found.files) if (found := tree.digest(folder)) else {} for tree in (first, second))
    names = {name for name in was.keys() | now.keys() if was.get(name) != now.get(name)}
    return tuple(f"{folder}/{name}" for name in sorted(names) if not name.startswith("scores/"))


def _keyed(numbers: Sequence[Number]) -> dict[tuple[str | int, ...], Number]:
    """Numbers by what they are: a score is one number, in however many tables it is printed alike.

    A copy of it with another text is a number of its own. Any other number is known by table, row, column, field, and
    its count among those of one name: lines move, names stay.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    found: dict[tuple[str | int, ...], Number] = {}
    for number in numbers:
        if number.origin in ("score", "difference"):
            which = (number.space, number.other, number.corpus, number.protocol, number.unit)
            first = found.setdefault((number.origin, *which, number.field), number)
            if first.text != number.text:
                found[number.origin, *which, number.field, number.table] = number
            continue
        name = (number.table, number.row, number.column, number.field)
        found[*name, seen[name]] = number
        seen[name] += 1
    return found


def _interval(scores: Scores, number: Number) -> tuple[float | None, float | None]:
    """The interval of a score in a commit."""
    if number.origin != "score" or number.field != "value":
        return None, None
    score = scores.score(number.space, number.corpus, number.protocol)
    scale = 100.0 if number.unit == "nats" else 1.0
    bounds = [score.get(bound) for bound in ("low", "high")]
    if not all(isinstance(bound, float) or (isinstance(bound, int) and abs(bound) < 2**53) for bound in bounds):
        return None, None  # an audit says what is wrong with them
    low, high = (float(bound) / scale for bound in bounds if bound is not None)
    return low, high


class Changes:
    """The changes between two graphs of one suite, by the locks of both."""

    def __init__(self, old: Graph, new: Graph) -> None:
        self.old = old
        self.new = new
        self._of = cache(lambda stage: tuple(self._compare(stage)))
        self._all_above = cache(self.above)
        self._above_all = cache(self._join)
        self._joined: dict[tuple[Change, ...], tuple[Change, ...]] = {}

    def above_number(self, number: Number) -> tuple[Change, ...]:
        """A score rests on what evaluated it; any other number on the report and all that it read.

        Numbers with the same changes share one tuple: there can be 250,000 numbers, and 50,000 changes.
        """
        paths = [f"reports/{self.new.suite}/scores/{space}.json" for space in (number.space, number.other) if space]
        if number.origin not in ("score", "difference"):
            paths = [tables_folder(self.new.suite)]
        stages = sorted({name for graph in (self.old, self.new) for path in paths for name in graph.makers_of(path)})
        return self._above_all(tuple(stages))

    def _join(self, stages: tuple[str, ...]) -> tuple[Change, ...]:
        changes = tuple(dict.fromkeys(change for stage in stages for change in self._all_above(stage)))
        return self._joined.setdefault(changes, changes)

    def above(self, name: str) -> tuple[Change, ...]:
        """What changed in a stage and in everything that it rests on, in either commit."""
        graphs = [graph for graph in (self.old, self.new) if name in graph.stages]
        stages = dict.fromkeys(stage for graph in graphs for stage in graph.ancestors(name))
        return tuple(dict.fromkeys(change for stage in stages for change in self._of(stage)))

    def _compare(self, name: str) -> Iterator[Change]:
        old, new = self.old.locked.get(name), self.new.locked.get(name)
        if old is None or new is None:
            if old is not new:
                was, now = ("absent" if locked is None else "recorded" for locked in (old, new))
                yield Change("stage", name, was, now)
            return
        read = [path for path in dict.fromkeys([*old.deps, *new.deps]) if old.deps.get(path) != new.deps.get(path)]
        code = [path for path in read if not self.old.makers_of(path) and not self.new.makers_of(path)]
        found = [
            *self._parameters(old, new),
            *(Change("code", path, *_md5s(path, old.deps, new.deps)) for path in code),
        ]
        if old.command != new.command:
            found.append(Change("command", name, old.command, new.command))
        yield from found
        if not found and not read:  # where it read other data, the change is further up
            for path, entry in new.outs.items():
                if old.outs.get(path, entry) != entry:
                    yield Change("data", path, *_md5s(path, old.outs, new.outs))

    def _parameters(self, old: Locked, new: Locked) -> Iterator[Change]:
        for file in dict.fromkeys([*old.params, *new.params]):
            for part, one, other in leaves("", old.params.get(file, {}), new.params.get(file, {})):
                yield Change("parameter", f"{file}: {part.removeprefix('.')}", str(one), str(other))


def _md5s(path: str, *records: Mapping[str, Entry]) -> tuple[str, str]:
    """The md5 of a path in the records of the older and of the newer commit."""
    was, now = (record[path].md5 if path in record else MISSING for record in records)
    return was, now


# --- in words -----------------------------------------------------------------------------------------


def diff_text(found: Difference, root: Path) -> str:
    """Groups of numbers that the same changes moved: first the changes, then the numbers."""
    head = f"suite {found.suite}, {found.old[:10]} to {found.new[:10]}"
    lines = [f"{head}: {len(found.moved)} reported numbers differ, {found.unmoved} are alike"]
    log = CommitLog(root, f"{found.old}..{found.new}")
    groups: dict[int, list[Moved]] = {}  # by the tuple that numbers with the same changes share
    for one in found.moved:
        groups.setdefault(id(one.why), []).append(one)
    for moved in sorted(groups.values(), key=lambda group: -len(group)):
        why = moved[0].why
        shown = sorted(why, key=lambda change: ORDER.index(change.kind))[:MOST_SHOWN]
        lines += ["", "changed above:" if why else UNEXPLAINED, *(f"  {_change(c, log)}" for c in shown)]
        lines += [f"  and {len(why) - len(shown):,} more"] if len(why) > len(shown) else []
        lines += ["moved:", *(f"  {line}" for line in _numbers(moved))]
    if found.files:
        # A number is known by what it is a score of: other names of rows, and other pages, move none.
        named = [*found.files[:MOST_SHOWN], *(["..."] if len(found.files) > MOST_SHOWN else [])]
        lines += ["", "files with other bytes (`sentfold audit --rev COMMIT --recompute report` makes them again):"]
        lines += [f"  {name}" for name in named]
    return join_lines(lines)


class CommitLog:
    """The commits of a range that changed a path; of MOST_ASKED paths, as git takes its time for each."""

    def __init__(self, root: Path, span: str) -> None:
        self.root, self.span, self.known = root, span, dict[str, str]()

    def of(self, path: str) -> str:
        """The newest commit in brackets, and how many others there are; empty for none and for a path too many."""
        if path not in self.known and len(self.known) < MOST_ASKED:
            subject = f"%<({LONGEST_SUBJECT},trunc)%s"  # git fills shorter ones up with blanks
            log = git(self.root, "log", f"--format=%h {subject}", self.span, "--", path) or b""
            commits = [line.rstrip() for line in log.decode("utf-8", "replace").split("\n") if line]
            more = f" and {len(commits) - 1} more" if len(commits) > 1 else ""
            self.known[path] = f"  ({commits[0]}{more})" if commits else ""
        return self.known.get(path, "")


def _change(change: Change, log: CommitLog) -> str:
    if change.kind == "code":
        return f"code {change.subject}{log.of(change.subject)}"
    if change.kind == "data":
        return f"data {change.subject}: other bytes, and nothing that makes it changed (another machine or source?)"
    return f"{change.kind} {change.subject}: {brief(change.before)} -> {brief(change.after)}"


def _numbers(moved: Sequence[Moved]) -> Iterator[str]:
    """Each score once, the largest move first, then how many other numbers moved."""
    scores = [one for one in moved if one.number.origin == "score" and one.number.field == "value"]
    yield from map(_score, sorted(scores, key=lambda one: -abs(one.delta or 0.0)))
    if len(moved) > len(scores):
        yield f"other numbers: {len(moved) - len(scores)}"


def _score(moved: Moved) -> str:
    number = moved.number
    name = f"{number.space} × {number.corpus} {number.protocol}"
    if moved.delta is None:
        return f"{name}: {moved.before or 'none'} -> {moved.after or 'none'}"
    text = f"{name}: {moved.before} -> {moved.after} ({moved.delta:+.2f})"
    if moved.outside is None:
        return text
    side = "outside" if moved.outside else "inside"
    return f"{text}, {side} its interval [{moved.low:.2f}, {moved.high:.2f}]"
