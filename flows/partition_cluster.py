# mypy: disallow-untyped-calls=False
"""The Dask cluster that partitions go to: processes of this machine, or one that others started."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import dask
from dask.utils import parse_bytes
from distributed import Client, LocalCluster
from distributed.utils import silence_logging_cmgr

from pipeline.errors import ParameterError, RunError, first_line

ANSWER_SECONDS = 30.0  # for a scheduler's first answer
WORKERS_SECONDS = 120.0  # for the first worker to come

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
    # Of a scheduler that is gone, Dask's client tells by tracebacks; we tell it by an error of our own.
    with silence_logging_cmgr(logging.CRITICAL), client:
        try:
            client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TimeoutError:
            raise UnreachableClusterError(
                "the Dask cluster has no workers",
                where=address,
                expected=f"one within {WORKERS_SECONDS:.0f} s",
                remedy=f"start some: dask worker {address} --nthreads 1 --memory-limit 2GB",
            ) from None
        yield client
