"""Run the stale stages of a graph as one Prefect flow, as many at a time as allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

from flows.graph import StageGraph, descendants, dvcfile_of
from flows.run_stage import StageResult, run_stage
from flows.server import prefect_api
from pipeline.errors import RunError

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture


@dataclass
class Progress:
    """What has happened so far in one run; told in one line per event."""

    total: int
    results: dict[str, StageResult] = field(default_factory=dict)
    errors: dict[str, RunError] = field(default_factory=dict)
    _turn: Lock = field(default_factory=Lock)

    def started(self, stage: str) -> None:
        """Say that a stage begins."""
        with self._turn:
            self._say(stage, "started")

    def ended(self, result: StageResult, error: RunError | None = None) -> None:
        """Record how a stage ended, and say so."""
        seconds = f" after {result.seconds:.1f} s" if result.seconds else ""
        with self._turn:
            if error:
                self.errors[result.stage] = error
            self.results[result.stage] = result
            self._say(result.stage, f"{result.outcome}{seconds}")

    def _say(self, stage: str, text: str) -> None:
        typer.echo(f"[{len(self.results):>{len(str(self.total))}}/{self.total}] {stage}: {text}")


def run_parallel(
    graph: StageGraph, stale: tuple[str, ...], *, suite: str, jobs: int, root: Path, resume: str
) -> Progress:
    """Bring the `stale` stages of `graph` up to date, at most `jobs` at a time.

    A stage whose inputs all came out as they were is not started. When one fails, its descendants
    are skipped and everything else is finished; `errors` of the result then tells which and why.
    Raises RunError if Prefect itself does not work.
    """
    dvcfile = dvcfile_of(suite)
    progress = Progress(total=len(stale))
    stop = Event()

    def reproduce_stage(stage: str) -> None:
        # Prefect is told that the task failed by the raised error; the run learns it from `progress`.
        parents = [progress.results[parent] for parent in graph.parents[stage] if parent in progress.results]
        if stage not in graph.changed and not any(parent.outputs_changed for parent in parents):
            progress.ended(StageResult(stage, "unchanged", 0.0, outputs_changed=False))
            return
        progress.started(stage)
        start = monotonic()
        try:
            progress.ended(run_stage(stage, dvcfile=dvcfile, root=root, resume=resume, stop=stop))
        except RunError as error:
            progress.ended(StageResult(stage, "failed", monotonic() - start, outputs_changed=True), error)
            raise

    with prefect_api(root):
        _run_flow(graph, stale, reproduce_stage, progress, stop, suite=suite, jobs=jobs)
    return progress


def _run_flow(
    graph: StageGraph,
    stale: tuple[str, ...],
    reproduce_stage: Callable[[str], None],
    progress: Progress,
    stop: Event,
    *,
    suite: str,
    jobs: int,
) -> None:
    from prefect import flow, task
    from prefect.cache_policies import NO_CACHE
    from prefect.exceptions import FailedRun
    from prefect.task_runners import ThreadPoolTaskRunner

    # DVC keeps the results and knows which of them hold; a second memory could only disagree.
    stage_task = task(name="stage", task_run_name="{stage}", persist_result=False, cache_policy=NO_CACHE)(
        reproduce_stage
    )
    threads: Any = ThreadPoolTaskRunner(max_workers=jobs)  # its type parameter does not fit flow()'s

    @flow(name="sentfold", flow_run_name=suite, task_runner=threads, persist_result=False)
    def run_stale_stages() -> None:
        done: SimpleQueue[str] = SimpleQueue()
        futures: dict[str, PrefectFuture[None]] = {}
        settled: set[str] = set(graph.names) - set(stale)

        def submit(stage: str) -> None:
            needs = [futures[parent] for parent in graph.parents[stage] if parent in futures]
            futures[stage] = stage_task.submit(stage, wait_for=needs, return_state=False)
            futures[stage].add_done_callback(lambda _: done.put(stage))

        try:
            while not settled.issuperset(stale):
                # A task is submitted when its parents are done, not before: Prefect's threads wait
                # for `wait_for` inside the pool, so stages that cannot start yet would keep out
                # those that can.
                for stage in stale:
                    if stage not in futures and stage not in settled and settled.issuperset(graph.parents[stage]):
                        submit(stage)
                ended = done.get()
                settled |= _settle(ended, futures[ended], graph, progress)
        finally:
            # Prefect waits for its threads before it lets an interrupt through, and they for stages.
            stop.set()
        if progress.errors:
            raise FailedRun(f"failed: {', '.join(progress.errors)}")

    try:
        run_stale_stages()
    except FailedRun:
        if not progress.errors:
            raise


def _settle(stage: str, future: PrefectFuture[None], graph: StageGraph, progress: Progress) -> set[str]:
    """Account for a stage whose task ended, and for those that wait for it in vain; return them."""
    if stage not in progress.results:
        future.wait()
        error = RunError(
            f"Prefect did not run the stage '{stage}'",
            got=f"{future.state.name}: {future.state.message}",
            state="the stage was not started",
            remedy="run again; 'sentfold repro' runs the same stages without Prefect",
        )
        progress.ended(StageResult(stage, "failed", 0.0, outputs_changed=True), error)
    if progress.results[stage].outcome != "failed":
        return {stage}
    in_vain = [name for name in descendants(graph, [stage]) if name not in progress.results]
    for name in sorted(in_vain, key=graph.names.index):
        progress.ended(StageResult(name, "skipped", 0.0, outputs_changed=True))
    return {stage, *in_vain}
