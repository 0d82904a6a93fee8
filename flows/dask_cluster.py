# mypy: disallow-untyped-calls=False
"""A Dask cluster of a run's own, which lets nobody else in, or one that is running."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import dask
import typer
from dask.utils import parse_bytes
from distributed import Client, LocalCluster
from distributed.security import Security
from distributed.utils import silence_logging_cmgr

from sentfold.errors import ParameterError, RunError, first_line

ANSWER_SECONDS = 30.0  # for a scheduler's first answer
WORKERS_SECONDS = 120.0  # until the first worker joins

# All results are files, so a worker has nothing to spill or to wait for. A worker above its limit is ended. The pages
# that tell what runs, and what was logged, know no password: there are none.
SETTINGS = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.95,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


class UnreachableClusterError(RunError):
    """No scheduler answers, or it has no worker."""


@contextmanager
def local_cluster(workers: int, memory_limit: str | None) -> Iterator[Client]:
    """Processes on this machine, one thread each, for the length of a `with` block; they die with this process.

    memory_limit  of each, as Dask reads it: 2GB, 1.5GiB. A worker that takes 95 % of it is ended and started anew.
    They talk by TLS on loopback. Only they and this process have the key, which is made for the block.
    """
    try:
        parse_bytes(memory_limit or 0)
    except ValueError as error:
        raise ParameterError(
            "this is no size of a memory", where="--memory-limit", expected="e.g. 2GB or 1.5GiB", got=first_line(error)
        ) from None
    with (
        TemporaryDirectory(prefix="sentfold-dask-") as folder,
        # The scheduler, too: Dask looks for modules in its scratch folder first, and anybody can make that of /tmp.
        dask.config.set({**SETTINGS, "temporary-directory": folder}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory_limit,
            host="127.0.0.1",
            security=Security.temporary(),
            dashboard_address=None,
            local_directory=folder,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def existing_cluster(address: str) -> Iterator[Client]:
    """A cluster that is running, e.g. tls://scheduler:8786, for the length of a `with` block.

    Prints a warning if it does not use TLS. Raises UnreachableClusterError if no scheduler answers or no worker joins.
    """
    if not is_encrypted(address):
        typer.echo(
            f"warning: {address} is without TLS: whoever reaches the ports of its scheduler or workers runs code under "
            "their account, and all that is sent can be read; flows/examples/README.md shows a cluster with TLS",
            err=True,
        )
    _require_certificate(address)
    try:
        client = Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, TypeError, ValueError, TimeoutError) as error:
        raise UnreachableClusterError(
            "no Dask scheduler answers",
            where=address,
            expected=f"an answer within {ANSWER_SECONDS:.0f} s",
            got=first_line(error),
            remedy="check the address (e.g. tls://host:8786), that the scheduler runs, and the certificate",
        ) from None
    # Dask's client logs tracebacks when a scheduler is gone; this module raises an error of its own.
    with silence_logging_cmgr(logging.CRITICAL), client:
        try:
            client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TimeoutError:
            raise UnreachableClusterError(
                "the Dask cluster has no workers",
                where=address,
                expected=f"one within {WORKERS_SECONDS:.0f} s",
                remedy=f"start some as docs/cluster.md does: python -m flows.launch dask worker {address} --nthreads 1 "
                "--memory-limit 0",
            ) from None
        yield client


def _require_certificate(address: str) -> None:
    """Raise UnreachableClusterError where this process's settings of TLS do not fit: Dask would try for a minute."""
    files = ("distributed.comm.tls.ca-file", "distributed.comm.tls.client.cert")
    if is_encrypted(address) and (lacking := [name for name in files if not dask.config.get(name, None)]):
        got, expected = f"no {', '.join(lacking)} in the settings of Dask", "a certificate of the cluster"
        remedy = "set the certificate in this terminal, as flows/examples/dask-tls.sh does"
    elif not is_encrypted(address) and dask.config.get("distributed.comm.require-encryption", None):
        got, expected = "settings of Dask that require encryption", "an address that begins with tls://"
        remedy = "give the tls:// address of the scheduler"
    else:
        return
    raise UnreachableClusterError(
        "the scheduler cannot be asked", where=address, expected=expected, got=got, remedy=remedy
    )


def is_encrypted(address: str) -> bool:
    """Whether a scheduler's address is one of TLS; there, who has no certificate of the cluster is let in nowhere."""
    return address.startswith("tls://")
