"""Verify every number that a suite reports: from the printed cell to the code in git."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pipeline.lineage.causes import Cause
from pipeline.lineage.checks import StageChecks
from pipeline.lineage.numbers import Number, read_numbers, tables_folder
from pipeline.lineage.recompute import Remade, causes_of
from pipeline.lineage.remarks import remarks_on
from pipeline.lineage.scope import Scope
from pipeline.lineage.scores import Scores

Verdict = Literal["verified", "absent", "wrong"]


@dataclass(frozen=True)
class Finding:
    """A number and why it cannot be vouched for; with no cause it is verified."""

    number: Number
    causes: tuple[Cause, ...]

    @property
    def verdict(self) -> Verdict:
        """verified; absent: nothing speaks against it, but not all that it rests on is here; wrong."""
        return "wrong" if any(cause.wrong for cause in self.causes) else "absent" if self.causes else "verified"


@dataclass(frozen=True)
class Audit:
    """The findings over one suite.

    apart    faults of reported files that no number rests on: pages, figures, summaries
    remarks  what could not be looked at, or is worth knowing
    remade   the stages that were run again
    """

    suite: str
    tree: str
    commit: str
    findings: tuple[Finding, ...]
    apart: tuple[Cause, ...]
    remarks: tuple[str, ...]
    remade: tuple[Remade, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """How many numbers got a verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def faults_apart(self) -> int:
        """How many files and records are wrong though no number that is here rests on them."""
        return sum(cause.wrong for cause in self.apart)

    @cached_property
    def causes(self) -> dict[Cause, list[Number]]:
        """Every cause with the numbers that rest on it, wrong ones first, then by how many."""
        found: dict[Cause, list[Number]] = {cause: [] for cause in self.apart}
        for finding in self.findings:
            for cause in finding.causes:
                found.setdefault(cause, []).append(finding.number)
        return dict(sorted(found.items(), key=lambda item: (not item[0].wrong, item[0].kind != "cell", -len(item[1]))))

    def failed(self, *, strict: bool) -> bool:
        """Whether anything is wrong, or, if strict, absent."""
        return any(cause.wrong or strict for cause in self.causes)


def audit(
    root: Path, suite: str, *, revision: str | None = None, again: Callable[[Scope], list[Remade]] | None = None
) -> Audit:
    """Look at every reported number of a suite, in the checkout or, by `revision`, in a commit.

    again  runs stages a second time (see `recompute`); none if None

    Reads only. Raises LineageError if there is no such suite, report or commit. Cost: hashing every artifact of
    the suite that lies here, about half a gigabyte per second.
    """
    scope = Scope(root, suite, revision=revision)
    numbers = read_numbers(scope.tree, suite)
    return Auditor(scope, [] if again is None else again(scope)).run(numbers)


