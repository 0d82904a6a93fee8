"""What happens on a Dask worker: a checkout of its own, and stages run in it.

A worker never writes to the checkout that the run was started in. What it makes lies in the DVC cache
that both share, and in DVC's run cache there the note of what it was made from; the run then takes it
from there, by the same `dvc repro`, after DVC has compared every hash.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import distributed
from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.guard import start_guarded
from flows.profile import Retries
from flows.run_stage import StageResult, dvc_command, log_file, run_stage, stage_environment, wait_for
from flows.shared_cache import SharedCache
from flows.sources import unpack_sources
from pipeline.errors import RunError
from pipeline.lineage.manifest import take_runs
from pipeline.lineage.origin import Origin

PLUGIN = "sentfold-checkout"

# Dask tells its workers to use one thread each; how many a stage uses is for the one who started the run.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_")

# A worker only reads what it takes from the cache, so it need not copy it.
CONFIG = """[core]
    no_scm = true
[cache]
    dir = {cache}
    type = "reflink,hardlink,symlink,copy"
"""

STOP_POLL_SECONDS = 2.0


# Suite -> records of the run manifest.
Runs = Mapping[str, Sequence[Mapping[str, Any]]]


class WorkerError(RunError):
    """A stage failed on a worker. `log` is what it printed there, `runs` what the manifest there says of it."""

    log: bytes = b""
    runs: Runs = {}


class CheckoutPlugin(distributed.WorkerPlugin):
    """Gives each worker process a checkout of its own, below the worker's folder, for as long as it lives.

    sources      see pack_sources
    origin       what git says of them, for the manifest
    cache        DVC's cache, which this process and every worker can write
    environment  variables of the one who started the run; those of THREADS that are not in it are unset
    """

    name = PLUGIN

    def __init__(self, sources: bytes, origin: Origin, cache: SharedCache, environment: Mapping[str, str]) -> None:
        self.sources = sources
        self.origin = origin
        self.cache = cache
        self.environment = dict(environment)
        self.root = Path()

    def setup(self, worker: distributed.Worker) -> None:
        """Write the checkout. Raises RunError if this process does not see the cache."""
        if not self.cache.is_seen():
            raise RunError(
                "a Dask worker does not see the DVC cache",
                where=f"{worker.address}: {self.cache.folder}",
                expected="the folder that `dvc cache dir` names where the run was started",
                state="no stage was started",
                remedy="put the cache where every worker has it at the same path: dvc cache dir --local FOLDER",
            )
        self.turn = Lock()  # here, as a lock cannot be sent
        self.root = Path(worker.local_directory).absolute() / "checkout"
        shutil.rmtree(self.root, ignore_errors=True)
        unpack_sources(self.sources, self.root)
        self.origin.keep(self.root)
        (self.root / ".dvc/config.local").write_text(CONFIG.format(cache=self.cache.folder))
        for name in THREADS:
            os.environ.pop(name, None)
        os.environ.update(self.environment)

    def teardown(self, worker: distributed.Worker) -> None:
        """Remove the checkout."""
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True)
class WorkerOrder:
    """One stage to be made on a worker.

    dvcfile  of the suite, from the root
    parents  the stages whose outputs it reads
    lock     dvc.lock as it is now that they are made
    files    what they wrote that DVC does not cache, by path from the root
    in_git   whether the stage itself writes something that DVC does not cache
    stop     name of the Dask event that ends the stage
    """

    stage: str
    dvcfile: Path
    parents: tuple[str, ...]
    lock: bytes
    files: Mapping[str, bytes]
    in_git: bool
    resume: str
    retries: Retries
    stop: str


@dataclass(frozen=True)
class Made:
    """A stage that a worker made, what it printed, where, and what the manifest there says of it.

    The worker's checkout goes with the worker, and its manifest too, so the records travel with the result.
    """

    result: StageResult
    log: bytes
    worker: str
    runs: Runs


@task(name="stage on a worker", task_run_name="{order.stage}", persist_result=False, cache_policy=NO_CACHE)
def make_on_worker(order: WorkerOrder) -> Made:
    """Make one stage in this worker's checkout. Raises WorkerError if it fails."""
    worker = distributed.get_worker()
    plugin: Any = worker.plugins[PLUGIN]
    with plugin.turn:
        root, log = plugin.root, log_file(order.stage, root=plugin.root)
        take_runs(root)  # those of a stage that was ended before it could hand them over
        try:
            _receive_inputs(order, root)
            result = run_stage(
                order.stage,
                dvcfile=order.dvcfile,
                root=root,
                resume=order.resume,
                stop=ClusterStop(order.stop),
                retries=order.retries,
            )
            if order.in_git:
                _run_program(order, root, [sys.executable, "-m", "flows.note_run", order.stage])
        except RunError as error:
            raise _on_worker(error, worker.address, log, take_runs(root)) from None
        return Made(result, log.read_bytes(), worker.address, take_runs(root))


def stop_event(name: str, client: distributed.Client | None = None) -> Any:
    """The Dask event of that name, as this worker or a client sees it."""
    event: Any = distributed.Event
    return event(name, client=client)


class ClusterStop:
    """A Stop that whoever started the run can set from another machine."""

    def __init__(self, name: str) -> None:
        self._event = stop_event(name)
        self._asked = 0.0
        self._answer = False

    def is_set(self) -> bool:
        """Whether to end; asks the scheduler every two seconds."""
        if not self._answer and time.monotonic() - self._asked > STOP_POLL_SECONDS:
            self._answer = bool(self._event.is_set())
            self._asked = time.monotonic()
        return self._answer


def _receive_inputs(order: WorkerOrder, root: Path) -> None:
    lock = root / order.dvcfile.with_suffix(".lock")
    lock.unlink(missing_ok=True)
    if order.lock:  # an empty file is no lock to DVC
        lock.write_bytes(order.lock)
    for name, content in order.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    if order.parents:
        _run_program(order, root, dvc_command("checkout", "--force", *order.parents))


def _run_program(order: WorkerOrder, root: Path, command: Sequence[str]) -> None:
    """Run one of DVC's or our own programs in the checkout, its output behind what the log holds."""
    log = log_file(order.stage, root=root)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        begin = output.tell()
        code = wait_for(start_guarded(command, cwd=root, env=stage_environment(), output=output))
    if code:
        raise RunError(
            f"a worker could not exchange data of '{order.stage}' with the cache",
            where=" ".join(command[1:]),
            got=log.read_bytes()[begin:].decode("utf-8", "replace").strip(),
            state="the stage is not made",
            remedy="the worker and this machine have to see the same DVC cache",
        )


def _on_worker(error: RunError, address: str, log: Path, runs: Runs) -> WorkerError:
    told = WorkerError(
        error.what,
        where=f"worker {address}",
        expected=error.expected,
        got=error.got,
        state=error.state,
        remedy=error.remedy,
    )
    told.log = log.read_bytes() if log.exists() else b""
    told.runs = runs
    return told
