"""kill -9 of a Dask worker under a run."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import Disturbed
from tests.faults.prefect_server import Server
from tests.faults.processes import RUN, is_dask_worker, is_stage, strike
from tests.faults.repetition import injections


@pytest.mark.parametrize("number", injections())
def test_a_dask_worker_that_is_killed_takes_its_stage_along_and_nothing_else(
    number: int, server: Server, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for _ in range(5):
        disturbed = disturb("transforms")
        server.lend(disturbed.starter)
        command = disturbed.starter.start(*RUN, "--runner", "dask")
        victim = command.await_role(is_dask_worker)
        command.await_role(is_stage)
        delay = moments.uniform(0, 1.0)
        time.sleep(delay)
        if victim is not None and strike(victim, signal.SIGKILL):
            command.wait()
            disturbed.judge("kill -9 of a Dask worker", f"{delay:.3f} s after the first stage began", command)
            return
    pytest.fail("five times the worker ended before it was struck")
