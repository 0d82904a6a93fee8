"""Who can talk to a Dask cluster of a run."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import chdir, suppress
from pathlib import Path

import dask
import psutil
import pytest
from distributed import Client
from distributed.security import Security

from flows.dask_cluster import UnreachableClusterError, existing_cluster, local_cluster
from sentfold.cli.fold import run_on_dask
from sentfold.errors import ParameterError
from tests.checkout import environment, make_checkout
from tests.flows.checkout import plant
from tests.flows.workers import cluster
from tests.fold.corpus import cloud, of_vectors, write_vectors


def listening() -> list[tuple[str, int]]:
    """Where this process, and what it started, accepts connections."""
    here = psutil.Process()
    return [
        connection.laddr
        for process in (here, *here.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]


def answer(port: int, question: str) -> bytes:
    """What a port says to a request without TLS."""
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=30) as stranger:
        stranger.sendall(f"GET {question} HTTP/1.0\r\n\r\n".encode())
        return stranger.recv(1000)
    return b""


@pytest.mark.slow
def test_the_cluster_of_a_run_is_on_loopback_and_lets_in_only_who_has_its_certificate() -> None:
    before = set(listening())
    with local_cluster(1, None) as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        assert all(worker.startswith("tls://127.0.0.1:") for worker in client.scheduler_info()["workers"])
        for stranger, security in ((address.replace("tls", "tcp"), None), (address, Security.temporary())):
            with pytest.raises(OSError):
                Client(stranger, security=security, timeout=10, set_as_default=False)
        ports = set(listening()) - before
        assert len(ports) >= 3, "of the scheduler, of the worker, of its nanny"
        assert {host for host, _ in ports} == {"127.0.0.1"}
        for _, port in ports:
            for page in ("/info/main/workers.html", "/json/counts.json", "/health", "/metrics"):
                assert b" 200 " not in answer(port, page)


def test_a_cluster_without_tls_is_warned_of_and_one_with_it_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.dask_cluster.ANSWER_SECONDS", 0.5)
    for address in ("tcp://127.0.0.1:1", "127.0.0.1:1", "tls://127.0.0.1:1"):
        wanted = "cannot be asked" if address.startswith("tls") else "no Dask scheduler answers"  # no certificate here
        with pytest.raises(UnreachableClusterError, match=wanted), existing_cluster(address):
            pass
        assert ("runs code under their account" in capsys.readouterr().err) == (not address.startswith("tls"))
    with (
        dask.config.set({"distributed.comm.require-encryption": True}),
        pytest.raises(UnreachableClusterError, match="cannot be asked"),
        existing_cluster("tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.slow
def test_no_process_of_a_run_looks_for_modules_in_a_folder_that_another_user_can_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask puts its scratch folder at the front of sys.path; its own place is dask-scratch-space in /tmp."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = list(sys.path)
    with local_cluster(1, None) as client:
        paths = {*client.run(lambda: __import__("sys").path)[next(iter(client.scheduler_info()["workers"]))], *sys.path}
        shared = [Path(path) for path in paths - {*before} if Path(path).is_relative_to(tmp_path)]
        assert shared and not (tmp_path / "dask-scratch-space").exists()
        assert all(
            tmp_path.joinpath(path.relative_to(tmp_path).parts[0]).stat().st_mode & 0o077 == 0 for path in shared
        )


def test_a_limit_that_is_no_size_is_refused() -> None:
    with pytest.raises(ParameterError, match="no size"), local_cluster(1, "much"):
        pass


@pytest.mark.slow
def test_no_process_of_a_worker_imports_a_folder_of_data_in_its_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_checkout(tmp_path / "checkout")
    mark = plant(root)
    with cluster(root, environment(), [root]) as (address, _), Client(address, timeout=60) as client:
        client.wait_for_workers(1, timeout=60)
        assert client.submit(lambda: __import__("flows").__file__).result() == str(root / "flows/__init__.py")
    assert not mark.exists(), mark.read_text()

    write_vectors(tmp_path / "x.parquet", cloud())
    monkeypatch.setattr("sentfold.cli.fold.ROOT", root)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # a setting of the user
    commands: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _, words: commands.append(words))
    with chdir(tmp_path):  # which `sentfold fold` leaves
        run_on_dask(Path("x.parquet"), Path("run"), of_vectors(), {"workers": 1})
    done = subprocess.run(commands[0], cwd=root, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0 and (tmp_path / "run/folded").exists(), done.stderr
    assert not mark.exists(), mark.read_text()
