"""Stages on Dask workers, each in a clone of its own; artifacts go through a DVC remote."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from pipeline.lineage.runs import RunFinder, ended_runs
from pipeline.lineage.stages import load_graph
from pipeline.lineage.trees import WorkingTree
from tests.flows.checkout import Checkout, processes_in
from tests.flows.workers import clone, cluster, commit, tls


def data_of(root: Path) -> dict[str, bytes]:
    """Every output of the suite, by its path."""
    files = [*(root / "data").rglob("*"), *(root / "reports").rglob("*")]
    return {str(file.relative_to(root)): file.read_bytes() for file in files if file.is_file()}


def lock_of(checkout: Checkout) -> dict[str, object]:
    return yaml.safe_load((checkout.root / "dvc.lock").read_text())


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_two_workers_that_share_no_folder_leave_the_lock_and_the_bytes_of_one_machine(
    tmp_path: Path, remote: Path, fresh: Checkout, finished: Checkout, serverless: dict[str, str]
) -> None:
    commit(fresh, remote=str(remote))
    clones = [clone(fresh, tmp_path / name) for name in ("one", "two")]
    certificate = tls(tmp_path)
    fresh.environment |= certificate
    with cluster(
        tmp_path, serverless | certificate, [each.root for each in clones], "--protocol", "tls"
    ) as (address, _):
        assert address.startswith("tls://")
        printed = fresh.run("--address", address, "--remote", "shared")
        assert "6 ran" in printed and "warning" not in printed
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
