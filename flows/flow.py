"""The flow `sentfold`: what the command line runs, and what a server runs by its schedule.

Prefect decides nothing here that DVC decides: a task is one `dvc repro` of one stage, and DVC alone
knows what is stale, what is cached and what the lock says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import typer
from prefect import flow
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger

from flows.execute import Route, execute
from flows.lock import hold_checkout
from flows.lockfile import sort_lock
from flows.plan import Plan, Runner, RunRequest, handed_plan, make_plan, prepare
from flows.prefect_artifacts import publish
from flows.progress import Progress, shown
from flows.recovery import recover
from flows.summary import Summary, unfinished
from flows.sweep_costs import sweep_costs
from flows.thread_route import ThreadRoute


@flow(name="sentfold", flow_run_name="{suite}", persist_result=False)
def sentfold(
    suite: str = "quick",
    jobs: int = 2,
    targets: list[str] | None = None,
    profile: str | None = None,
    runner: Runner = "threads",
    address: str | None = None,
    wait: bool = True,
    check: bool = True,
) -> Summary:
    """Bring a suite of the checkout in the working folder up to date.

    suite    quick, or the name of a folder of suites/
    jobs     stages at a time
    targets  stages, groups or output paths; none: everything
    profile  another file than run.yaml
    runner   `threads` of this process, or workers of `dask`
    address  of a Dask scheduler; none: a cluster of `jobs` processes on this machine
    wait     for another run that holds the checkout; false: fail at once
    check    hold params.yaml, the suite file and the catalogue against each other first

    Raises RunError if stages failed, naming each with cause and log; what does not need them is finished.
    """
    start = time.monotonic()
    request = RunRequest(suite, jobs, tuple(targets or ()), profile, runner, address)
    prepared = handed_plan()
    root = prepared.root if prepared else Path.cwd()
    say = _lines()
    with hold_checkout(root, wait=wait, purpose=request.command, say=say):
        plan = prepared or prepare(request, root, check=check)
        progress = Progress(total=len(plan.stale) if plan else 0, say=say)
        if plan and plan.stale:
            _carry_out(plan, progress)
    summary = Summary(tuple(progress.results.values()), time.monotonic() - start)
    say(str(summary))
    for line in sweep_costs(summary, root):
        say(line)
    publish(suite, summary, root)
    if progress.errors:
        raise unfinished(progress.errors, summary, resume=request.command)
    return summary


def _carry_out(plan: Plan, progress: Progress) -> None:
    try:
        with shown(progress):
            execute(plan, progress, _route(plan, progress))
    finally:
        recover(plan.root)
        sort_lock(plan.root / plan.dvcfile.with_suffix(".lock"))
    if progress.errors:
        return
    # DVC confirms the run, and the next one that finds nothing touched since need not ask at all.
    if left := make_plan(plan.request, plan.root).stale:
        progress.say(f"stale again, because something was changed during the run: {', '.join(left)}")


def _route(plan: Plan, progress: Progress) -> Route:
    if plan.request.runner == "threads":
        return ThreadRoute(plan, progress)
    # In the function: importing Dask takes a second.
    from flows.dask_route import DaskRoute

    return DaskRoute(plan, progress)


def _lines() -> Callable[[str], None]:
    """Where lines go: to Prefect's pages always, and to standard output if no worker already sends them there."""
    logger = get_run_logger()
    context = FlowRunContext.get()
    if context is not None and context.flow_run is not None and context.flow_run.deployment_id is not None:
        return logger.info

    def both(line: str) -> None:
        typer.echo(line)
        logger.info(line)

    return both
