"""Stages on Dask workers, which work in the checkout of the run."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from flows.dask_route import RunEnded, refuse_loopback
from flows.lock import LOCK_FILE, hold_checkout
from sentfold.errors import RunError
from tests.flows.checkout import Checkout, processes_in, until


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


@pytest.fixture
def cluster(tmp_path: Path, serverless: dict[str, str]) -> Iterator[str]:
    """The address of a Dask scheduler with two workers, started by Dask's own commands."""
    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file)]
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *common],
        ["worker", "--nworkers", "2", "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path), *common],
    ]
    started = [
        subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]], env=serverless)
        for words in commands
    ]
    try:
        until(lambda: file.exists() and "tcp://" in file.read_text(), "the scheduler", seconds=120)
        yield next(word for word in file.read_text().split('"') if word.startswith("tcp://"))
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.mark.slow
def test_an_existing_cluster_is_used_by_its_address(fresh: Checkout, finished: Checkout, cluster: str) -> None:
    fresh.run("--runner", "dask", "--address", cluster)
    assert data_of(fresh.root) == data_of(finished.root)
    # Once more, by the same workers.
    fresh.change("rounding: 2", "rounding: 3")
    assert "2 ran" in fresh.run("--runner", "dask", "--address", cluster)


def test_workers_elsewhere_need_a_server_that_they_can_reach() -> None:
    refuse_loopback("tcp://127.0.0.1:8786", "http://127.0.0.1:4200/api")
    refuse_loopback("tcp://192.0.2.7:8786", "http://192.0.2.1:4200/api")
    with pytest.raises(RunError, match="cannot reach this Prefect server"):
        refuse_loopback("tcp://192.0.2.7:8786", "http://127.0.0.1:4200/api")
