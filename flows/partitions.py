# mypy: disallow-untyped-calls=False
"""One huge corpus on Dask workers: the tasks of pipeline/partitions, sent to a cluster of ours or of others.

Dask's futures, and not a Prefect flow with its DaskTaskRunner: the tasks are thousands, each a function of
files that leaves a receipt. What a flow would add (states, retries, results kept) is there already, and costs a
server, which takes 10 s to start, and some 0.3 s a task. That a task whose worker died goes to another, Dask's
scheduler sees to itself. Stages go to clusters by Prefect, rows by this.
"""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import dask
from dask.utils import format_bytes, parse_bytes
from distributed import Client, Future, LocalCluster
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker
from threadpoolctl import threadpool_info
from tqdm import tqdm

from pipeline.errors import ParameterError, RunError, first_line
from pipeline.partitions.fold import Summary, fold_partitions
from pipeline.partitions.made_by import made_by
from pipeline.partitions.request import Request

Item = TypeVar("Item")
Result = TypeVar("Result")
Make = dict[str, dict[str, str]]

PATIENCE_SECONDS = 120.0  # without any worker, before a run gives up
ANSWER_SECONDS = 20.0  # for a scheduler's first answer
POLL_SECONDS = 2.0

# Workers keep nothing of ours in Dask's memory that could be spilled or waited for: all results are files. A
# worker above its limit is ended, and not paused until memory comes free that never will.
MEMORY = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.95,
}


class UnreachableClusterError(RunError):
    """No scheduler answers, or it has no worker."""


class UnfitWorkerError(RunError):
    """A worker would leave other bytes, or leave them where we do not see them."""


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


# --- clusters ------------------------------------------------------------------------------------


@contextmanager
def local_cluster(workers: int, memory_limit: str) -> Iterator[Client]:
    """Processes on this machine, one thread each, for the length of a `with` block; they die with this one.

    memory_limit  of each, as Dask reads it: 2GB, 1.5GiB. One that takes 95 % of it is ended, and started anew.
    """
    try:
        parse_bytes(memory_limit)
    except ValueError as error:
        raise ParameterError(
            "this is no size of a memory", where="--memory-limit", expected="e.g. 2GB or 1.5GiB", got=first_line(error)
        ) from None
    with (
        TemporaryDirectory(prefix="sentfold-dask-") as folder,
        dask.config.set(MEMORY),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory_limit,
            host="127.0.0.1",
            dashboard_address=None,
            local_directory=folder,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def existing_cluster(address: str) -> Iterator[Client]:
    """A cluster that others started, e.g. tcp://scheduler:8786, for the length of a `with` block.

    Raises UnreachableClusterError if nobody answers there or no worker comes.
    """
    try:
        client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UnreachableClusterError(
            "no Dask scheduler answers",
            where=address,
            expected=f"an answer within {ANSWER_SECONDS:.0f} s",
            got=first_line(error),
            remedy="check the address (e.g. tcp://host:8786) and that the scheduler runs",
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=ANSWER_SECONDS)
        except TimeoutError:
            raise UnreachableClusterError(
                "the Dask cluster has no workers",
                where=address,
                remedy=f"start some: dask worker {address} --nthreads 1 --memory-limit 2GB",
            ) from None
        yield client


# --- workers -------------------------------------------------------------------------------------


@dataclass
class Use:
    """What one worker process took. peak: the largest resident memory it ever had, in bytes."""

    host: str
    pid: int
    tasks: int = 0
    cpu_seconds: float = 0.0
    peak: int = 0

    def __str__(self) -> str:
        return (
            f"worker {self.pid} on {self.host}: {self.tasks} tasks, {self.cpu_seconds:.1f} s CPU, "
            f"peak {format_bytes(self.peak)}"
        )


@dataclass(frozen=True)
class Probe:
    """What a worker says of itself."""

    made_by: Make
    kernels: tuple[str, ...]
    seen: str


def require_fit_workers(client: Client, target: Path) -> None:
    """Refuse a cluster with workers that run other code or libraries, several threads, or see another `target`.

    target  an existing folder; nothing stays in it
    Warns on stderr where processors differ: parts then agree within rounding, not to the bit.
    Raises UnfitWorkerError.
    """
    token = uuid.uuid4().hex
    file = target.absolute() / f".probe.{token}.tmp"
    file.write_text(token)
    try:
        probes: dict[str, Probe] = client.run(_probe, str(file))
    finally:
        file.unlink()
    here = _probe(os.devnull)
    threads = {address: info["nthreads"] for address, info in client.scheduler_info(n_workers=-1)["workers"].items()}
    for address, probe in probes.items():
        if probe.made_by != here.made_by:
            raise _other_make(address, here.made_by, probe.made_by)
        if probe.seen != token:
            raise _unfit(address, "another file system", f"{target.absolute()} to be one folder", probe.seen)
        if threads.get(address, 1) != 1:
            # Limits on BLAS are a process's, so tasks side by side could lift each other's; and so is memory.
            raise _unfit(
                address, "several threads", "--nthreads 1, and as many workers as wanted", str(threads[address])
            )
    kinds = {probe.kernels for probe in probes.values()}
    if len(kinds) > 1:
        logging.getLogger(__name__).warning("workers have processors of %d kinds: parts agree to rounding", len(kinds))


def _unfit(where: str, what: str, expected: str, got: str) -> UnfitWorkerError:
    return UnfitWorkerError(
        f"a worker has {what}",
        where=where,
        expected=expected,
        got=got,
        state="finished parts are kept",
        remedy="start the workers from a checkout of this commit, with requirements.lock, on a shared folder",
    )


def _other_make(where: str, here: Make, there: Make) -> UnfitWorkerError:
    """Told by the first thing that differs."""
    family, name = next((f, n) for f in here for n in here[f] if there[f].get(n) != here[f][n])
    return _unfit(where, "other code or libraries", f"{name} {here[family][name]}", f"{name} {there[family].get(name)}")


def _make() -> Make:
    return {"embed": made_by("embed"), "fold": made_by("fold")}


def _probe(file: str) -> Probe:
    kernels = {str(library.get("architecture")) for library in threadpool_info() if library["user_api"] == "blas"}
    try:
        seen = Path(file).read_text()
    except OSError as error:
        seen = first_line(error)
    return Probe(_make(), tuple(sorted(kernels)), seen)


def peak_memory() -> int:
    """The largest resident memory this process ever had, in bytes."""
    # Not getrusage: it hands a parent's peak down through fork and exec.
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _measured(function: Callable[[Item], Result], item: Item, make: Make) -> tuple[Result, Use]:
    if _make() != make:  # a worker that came later than the probes
        raise _other_make(socket.gethostname(), make, _make())
    start = time.process_time()
    result = function(item)
    return result, Use(socket.gethostname(), os.getpid(), 1, time.process_time() - start, peak_memory())


# --- tasks ---------------------------------------------------------------------------------------


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
        make = _make()
        futures = [
            self.client.submit(_measured, function, item, make, key=f"{label.replace(' ', '-')}-{run}-{number}")
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
        last = time.monotonic()
        while True:
            try:
                return done.get(timeout=POLL_SECONDS)
            except Empty:
                if self.client.status == "running" and self.client.scheduler_info()["workers"]:
                    last = time.monotonic()
                elif time.monotonic() - last > PATIENCE_SECONDS or self.client.status == "closed":
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
