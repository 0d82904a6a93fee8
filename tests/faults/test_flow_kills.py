"""kill -9, SIGTERM, SIGINT and Ctrl-C of `sentfold run`, the flow."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import Disturbed
from tests.faults.prefect_server import Server
from tests.faults.processes import RUN, is_server, is_stage, press_ctrl_c, strike
from tests.faults.repetition import injections

SIGNALS = {"kill -9": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}


@pytest.mark.parametrize(
    ("name", "number"),
    [*injections("kill -9"), *injections("SIGTERM", default=1), *injections("SIGINT", default=1)],
)
def test_a_flow_that_is_ended_leaves_no_process_and_no_half_artifact(
    name: str, number: int, server: Server, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for _ in range(5):
        disturbed = disturb("transforms" if number % 2 == 0 else "space")
        server.lend(disturbed.starter)
        command = disturbed.starter.start(*RUN)
        # Half of the time before the first stage, half of it while there are some.
        if moments.random() < 0.5:
            command.await_role(is_stage)
            delay, since = moments.uniform(0, 2.0), "its first stage"
        else:
            delay, since = moments.uniform(0, 4.0), "its start"
        time.sleep(delay)
        if command.process.poll() is None and strike(command.process.pid, SIGNALS[name]):
            command.wait()
            disturbed.judge(f"{name} of sentfold run", f"{delay:.3f} s after {since}", command)
            return
    pytest.fail("five times the run ended before it was struck")


@pytest.mark.skipif(shutil.which("setsid") is None, reason="no setsid, which puts a run on a terminal of its own")
@pytest.mark.parametrize("number", injections(default=1))
def test_ctrl_c_on_the_terminal_ends_a_flow_and_its_server(
    number: int, server: Server, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for _ in range(5):
        disturbed = disturb("transforms")
        server.isolate(disturbed.starter)
        command, keyboard = disturbed.starter.start_on_terminal(*RUN)
        command.await_role(is_stage if number % 2 == 0 else is_server)
        delay = moments.uniform(0, 2.0)
        time.sleep(delay)
        struck = press_ctrl_c(command, keyboard)
        command.wait()
        os.close(keyboard)
        if struck:
            # The server was not interrupted along with the flow, which needs it to the end.
            assert "temporary server" not in command.printed, command.printed
            disturbed.judge("Ctrl-C of sentfold run", f"{delay:.3f} s after it began", command)
            return
    pytest.fail("five times the run ended before it was interrupted")
