"""Bring a suite up to date from the command line, independent stages in parallel."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from flows.graph import require_dvcfile
from flows.lock import hold_checkout
from flows.plan import Plan, RunRequest, handed_on, prepare
from flows.run_stage import LOG_FOLDER
from flows.summary import Summary


def reproduce(suite: str, jobs: int, root: Path, *, wait: bool = True, check: bool = False, **more: Any) -> Summary:
    """Run the stale stages of a suite as a Prefect flow, at most `jobs` at a time.

    suite  quick, or the name of a folder of suites/
    wait   for another run that holds the checkout; False: raise instead
    check  hold params.yaml, the suite file and the catalogue of the working folder against each other first
    more   targets, profile, runner and address, as RunRequest has them

    Prefect is neither imported nor started if nothing is stale, and DVC is not either if no file was
    touched since. Afterwards dvc.lock is in its one order, so this and `plain_repro` leave the same
    bytes. Prints one line per event and a summary.

    Raises RunError if a stage fails (its descendants are skipped, everything else is finished), if
    the checkout is held and `wait` is False, or if DVC or Prefect cannot do their part.
    """
    start = time.monotonic()
    root = root.absolute()
    request = RunRequest(suite, jobs, **more)
    require_dvcfile(suite, root)
    with hold_checkout(root, wait=wait, purpose=request.command):
        plan = prepare(request, root, check=check)
        if plan and plan.stale:
            typer.echo(
                f"{len(plan.stale)} of {len(plan.graph.names)} stages are stale, {jobs} at a time; "
                f"their logs: {LOG_FOLDER}"
            )
            return _run_flow(plan)
    summary = Summary((), time.monotonic() - start)
    typer.echo(summary)
    return summary


def _run_flow(plan: Plan) -> Summary:
    # In the function: importing Prefect and starting its server take longer than finding nothing to do.
    from flows.server import prefect_api

    request = plan.request
    with prefect_api(plan.root, resume=request.command):
        from flows.flow import sentfold

        with handed_on(plan):
            return sentfold(
                suite=request.suite,
                jobs=request.jobs,
                targets=list(request.targets),
                profile=request.profile,
                runner=request.runner,
                address=request.address,
                check=False,
            )
