"""Carry out a plan: start what may start, account for what ended, until nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from types import TracebackType
from typing import Protocol

from flows.plan import Plan
from flows.progress import Progress
from flows.run_stage import StageResult
from flows.schedule import Schedule
from pipeline.errors import RunError

# How a stage ended: its result, or the error that says why there is none.
End = StageResult | RunError


class Route(Protocol):
    """Where stages run. Entered once per run; leaving it ends whatever still runs."""

    def __enter__(self) -> Route: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def start(self, stage: str, done: Callable[[End], None]) -> None:
        """Begin a stage and return; `done` is called once, from any thread, when it has ended."""
        ...


def execute(plan: Plan, progress: Progress, route: Route) -> None:
    """Bring the stale stages of a plan up to date, as many at a time as it allows.

    A stage whose inputs all came out as they were is not started. When one fails, its descendants
    are skipped and everything else is finished; `progress` then tells which and why.
    """
    schedule = Schedule(plan.graph, plan.stale, plan.request.jobs, plan.profile)
    ended: SimpleQueue[tuple[str, End]] = SimpleQueue()

    with route:
        while not schedule.finished:
            while stage := schedule.next_stage():
                if _inputs_unchanged(stage, plan, progress):
                    ended.put((stage, StageResult(stage, "unchanged", 0.0, outputs_changed=False)))
                    continue
                progress.started(stage)
                route.start(stage, _into(ended, stage))
            stage, end = ended.get()
            _settle(stage, end, schedule, progress)


def _into(ended: SimpleQueue[tuple[str, End]], stage: str) -> Callable[[End], None]:
    return lambda end: ended.put((stage, end))


def _inputs_unchanged(stage: str, plan: Plan, progress: Progress) -> bool:
    parents = [progress.results[parent] for parent in plan.graph.parents[stage] if parent in progress.results]
    return stage not in plan.graph.changed and not any(parent.outputs_changed for parent in parents)


def _settle(stage: str, end: End, schedule: Schedule, progress: Progress) -> None:
    error = end if isinstance(end, RunError) else None
    progress.ended(end if isinstance(end, StageResult) else progress.failure(stage), error)
    for name in schedule.end(stage, failed=error is not None):
        progress.ended(StageResult(name, "skipped", 0.0, outputs_changed=True))
