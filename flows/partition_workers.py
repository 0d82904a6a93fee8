# mypy: disallow-untyped-calls=False
"""The processes that do the tasks of a partitioned run: whether they are fit, and what they took."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dask.utils import format_bytes
from distributed import Client
from threadpoolctl import threadpool_info

from pipeline.errors import RunError, first_line
from pipeline.partitions.made_by import made_by

Item = TypeVar("Item")
Result = TypeVar("Result")
Make = dict[str, dict[str, str]]


class UnfitWorkerError(RunError):
    """A worker would leave other bytes, or leave them where we do not see them."""


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


def make_here() -> Make:
    """By what code and libraries this process would make parts."""
    return {"embed": made_by("embed"), "fold": made_by("fold")}


def _probe(file: str) -> Probe:
    kernels = {str(library.get("architecture")) for library in threadpool_info() if library["user_api"] == "blas"}
    try:
        seen = Path(file).read_text()
    except OSError as error:
        seen = first_line(error)
    return Probe(make_here(), tuple(sorted(kernels)), seen)


def peak_memory() -> int:
    """The largest resident memory this process ever had, in bytes."""
    # Not getrusage: it hands a parent's peak down through fork and exec.
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measured(function: Callable[[Item], Result], item: Item, make: Make) -> tuple[Result, Use]:
    """The result of the function, in a worker, and what it took. Raises UnfitWorkerError for another make."""
    if make_here() != make:  # a worker that came later than the probes
        raise _other_make(socket.gethostname(), make, make_here())
    start = time.process_time()
    result = function(item)
    return result, Use(socket.gethostname(), os.getpid(), 1, time.process_time() - start, peak_memory())
