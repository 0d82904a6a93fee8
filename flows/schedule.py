"""Which stages may start now: those whose inputs are made, within the limits of the run."""

from __future__ import annotations

from dataclasses import dataclass, field

from flows.graph import StageGraph, descendants
from flows.profile import RunProfile


@dataclass
class Schedule:
    """The order of one run; it decides, and does nothing else.

    stale    stages to be brought up to date
    jobs     how many may run at a time
    profile  how many of each kind may
    Stages start in the graph's order, those that a limit holds back are passed by the next.
    """

    graph: StageGraph
    stale: tuple[str, ...]
    jobs: int
    profile: RunProfile
    running: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)

    @property
    def finished(self) -> bool:
        """Whether no stale stage is left."""
        return self.settled.issuperset(self.stale)

    def next_stage(self) -> str | None:
        """A stage that may start now, counted as running from here on; None if something has to end first."""
        if len(self.running) >= self.jobs:
            return None
        stale = set(self.stale)
        for stage in self.stale:
            waiting = stage not in self.running and stage not in self.settled
            needs = (parent for parent in self.graph.parents[stage] if parent in stale)
            if waiting and self.settled.issuperset(needs) and self._within_limits(stage):
                self.running.add(stage)
                return stage
        return None

    def end(self, stage: str, *, failed: bool) -> tuple[str, ...]:
        """Account for a stage that ended; returns the stages that now wait in vain, in the graph's order."""
        self.running.discard(stage)
        self.settled.add(stage)
        if not failed:
            return ()
        below = descendants(self.graph, [stage])
        in_vain = tuple(name for name in self.stale if name in below and name not in self.settled)
        self.settled.update(in_vain)
        return in_vain

    def _within_limits(self, stage: str) -> bool:
        return all(
            sum(kind in self.profile.kinds_of(other) for other in self.running) < self.profile.kinds[kind].at_once
            for kind in self.profile.kinds_of(stage)
        )
