"""The command `sentfold run`: find out what is stale, and run the flow in a process of its own if anything is.

Prefect is not even imported where nothing is stale. The flow has its own process because Prefect's clients wait for
minutes for a server that is gone; the process is ended instead.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import typer

from flows.lock import hold_checkout
from flows.plan import Plan, RunRequest, make_plan
from flows.progress import Summary
from flows.run_stage import LOG_FOLDER
from pipeline.environment import flow_environment, remote_environment
from pipeline.summary import summary_text

POLL_SECONDS = 0.1

# What an interrupted flow may take to end its stages.
LEAVE_SECONDS = 15.0


def run(request: RunRequest, root: Path, *, wait: bool = True) -> int:
    """Bring a suite up to date, independent stages in parallel; the exit code is the flow's.

    Prints as it goes, and the suite's table at the end; a run with nothing to do prints three lines.
    wait  for another run that holds the checkout; False: raise RunError instead

    Raises SentfoldError about what is wrong with the suite or its parameters, and RunError if DVC cannot read the
    checkout, or if Prefect's server does not answer or goes away.
    """
    start = time.monotonic()
    with hold_checkout(root, wait=wait, purpose=request.command):
        typer.echo(f"suite {request.suite}: looking for stages that are stale")
        plan = make_plan(request, root)
        if not plan.stale:
            typer.echo(Summary((), time.monotonic() - start))
            _point_to_table(request, root)
            return 0
        typer.echo(
            f"{len(plan.stale)} of {len(plan.graph.names)} stages are stale, {request.jobs} at a time; "
            f"their logs: {LOG_FOLDER}"
        )
        code = _run_flow(plan)
        if code == 0:
            _print_table(request, root)
        return code


def _print_table(request: RunRequest, root: Path) -> None:
    """Print the suite's table, unless the user asked for some stages alone."""
    summary = _summary_of(request)
    if not request.targets and (root / summary).is_file():
        typer.echo(summary_text(root, request.suite))


def _point_to_table(request: RunRequest, root: Path) -> None:
    """Say where the suite's table is: a run that changed nothing does not print it again."""
    summary = _summary_of(request)
    if (root / summary).is_file():
        typer.echo(f"table: sentfold show --suite {request.suite}; report: {summary.with_name('report.md')}")


def _summary_of(request: RunRequest) -> Path:
    return Path("reports", request.suite, "summary.txt")


def _run_flow(plan: Plan) -> int:
    # In the function: importing Prefect takes longer than finding nothing to do.
    from flows.server import prefect_server

    command = [sys.executable, "-m", "flows", "flow", str(os.getpid()), json.dumps(asdict(plan.request))]
    with prefect_server(plan.root) as server:
        # A group of its own: Ctrl-C reaches this process alone, which passes it on once.
        child = subprocess.Popen(
            command,
            cwd=plan.root,
            env={**flow_environment(), **(remote_environment() if plan.request.remote else {}), **server.environment},
            stdin=subprocess.DEVNULL,
            process_group=0,
        )
        try:
            while child.poll() is None:
                if server.is_gone():
                    raise server.error(plan.request.command)
                time.sleep(POLL_SECONDS)
            return child.returncode
        finally:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Interrupt the flow, which then ends its stages, and kill it if that takes too long."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
