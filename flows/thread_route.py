"""Run stages in threads of this process, each as a Prefect task around one dvc process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import ThreadPoolTaskRunner

from flows.execute import End
from flows.plan import Plan
from flows.profile import Retries
from flows.progress import Progress
from flows.run_stage import StageResult, Stop, run_stage
from pipeline.errors import RunError

if TYPE_CHECKING:
    from prefect.futures import PrefectFuture


Result = TypeVar("Result")


@dataclass(frozen=True)
class Order:
    """What every task of a run has in common. `stop` ends its stage when set; `say` takes lines about it."""

    dvcfile: Path
    root: Path
    resume: str
    retries: Retries
    stop: Stop
    say: Callable[[str, str], None]


# DVC keeps the results and knows which of them hold; a second memory could only disagree.
@task(name="stage", task_run_name="{stage}", persist_result=False, cache_policy=NO_CACHE)
def reproduce_stage(stage: str, order: Order) -> StageResult:
    """Bring one stage up to date. Raises RunError if it fails."""
    return run_stage(
        stage,
        dvcfile=order.dvcfile,
        root=order.root,
        resume=order.resume,
        stop=order.stop,
        retries=order.retries,
        say=lambda text: order.say(stage, text),
    )


class ThreadRoute:
    """A Route: as many threads as the plan has jobs, or fewer. Leaving it ends the stages that still run."""

    def __init__(self, plan: Plan, progress: Progress, *, threads: int | None = None) -> None:
        self._runner: Any = ThreadPoolTaskRunner(max_workers=threads or plan.request.jobs)
        self._stop = Event()
        self._order = Order(
            plan.dvcfile, plan.root, plan.request.command, plan.profile.retries, self._stop, progress.note
        )

    def __enter__(self) -> ThreadRoute:
        self._runner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Prefect waits for its threads before it lets an interrupt through, and they for stages.
        self._stop.set()
        self._runner.__exit__(kind, error, trace)

    def start(self, stage: str, done: Callable[[End], None]) -> None:
        """Begin a stage in a thread; `done` is called when it has ended."""
        future = self._runner.submit(reproduce_stage, {"stage": stage, "order": self._order})
        future.add_done_callback(lambda ended: done(end_of(stage, ended)))


def end_of(stage: str, future: PrefectFuture[Result]) -> Result | RunError:
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
            remedy="run again; 'sentfold repro' runs the same stages without Prefect",
        )
