"""Run stages on Dask workers: on a cluster of this run's own on this machine, or on one that is there.

Every worker works in the one checkout, which on other machines has to be mounted at the same path.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import distributed
from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.settings import PREFECT_API_URL
from prefect_dask.task_runners import DaskTaskRunner

from flows.lock import LOCK_FILE
from flows.plan import Plan
from flows.progress import Progress
from flows.run_stage import Order, StageResult, run_stage
from flows.schedule import End, end_of, order_of
from sentfold.errors import RunError

# The files of Dask's own worker processes.
FOLDER = Path(".dvc/tmp/sentfold-workers")

# Variables that a stage may read, and that a worker on another machine may lack.
PASSED_ON = re.compile(r"SENTFOLD_(MIRROR|VECTORS)|HF_[A-Z_]+")

STOP_POLL_SECONDS = 2.0


@dataclass
class RunEnded:
    """A Stop: set as soon as the run that a worker works for no longer holds the checkout.

    holder  what the file of the lock says of the run; another content, or a lock that is free, ends the stage
    """

    root: Path
    holder: bytes
    _asked: float = field(default=0.0, compare=False)
    _answer: bool = field(default=False, compare=False)

    def is_set(self) -> bool:
        """Whether to end; the file is read every two seconds."""
        if not self._answer and time.monotonic() - self._asked > STOP_POLL_SECONDS:
            self._answer = self._is_over()
            self._asked = time.monotonic()
        return self._answer

    def _is_over(self) -> bool:
        try:
            with (self.root / LOCK_FILE).open("rb") as file:
                if file.read() != self.holder:
                    return True
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return True  # nobody holds the lock: the run was killed
        except BlockingIOError:
            return False
        except OSError:
            return True


@task(name="stage on a worker", task_run_name="{stage}", persist_result=False, cache_policy=NO_CACHE)
def make_on_worker(stage: str, order: Order, stop: RunEnded, environment: Mapping[str, str]) -> StageResult:
    """Bring one stage up to date in the checkout, from a worker process. Raises RunError if the stage fails."""
    if stop.is_set():
        raise RunError(
            "a Dask worker does not see the checkout of the run, or the run has ended",
            where=f"{distributed.get_worker().address}: {order.root}",
            expected="the checkout of the run at the same path",
            state="the stage was not started",
            remedy="mount the checkout where every worker finds it at this path",
        )
    os.environ.update(environment)
    return run_stage(stage, order, stop=stop)


class DaskRoute:
    """A Route: one task of a Dask cluster for each stage."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._runner: Any = _task_runner(plan)
        holder = (plan.root / LOCK_FILE).read_bytes()
        environment = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
        self._common = {"order": order_of(plan), "stop": RunEnded(plan.root, holder), "environment": environment}

    def __enter__(self) -> DaskRoute:
        self._runner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            (self._plan.root / LOCK_FILE).write_bytes(b"")  # tells the workers; see RunEnded
        self._runner.__exit__(kind, error, trace)

    def start(self, stage: str, done: Callable[[End], None]) -> None:
        """Send a stage to a worker; `done` is called when the stage has ended."""
        future = self._runner.submit(make_on_worker, {"stage": stage, **self._common})
        future.add_done_callback(lambda ended: done(end_of(stage, ended)))


def _task_runner(plan: Plan) -> DaskTaskRunner:
    if plan.request.address:
        refuse_loopback(plan.request.address, PREFECT_API_URL.value() or "")
        return DaskTaskRunner(address=plan.request.address)
    return DaskTaskRunner(
        cluster_kwargs={
            "n_workers": plan.request.jobs,
            "threads_per_worker": 1,
            "processes": True,
            "dashboard_address": None,
            # The worker only watches: the memory is taken by the stage, a process of its own.
            "memory_limit": None,
            "local_directory": str(plan.root / FOLDER),
        }
    )


def refuse_loopback(address: str, server: str) -> None:
    """Raise RunError if workers at `address` would look for Prefect's `server` on their own machine."""
    if _is_here(urlsplit(server).hostname or "localhost") and not _is_here(urlsplit(address).hostname or ""):
        raise RunError(
            "workers on other machines cannot reach this Prefect server",
            where="PREFECT_API_URL",
            expected=f"an address that they and {address} can reach",
            got=server,
            state="no stage was started",
            remedy="prefect server start --host 0.0.0.0, and PREFECT_API_URL=http://NAME:4200/api here",
        )


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except OSError:
        return False
