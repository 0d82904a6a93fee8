"""Which stages may start now, and the loop that starts them and accounts for those that end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING

from flows.graph import StageGraph
from flows.plan import Plan
from flows.profile import RunProfile
from flows.progress import Progress
from flows.run_stage import Order, StageResult
from sentfold.errors import RunError

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture

# How a stage ended: its result, or the error that says why there is none.
End = StageResult | RunError

# Begins a stage and returns; what it is given is called once, from any thread, when the stage has ended.
Start = Callable[[str, Callable[[End], None]], None]


def execute(plan: Plan, progress: Progress, start: Start) -> None:
    """Bring the stale stages of a plan up to date, as many at a time as it allows.

    A stage whose inputs all came out as they were is not started. When one fails, its descendants
    are skipped and everything else is finished; `progress` then tells which and why.
    """
    schedule = Schedule(plan.graph, plan.stale, plan.request.jobs, plan.profile)
    ended: SimpleQueue[tuple[str, End]] = SimpleQueue()

    def into_queue(stage: str) -> Callable[[End], None]:
        return lambda end: ended.put((stage, end))

    while not schedule.finished:
        while stage := schedule.next_stage():
            if _has_unchanged_inputs(stage, plan, progress):
                ended.put((stage, StageResult(stage, "unchanged", 0.0, outputs_changed=False)))
                continue
            progress.started(stage)
            start(stage, into_queue(stage))
        stage, end = ended.get()
        _settle(stage, end, schedule, progress)


def _has_unchanged_inputs(stage: str, plan: Plan, progress: Progress) -> bool:
    parents = [progress.results[parent] for parent in plan.graph.parents[stage] if parent in progress.results]
    return stage not in plan.changed and not any(parent.outputs_changed for parent in parents)


def _settle(stage: str, end: End, schedule: Schedule, progress: Progress) -> None:
    error = end if isinstance(end, RunError) else None
    progress.ended(end if isinstance(end, StageResult) else progress.failure(stage), error)
    for name in schedule.end(stage, failed=error is not None):
        progress.ended(StageResult(name, "skipped", 0.0, outputs_changed=True))


@dataclass
class Schedule:
    """The order of one run. It starts nothing itself.

    stale    stages to be brought up to date
    jobs     how many may run at a time
    profile  how many of each kind may
    Stages start in the graph's order; a stage that a limit holds back is passed by the next.
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
        below = self.graph.descendants([stage])
        in_vain = tuple(name for name in self.stale if name in below and name not in self.settled)
        self.settled.update(in_vain)
        return in_vain

    def _within_limits(self, stage: str) -> bool:
        return all(
            sum(kind in self.profile.kinds_of(other) for other in self.running) < self.profile.kinds[kind].at_once
            for kind in self.profile.kinds_of(stage)
        )


def order_of(plan: Plan) -> Order:
    """What the stages of a plan have in common."""
    return Order(plan.request.suite, plan.dvcfile, plan.root, plan.request.command, plan.profile.retries)


def end_of(stage: str, future: PrefectFuture[StageResult]) -> End:
    """How a task that is done ended: with a result, a stage's error, or Prefect's, which becomes a RunError."""
    future.wait()
    try:
        return future.result()
    except RunError as error:
        return error
    except Exception as error:  # noqa: BLE001  (whatever Prefect or a runner raises, the stage was not made)
        return RunError(
            f"Prefect did not run the stage '{stage}'",
            got=f"{future.state.name}: {error}",
            state="the stage is not made",
            remedy="run again; `dvc repro` runs the same stages without Prefect",
        )