class Auditor:
    """One audit."""

    def __init__(self, scope: Scope, remade: Sequence[Remade] = ()) -> None:
        self.scope = scope
        self.remade = tuple(remade)
        self.faulty = {found.stage: cause for found in remade for cause in causes_of([found])}
        self.confirmed = {found.stage for found in remade if found.outcome in ("equal", "within bound")}
        self.checks = StageChecks(scope)
        self.scores = Scores(scope.tree, scope.suite)
        self.evaluators = self._evaluators()

    def run(self, numbers: Sequence[Number]) -> Audit:
        """Check every number, then the reported files that hold none."""
        findings = tuple(Finding(number, tuple(dict.fromkeys(self._causes(number)))) for number in numbers)
        named = {cause for finding in findings for cause in finding.causes}
        every = dict.fromkeys(self._faults(tuple(self.scope.graph.stages)))
        apart = tuple(cause for cause in every if cause not in named)
        head = self.scope.head
        commit = "" if head is None else head.commit
        remarks = tuple(
            remarks_on(self.scope, len(numbers), self.checks.run_again, self.checks.definitions.edited_beside())
        )
        return Audit(self.scope.suite, self.scope.tree.name, commit, findings, apart, remarks, self.remade)

    def _causes(self, number: Number) -> Iterator[Cause]:
        yield from self._cell(number)
        stages, written = self._stages(number)
        for cause in self._faults(stages):
            if cause.kind != "table":
                yield cause
        if written:
            for cause in self._faults(self._writers()):
                if cause.kind != "table" or self._concerns(cause, number):
                    yield cause

    def _faults(self, stages: tuple[str, ...]) -> Iterator[Cause]:
        """What speaks against stages. A stage that was run again and wrote the recorded bytes lacks nothing."""
        for name in stages:
            if name in self.faulty:
                yield self.faulty[name]
            yield from (cause for cause in self.checks.of(name) if cause.wrong or name not in self.confirmed)
            if name not in self.confirmed:
                yield from self.checks.forged(name)

    def _stages(self, number: Number) -> tuple[tuple[str, ...], bool]:
        """The stages whose records a number rests on, and whether the report itself computed or copied it."""
        if number.origin == "score":
            return self._upstream(number.space), False
        if number.origin == "difference":
            return self._upstream(number.space, number.other), False
        if number.origin == "printed":
            return (), True
        if number.space and number.other:
            return self._upstream(number.space, number.other), True
        return tuple(dict.fromkeys(name for writer in self._writers() for name in self._ancestors(writer))), True

    def _cell(self, number: Number) -> Iterator[Cause]:
        """The printed text against the scores file."""
        if number.origin not in ("score", "difference"):
            return
        expected = self.scores.text_of(number)
        if expected == number.text or (expected is None and self._scores_absent(number)):
            return
        source = self.scores.path(number.space)
        place = f"{number.table}, line {number.line}, {number.row} × {number.column}, {number.field}"
        says = f"{source} has no such score" if expected is None else f"{source} gives {expected}"
        yield Cause("cell", place, f"the table says {number.text}, {says}", self.scope.rerun("report"))

    def _scores_absent(self, number: Number) -> bool:
        """Whether a scores file that a stage writes is not here; its stage's checks say so."""
        spaces = [space for space in (number.space, number.other) if space in self.evaluators]
        return any(self.scope.digest(self.scores.path(space)) is None for space in spaces)

    def _concerns(self, cause: Cause, number: Number) -> bool:
        """Whether an altered output of the report is, or may be, the table of a number."""
        if cause.subject == number.table:
            return True
        if cause.subject != tables_folder(self.scope.suite):
            return False
        entry = next((self.scope.graph.locked[name].outs[cause.subject] for name in self._writers()), None)
        here = self.scope.digest(cause.subject)
        if entry is None or here is None:
            return True
        changed = self.scope.changed_files(entry, here)
        return not changed or number.table.removeprefix(f"{cause.subject}/") in changed

    # --- which stages ---------------------------------------------------------------------------

    def _evaluators(self) -> dict[str, str]:
        """Space -> the stage that writes its scores."""
        return {
            out.rpartition("/")[2].removesuffix(".json"): name
            for out, name in self.scope.graph.producers.items()
            if out.startswith(f"reports/{self.scope.suite}/scores/")
        }

    def _writers(self) -> tuple[str, ...]:
        """The stages that write tables: the report."""
        return tuple(self.scope.graph.makers_of(tables_folder(self.scope.suite)))

    def _upstream(self, *spaces: str) -> tuple[str, ...]:
        scored = [self.evaluators[space] for space in spaces if space in self.evaluators]
        return tuple(dict.fromkeys(name for stage in scored for name in self._ancestors(stage)))

    def _ancestors(self, name: str) -> tuple[str, ...]:
        if name not in self._upstreams:
            self._upstreams[name] = self.scope.graph.ancestors(name)
        return self._upstreams[name]

    @cached_property
    def _upstreams(self) -> dict[str, tuple[str, ...]]:
        return {}
