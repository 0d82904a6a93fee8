# mypy: disallow-untyped-calls=False
"""One huge corpus on Dask workers: the tasks of pipeline/partitions, sent to a cluster of ours or of others.

Dask's futures, and not a Prefect flow with its DaskTaskRunner: the tasks are thousands, each a function of
files that leaves a receipt. What a flow would add (states, retries, results kept) is there already, and costs a
server, which takes 10 s to start, and some 0.3 s a task. That a task whose worker died goes to another, Dask's
scheduler sees to itself. Stages go to clusters by Prefect, rows by this.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from distributed import Client, Future
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker
from tqdm import tqdm

from flows.partition_cluster import existing_cluster, local_cluster
from flows.partition_workers import Use, make_here, measured, require_fit_workers
from pipeline.errors import RunError, first_line
from pipeline.partitions.fold import Summary, fold_partitions
from pipeline.partitions.request import Request

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE_SECONDS = 300.0  # without any worker, before a run gives up
POLL_SECONDS = 2.0


class DyingWorkerError(RunError):
    """A task has ended one worker after another."""


class LostClusterError(RunError):
    """The scheduler, or every worker, was lost on the way."""


def fold_on_dask(
    source: Path, target: Path, request: Request, *, address: str | None, workers: int, memory_limit: str
) -> tuple[Summary, list[Use]]:
    """fold_partitions on Dask workers: the same bytes as without; and what each worker process took.

    address       of a scheduler whose workers see `source` and `target` under these names, one thread each; None:
                  `workers` processes of this machine, each ended and started anew above `memory_limit`
    Raises what fold_partitions raises, and UnreachableClusterError, UnfitWorkerError, DyingWorkerError,
    LostClusterError; in each case the same call goes on from the parts that stand.
    """
    with existing_cluster(address) if address else local_cluster(workers, memory_limit) as client:
        mapper = DaskMapper(client, target)
        summary = fold_partitions(source, target, request, mapper=mapper)
    return summary, sorted(mapper.uses.values(), key=lambda use: (use.host, use.pid))


@dataclass
class DaskMapper:
    """A Mapper that has a cluster do the work.

    target  the folder that all workers must see and be fit for; they are asked at the first call
    uses    which process did how much, by host and pid
    """

    client: Client
    target: Path
    uses: dict[tuple[str, int], Use] = field(default_factory=dict)
    _asked: bool = False

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], *, label: str) -> list[Result]:
        """The results in the order of the items. The first that fails ends the call; what is done stays done.

        A task whose worker dies is given to another, as often as the scheduler's allowed-failures says.
        Raises what the function raises, DyingWorkerError, LostClusterError.
        """
        if not self._asked:
            require_fit_workers(self.client, self.target)
            self._asked = True
        run, done = uuid.uuid4().hex[:8], SimpleQueue[Future[Any]]()
        make = make_here()
        futures = [
            self.client.submit(measured, function, item, make, key=f"{label.replace(' ', '-')}-{run}-{number}")
            for number, item in enumerate(items)
        ]
        try:
            for future in futures:
                future.add_done_callback(done.put)
            for _ in tqdm(futures, desc=label, unit=" parts", disable=None):
                self._settle(self._next(done), label)
            return [future.result()[0] for future in futures]
        finally:
            self.client.cancel(futures, force=True)

    def _next(self, done: SimpleQueue[Future[Any]]) -> Future[Any]:
        """The next future that is done; LostClusterError if there is nobody left to do one."""
        waited = 0.0  # counted and not read from a clock: a machine that slept has not waited
        while True:
            try:
                return done.get(timeout=POLL_SECONDS)
            except Empty:
                alive = self.client.status == "running" and self.client.scheduler_info()["workers"]
                waited = 0.0 if alive else waited + POLL_SECONDS
                if waited > PATIENCE_SECONDS or self.client.status == "closed":
                    raise _lost(f"no worker for {PATIENCE_SECONDS:.0f} s") from None

    def _settle(self, future: Future[Any], label: str) -> None:
        try:
            _, use = future.result()
        except KilledWorker as error:
            raise DyingWorkerError(
                f"a task has ended {error.allowed_failures + 1} workers in a row",
                where=f"{label}: {error.task}",
                got=f"the last was {error.last_worker.address}",
                state="finished parts are kept",
                remedy="mostly it needs more memory than a worker may take: raise --memory-limit, or lower "
                "--partition-rows or --landmarks, and run again",
            ) from None
        except (CancelledError, CommClosedError) as error:
            raise _lost(first_line(error)) from None
        total = self.uses.setdefault((use.host, use.pid), Use(use.host, use.pid))
        total.tasks += 1
        total.cpu_seconds += use.cpu_seconds
        total.peak = max(total.peak, use.peak)


def _lost(got: str) -> LostClusterError:
    return LostClusterError(
        "the Dask cluster was lost",
        got=got,
        state="finished parts are kept",
        remedy="start it again, then the same command: it goes on from what stands",
    )
