"""kill -9, SIGTERM and SIGINT of `sentfold run`, the flow, and kill -9 of the Prefect server under it."""

from __future__ import annotations

import inspect
import random
import re
import signal
import socket
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from flows.server import DATABASE
from pipeline.__main__ import run
from tests.faults.conftest import Disturbed
from tests.faults.processes import PATIENCE_SECONDS, RUN, Command, Starter, is_dask_worker, is_server, is_stage, strike
from tests.faults.repetition import injections


@dataclass
class Server:
    """A Prefect server of our own: where it answers, and its folder with the database."""

    url: str
    home: Path

    def lend(self, starter: Starter) -> None:
        """Let commands use this server."""
        self.isolate(starter)
        starter.environment["PREFECT_API_URL"] = self.url

    def isolate(self, starter: Starter) -> None:
        """Let commands start their own server, on a database that has its tables: to make them takes ten seconds."""
        for name in [name for name in starter.environment if re.match("PREFECT_|SENTFOLD_", name)]:
            del starter.environment[name]
        starter.environment["PREFECT_HOME"] = str(self.home)
        target = starter.root / DATABASE
        target.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.home / "prefect.db")) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("prefect")
    starter = Starter(home, home)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = Server(f"http://127.0.0.1:{port}/api", home)
    starter.environment |= {
        "PREFECT_HOME": str(home),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home / 'prefect.db'}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    }
    words = ("-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-services", "--no-ui")
    process = starter.start(*words)
    try:
        _await_answer(made.url, process)
        yield made
    finally:
        starter.end()


def _await_answer(url: str, process: Command) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and process.process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=2.0).close()
        except (OSError, urllib.error.HTTPError):
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"no Prefect server:\n{process.printed}")


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


@pytest.mark.parametrize("number", injections())
def test_a_run_whose_prefect_server_is_killed_ends_and_the_next_one_finishes(
    number: int, server: Server, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for _ in range(5):
        disturbed = disturb("transforms" if number % 2 == 0 else "space")
        server.isolate(disturbed.starter)
        command = disturbed.starter.start(*RUN)
        victim, since = command.await_role(is_server), "it began"
        if number % 2 == 0:
            command.await_role(is_stage)
            since = "a stage began"
        delay = moments.uniform(0, 2.0)
        time.sleep(delay)
        if victim is not None and strike(victim, signal.SIGKILL):
            command.wait()
            disturbed.judge("kill -9 of the Prefect server", f"{delay:.3f} s after {since}", command)
            return
    pytest.fail("five times the server ended before it was struck")


@pytest.mark.skipif("runner" not in inspect.signature(run).parameters, reason="`sentfold run` has no --runner")
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
