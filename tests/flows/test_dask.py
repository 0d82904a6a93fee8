"""Stages on Dask workers, which work in the checkout of the run."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from flows.dask_route import RunEnded
from flows.lock import LOCK_FILE, hold_checkout
from tests.flows.checkout import Checkout, processes_in, settings_of, until


def data_of(root: Path) -> dict[str, bytes]:
    """Every output of the suite, by its path."""
    files = [*(root / "data").rglob("*"), *(root / "reports").rglob("*")]
    return {str(file.relative_to(root)): file.read_bytes() for file in files if file.is_file()}


@pytest.mark.slow
def test_a_run_on_two_workers_leaves_what_dvc_repro_leaves(fresh: Checkout, finished: Checkout) -> None:
    printed = fresh.run("--runner", "dask")
    assert "6 ran" in printed
    assert data_of(fresh.root) == data_of(finished.root)
    locks = [yaml.safe_load((checkout.root / "dvc.lock").read_text()) for checkout in (fresh, finished)]
    assert locks[0] == locks[1]
    assert processes_in(fresh.root) == []


@pytest.mark.slow
def test_a_stage_that_fails_on_a_worker_is_reported_with_its_log_and_the_rest_is_finished(finished: Checkout) -> None:
    finished.change("dimension: 4", "dimension: 5")
    finished.ask("embed-quick-a", "fail")
    code, printed = finished.call("flows", "run", "--runner", "dask")
    assert code != 0
    assert "the stage 'embed@a' failed" in printed
    assert "skipped, because they need it: evaluate, report" in printed
    assert "--runner dask" in printed, "the command that continues the run"
    assert "no such thing" in (finished.root / ".dvc/tmp/sentfold-logs/embed@a.log").read_text()
    assert finished.ran() == {"embed-quick-b"}


def test_a_worker_ends_its_stage_when_the_run_no_longer_holds_the_checkout(tmp_path: Path) -> None:
    (tmp_path / ".dvc").mkdir()
    with hold_checkout(tmp_path, wait=False, purpose="test"):
        holder = (tmp_path / LOCK_FILE).read_bytes()
        assert not RunEnded(tmp_path, holder).is_set()
        assert RunEnded(tmp_path, b"another run").is_set()
        assert RunEnded(tmp_path / "elsewhere", holder).is_set()
    # As a kill -9 of the holder leaves the file.
    (tmp_path / LOCK_FILE).write_bytes(holder)
    assert RunEnded(tmp_path, holder).is_set()
    with (tmp_path / LOCK_FILE).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not RunEnded(tmp_path, holder).is_set()


@contextmanager
def dask_cluster(folder: Path, environment: dict[str, str], *options: str) -> Iterator[str]:
    """The address of a Dask scheduler with two workers, started by Dask's own commands."""
    file = folder / "scheduler.json"
    common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    commands = [
        ["scheduler", "--port", "0", *common, *options],
        ["worker", "--nworkers", "2", "--nthreads", "1", "--local-directory", str(folder), *common],
    ]
    started = [subprocess.Popen([sys.executable, "-m", "dask", *words], env=environment) for words in commands]
    try:
        until(lambda: file.exists() and "://" in file.read_text(), "the scheduler", seconds=300)
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@contextmanager
def overheard(port: int) -> Iterator[tuple[int, bytearray]]:
    """A port of which all that is sent goes on to another port, and is written down."""
    heard = bytearray()

    class Ear(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as there:
                back = threading.Thread(target=pass_on, args=(there, self.request, bytearray()), daemon=True)
                back.start()
                pass_on(self.request, there, heard)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Ear) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], heard
        server.shutdown()


def pass_on(here: socket.socket, there: socket.socket, heard: bytearray) -> None:
    """Send on what arrives, until there is no more."""
    with suppress(OSError):
        while part := here.recv(65536):
            heard += part
            there.sendall(part)
        there.shutdown(socket.SHUT_WR)


@pytest.mark.slow
def test_a_cluster_without_tls_is_warned_of_and_no_secret_goes_there(
    tmp_path: Path, fresh: Checkout, finished: Checkout, serverless: dict[str, str]
) -> None:
    secrets = {"HF_TOKEN": "hf-hush", "AWS_SECRET_ACCESS_KEY": "aws-hush"}
    with (
        dask_cluster(tmp_path, serverless) as address,
        overheard(int(address.rpartition(":")[2])) as (port, heard),
    ):
        fresh.environment |= secrets | {"SENTFOLD_VECTORS": "vectors-for-all"}
        printed = fresh.run("--runner", "dask", "--address", f"tcp://127.0.0.1:{port}")
        assert "runs code under their account" in printed
        assert data_of(fresh.root) == data_of(finished.root)
        # Once more, by the same workers.
        fresh.change("rounding: 2", "rounding: 3")
        assert "2 ran" in fresh.run("--runner", "dask", "--address", address)
    assert b"vectors-for-all" in heard
    password = fresh.environment["PREFECT_API_AUTH_STRING"]
    assert not [word for word in (*secrets.values(), password) if word.encode() in heard]


@pytest.mark.slow
def test_a_cluster_with_the_tls_of_the_examples_is_used_without_a_warning(
    tmp_path: Path, fresh: Checkout, finished: Checkout, serverless: dict[str, str]
) -> None:
    tls = settings_of("dask-tls.sh", {"PATH": os.environ["PATH"], "SENTFOLD_KEY": str(tmp_path / "key")})
    assert (tmp_path / "key.key").stat().st_mode & 0o077 == 0
    with dask_cluster(tmp_path, serverless | tls, "--protocol", "tls") as address:
        assert address.startswith("tls://")
        code, printed = fresh.call("flows", "run", "--runner", "dask", "--address", address)
        assert code != 0 and "no Dask scheduler answers" in printed, "without the certificate"
        fresh.environment |= tls
        assert "warning" not in fresh.run("--runner", "dask", "--address", address)
    assert data_of(fresh.root) == data_of(finished.root)
