"""Verify every number that a suite reports: from the printed cell to the code in git."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Literal

from pipeline.base.suite import suite_folder
from pipeline.lineage.checks import StageChecks, worst
from pipeline.lineage.numbers import Number, Scores, read_numbers, tables_folder
from pipeline.lineage.recompute import Remade, causes_of, report_writers
from pipeline.lineage.scope import STATES, Cause, Scope, State, listed
from pipeline.lineage.witnesses import unsigned, verified_signature
from sentfold.decision.progress import counted

Verdict = Literal["verified"] | State

# What a commit computes, with the plans and the suite's own files.
DEFINING = (
    "pipeline",
    "sentfold",
    "flows",
    "dvc.yaml",
    "params.yaml",
    "requirements.lock",
    ".dvcignore",
    ".gitattributes",
)


@dataclass(frozen=True)
class Finding:
    """A number, and the reasons why it is not verified."""

    number: Number
    causes: tuple[Cause, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst state of its causes; without a cause it is verified."""
        states = {cause.state for cause in self.causes}
        return next((state for state in STATES if state in states), "verified")


@dataclass(frozen=True)
class Audit:
    """The findings of one audit.

    apart      causes on which no reported number rests: pages, figures, summaries
    remarks    what could not be checked, or is worth knowing
    remade     the stages that were run again
    signature  what git verified of the commit's signature, in words; "" if nothing, or if it was not asked
    """

    suite: str
    tree: str
    commit: str
    findings: tuple[Finding, ...]
    apart: tuple[Cause, ...]
    remarks: tuple[str, ...]
    remade: tuple[Remade, ...] = ()
    signature: str = ""

    def count(self, verdict: Verdict) -> int:
        """How many numbers have a verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def faults_apart(self) -> int:
        """How many files and records are wrong on which no reported number rests."""
        return sum(cause.state == "wrong" for cause in self.apart)

    @cached_property
    def causes(self) -> dict[Cause, list[Number]]:
        """Every cause with the numbers that rest on it: the worst first, then by how many."""
        found: dict[Cause, list[Number]] = {cause: [] for cause in self.apart}
        for finding in self.findings:
            for cause in finding.causes:
                found.setdefault(cause, []).append(finding.number)
        order = sorted(found, key=lambda cause: (STATES.index(cause.state), cause.kind != "cell", -len(found[cause])))
        return {cause: found[cause] for cause in order}

    def failed(self, *, strict: bool) -> bool:
        """Whether anything is wrong; if strict, also whether anything else is not verified, or nothing is."""
        return any(cause.state == "wrong" or strict for cause in self.causes) or (strict and not self.findings)


def audit(
    root: Path,
    suite: str,
    *,
    revision: str | None = None,
    again: Callable[[Scope], list[Remade]] | None = None,
    signed: bool = False,
) -> Audit:
    """Check every reported number of a suite, in the checkout or, by `revision`, in a commit.

    again   runs stages a second time (see `recompute`); None runs none
    signed  whether the commit, or a tag of it, must have a signature that git verifies

    Reads only. Raises LineageError if there is no such suite, report or commit. Cost: hashing every artifact of
    the suite that is here, about half a gigabyte per second.
    """
    scope = Scope(root, suite, revision=revision)
    numbers = read_numbers(scope.tree, suite)
    found = Auditor(scope, [] if again is None else again(scope)).run(numbers)
    if not signed:
        return found
    signature = verified_signature(scope)
    apart = found.apart if signature else (*found.apart, unsigned(scope))
    return replace(found, apart=apart, signature=signature)


class Auditor:
    """One audit."""

    def __init__(self, scope: Scope, remade: Sequence[Remade] = ()) -> None:
        self.scope = scope
        self.remade = tuple(remade)
        self.faulty = {found.stage: cause for found in remade for cause in causes_of([found], self.scope)}
        self.confirmed = {found.stage for found in remade if found.outcome in ("equal", "within bound")}
        self.checks = StageChecks(scope)
        self.scores = Scores(scope.tree, scope.suite)
        # The report, which writes tables; and space -> the stage that writes its scores.
        self.writers = tuple(scope.graph.makers_of(tables_folder(scope.suite)))
        self.evaluators = {
            space: name
            for out, name in scope.graph.producers.items()
            if out == self.scores.path(space := PurePosixPath(out).stem)
        }
        self._ancestors = cache(scope.graph.ancestors)
        self._faults = cache(lambda stages: worst(tuple(self._faults_of(stages))))
        # Reported files that no record has a hash of: hidden from the hash of a folder, or written by no stage.
        self.strays = tuple(self.checks.witnesses.strays())
        causes = (cause for name in self.writers for cause in self.checks.of(name))
        self.unhashed = {cause.subject: cause for cause in (*causes, *self.strays) if cause.kind == "file"}

    def run(self, numbers: Sequence[Number]) -> Audit:
        """Check every number, then the reported files that hold none."""
        checked = counted(numbers, len(numbers), "number")
        findings = tuple(Finding(number, tuple(dict.fromkeys(self._causes(number)))) for number in checked)
        named = {cause for finding in findings for cause in finding.causes}
        every = dict.fromkeys([*self._faults_of(tuple(self.scope.graph.stages)), *self.strays])
        apart = tuple(cause for cause in every if cause not in named)
        commit = "" if self.scope.head is None else self.scope.head.commit
        remarks = tuple(self._remarks())
        return Audit(self.scope.suite, self.scope.tree.name, commit, findings, apart, remarks, self.remade)

    def _causes(self, number: Number) -> Iterator[Cause]:
        yield from self._cell(number)
        stages, by_report = self._stages(number)
        for cause in self._faults(stages):
            if cause.kind != "table":
                yield cause
        if by_report:
            for cause in self._faults(self.writers):
                if cause.kind != "table" or self._concerns(cause, number):
                    yield cause

    def _faults_of(self, stages: tuple[str, ...]) -> Iterator[Cause]:
        """The faults of stages. A stage that was run again and wrote the recorded bytes lacks nothing."""
        for name in stages:
            if name in self.faulty:
                yield self.faulty[name]
            yield from (
                cause for cause in self.checks.of(name) if cause.state != "absent" or name not in self.confirmed
            )

    # --- the cell ---------------------------------------------------------------------------------

    def _cell(self, number: Number) -> Iterator[Cause]:
        """The printed text against the index of cells, and against the scores file."""
        place = f"{number.table}, line {number.line}, {number.row} × {number.column}, {number.field}"
        scores = (self.scores.path(space) for space in (number.space, number.other) if space)
        for path in (number.table, f"{tables_folder(self.scope.suite)}/cells.json", *scores):
            if path in self.unhashed:
                yield self.unhashed[path]
        says = self._contradiction(number)
        if says:
            yield Cause("cell", place, f"the table says {number.text}, {says}", self.scope.rerun())

    def _contradiction(self, number: Number) -> str:
        """What another record says that a cell should print; "" if none says otherwise."""
        if number.origin == "unknown":
            return "the index of cells has no such cell"
        if number.origin not in ("score", "difference"):
            return "" if number.indexed == number.text else f"the index of cells {number.indexed}"
        expected, source = self.scores.text_of(number), self.scores.path(number.space)
        if expected is None:
            return "" if self._scores_absent(number) else f"{source} has no such score"
        return "" if expected == number.text else f"{source} gives {expected}"

    def _scores_absent(self, number: Number) -> bool:
        """Whether a scores file that a stage writes is not here; the checks of that stage name it."""
        spaces = [space for space in (number.space, number.other) if space in self.evaluators]
        return any(self.scope.digest(self.scores.path(space)) is None for space in spaces)

    def _concerns(self, cause: Cause, number: Number) -> bool:
        """Whether an altered output of the report is, or may be, the table of a number."""
        if cause.subject == number.table:
            return True
        if cause.subject != tables_folder(self.scope.suite):
            return False
        outs = [self.scope.graph.locked[name].outs for name in self.writers]
        entry = next((out[cause.subject] for out in outs if cause.subject in out), None)
        here = self.scope.digest(cause.subject)
        if entry is None or here is None:
            return True
        changed = self.scope.changed_files(entry, here)
        return not changed or number.table.removeprefix(f"{cause.subject}/") in changed

    # --- which stages -----------------------------------------------------------------------------

    def _stages(self, number: Number) -> tuple[tuple[str, ...], bool]:
        """The stages whose records a number rests on, and whether the report computed or copied it itself."""
        if number.origin in ("score", "difference"):
            return self._above(self._evaluators(number)), False
        if number.origin == "printed":
            return (), True
        if number.vectors:
            makers = (self.scope.graph.makers_of(path) for path in vector_paths(self.scope.suite, number))
            return self._above(name for names in makers for name in names), True
        return self._above(self._evaluators(number) if number.other else self.writers), True

    def _evaluators(self, number: Number) -> list[str]:
        return [self.evaluators[space] for space in (number.space, number.other) if space in self.evaluators]

    def _above(self, names: Iterable[str]) -> tuple[str, ...]:
        """Stages and all that they rest on."""
        return tuple(dict.fromkeys(stage for name in names for stage in self._ancestors(name)))

    # --- remarks ----------------------------------------------------------------------------------

    def _remarks(self) -> Iterator[str]:
        """What could not be checked, or is worth knowing."""
        scope, graph = self.scope, self.scope.graph
        if scope.head is None:
            yield "this folder is the root of no git repository: code was compared with this checkout alone"
        elif scope.revision is None:
            files = [graph.lockfile, graph.dvcfile, *scope.plans, ".dvcignore"]
            yield from (f"{path} here is not the committed one" for path in files if scope.differs_from_head(path))
        else:
            folder = suite_folder(scope.suite)
            own = [str(folder / name) for name in ("suite.yaml", "catalogue.yaml", scope.suite)]
            read = [path for stage in graph.stages.values() for path in (*stage.deps, *stage.params)]
            sources = [path for path in dict.fromkeys(read) if not graph.makers_of(path)]
            apart = [path for path in sources if not path.startswith(("pipeline/", "sentfold/", "flows/"))]
            defining = dict.fromkeys([*DEFINING, *scope.plans, *own, *apart])
            others = [path for path in defining if scope.head.digest(path) != scope.artifacts.digest(path)]
            if others:
                yield (
                    f"{', '.join(others)} of the audited commit are not those of this checkout, and an audit does not "
                    f"judge them: git diff HEAD {quote(scope.revision)} -- {' '.join(map(quote, others))}"
                )
        if graph.leftovers:
            yield f"{graph.lockfile} still has stages that {graph.dvcfile} has no more: {', '.join(graph.leftovers)}"
        yield from self.checks.witnesses.remarks()
        edited = self.checks.definitions.undeclared_edits()
        if edited:
            yield f"files of code that no stage declares are not those of git's HEAD{listed(edited)}"
        if not set(report_writers(graph)) <= {found.stage for found in self.remade}:
            yield (
                "values are held against the scores; names, pages and what the report computed itself by their hash "
                "alone: `--recompute report` makes them again"
            )


def vector_paths(suite: str, number: Number) -> list[str]:
    """The files of the vectors that a derived number was computed from."""
    return [f"data/{suite}/spaces/{vectors}.parquet" for vectors in number.vectors]
