"""kill -9 of the Prefect server under a run."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import Disturbed
from tests.faults.prefect_server import Server
from tests.faults.processes import RUN, is_server, is_stage, strike
from tests.faults.repetition import delays, injections


@pytest.mark.parametrize("number", injections())
def test_a_run_whose_prefect_server_is_killed_says_so_and_the_next_one_finishes(
    number: int, server: Server, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for delay in delays(moments, 2.0):
        disturbed = disturb("transforms" if number % 2 == 0 else "space")
        server.isolate(disturbed.starter)
        command = disturbed.starter.start(*RUN)
        victim, since = command.await_role(is_server), "it began"
        if number % 2 == 0:
            command.await_role(is_stage)
            since = "a stage began"
        time.sleep(delay)
        if victim is not None and strike(victim, signal.SIGKILL):
            code = command.wait()
            assert "Traceback" not in command.printed, command.printed
            assert code == 0 or "error: Prefect's temporary server" in command.printed, command.printed
            disturbed.judge("kill -9 of the Prefect server", f"{delay:.3f} s after {since}", command)
            return
    pytest.fail(f"each time the server ended before it was struck:\n{command.printed}")
