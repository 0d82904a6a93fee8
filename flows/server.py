"""Prefect's API for one run: the server that is configured, or a temporary one of our own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.guard import start_guarded
from flows.watch import ConfiguredServer, OwnServer, unanswered, watched
from pipeline.errors import RunError

SERVER_LOG = Path(".dvc/tmp/sentfold-logs/prefect-server.log")
DATABASE = Path(".dvc/tmp/sentfold-prefect.db")

# 6 s is usual; the first start on a cold disk, which also creates the database, took 21 s.
STARTUP_SECONDS = 600.0

DRAIN_SECONDS = 10.0


def quieten_prefect() -> None:
    """Set what Prefect reads when it is imported; the user's own settings win."""
    # Our own lines tell the run; Prefect's go to its server, where its pages show them.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")


@contextmanager
def prefect_api(root: Path, *, resume: str = "run it again") -> Iterator[None]:
    """Make Prefect's API answer for the length of a `with` block.

    A configured server (PREFECT_API_URL or a profile) is used as it is. Otherwise one is started
    for this run. Prefect would start one too, but would leave it behind if we are killed, and gives
    up after 20 s, which a cold start exceeds.

    resume  the command that takes the run up again, for the error

    Raises RunError if the server does not answer at first, or ends before the block does: see `watched`.
    """
    quieten_prefect()
    from prefect.context import refresh_global_settings_context
    from prefect.settings import PREFECT_API_URL

    configured = PREFECT_API_URL.value()
    if configured:
        _require_answer(configured)
        with watched(ConfiguredServer(configured), resume):
            yield
        return
    url, process = _start_server(root)
    try:
        _wait_healthy(url, process, root)
        # The environment, not a context variable: Prefect's own threads must see it too.
        os.environ["PREFECT_API_URL"] = url
        refresh_global_settings_context()
        with watched(OwnServer(process, SERVER_LOG), resume):
            try:
                yield
            finally:
                if process.poll() is None:
                    _drain()
    finally:
        process.terminate()
        process.wait()
        os.environ.pop("PREFECT_API_URL", None)
        refresh_global_settings_context()


def require_configured() -> str:
    """The address of the configured server's API; RunError if there is none, or it does not answer."""
    from prefect.settings import PREFECT_API_URL

    configured = PREFECT_API_URL.value()
    if not configured:
        raise RunError(
            "no Prefect server is configured",
            where="PREFECT_API_URL, or the active Prefect profile",
            expected="the address of a running server's API",
            state="nothing was registered",
            remedy="prefect server start; then, elsewhere: "
            "prefect config set PREFECT_API_URL=http://127.0.0.1:4200/api",
        )
    _require_answer(configured)
    return str(configured)


def _start_server(root: Path) -> tuple[str, subprocess.Popen[bytes]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = root / SERVER_LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    database = f"sqlite+aiosqlite:///{(root / DATABASE).absolute()}"
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        process = start_guarded(
            [*command, "--no-services", "--no-ui"],
            cwd=root,
            # Its own database: one shared by the runs of several checkouts would be locked at times.
            env={**os.environ, "PREFECT_API_DATABASE_CONNECTION_URL": database},
            output=output,
            session=True,
        )
    return f"http://127.0.0.1:{port}/api", process


def _drain() -> None:
    # Prefect sends logs and events from threads of its own. Those that find no server any more try
    # again for a minute, while the finished run seems to hang.
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(timeout=DRAIN_SECONDS)
    EventsWorker.drain_all(timeout=DRAIN_SECONDS)


def _wait_healthy(url: str, process: subprocess.Popen[bytes], root: Path) -> None:
    end = time.monotonic() + STARTUP_SECONDS
    while not _healthy(url):
        if process.poll() is not None or time.monotonic() > end:
            ended = process.poll() is not None
            raise RunError(
                "Prefect's temporary server did not start",
                where=str(SERVER_LOG),
                expected=f"an answer at {url}/health within {STARTUP_SECONDS:.0f} s",
                got=f"it ended with exit code {process.returncode}" if ended else "no answer",
                state="no stage was started",
                remedy="read its log; 'make reproduce' runs the same stages one by one without Prefect",
            )
        time.sleep(0.1)


def _require_answer(url: str) -> None:
    problem = unanswered(url)
    if problem:
        raise RunError(
            "the configured Prefect server does not answer",
            where="PREFECT_API_URL, or the active Prefect profile",
            got=problem,
            state="no stage was started",
            remedy="start that server (prefect server start), or unset PREFECT_API_URL for a temporary one",
        )


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10.0) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
