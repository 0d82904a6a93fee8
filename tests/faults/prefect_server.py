"""A Prefect server of the tests' own, and runs that use it or start another."""

from __future__ import annotations

import re
import socket
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from flows.server import DATABASE
from tests.faults.processes import PATIENCE_SECONDS, Command, Starter


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


@contextmanager
def running_server(home: Path) -> Iterator[Server]:
    """A server whose database lies in `home`, for the length of a `with` block."""
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
