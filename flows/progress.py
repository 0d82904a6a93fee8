"""What has happened so far in one run, shown as it happens, in lines or live in a terminal; and its summary."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from threading import RLock
from typing import TYPE_CHECKING

import typer
from tqdm import tqdm

from flows.run_stage import StageResult
from pipeline.lineage.runs import ended_runs
from sentfold.errors import RunError

if TYPE_CHECKING:
    from rich.console import RenderableType

REFRESHES_PER_SECOND = 4


@dataclass
class Progress:
    """The state of a run. Its methods may be called from any thread.

    stages   the stale stages
    usual    the seconds that stages took when they last ran on this machine; may lack any stage
    say      takes one line per event
    results  how each stage that is done ended, in the order they ended
    errors   why, for those that failed
    running  when each stage that runs now began, by time.monotonic()
    begin    when the run began, by time.monotonic()
    """

    stages: tuple[str, ...]
    usual: Mapping[str, float] = field(default_factory=dict)
    say: Callable[[str], None] = typer.echo
    results: dict[str, StageResult] = field(default_factory=dict)
    errors: dict[str, RunError] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    begin: float = field(default_factory=time.monotonic)
    turn: RLock = field(default_factory=RLock)

    @property
    def total(self) -> int:
        """The number of stale stages."""
        return len(self.stages)

    def started(self, stage: str) -> None:
        """A stage begins, or begins to wait for a worker."""
        with self.turn:
            self.running[stage] = time.monotonic()
            self._tell(stage, "started")

    def note(self, stage: str, text: str) -> None:
        """Something worth a line happened to a stage that goes on."""
        with self.turn:
            self._tell(stage, text)

    def ended(self, result: StageResult, error: RunError | None = None) -> None:
        """Record how a stage ended."""
        seconds = f" after {result.seconds:.1f} s" if result.seconds else ""
        with self.turn:
            self.running.pop(result.stage, None)
            if error:
                self.errors[result.stage] = error
            self.results[result.stage] = result
            self._tell(result.stage, f"{result.outcome}{seconds}{describe_left(self.seconds_left())}")

    def seconds_left(self) -> float | None:
        """An estimate of the time until the run ends; None while nothing is known of any stage.

        A stage is expected to take its usual seconds (the mean of the others' where it has none), and as much more or
        less as the stages of this run that ran took on average. The seconds of the stages that are left are divided by
        the number of stages at a time, on average so far.
        """
        with self.turn:
            now = time.monotonic()
            results, running = tuple(self.results.values()), {stage: now - at for stage, at in self.running.items()}
        ran = [result for result in results if result.outcome == "ran"]
        if not ran and not self.usual:
            return None
        mean = fmean(self.usual.values()) if self.usual else 0.0
        expected = {stage: self.usual.get(stage, mean) for stage in self.stages}
        more = fmean(result.seconds - expected[result.stage] for result in ran) if ran else 0.0
        left = set(self.stages) - {result.stage for result in results}
        work = sum(max(0.0, expected[stage] + more - running.get(stage, 0.0)) for stage in left)
        done = sum(result.seconds for result in results) + sum(running.values())
        at_once = max(1.0, done / max(now - self.begin, 1e-9))
        return work / at_once

    def failure(self, stage: str) -> StageResult:
        """What is to be recorded of a running stage that failed just now."""
        return StageResult(stage, "failed", time.monotonic() - self.running[stage], outputs_changed=True)

    def _tell(self, stage: str, text: str) -> None:
        self.say(f"[{len(self.results):>{len(str(self.total))}}/{self.total}] {stage}: {text}")


def usual_seconds(root: Path, suite: str, stages: Iterable[str]) -> dict[str, float]:
    """How long each stage of a suite took when it last succeeded on this machine, by the records of its runs."""
    took = {run["stage"]: run["seconds"] for run in ended_runs(root, suite) if run["exit"] == 0}
    seconds = {stage: took.get(stage.rpartition(":")[2]) for stage in stages}
    return {stage: float(value) for stage, value in seconds.items() if isinstance(value, int | float)}


def describe_left(seconds: float | None) -> str:
    """The estimate in words, with a comma before them; nothing where it is unknown or under a second."""
    return f", about {tqdm.format_interval(seconds)} left" if seconds is not None and seconds >= 1 else ""


@dataclass(frozen=True)
class Summary:
    """What a run did: how each stale stage ended, in the order they ended, and the whole time."""

    results: tuple[StageResult, ...]
    seconds: float

    def __str__(self) -> str:
        if not self.results:
            return f"everything is up to date (checked in {self.seconds:.1f} s)"
        longest = max(self.results, key=lambda result: result.seconds)
        return (
            f"{len(self.results)} stages in {self.seconds:.1f} s: {count_outcomes(self.results)}; "
            f"longest {longest.stage} {longest.seconds:.1f} s"
        )


def count_outcomes(results: Iterable[StageResult]) -> str:
    """How many stages ended in which way: `2 ran, 1 skipped`."""
    counts = Counter(result.outcome for result in results)
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def unfinished(errors: Mapping[str, RunError], summary: Summary, *, resume: str) -> RunError:
    """One error for a run in which stages failed: each one's name, cause and log, and what was skipped.

    errors  why each stage failed, at least one
    resume  the command that continues the run
    """
    first = next(iter(errors.values()))
    if len(errors) == 1:
        what, where, got = first.what, first.where, first.got
    else:
        what = f"{len(errors)} stages failed: {', '.join(errors)}"
        where = ", ".join(error.where for error in errors.values())
        got = "\n".join(f"{error.what}, {error.where}: {error.got}" for error in errors.values())
    skipped = [result.stage for result in summary.results if result.outcome == "skipped"]
    return RunError(
        what,
        where=where,
        got=got,
        state=f"skipped, because they need it: {', '.join(skipped) or 'none'}; stages that finished are kept",
        remedy=f"remove the cause, then: {resume}",
    )


@contextmanager
def shown(progress: Progress) -> Iterator[None]:
    """Show `progress` for the length of a `with` block: in a terminal, what runs now is shown below the lines."""
    if not sys.stdout.isatty():
        yield
        return
    from rich.live import Live

    # What is printed meanwhile appears above.
    with Live(get_renderable=lambda: picture(progress), refresh_per_second=REFRESHES_PER_SECOND, transient=True):
        yield


def picture(progress: Progress) -> RenderableType:
    """A bar over all stages and a line per running one, for a terminal."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    with progress.turn:
        done, running = len(progress.results), dict(progress.running)
        outcomes = count_outcomes(progress.results.values())
    left = describe_left(progress.seconds_left())
    head = Table.grid(padding=(0, 1))
    head.add_row(ProgressBar(progress.total, done, width=30), f"{done}/{progress.total}{left}", outcomes)
    now = time.monotonic()
    body = Table.grid(padding=(0, 2))
    for stage, begin in running.items():
        body.add_row(f"{now - begin:7.0f} s", stage)
    return Group(head, body)
