"""Partitions on Dask workers: real clusters on loopback, real kills, the bytes of the route without any."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from distributed import LocalCluster

from flows.dask_cluster import UnreachableClusterError, existing_cluster, local_cluster
from flows.dask_fold import (
    DaskExecutor,
    DyingWorkerError,
    FoldCluster,
    UnfitWorkerError,
    fold_on_dask,
    require_fit_workers,
)
from sentfold.errors import ArtifactError
from tests.checkout import ROOT, environment
from tests.flows.checkout import alive, until
from tests.flows.workers import APART
from tests.fold.corpus import (
    LANDMARKS,
    cloud,
    contents,
    identities,
    of_vectors,
    sentences,
    write_texts,
    write_vectors,
)

LIMIT = "800MB"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,400 sentences in two files."""
    folder = tmp_path_factory.mktemp("texts")
    for name, start in (("a", 0), ("b", 1200)):
        write_texts(folder / f"{name}.parquet", list(sentences()[start : start + 1200]), group=40)
    return folder


def command(source: Path, target: Path, *more: str) -> list[str]:
    """The command line of the same fold."""
    block = LANDMARKS.model_dump(exclude={"method"}) | {"tolerance": 1e-6, "encoder": "wordllama"}
    options = [f"--{name}={value}" for name, value in block.items()]
    run = [sys.executable, "-c", "from sentfold.cli.main import main; main()", "fold", str(source), str(target)]
    return [*run, "--partition-rows=80", *options, "--memory-limit", LIMIT, *(more or ["--workers=2"])]


