"""A real Prefect server with its services, and real workers, started and ended by a test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.flows.checkout import SOURCE, plant, settings_of

# Between SIGTERM and SIGKILL: an idle worker was seen to need 15 s.
GRACE_SECONDS = 30.0


@dataclass
class Services:
    """A server on loopback with its own home; `environment` points at it."""

    home: Path
    url: str
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, *words: str, folder: Path | None = None) -> subprocess.Popen[bytes]:
        """Start `python -m WORDS...` in a session of its own; what it prints goes to `home/<name>.log`."""
        with (self.home / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=folder or self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        """A worker of the pool `sentfold` that asks for work every second."""
        return self.start("worker", "prefect", "worker", "start", "--pool", "sentfold")

    def runs(self, flow: str = "sentfold") -> list[Any]:
        """Every run of a flow that the server knows, earliest first."""
        from prefect.client.schemas.filters import FlowFilter, FlowFilterName

        with self._client() as client:
            found = client.read_flow_runs(flow_filter=FlowFilter(name=FlowFilterName(any_=[flow])), limit=200)
        return sorted(found, key=lambda run: run.expected_start_time)

    def automations(self, name: str) -> list[Any]:
        """Every automation of that name."""
        with self._client() as client:
            return list(client.read_automations_by_name(name))

    def artifacts(self) -> dict[str, Any]:
        """What the latest artifact of each key holds."""
        with self._client() as client:
            found = sorted(client.read_artifacts(), key=lambda artifact: artifact.created)
        return {artifact.key: artifact.data for artifact in found}

    def client_settings(self) -> AbstractContextManager[Any]:
        """Prefect in this process talks to this server, for the length of a `with` block."""
        from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

        password = self.environment["PREFECT_API_AUTH_STRING"]
        return temporary_settings({PREFECT_API_URL: self.url, PREFECT_API_AUTH_STRING: password})

    @contextmanager
    def _client(self) -> Iterator[Any]:
        from prefect.client.orchestration import get_client

        with self.client_settings(), get_client(sync_client=True) as client:
            yield client

    def log(self, name: str) -> str:
        """What a started command has printed."""
        return (self.home / f"{name}.log").read_text(errors="replace")

    def end(self) -> None:
        """End what was started, the last first, each with all that it started."""
        for process in reversed(self.processes):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def prefect_services(home: Path, environment: dict[str, str], *options: str) -> Iterator[Services]:
    """A server set up as documented, for a `with` block; it schedules and looks for work every few seconds.

    options  of `prefect server start`
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    settings = {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home / 'prefect.db'}",
        "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
    }
    services = Services(home, url, settings_of("prefect.sh", {**environment, **settings}))
    checkout = home / "checkout"
    checkout.mkdir()
    for name in ("flows", "pipeline", "sentfold"):
        (checkout / name).symlink_to(SOURCE / name)
    mark = plant(checkout)
    try:
        services.start("server", "flows.launch", "prefect", "server", "start", "--no-ui", *options, folder=checkout)
        wait_until(lambda: _healthy(url), "the server", seconds=900)
        assert not mark.exists(), mark.read_text()
        yield services
    finally:
        if "--background" in options:
            stop = [Path(sys.executable).with_name("prefect"), "server", "stop"]
            subprocess.run(stop, cwd=home, env=services.environment, check=False)
        services.end()


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float) -> float:
    """Poll `condition` twice a second; returns after how long it held, or fails the test."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.5)
    return time.monotonic() - begin


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10.0) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
