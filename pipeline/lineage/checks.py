"""What is wrong with, or absent from, the record of one stage: its own faults, none of its inputs' makers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from shlex import quote
from typing import Any

from pipeline.lineage.file_checks import FileChecks
from pipeline.lineage.machine import is_code
from pipeline.lineage.scope import MISSING, STATES, Cause, Scope, State, brief, leaves, value_in
from pipeline.lineage.stages import Locked, Stage, alike, related, tracked_values
from pipeline.lineage.trees import Tree
from pipeline.lineage.witnesses import WitnessChecks

PACKAGE = "pipeline"
PLACES = ("package", "mirror", "hub", "archive", "inline")  # of data sets of the shared catalogue
MOST_CAUSES = 200  # that are kept of a stage, and of all stages that a number rests on
# A stage runs the command of a module of pipeline/stages, or checks the plan. Other commands of the pipeline, such as
# `trace --svg`, could copy a number from a file. Letters that begin a second command in a shell are not allowed.
PLAN = "plan --check"
PIPELINE = re.compile(rf"python -m {PACKAGE} ({PLAN}|\w+)(?: [\w./:@=,+-]+)+")


def worst(found: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """At most MOST_CAUSES, the worst: each number has all of its stages', and dvc.lock can name thousands of inputs."""
    if len(found) <= MOST_CAUSES:
        return found
    return tuple(sorted(found, key=lambda cause: STATES.index(cause.state))[:MOST_CAUSES])


class StageChecks:
    """The faults of stages, each stage looked at once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph = scope.graph
        self.definitions = DefinitionChecks(scope)
        self.files = FileChecks(scope)
        self.witnesses = WitnessChecks(scope)
        self._known: dict[str, tuple[Cause, ...]] = {}

    def of(self, name: str) -> tuple[Cause, ...]:
        """The faults of one stage. Cost: hashing its inputs and outputs, each file once for all stages."""
        if name not in self._known:
            self._known[name] = worst(tuple(self._check(name)) or tuple(self._uncommitted(name)))
        return self._known[name]

    def _uncommitted(self, name: str) -> Iterator[Cause]:
        """The records of a stage that ran here agree, and git's HEAD does not have them yet."""
        graph = self.graph
        if self.scope.has_witness and self.scope.committed_lock(name) != graph.locked.get(name):
            message = "stages have run here; git's HEAD has no such entries of them"
            remedy = f"commit {graph.lockfile} and reports/{graph.suite}"
            yield Cause("lock", graph.lockfile, message, remedy, state="uncommitted")
            return
        for out in graph.stages[name].uncached if self.scope.has_witness else ():
            head = self.scope.head_digest(out)
            if head is None or head.md5 != graph.locked[name].outs[out].md5:
                message = "it is as recorded here; git's HEAD has other bytes of it, or none"
                yield Cause("artifact", out, message, f"commit {quote(out)}", state="uncommitted")

    def _check(self, name: str) -> Iterator[Cause]:
        stage, locked = self.graph.stages[name], self.graph.locked.get(name)
        yield from self.definitions.definition(stage)
        yield from self.definitions.unlisted_code(stage)
        if locked is None:
            yield self._unrecorded(name)
            return
        yield from self.agreement(stage, locked)
        for entry in locked.deps.values():
            # A stage records the values that it reads of params.yaml, so a new block for another suite is no fault.
            if entry.path != "params.yaml" or PLAN not in stage.command:
                yield from self.files.dependency(locked, entry)
        for entry in locked.outs.values():
            yield from self.files.output(locked, entry)
        yield from self.witnesses.of(stage, locked)

    def agreement(self, stage: Stage, locked: Locked) -> Iterator[Cause]:
        """Whether dvc.lock has the command, the paths and the parameters of dvc.yaml."""
        yield from self._definition(stage, locked)
        yield from self._parameters(stage, locked)

    # --- what the two files say of each other ---------------------------------------------------

    def _unrecorded(self, name: str) -> Cause:
        place, remedy = f"{self.graph.lockfile}, stage {name}", self.scope.rerun()
        if self.scope.committed_lock(name) is not None:
            return Cause("lock", place, "it has no entry; the committed one has: the entry was removed", remedy)
        return Cause("lock", place, "it has no entry: the stage has not run yet", remedy, state="unmade")

    def _definition(self, stage: Stage, locked: Locked) -> Iterator[Cause]:
        place = f"{self.graph.lockfile}, stage {stage.name}"
        if stage.command != locked.command:
            message = f"it ran '{locked.command}'; {self.graph.dvcfile} says '{stage.command}'"
            yield Cause("lock", place, message, self.scope.rerun())
        for what, wanted, recorded in (("deps", stage.deps, locked.deps), ("outs", stage.outs, locked.outs)):
            text = _gap(set(recorded), set(wanted))
            if text:
                message = f"its {what} are not those of {self.graph.dvcfile}: they {text}"
                yield Cause("lock", place, message, self.scope.rerun())

    def _parameters(self, stage: Stage, locked: Locked) -> Iterator[Cause]:
        """Each value of a block that differs by itself: stages track blocks, or parts of them, and it is one edit."""
        for file, keys in stage.params.items():
            recorded, here = locked.params.get(file, {}), tracked_values(self.scope.yaml(file), keys)
            committed = tracked_values(self.scope.committed_yaml(file), keys)
            for key in dict.fromkeys([*here, *recorded]):
                own, then = here.get(key, MISSING), recorded.get(key, MISSING)
                for place, one, other in islice(leaves(key, own, then), MOST_CAUSES):
                    seen = value_in(committed, str(place)) if self.scope.has_witness else MISSING
                    yield self._altered_parameter(stage.name, f"{file}: {place}", one, other, seen)
                for place, one, other in leaves(key, own, committed.get(key, MISSING)) if alike(own, then) else ():
                    if self.scope.head is not None:
                        message = f"{brief(one)} made these numbers; git's HEAD has {brief(other)}"
                        remedy = f"commit {file}, or restore it and rerun"
                        yield Cause("parameter", f"{file}: {place}", message, remedy, state="uncommitted")

    def _altered_parameter(self, stage: str, place: str, here: Any, recorded: Any, committed: Any) -> Cause:
        lock, (file, _, key) = self.graph.lockfile, place.partition(": ")
        before = self.scope.committed_lock(stage) if self.scope.has_witness else None
        if before is not None and alike(here, value_in(before.params.get(file, {}), key)):
            message = f"it says {brief(recorded)} for {key}; {file} and the committed entry say {brief(here)}"
            return Cause("lock", f"{lock}, stage {stage}", message, self.scope.rerun())
        edited = self.scope.has_witness and alike(committed, recorded)
        by = "; git's HEAD has the recorded value: the file was edited" if edited else ""
        message = f"it is {brief(here)} here; the numbers were made with {brief(recorded)} ({lock}){by}"
        # What a suite contains is no claim about its numbers: a report of the new contents has not been made yet.
        state: State = "unmade" if file in self.scope.plans else "wrong"
        return Cause("parameter", place, message, f"restore {file}, or {self.scope.rerun()}", state=state)


