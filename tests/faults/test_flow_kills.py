"""kill -9, SIGTERM, SIGINT and Ctrl-C of `sentfold run`, the flow, and two of them at once."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import Disturbed
from tests.faults.prefect_server import Server
from tests.faults.processes import RUN, is_server, is_stage, press_ctrl_c, strike
from tests.faults.repetition import delays, injections
from tests.flows.checkout import until

SIGNALS = {"kill -9": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}


@pytest.mark.parametrize(
    ("name", "number"),
    [*injections("kill -9"), *injections("SIGTERM"), *injections("SIGINT")],
)
def test_a_flow_that_is_ended_leaves_no_process_and_no_half_artifact(
    name: str, number: int, server: Server, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # Half of the time before the first stage, half of it while there are some.
    seconds, since = (2.0, "its first stage") if moments.random() < 0.5 else (4.0, "its start")
    for delay in delays(moments, seconds):
        disturbed = disturb("transforms" if number % 2 == 0 else "space")
        command = disturbed.starter.start(*RUN)
        if since == "its first stage":
            command.await_role(is_stage)
        time.sleep(delay)
        if command.process.poll() is None and strike(command.process.pid, SIGNALS[name]):
            command.wait()
            disturbed.judge(f"{name} of sentfold run", f"{delay:.3f} s after {since}", command)
            return
    pytest.fail(f"each time the run ended before it was struck:\n{command.printed}")


@pytest.mark.skipif(shutil.which("setsid") is None, reason="no setsid, which puts a run on a terminal of its own")
@pytest.mark.parametrize("number", injections())
def test_ctrl_c_on_the_terminal_ends_a_flow_and_its_server(
    number: int, server: Server, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for delay in delays(moments, 2.0):
        disturbed = disturb("transforms")
        server.isolate(disturbed.starter)
        command, keyboard = disturbed.starter.start_on_terminal(*RUN)
        command.await_role(is_stage if number % 2 == 0 else is_server)
        time.sleep(delay)
        struck = press_ctrl_c(command, keyboard)
        command.wait()
        os.close(keyboard)
        if struck:
            # The server was not interrupted along with the flow, which needs it to the end.
            assert "temporary server" not in command.printed, command.printed
            disturbed.judge("Ctrl-C of sentfold run", f"{delay:.3f} s after it began", command)
            return
    pytest.fail(f"each time the run ended before it was interrupted:\n{command.printed}")


@pytest.mark.parametrize("number", injections(slow=5))
def test_a_second_flow_says_whom_it_waits_for_and_finds_everything_done(
    number: int, server: Server, disturb: Callable[[str], Disturbed]
) -> None:
    disturbed = disturb("transforms" if number % 2 == 0 else "space")
    first = disturbed.starter.start(*RUN)
    assert first.await_role(is_stage) is not None, first.printed
    # Stopped, it keeps the checkout for as long as the second one takes to come to the lock.
    assert strike(first.process.pid, signal.SIGSTOP)
    second = disturbed.starter.start(*RUN)
    try:
        until(lambda: "waiting: " in second.printed or second.process.poll() is not None, "the second run to wait")
    finally:
        strike(first.process.pid, signal.SIGCONT)
    holder = rf"held by process {first.process.pid} on {re.escape(socket.gethostname())} since \d{{4}}-\d\d-\d\dT\S+: "
    assert re.search(holder + "sentfold run --suite quick --jobs 2", second.printed), second.printed
    assert (first.wait(), second.wait()) == (0, 0), first.printed + second.printed
    assert "stages are stale" in first.printed
    assert "everything is up to date" in second.printed, "it asked only after it had the lock"
    disturbed.judge("two sentfold run at once", "the second during a stage of the first", second)
