"""Stages on Dask workers, each in a clone of its own; artifacts go through a DVC remote."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.dask_cluster import UnreachableClusterError, existing_cluster
from flows.dask_route import stages_on_workers
from flows.plan import RunRequest, make_plan
from flows.profile import Retries, RunProfile, Transfer
from flows.run_stage import Maker
from pipeline.lineage.runs import RunFinder, ended_runs
from pipeline.lineage.stages import load_graph
from pipeline.lineage.trees import WorkingTree
from sentfold.errors import RunError
from tests.flows.checkout import Checkout, alive, processes_in, until
from tests.flows.workers import clone, cluster, commit, tls


def data_of(root: Path) -> dict[str, bytes]:
    """Every output of the suite, by its path."""
    files = [*(root / "data").rglob("*"), *(root / "reports").rglob("*")]
    return {str(file.relative_to(root)): file.read_bytes() for file in files if file.is_file()}


def lock_of(checkout: Checkout) -> dict[str, Any]:
    return yaml.safe_load((checkout.root / "dvc.lock").read_text())


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote"
    folder.mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_workers_that_share_no_folder_leave_the_lock_and_the_bytes_of_one_machine(
    tmp_path: Path, remote: Path, fresh: Checkout, finished: Checkout, serverless: dict[str, str]
) -> None:
    commit(fresh, remote=str(remote))
    clones = [clone(fresh, tmp_path / name) for name in ("one", "two")]
    certificate = tls(tmp_path)
    fresh.environment |= certificate
    with cluster(tmp_path, serverless | certificate, [each.root for each in clones], "--protocol", "tls") as (
        address,
        _,
    ):
        assert address.startswith("tls://") and (tmp_path / "key.key").stat().st_mode & 0o077 == 0
        with pytest.raises(UnreachableClusterError, match="the scheduler cannot be asked"), existing_cluster(address):
            pass  # this process has no certificate
        (fresh.root / "reports").mkdir()
        (fresh.root / "reports/quick.txt").write_text("mine")
        printed = fresh.run("--address", address, "--remote", "shared")
        assert "6 ran" in printed and "warning" not in printed
        assert [file.read_text() for file in (fresh.root / ".sentfold/kept").rglob("quick.txt")] == ["mine"]
        assert data_of(fresh.root) == data_of(finished.root)
        assert lock_of(fresh) == lock_of(finished)
        assert fresh.repro().count("didn't change") == 6, "DVC finds nothing to do"
        # Both made something, and the checkout of the run made nothing.
        made = [each.ran() for each in clones]
        assert all(made) and len(made[0]) + len(made[1]) == 6 and fresh.ran() == set()

        # The record of each run came along, and it is the one that the audit finds for the files that are here.
        assert {run["stage"] for run in ended_runs(fresh.root, "quick")} == set(lock_of(finished)["stages"])
        graph, finder = load_graph(WorkingTree(fresh.root), "quick"), RunFinder(fresh.root, "quick")
        for locked in graph.locked.values():
            run = finder.run_of(locked)
            assert run is not None and run["code"]["dirty"] == []
            assert run["machine"]["host"] == socket.gethostname() and run["machine"]["profile"]

        # What differs from the commit reaches no worker, so it is refused; committed and brought there, it is made.
        fresh.change("rounding: 2", "rounding: 3")
        code, refused = fresh.call("flows", "run", "--address", address, "--remote", "shared")
        assert code != 0 and "this checkout is not committed" in refused and "params.yaml" in refused
    assert processes_in(fresh.root) == []


@pytest.mark.slow
def test_a_cluster_without_tls_is_warned_of_and_no_secret_goes_there(
    tmp_path: Path, remote: Path, fresh: Checkout, serverless: dict[str, str],
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    secrets = {"HF_TOKEN": "hf-hush", "AWS_SECRET_ACCESS_KEY": "aws-hush"}
    commit(fresh, remote=str(remote))
    fresh.environment |= secrets | {"SENTFOLD_VECTORS": "vectors-for-all"}
    with (
        cluster(tmp_path, serverless, [clone(fresh, tmp_path / "one").root]) as (address, _),
        overheard(int(address.rpartition(":")[2])) as (port, heard),
        route_to(fresh, f"tcp://127.0.0.1:{port}", monkeypatch) as (make, _),
    ):
        make("download@a")
    assert "runs code under their account" in capsys.readouterr().err
    assert b"vectors-for-all" in heard
    password = fresh.environment["PREFECT_API_AUTH_STRING"]
    assert not [word for word in (*secrets.values(), password) if word.encode() in heard]


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
def test_a_worker_with_other_packages_or_at_another_commit_is_refused_before_it_starts_anything(
    tmp_path: Path, remote: Path, fresh: Checkout, serverless: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (fresh.root / "requirements.lock").write_text("PyYAML==6.0.3\n")
    (tmp_path / "site-packages/pyyaml-99.0.dist-info").mkdir(parents=True)
    commit(fresh, remote=str(remote))
    other = clone(fresh, tmp_path / "other")
    path = f"{serverless['PYTHONPATH']}:{tmp_path / 'site-packages'}"
    with cluster(tmp_path, {**serverless, "PYTHONPATH": path}, [other.root]) as (address, _):
        with (
            route_to(fresh, address, monkeypatch) as (make, _),
            pytest.raises(RunError, match="other packages") as error,
        ):
            make("download@a")
        assert "pyyaml 99.0" in error.value.got and error.value.expected == "none"
        assert str(other.root) in error.value.where
        fresh.change("rounding: 2", "rounding: 3")
        commit(fresh, remote=str(remote))
        with route_to(fresh, address, monkeypatch) as (make, _), pytest.raises(RunError, match="another commit"):
            make("download@a")
    assert other.ran() == set()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_breaks_a_worker_or_the_remote_costs_time_and_nothing_else(
    tmp_path: Path, remote: Path, fresh: Checkout, finished: Checkout, serverless: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    commit(fresh, remote=str(remote))
    clones = [clone(fresh, tmp_path / name) for name in ("one", "two")]
    for each in clones:
        each.ask("download-quick-a", "linger", 3600)
    with (
        cluster(tmp_path, serverless, [each.root for each in clones]) as (address, _),
        route_to(fresh, address, monkeypatch) as (make, stop),
        ThreadPoolExecutor(1) as pool,
    ):
        # A machine that is switched off: its stage goes to the other.
        made = pool.submit(make, "download@a")
        until(lambda: any((each.root / "pids/download-quick-a").exists() for each in clones), "the stage")
        victim, other = sorted(clones, key=lambda each: not (each.root / "pids/download-quick-a").exists())
        other.mend("download-quick-a")
        for process in processes_in(victim.root):
            os.kill(process, signal.SIGKILL)
        assert made.result(900).outcome == "ran"
        assert victim.ran() == set() and other.ran() == {"download-quick-a"}

        # A run that is interrupted ends what the workers are at.
        other.ask("download-quick-b", "linger", 3600)
        given_up = pool.submit(make, "download@b")
        stage = other.pid_of("download-quick-b")
        stop()
        assert given_up.exception(60) is not None
        until(lambda: not alive(stage), "the stage of a run that has ended to end", seconds=60)
        other.mend("download-quick-b")

        # A remote that refuses, and one that is full: an error that says so; then the same stage is taken as it is.
        with refusing(remote), pytest.raises(RunError, match="`dvc push` failed, 2 times"):
            make("download@b")
        if shutil.which("mount") and os.geteuid() == 0:
            with full(remote), pytest.raises(RunError, match="`dvc push` failed, 2 times") as error:
                make("download@b")
            assert "No space left" in error.value.got
        assert make("download@b").outcome != "ran", "it was made before"
        assert other.times().keys() == {"download-quick-a", "download-quick-b"}

        # An upload that was cut short, found by who reads it: DVC removes it, and the next run sends it again.
        sent = remote / "files/md5" / where_in_remote(fresh, "download@a")
        shutil.rmtree(other.root / ".dvc/cache")
        (other.root / "data/quick/corpora/a").unlink()
        sent.chmod(0o644)
        sent.write_bytes(sent.read_bytes()[:-1])
        with pytest.raises(RunError, match="`dvc pull` failed, 2 times"):
            make("embed@a")
        assert not sent.exists()
        assert make("download@a").outputs_changed is False and sent.exists()

        # A remote that never answers: reading stalls, and is ended.
        shutil.rmtree(other.root / ".dvc/cache")
        (other.root / "data/quick/corpora/a").unlink()
        kept = sent.read_bytes()
        sent.unlink()
        os.mkfifo(sent)
        with pytest.raises(RunError, match="`dvc pull` failed, 2 times") as error:
            make("embed@a")
        assert "no end" in error.value.got
        sent.unlink()
        sent.write_bytes(kept)
        for name in ("embed@a", "embed@b", "evaluate", "report"):
            make(name)
    assert data_of(fresh.root) == data_of(finished.root)
    assert lock_of(fresh) == lock_of(finished)


@contextmanager
def route_to(checkout: Checkout, address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    """The way of a run's stages to the workers, without Prefect, whose tasks would only wait; two patient attempts."""
    for name, value in checkout.environment.items():
        monkeypatch.setenv(name, value)
    request = RunRequest(address=address, remote="shared")
    plan = make_plan(request, checkout.root, check=False)
    remote = Transfer(attempts=2, delay=0.1, seconds=60)
    plan = replace(plan, profile=RunProfile(retries=Retries(remote=remote)))
    with stages_on_workers(plan) as maker:
        yield maker


@contextmanager
def refusing(remote: Path) -> Iterator[None]:
    """A file is in the place of a remote's folder."""
    aside = remote.with_name("aside")
    remote.rename(aside)
    remote.touch()
    yield
    remote.unlink()
    aside.rename(remote)


@contextmanager
def full(remote: Path) -> Iterator[None]:
    """A disk without a free byte is in the place of a remote's folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(remote)], check=True)
    with suppress(OSError):
        (remote / "rest").write_bytes(bytes(8192))
    yield
    subprocess.run(["umount", str(remote)], check=True)


def where_in_remote(checkout: Checkout, stage: str) -> str:
    md5 = lock_of(checkout)["stages"][stage]["outs"][0]["md5"]
    return f"{md5[:2]}/{md5[2:]}"
