"""Bring a suite up to date, independent stages in parallel."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import typer

from flows.graph import StageGraph, read_graph, require_dvcfile, stale_stages
from flows.lock import hold_checkout
from flows.lockfile import sort_lock
from flows.run_stage import LOG_FOLDER, StageResult
from pipeline.errors import RunError


@dataclass(frozen=True)
class Summary:
    """What a run did: how each stale stage ended, in the order they ended, and the whole time."""

    results: tuple[StageResult, ...]
    seconds: float

    def __str__(self) -> str:
        if not self.results:
            return f"everything is up to date (looked for {self.seconds:.1f} s)"
        counts = Counter(result.outcome for result in self.results)
        parts = [f"{count} {outcome}" for outcome, count in sorted(counts.items())]
        longest = max(self.results, key=lambda result: result.seconds)
        return (
            f"{len(self.results)} stages in {self.seconds:.1f} s: {', '.join(parts)}; "
            f"longest {longest.stage} {longest.seconds:.1f} s"
        )


def reproduce(suite: str, jobs: int, root: Path, *, wait: bool = True) -> Summary:
    """Run the stale stages of a suite as a Prefect flow, at most `jobs` at a time.

    suite  quick, or the name of a folder of suites/
    wait   for another run that holds the checkout; False: raise instead

    Prefect is neither imported nor started if nothing is stale. Afterwards dvc.lock is in its one
    order, so this and `plain_repro` leave the same bytes. Prints one line per event and a summary.

    Raises RunError if a stage fails (its descendants are skipped, everything else is finished), if
    the checkout is held and `wait` is False, or if DVC or Prefect cannot do their part.
    """
    start = time.monotonic()
    root = root.absolute()
    dvcfile = require_dvcfile(suite, root)
    with hold_checkout(root, wait=wait, purpose=f"sentfold run --suite {suite}"):
        try:
            results, errors = _run_stale(suite, read_graph(dvcfile, root=root), jobs=jobs, root=root)
        finally:
            sort_lock(root / dvcfile.with_suffix(".lock"))
    summary = Summary(results, time.monotonic() - start)
    typer.echo(summary)
    if errors:
        raise _unfinished(errors, summary, resume=_resume(suite, jobs))
    return summary


def _run_stale(
    suite: str, graph: StageGraph, *, jobs: int, root: Path
) -> tuple[tuple[StageResult, ...], tuple[RunError, ...]]:
    stale = stale_stages(graph)
    if not stale:
        return (), ()
    typer.echo(f"{len(stale)} of {len(graph.names)} stages are stale, {jobs} at a time; their logs: {LOG_FOLDER}")
    # In the function: importing Prefect and starting its server take longer than finding nothing to do.
    from flows.parallel import run_parallel

    progress = run_parallel(graph, stale, suite=suite, jobs=jobs, root=root, resume=_resume(suite, jobs))
    return tuple(progress.results.values()), tuple(progress.errors.values())


def _unfinished(errors: tuple[RunError, ...], summary: Summary, *, resume: str) -> RunError:
    if len(errors) == 1:
        what, where, got = errors[0].what, errors[0].where, errors[0].got
    else:
        what = f"{len(errors)} stages failed"
        where = ", ".join(error.where for error in errors)
        got = "\n".join(f"{error.what}: {error.got}" for error in errors)
    skipped = [result.stage for result in summary.results if result.outcome == "skipped"]
    return RunError(
        what,
        where=where,
        got=got,
        state=f"skipped, because they need it: {', '.join(skipped) or 'none'}; stages that finished are kept",
        remedy=f"mend the cause, then: {resume}",
    )


def _resume(suite: str, jobs: int) -> str:
    return f"sentfold run --suite {suite} --jobs {jobs}"