def runs_a_stage(command: str, tree: Tree) -> bool:
    """Whether a command is that of a stage which the code of a tree has, or checks the plan, and does nothing else."""
    found = PIPELINE.fullmatch(command)
    return found is not None and (found[1] == PLAN or tree.read(f"{PACKAGE}/stages/{found[1]}.py") is not None)


class DefinitionChecks:
    """Whether stages, and the code that they run undeclared, are those of git's HEAD. A commit is its own witness."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.dvcfile = scope.graph.dvcfile

    def definition(self, stage: Stage) -> Iterator[Cause]:
        """A stage that is defined otherwise than in git's HEAD, or that runs other commands than the pipeline's."""
        committed: Mapping[str, Stage] = {} if self.scope.committed is None else self.scope.committed.stages
        if self.scope.has_witness and committed.get(stage.name) != stage:
            place = f"{self.dvcfile}, stage {stage.name.partition('@')[0]}"
            message = "git's HEAD defines it otherwise, or not at all; `git status` and `git diff HEAD` say more"
            remedy = f"commit {self.dvcfile} and its variables, or git checkout HEAD -- {self.dvcfile}"
            yield Cause("definition", place, message, remedy, state="uncommitted")
        if self._has_pipeline and not runs_a_stage(stage.command, self.scope.tree):
            place = f"{self.dvcfile}, stage {stage.name.partition('@')[0]}"
            message = f"it runs '{brief(stage.command)}', which is not the pipeline alone: its outputs can be anything"
            yield Cause("definition", place, message, "make it a command of the pipeline", state="unwitnessed")
        if self._has_pipeline and stage.name not in self._planned:
            message = "stages run that read no output of `plan`, so nothing holds plan.yaml against the suite's file"
            yield Cause("definition", self.dvcfile, message, "give the stage `plan` back to them", state="unwitnessed")
        if self._has_pipeline and self._shadowed:
            place, named = self._shadowed[0], ", ".join(self._shadowed[1:])
            message = f"it gives a place of its own to what the shared catalogue has: {named}"
            yield Cause("definition", place, message, "choose other names", state="unwitnessed")
        if self._has_pipeline and self._elsewhere:
            place = str(PurePosixPath(self.dvcfile).with_name("catalogue.yaml"))
            message = f"it reads data that no stage declares, from outside of the suite's folder: {self._elsewhere}"
            remedy = "put the data into the folder of the suite, as `sentfold new-suite` does"
            yield Cause("definition", place, message, remedy, state="unwitnessed")

    @cached_property
    def _elsewhere(self) -> str:
        """Where the suite's own data sets are read, if not in its folder."""
        own = PurePosixPath(self.dvcfile).with_name("catalogue.yaml")
        return "; ".join(f"{name}: {found}" for name, found in places_elsewhere(self.scope.yaml(str(own)), own.parent))

    @cached_property
    def _shadowed(self) -> list[str]:
        """The suite's own catalogue, and the names of data sets and corpora that it shares with the shared one."""
        own = str(PurePosixPath(self.dvcfile).with_name("catalogue.yaml"))
        both = catalogue_names(self.scope.yaml(own)) & catalogue_names(self.scope.yaml(f"{PACKAGE}/catalogue.yaml"))
        return [own, *sorted(both)] if both else []

    @cached_property
    def _planned(self) -> set[str]:
        """The stages that hold plans against the files of suites, and those that rest on one of them."""
        graph, children = self.scope.graph, dict[str, list[str]]()
        for name in graph.stages:
            for parent in graph.parents(name):
                children.setdefault(parent, []).append(name)
        command = f"python -m {PACKAGE} plan --check --suite {self.scope.suite}"
        found = {name for name, stage in graph.stages.items() if stage.command == command}
        waiting = list(found)
        while waiting:
            new = set(children.get(waiting.pop(), ())) - found
            found |= new
            waiting += new
        return found

    @cached_property
    def _has_pipeline(self) -> bool:
        """Whether the stages are this project's: other projects have commands of their own."""
        stages = self.scope.graph.stages.values()
        trees = (self.scope.tree, self.scope.artifacts)  # a commit could lack the file; the auditor's checkout has it
        return any(tree.read(f"{PACKAGE}/__main__.py") is not None for tree in trees) or PACKAGE in map(
            package_of, stages
        )

    def unlisted_code(self, stage: Stage) -> Iterator[Cause]:
        """Files that Python runs before a stage's own: its package's entry, and what makes folders packages."""
        if self.scope.head is None or not self.scope.has_witness:
            return
        for path in entry_files(stage):
            here, head = self.scope.digest(path), self.scope.head_digest(path)
            if (here and here.md5) == (head and head.md5):
                continue
            state = "is not here" if here is None else "is not in git's HEAD" if head is None else "was edited here"
            remedy = (
                f"remove or commit {quote(path)}"
                if head is None
                else f"git checkout HEAD -- {quote(path)}, or commit it"
            )
            message = f"it {state}; stages run it, and none declares it"
            yield Cause("code", path, message, remedy, state="uncommitted")

    def undeclared_edits(self) -> list[str]:
        """Edited code that git tracks and no stage declares or runs undeclared: of the schedule, and of this audit."""
        if self.scope.head is None or not self.scope.has_witness:
            return []
        stages = self.scope.graph.stages.values()
        deps = {path for stage in stages for path in (*stage.deps, *entry_files(stage))}
        names = [name for name in self.scope.head.all_files() if is_code(name)]
        undeclared = [name for name in names if not any(related(dep, name) for dep in deps)]
        return [name for name in undeclared if self.scope.differs_from_head(name)]


