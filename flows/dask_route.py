"""Run stages on Dask workers: on a cluster of our own on this machine, or on one that is there."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import uuid
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import dask
from prefect.settings import PREFECT_API_URL
from prefect_dask.task_runners import DaskTaskRunner

from flows.dask_worker import (
    THREADS,
    CheckoutPlugin,
    Made,
    Runs,
    WorkerError,
    WorkerOrder,
    make_on_worker,
    stop_event,
)
from flows.execute import End
from flows.plan import Plan
from flows.progress import Progress
from flows.run_stage import StageResult, log_file
from flows.shared_cache import shared_cache
from flows.sources import pack_sources
from flows.thread_route import ThreadRoute, end_of
from pipeline.errors import RunError
from pipeline.lineage.manifest import add_runs
from pipeline.lineage.origin import ask_origin

# Where the workers of our own cluster have their checkouts.
FOLDER = Path(".dvc/tmp/sentfold-workers")

# What a stage may read of the environment, and a worker on another machine does not have.
PASSED_ON = re.compile(r"SENTFOLD_(MIRROR|VECTORS)|HF_[A-Z_]+|" + "|".join(THREADS))


class DaskRoute:
    """A Route: a worker makes a stage in its own checkout, then this one takes it from the shared cache.

    The second step is the stage's usual `dvc repro`: DVC compares the hashes of all that the stage
    reads with those that the worker had, and only then restores what the worker made; else it runs the
    stage here. So dvc.lock is written in one place. It is done for one stage at a time.
    """

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._runner: Any = _task_runner(plan)
        self._here = ThreadRoute(plan, progress, threads=1)
        self._stop = f"sentfold-stop-{uuid.uuid4()}"
        self._lock = b""

    def __enter__(self) -> DaskRoute:
        root = self._plan.root
        plugin = CheckoutPlugin(pack_sources(root), ask_origin(root), shared_cache(root), _environment())
        # Not for the length of the run: only workers that start now read it, and ours all do.
        with dask.config.set({"distributed.nanny.pre-spawn-environ": {}}):
            self._runner.__enter__()
            try:
                self._runner.client.register_plugin(plugin)
            except BaseException:
                self._runner.__exit__(None, None, None)
                raise
        self._here.__enter__()
        self._lock = self._read_lock()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            stop_event(self._stop, self._runner.client).set()
        self._here.__exit__(kind, error, trace)
        self._runner.__exit__(kind, error, trace)

    def start(self, stage: str, done: Callable[[End], None]) -> None:
        """Send a stage to a worker; `done` is called when it is made and taken over, or has failed."""
        # Prefect knows by the context which flow run a task belongs to; callbacks come without one.
        context = copy_context()
        future = self._runner.submit(make_on_worker, {"order": self._order(stage)})
        future.add_done_callback(lambda ended: context.run(self._made, stage, end_of(stage, ended), done))

    def _made(self, stage: str, end: Made | RunError, done: Callable[[End], None]) -> None:
        if isinstance(end, Made | WorkerError):
            self._bring_home(stage, end.runs)
        if isinstance(end, Made):
            self._here.start(stage, lambda taken: self._taken(end, taken, done))
            return
        if isinstance(end, WorkerError):
            log = log_file(stage, root=self._plan.root)
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_bytes(end.log)
            end.where = f"{log.relative_to(self._plan.root)}, from {end.where}"
        done(end)

    def _bring_home(self, stage: str, runs: Runs) -> None:
        try:
            add_runs(self._plan.root, runs)
        except OSError as error:
            # As in the recorder itself: the stage is worth more than the note of it.
            self._progress.note(stage, f"this run is not in the manifest: {error.strerror}")

    def _taken(self, made: Made, taken: End, done: Callable[[End], None]) -> None:
        # Here, in the only thread that takes over, no other dvc process of ours writes the lock.
        self._lock = self._read_lock()
        if isinstance(taken, StageResult):
            log = log_file(made.result.stage, root=self._plan.root)
            log.write_bytes(made.log + b"\n" + log.read_bytes())
            if taken.outcome == "ran":
                self._progress.note(taken.stage, "ran here, as DVC did not find what the worker made")
            else:
                taken = replace(taken, outcome=made.result.outcome, seconds=made.result.seconds + taken.seconds)
        done(taken)

    def _order(self, stage: str) -> WorkerOrder:
        plan = self._plan
        parents = plan.graph.parents[stage]
        loose = (out for parent in parents for out in plan.graph.outs[parent] if out in plan.graph.in_git)
        return WorkerOrder(
            stage,
            plan.dvcfile,
            parents,
            self._lock,
            {name: content for out in loose for name, content in _files(plan.root, out)},
            not plan.graph.in_git.isdisjoint(plan.graph.outs[stage]),
            plan.request.command,
            plan.profile.retries,
            self._stop,
        )

    def _read_lock(self) -> bytes:
        path = self._plan.root / self._plan.dvcfile.with_suffix(".lock")
        return path.read_bytes() if path.exists() else b""


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
            # The worker only watches: what takes memory is the stage, a process of its own.
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


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}


def _files(root: Path, out: str) -> list[tuple[str, bytes]]:
    path = root / out
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(file.relative_to(root).as_posix(), file.read_bytes()) for file in files if file.is_file()]
