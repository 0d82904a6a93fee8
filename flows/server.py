"""Prefect's server for one run: the configured one, or a temporary one that this run starts and ends."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import typer

from flows.processes import new_log, start_guarded
from pipeline.environment import flow_environment
from sentfold.errors import RunError

SERVER_LOG = Path(".dvc/tmp/sentfold-logs/prefect-server.log")
DATABASE = Path(".dvc/tmp/sentfold-prefect.db")

# 6 s is usual; the first start on a cold disk, which also creates the database, took 21 s.
STARTUP_SECONDS = 600.0

# How long a configured server may be silent: it may be started anew meanwhile, and Prefect's clients try again.
PATIENCE_SECONDS = 60.0
HEALTH_SECONDS = 5.0

LOOPBACK = ("127.0.0.1", "localhost", "::1")  # names of this machine

CONFIGURED = "PREFECT_API_URL, or the active Prefect profile"


@dataclass
class Server:
    """A Prefect server that a run depends on.

    url       of its API
    process   of the temporary server; None: a configured server
    password  of the temporary server, which only this run knows: user:password
    """

    url: str
    process: subprocess.Popen[bytes] | None = None
    password: str = ""
    _heard: float = field(default_factory=time.monotonic)
    _asked: float = field(default_factory=time.monotonic)
    _problem: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """What a client of this server has in its environment."""
        password = {"PREFECT_API_AUTH_STRING": self.password} if self.password else {}
        return {"PREFECT_API_URL": self.url, **password}

    def is_gone(self) -> bool:
        """Whether the server ended, or a configured one was silent for PATIENCE_SECONDS."""
        if self.process:
            return self.process.poll() is not None
        now = time.monotonic()
        if now - self._asked > HEALTH_SECONDS:
            self._problem = unanswered(self.url)
            self._asked = time.monotonic()
            self._heard = self._heard if self._problem else self._asked
        return now - self._heard > PATIENCE_SECONDS

    def error(self, resume: str) -> RunError:
        """What to tell the user; resume: the command that continues the run."""
        return RunError(
            "Prefect's temporary server ended before the run did"
            if self.process
            else "the configured Prefect server went away during the run",
            where=str(SERVER_LOG) if self.process else CONFIGURED,
            got=f"exit code {self.process.returncode}" if self.process else self._problem,
            state="stages that finished are kept; those that ran were stopped",
            remedy=f"{'read its log' if self.process else 'start that server'}, then: {resume}; "
            "`dvc repro` runs the same stages without Prefect",
        )


def prepare_prefect() -> None:
    """Set what Prefect reads when it is imported; the user's own settings win. No proxy is asked for this machine."""
    # A proxy of the environment would get the password of the server.
    for name in ("NO_PROXY", "no_proxy"):
        known = (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").split(",")
        os.environ[name] = ",".join(dict.fromkeys([*filter(None, known), *LOOPBACK]))
    # The flow prints its own lines; Prefect's go to its server, where its pages show them.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")


def configured_url() -> str | None:
    """The address of the configured server's API, which answers; None if no server is configured.

    Raises RunError if the server does not answer.
    """
    prepare_prefect()
    from prefect.settings import PREFECT_API_URL

    url = PREFECT_API_URL.value()
    if url and (problem := unanswered(url)):
        raise RunError(
            "the configured Prefect server does not answer",
            where=CONFIGURED,
            got=problem,
            state="no stage was started",
            remedy="start that server (docs/running.md). Without PREFECT_API_URL, sentfold run has one of its own",
        )
    return str(url) if url else None


@contextmanager
def prefect_server(root: Path) -> Iterator[Server]:
    """The configured server, or a temporary one for the length of a `with` block.

    Prefect would start a temporary one too, but would leave it behind if this process were killed, and gives up
    after 20 s, which a cold start exceeds. Raises RunError if the server does not answer.
    """
    if url := configured_url():
        yield Server(url)
        return
    typer.echo("starting a Prefect server for this run, which takes some ten seconds")
    server, process = _start_server(root)
    try:
        _wait_until_healthy(server, process)
        yield server
    finally:
        process.terminate()
        process.wait()


def unanswered(url: str) -> str:
    """Why the API at this address does not answer; empty if it does."""
    # Any answer will do, a refusal too: what a server wants from its users is Prefect's affair.
    try:
        urllib.request.urlopen(f"{url}/health", timeout=10.0).close()
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        return f"{url}/health: {error}"
    return ""


def asks_for_password(url: str) -> bool:
    """Whether the API at this address refuses a caller without a password, and a caller with an empty one."""
    for headers in ({}, {"Authorization": "Basic !"}):  # base64 without a letter, so a password without a letter
        try:
            urllib.request.urlopen(
                urllib.request.Request(f"{url}/admin/version", headers=headers), timeout=10.0
            ).close()
            return False
        except urllib.error.HTTPError as error:
            if error.code not in (401, 403):
                return False
    return True


def _start_server(root: Path) -> tuple[Server, subprocess.Popen[bytes]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, password = f"http://127.0.0.1:{port}/api", f"sentfold:{secrets.token_urlsafe(32)}"
    settings = {
        # A database of its own: one that several checkouts share would be locked at times. The path starts from the
        # folder of the server, as a question mark in it would begin the options of the database. Of Prefect's two names
        # the one that wins.
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{DATABASE.name}",
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": url.removesuffix("/api"),
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    with new_log(root / SERVER_LOG).open("wb") as output:
        process = start_guarded(
            [*command, "--no-services", "--no-ui"],
            cwd=root / DATABASE.parent,  # not the root, where a folder of data can have the name of a library
            env={**flow_environment(), **settings},
            output=output,
            session=True,
        )
    return Server(url, process, password), process


def _wait_until_healthy(server: Server, process: subprocess.Popen[bytes]) -> None:
    """Wait for the answer of the server that was started: another user of the machine could have taken its port."""
    end, port = time.monotonic() + STARTUP_SECONDS, int(server.url.split(":")[2].partition("/")[0])
    while problem := unanswered(server.url) if listens(process.pid, port) else f"this run has no port {port}":
        if process.poll() is not None or time.monotonic() > end:
            raise RunError(
                "Prefect's temporary server did not start",
                where=str(SERVER_LOG),
                expected=f"an answer within {STARTUP_SECONDS:.0f} s",
                got=problem if process.poll() is None else f"it ended with exit code {process.returncode}",
                state="no stage was started",
                remedy=f"read its log; if the log names the database, rm {DATABASE}* and run again; "
                "`dvc repro` runs the same stages one by one without Prefect",
            )
        time.sleep(0.1)


def listens(process: int, port: int) -> bool:
    """Whether a process, or one that it has started, listens on a port of this machine."""
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(process)
        for one in (first, *first.children(recursive=True)):
            with suppress(psutil.Error):
                sockets = one.net_connections("tcp")
                if any(it.status == psutil.CONN_LISTEN and it.laddr.port == port for it in sockets):
                    return True
    return False