def package_of(stage: Stage) -> str:
    """The package of `python -m PACKAGE ...`; "" of any other command."""
    words = shlex.split(stage.command)
    return words[2] if words[:2] == ["python", "-m"] and len(words) > 2 else ""


def entry_files(stage: Stage) -> list[str]:
    """What Python runs of a stage's package that the stage does not list."""
    package = package_of(stage)
    if not package:
        return []
    modules = [PurePosixPath(dep) for dep in stage.deps if dep.startswith(f"{package}/")]
    folders = {folder.as_posix() for module in modules for folder in module.parents if folder.parts} | {package}
    files = [f"{package}/__main__.py", *(f"{folder}/__init__.py" for folder in sorted(folders))]
    return [file for file in files if not any(related(dep, file) for dep in stage.deps)]


def _gap(own: set[str], others: set[str]) -> str:
    """What one set lacks of another, and has too many, in words; "" for equal sets."""
    lacking, surplus = sorted(others - own), sorted(own - others)
    parts = [f"lack {brief(', '.join(lacking))}"] if lacking else []
    parts += [f"have {brief(', '.join(surplus))} too many"] if surplus else []
    return " and ".join(parts)


def places_elsewhere(catalogue: Mapping[str, Any], folder: PurePosixPath) -> Iterator[tuple[str, str]]:
    """The data sets of a suite's own catalogue that are read from another place than a folder of their name.

    folder  of the suite
    """
    for name, entry in catalogue.items():
        block = entry if isinstance(entry, dict) else {}
        found = [f"{key}:" for key in PLACES if block.get(key)]
        if block.get("folder") != str(folder / str(name)):
            found.append(f"folder: {block.get('folder')}")
        splits = block.get("splits")
        names = map(str, splits) if isinstance(splits, (dict, list)) else ()
        found += [f"a split called {split!r}" for split in names if not re.fullmatch(r"[\w-]+", split)]
        if found:
            yield str(name), ", ".join(found)


def catalogue_names(catalogue: Mapping[str, Any]) -> set[str]:
    """The names of the data sets of a catalogue, and of their corpora."""
    corpora = [entry.get("corpora") for entry in catalogue.values() if isinstance(entry, dict)]
    return {*map(str, catalogue), *(str(name) for found in corpora if isinstance(found, dict) for name in found)}
