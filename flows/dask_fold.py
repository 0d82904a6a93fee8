# mypy: disallow-untyped-calls=False
"""The tasks of a fold on Dask workers: `sentfold fold --workers N`, or `--address` of a running scheduler.

The workers see source and target by the same names, or get files through a DVC remote (see fold_route.py).

The tasks go to Dask directly, and not through Prefect: they are thousands, each leaves a receipt, and a Prefect flow
would cost 0.3 s for each. Dask gives the task of a worker that died to another worker.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from distributed import Client, as_completed
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker
from tqdm import tqdm

from flows.dask_cluster import existing_cluster, local_cluster
from flows.fold_route import RemoteExecutor
from flows.profile import read_profile
from flows.transfer import Remote
from sentfold.errors import RunError, first_line
from sentfold.fold.fold import FoldSettings, Summary, fold_files
from sentfold.fold.tasks import code_of

Item = TypeVar("Item")
Result = TypeVar("Result")
Code = dict[str, dict[str, str]]


class UnfitWorkerError(RunError):
    """A worker would write other bytes, or would write them into another folder."""


class DyingWorkerError(RunError):
    """A task has ended one worker after another."""


class LostClusterError(RunError):
    """The scheduler, or every worker, was lost during the fold."""


@dataclass(frozen=True)
class FoldCluster:
    """The Dask workers of a fold.

    address       of a scheduler, whose workers have one thread each; None: processes of this machine
    workers       number of these processes
    memory_limit  of each of them: above it, the process is ended and started anew
    remote        the DVC remote through which files go to the workers and back; None: the workers of `address` see
                  source and target by the same names
    """

    address: str | None = None
    workers: int = 0
    memory_limit: str = "2GB"
    remote: str | None = None

    def __post_init__(self) -> None:
        """Raise RunError if there is a remote without an address."""
        if self.remote and not self.address:
            raise RunError(
                "a remote is for the workers of a running cluster",
                where="--remote",
                expected="--address of a Dask scheduler",
                got=f"--remote {self.remote} alone",
                state="nothing was run",
                remedy="--address tls://HOST:8786 --remote NAME, where `dvc remote list` has NAME; or leave it out",
            )


def fold_on_dask(source: Path, target: Path, settings: FoldSettings, cluster: FoldCluster) -> Summary:
    """fold_files on Dask workers, with the same bytes.

    A remote is that of the checkout in the current folder.
    Raises what fold_files raises, the errors of this module, and those of the cluster; the same call continues.
    """
    address, root = cluster.address, Path.cwd()
    with existing_cluster(address) if address else local_cluster(cluster.workers, cluster.memory_limit) as client:
        if cluster.remote is None:
            return fold_files(source, target, settings, executor=DaskExecutor(client, target))
        remote = Remote(cluster.remote, read_profile(root, None).retries.remote)
        executor = RemoteExecutor.open(DaskExecutor(client, None), target, root, remote)
        summary = fold_files(source, target, settings, executor=executor)
        executor.clear()
        return summary


@dataclass
class DaskExecutor:
    """An Executor whose calls are made by a cluster.

    target  the folder that all workers must see, if there is one; the workers are checked at the first call
    """

    client: Client
    target: Path | None
    _checked: bool = False

    @property
    def threads(self) -> int:
        """One: the limits on BLAS and on memory are those of a process."""
        return 1

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        label: str,
        done: Callable[[int, Result], None] | None = None,
    ) -> list[Result]:
        """The results in the order of the items. The first call that fails ends all; finished parts are kept.

        done  is told the number of an item and its result, as soon as there is one
        A task whose worker dies is given to another, as often as the scheduler's allowed-failures says.
        Raises what the function raises, UnfitWorkerError, DyingWorkerError, LostClusterError.
        """
        if not self._checked:
            require_fit_workers(self.client, self.target)
            self._checked = True
        run, code = f"{label.replace(' ', '-')}-{uuid.uuid4().hex[:8]}", code_here()
        futures = [
            self.client.submit(call_with_code, function, item, code, key=f"{run}-{number}")
            for number, item in enumerate(items)
        ]
        numbers = {future: number for number, future in enumerate(futures)}
        try:
            for future in tqdm(
                as_completed(futures, loop=self.client.loop),
                total=len(futures),
                desc=label,
                unit=" parts",
                disable=None,
            ):
                result = future.result()
                if done:
                    done(numbers[future], result)
            return [future.result() for future in futures]
        except KilledWorker as error:
            raise _dying(error, label) from None
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise LostClusterError(
                "the Dask cluster was lost",
                got=first_line(error),
                state="finished parts are kept",
                remedy="start the cluster again, then the same command: it continues from the finished parts",
            ) from None
        finally:
            self.client.cancel(futures, force=True)


def call_with_code(function: Callable[[Item], Result], item: Item, code: Code) -> Result:
    """The result of the function, in a worker. Raises UnfitWorkerError for other code: the worker joined late."""
    if code_here() != code:
        raise _other_code(socket.gethostname(), code, code_here())
    return function(item)


def _dying(error: KilledWorker, label: str) -> DyingWorkerError:
    return DyingWorkerError(
        f"a task has ended {error.allowed_failures + 1} workers in a row",
        where=f"{label}: {error.task}",
        got=f"the last was {error.last_worker.address}",
        state="finished parts are kept",
        remedy="mostly the task needs more memory than a worker may take: raise --memory-limit, or lower "
        "--partition-rows or --landmarks, and run again",
    )


def require_fit_workers(client: Client, target: Path | None) -> None:
    """Refuse workers with other code or libraries, with several threads, or with another folder `target`.

    target  an existing folder; nothing stays in it. None: the workers need to see no folder
    Raises UnfitWorkerError.
    """
    token = uuid.uuid4().hex
    file = target.absolute() / f".probe.{token}.tmp" if target else Path(os.devnull)
    if target:
        file.write_text(token)
    try:
        probes: dict[str, tuple[Code, str]] = client.run(_probe, str(file))
    finally:
        if target:
            file.unlink()
    code = code_here()
    threads = {address: info["nthreads"] for address, info in client.scheduler_info(n_workers=-1)["workers"].items()}
    for address, (worker_code, content) in probes.items():
        if worker_code != code:
            raise _other_code(address, code, worker_code)
        if target and content != token:
            raise _unfit(address, "another file system", f"{target.absolute()} to be one folder", content)
        if threads.get(address, 1) != 1:
            raise _unfit(
                address, "several threads", "--nthreads 1, and as many workers as wanted", str(threads[address])
            )


def code_here() -> Code:
    """The code and libraries of this process."""
    return {"embed": code_of("embed"), "fold": code_of("fold")}


def _probe(file: str) -> tuple[Code, str]:
    """The code of a worker, and what it reads in a file of the target."""
    try:
        return code_here(), Path(file).read_text()
    except OSError as error:
        return code_here(), first_line(error)


def _unfit(where: str, what: str, expected: str, got: str) -> UnfitWorkerError:
    return UnfitWorkerError(
        f"a worker has {what}",
        where=where,
        expected=expected,
        got=got,
        state="finished parts are kept",
        remedy="start the workers from a checkout of this commit, with requirements.lock, on a shared folder (or fold "
        "with --remote), and for equal kernels with the environment of sentfold/numeric_profile.py",
    )


def _other_code(where: str, here: Code, there: Code) -> UnfitWorkerError:
    """The error that names the first difference."""
    family, name = next((f, n) for f in here for n in here[f] if there[f].get(n) != here[f][n])
    return _unfit(where, "other code or libraries", f"{name} {here[family][name]}", f"{name} {there[family].get(name)}")


def fold_by_order(order: str) -> str:
    """Fold as the JSON of `sentfold fold` orders; the text of what was done."""
    content = json.loads(order)
    source, target = Path(content.pop("source")), Path(content.pop("target"))
    settings = FoldSettings.model_validate(content.pop("settings"))
    return f"{target / 'folded'}: {fold_on_dask(source, target, settings, FoldCluster(**content))}"
