# mypy: disallow-untyped-calls=False
"""Run stages on Dask workers: on a cluster of this run's own on this machine, or on one that is there.

Every worker works in the one checkout, which on other machines has to be mounted at the same path. Prefect's tasks wait
in the flow's process for what the workers make, so a worker needs no Prefect server, and no password of one.
"""

from __future__ import annotations

import fcntl
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import distributed

from flows.dask_cluster import existing_cluster, is_encrypted, local_cluster
from flows.environment import travelling
from flows.lock import LOCK_FILE
from flows.plan import Plan
from flows.run_stage import Maker, Order, StageResult, run_stage
from flows.schedule import order_of
from sentfold.errors import RunError

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


@contextmanager
def stages_on_workers(plan: Plan) -> Iterator[Maker]:
    """A Dask cluster for the length of a `with` block, which makes the stages of a plan.

    Raises UnreachableClusterError if the plan's request names a cluster that does not answer.
    """
    address, lock = plan.request.address, plan.root / LOCK_FILE
    sent = travelling(encrypted=is_encrypted(address)) if address else {}
    order, end = replace(order_of(plan), sent=sent), RunEnded(plan.root, lock.read_bytes())
    # No limit: the worker only watches. The memory is taken by the stage, a process of its own.
    with existing_cluster(address) if address else local_cluster(plan.request.jobs, None) as client:

        def make(stage: str) -> StageResult:
            key = f"{stage}-{uuid.uuid4().hex[:8]}"
            made: StageResult = client.submit(make_on_worker, stage, order, end, key=key).result()
            return made

        def stop() -> None:
            """Tell the workers that the run has ended: the lock is empty then; see RunEnded."""
            lock.write_bytes(b"")

        yield make, stop


def make_on_worker(stage: str, order: Order, stop: RunEnded) -> StageResult:
    """Bring one stage up to date in the checkout, from a worker process. Raises RunError if the stage fails."""
    if stop.is_set():
        raise RunError(
            "a Dask worker does not see the checkout of the run, or the run has ended",
            where=f"{distributed.get_worker().address}: {order.root}",
            expected="the checkout of the run at the same path",
            state="the stage was not started",
            remedy="mount the checkout where every worker finds it at this path",
        )
    return run_stage(stage, order, stop=stop)