@pytest.fixture(scope="module")
def alone(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process without Dask makes of them."""
    target = tmp_path_factory.mktemp("alone") / "run"
    subprocess.run(command(source, target, "--workers=0"), cwd=ROOT, env=environment(), check=True)
    return contents(target)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a copy of this project's code."""
    folder = tmp_path / "checkout"
    for name in ("sentfold", "pipeline", "flows"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@contextmanager
def started(arguments: list[str], cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with all that it starts, which is ended with the block."""
    process = subprocess.Popen(
        arguments, cwd=cwd, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            for member in [process, *psutil.Process(process.pid).children(recursive=True)]:
                member.kill()
            process.communicate()


def ended(process: subprocess.Popen[str]) -> str:
    """What a process printed; it must succeed."""
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 0, printed
    return printed


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The worker processes of a run: what it started, the tracker of Python's shared resources aside."""
    below = psutil.Process(process.pid).children(recursive=True)
    return [child.pid for child in below if "spawn_main" in " ".join(child.cmdline())]


def made(target: Path, step: str) -> int:
    """How many receipts of a step there are."""
    return len(list((target / "receipts").glob(f"{step}-*.json")))


# --- the same bytes ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_workers_under_a_limit_leave_the_bytes_of_one_process(
    tmp_path: Path, source: Path, alone: dict[str, bytes]
) -> None:
    with started(command(source, tmp_path / "run"), ROOT) as process:
        assert "2400 rows of 2 files, 'a.parquet' to 'b.parquet', in 30 partitions by 150 landmarks" in ended(process)
    assert contents(tmp_path / "run") == alone


# --- kills ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("step", ["vectors", "folded"])
def test_a_worker_killed_in_the_middle_costs_nothing_but_its_task(
    tmp_path: Path, source: Path, alone: dict[str, bytes], step: str
) -> None:
    target = tmp_path / "run"
    with started(command(source, target), ROOT) as process:
        until(lambda: made(target, step) > 0 or process.poll() is not None, f"a part of {step}", seconds=300)
        victim = workers_of(process)[0]
        os.kill(victim, signal.SIGKILL)
        printed = ended(process)
    assert contents(target) == alone
    assert "2400 rows of 2 files, 'a.parquet' to 'b.parquet', in 30 partitions" in printed and not alive(victim)


@pytest.mark.slow
def test_a_killed_run_leaves_no_process_and_the_next_goes_on_from_its_parts(
    tmp_path: Path, source: Path, alone: dict[str, bytes]
) -> None:
    target = tmp_path / "run"
    with started(command(source, target), ROOT) as process:
        until(lambda: made(target, "vectors") > 0 or process.poll() is not None, "a part", seconds=300)
        workers = workers_of(process)
        process.kill()
        process.communicate()
    assert len(workers) == 2
    until(lambda: not any(map(alive, workers)), "the workers to end", seconds=300)
    assert not (target / "manifest.json").exists()
    stood = {name: identity for name, identity in identities(target).items() if (target / note_of(name)).exists()}
    assert stood
    with started(command(source, target), ROOT) as process:
        printed = ended(process)
    assert contents(target) == alone
    assert stood.items() <= identities(target).items()
    assert f"kept from an earlier run: {len(stood)} vectors" in printed


def note_of(file: str) -> str:
    """The receipt of a part."""
    step, _, part = file.partition("/")
    return f"receipts/{step}-{part[5:10]}.json"


def take_too_much(megabytes: int) -> int:
    """More memory than a worker may have, at a pace at which its nanny sees it."""
    held = []
    for _ in range(megabytes // 20):
        held.append(b"x" * 20_000_000)
        time.sleep(0.02)
    time.sleep(60)
    return len(held)


def fail_third(number: int) -> int:
    """A task with an error that the user must act on."""
    if number == 2:
        raise ArtifactError("a file is missing", where="third", remedy="write it")
    return number


@pytest.mark.slow
def test_what_a_task_raises_arrives_whole_and_one_that_takes_too_much_memory_ends_the_run_not_the_machine(
    tmp_path: Path,
) -> None:
    with local_cluster(1, "300MB") as client:
        executor = DaskExecutor(client, tmp_path)
        with pytest.raises(ArtifactError, match=r"(?s)a file is missing.*third.*write it"):
            executor.map(fail_third, range(5), label="failing")
        assert executor.map(fail_third, [9, 8, 7], label="in order") == [9, 8, 7]
        with pytest.raises(DyingWorkerError, match=r"(?s)ended 4 workers in a row.*greedy.*--memory-limit"):
            executor.map(take_too_much, [600], label="greedy")


# --- clusters of others -----------------------------------------------------------------------------


@contextmanager
def dask_cluster(folder: Path, *, cwd: Path, within: tuple[str, ...] = ()) -> Iterator[tuple[str, psutil.Popen]]:
    """A scheduler and a worker, started from the command line in `cwd`; its address, and the scheduler.

    within  a command in front of the worker's
    """
    file = folder / "scheduler.json"
    dask = [sys.executable, "-m", "flows.launch", "dask"]
    scheduler = [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    worker = [*dask, "worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard"]
    with started([*scheduler, "--scheduler-file", str(file)], cwd) as first:
        until(file.exists, "the scheduler", seconds=300)
        more = ["--memory-limit", LIMIT, "--local-directory", str(folder), "--host", "127.0.0.1"]
        with started([*within, *worker, *more], cwd):
            yield file.read_text().split('"address": "')[1].split('"')[0], first


@pytest.mark.slow
def test_a_cluster_of_others_leaves_the_bytes_of_one_process(
    tmp_path: Path, source: Path, alone: dict[str, bytes]
) -> None:
    with (
        dask_cluster(tmp_path, cwd=ROOT) as (address, _),
        started(command(source, tmp_path / "run", "--address", address), ROOT) as process,
    ):
        printed = ended(process)
    assert contents(tmp_path / "run") == alone
    assert "2400 rows" in printed, printed


@pytest.mark.slow
def test_a_worker_with_other_code_is_refused(tmp_path: Path, checkout: Path) -> None:
    (tmp_path / "run").mkdir()
    edited = checkout / "sentfold/manifold/landmark.py"
    edited.write_text(edited.read_text() + "\nBLOCK = 1\n")
    with (
        dask_cluster(tmp_path, cwd=checkout) as (address, _),
        existing_cluster(address) as client,
        pytest.raises(UnfitWorkerError, match=r"(?s)other code.*code [0-9a-f]{64}"),
    ):
        require_fit_workers(client, tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())


@pytest.mark.slow
def test_a_worker_that_sees_another_folder_under_the_name_of_the_target_is_refused(
    tmp_path: Path,
) -> None:
    target = tmp_path / "run"
    target.mkdir()
    if subprocess.run([*APART, str(target), "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    with (
        dask_cluster(tmp_path, cwd=ROOT, within=(*APART, str(target))) as (address, _),
        existing_cluster(address) as client,
        pytest.raises(UnfitWorkerError, match=r"(?s)another file system.*one folder.*No such file"),
    ):
        require_fit_workers(client, target)
    assert not list(target.iterdir())


def test_a_worker_with_several_threads_is_refused(tmp_path: Path) -> None:
    with (
        LocalCluster(1, processes=False, threads_per_worker=2, dashboard_address=None) as cluster,
        existing_cluster(cluster.scheduler_address) as client,
        pytest.raises(UnfitWorkerError, match=r"(?s)several threads.*--nthreads 1"),
    ):
        require_fit_workers(client, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_cluster_that_is_lost_says_that_finished_parts_are_kept(
    tmp_path: Path, source: Path, alone: dict[str, bytes]
) -> None:
    for attempt in range(5):
        target, folder = tmp_path / f"run-{attempt}", tmp_path / f"cluster-{attempt}"
        folder.mkdir()
        with (
            dask_cluster(folder, cwd=ROOT) as (address, scheduler),
            started(command(source, target, "--address", address), ROOT) as process,
        ):
            # B023 warns of functions that outlive a turn of the loop; `until` calls this one at once.
            until(lambda: made(target, "vectors") > 0 or process.poll() is not None, "a part", seconds=300)  # noqa: B023
            scheduler.kill()
            printed, _ = process.communicate(timeout=600)
        if process.returncode:  # on a busy machine the fold can be over before the scheduler is killed
            break
    assert process.returncode == 2 and "Traceback" not in printed, printed
    assert "the Dask cluster was lost" in printed and "finished parts are kept" in printed
    with started(command(source, target), ROOT) as process:
        ended(process)
    assert contents(target) == alone


@pytest.mark.slow
def test_an_address_at_which_nobody_answers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flows.dask_cluster.ANSWER_SECONDS", 1.0)
    write_vectors(tmp_path / "x.parquet", cloud())

    def fold(address: str) -> None:
        fold_on_dask(tmp_path / "x.parquet", tmp_path / "run", of_vectors(), FoldCluster(address))

    for address in ("tcp://127.0.0.1:1", "nonsense://x", "no-such-host.invalid:8786"):
        with pytest.raises(UnreachableClusterError, match=address):
            fold(address)
    assert not (tmp_path / "run").exists()
