"""What is wrong with, or absent from, the record of one stage: each of its own faults, none that it inherits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.lineage.causes import Cause
from pipeline.lineage.definitions import DefinitionChecks
from pipeline.lineage.inputs import InputChecks
from pipeline.lineage.outputs import OutputChecks
from pipeline.lineage.phrases import MISSING, brief, leaves, value_in
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import Locked, Stage, tracked_values


class StageChecks:
    """The faults of stages, each stage looked at once.

    run_again  stages that a recorded run on this machine made other bytes in than the committed ones
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph = scope.graph
        self.definitions = DefinitionChecks(scope)
        self.inputs = InputChecks(scope)
        self.outputs = OutputChecks(scope)
        self._known: dict[str, tuple[Cause, ...]] = {}
        self._forged: dict[str, tuple[Cause, ...]] = {}
        self.run_again: set[str] = set()

    def of(self, name: str) -> tuple[Cause, ...]:
        """The faults of one stage. Cost: hashing its inputs and outputs, each file once for all stages."""
        if name not in self._known:
            self._known[name] = tuple(self._check(name))
        return self._known[name]

    def forged(self, name: str) -> tuple[Cause, ...]:
        """Outputs that contradict the committed dvc.lock, which only a recorded run, or a new one, can vouch for."""
        if name not in self._forged:
            self._forged[name] = tuple(self._contradictions(name))
        return self._forged[name]

    def _contradictions(self, name: str) -> Iterator[Cause]:
        locked = self.graph.locked.get(name)
        if locked is None:
            return
        for entry in locked.outs.values():
            if self.outputs.made_here(locked, entry):
                self.run_again.add(name)
            elif (cause := self.outputs.forged(locked, entry)) is not None:
                yield cause

    def _check(self, name: str) -> Iterator[Cause]:
        stage, locked = self.graph.stages[name], self.graph.locked.get(name)
        yield from self.definitions.definition(stage)
        yield from self.definitions.unlisted_code(stage)
        if locked is None:
            yield self._unrecorded(name)
            return
        yield from self._definition(stage, locked)
        yield from self._parameters(stage, locked)
        for entry in locked.deps.values():
            yield from self.inputs.dependency(locked, entry)
        for entry in locked.outs.values():
            yield from self.outputs.output(locked, entry)

    # --- what the two files say of each other ---------------------------------------------------

    def _unrecorded(self, name: str) -> Cause:
        edited = self.scope.committed is not None and name in self.scope.committed.locked
        found = "the committed one has: it was removed" if edited else "nor has the committed one: it has not run"
        place = f"{self.graph.lockfile}, stage {name}"
        return Cause("lock", place, f"it has no entry; {found}", self.scope.rerun(name))

    def _definition(self, stage: Stage, locked: Locked) -> Iterator[Cause]:
        place = f"{self.graph.lockfile}, stage {stage.name}"
        if stage.command != locked.command:
            message = f"it ran '{locked.command}'; {self.graph.dvcfile} says '{stage.command}'"
            yield Cause("lock", place, message, self.scope.rerun(stage.name))
        for what, wanted, recorded in (("deps", stage.deps, locked.deps), ("outs", stage.outs, locked.outs)):
            lacking, surplus = sorted(set(wanted) - set(recorded)), sorted(set(recorded) - set(wanted))
            if lacking or surplus:
                parts = [
                    *([f"lacks {', '.join(lacking)}"] if lacking else []),
                    *([f"has {', '.join(surplus)} too many"] if surplus else []),
                ]
                message = f"its {what} are not those of {self.graph.dvcfile}: it {' and '.join(parts)}"
                yield Cause("lock", place, message, self.scope.rerun(stage.name))

    def _parameters(self, stage: Stage, locked: Locked) -> Iterator[Cause]:
        for file, keys in stage.params.items():
            recorded, here = locked.params.get(file, {}), tracked_values(self.scope.yaml(file), keys)
            committed = tracked_values(self.scope.committed_yaml(file), keys)
            for key in dict.fromkeys([*here, *recorded]):
                ours, theirs = here.get(key, MISSING), recorded.get(key, MISSING)
                if ours != theirs:
                    yield from self._altered_block(stage.name, file, key, ours, theirs, committed.get(key, MISSING))
                elif self.scope.has_git and committed.get(key, MISSING) != ours:
                    for place, used, theirs in leaves(key, ours, committed.get(key, MISSING)):
                        message = f"{brief(used)} made these numbers; git's HEAD has {brief(theirs)}"
                        yield Cause("parameter", f"{file}: {place}", message, f"commit {file}, or restore it and rerun")

    def _altered_block(
        self, name: str, file: str, key: str, here: Any, recorded: Any, committed: Any
    ) -> Iterator[Cause]:
        """Each value of a block that differs by itself: stages track blocks, or parts of them, and it is one edit."""
        for place, ours, theirs in leaves(key, here, recorded):
            inner = place.removeprefix(key).removeprefix(".")
            yield self._altered_parameter(name, file, place, ours, theirs, value_in(committed, inner))

    def _altered_parameter(self, name: str, file: str, key: str, here: Any, recorded: Any, committed: Any) -> Cause:
        lock = self.graph.lockfile
        before = self.scope.committed_lock(name)
        then = None if before is None else value_in(before.params.get(file, {}), key)
        here_, recorded_ = brief(here), brief(recorded)
        if then is not None and then == here and then != recorded:
            message = f"it says {recorded_} for {key}, {file} and the committed entry {here_}: the entry was edited"
            return Cause("lock", f"{lock}, stage {name}", message, f"git checkout -- {lock}")
        edited = self.scope.has_git and committed == recorded
        by = "; git's HEAD has the recorded value: the file was edited" if edited else ""
        message = f"it is {here_} here; the numbers were made with {recorded_} ({lock}){by}"
        return Cause("parameter", f"{file}: {key}", message, f"restore {file}, or {self.scope.rerun()}")
