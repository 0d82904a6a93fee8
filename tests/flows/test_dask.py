"""Stages on Dask workers, each worker process with a checkout of its own."""

import hashlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.lockfile import read_outputs
from flows.repro import plain_repro
from pipeline.errors import RunError
from pipeline.lineage.manifest import read_manifest
from tests.flows.checkout import Checkout, processes_in, until

# A module, not `python -c`: Dask's processes import the main program.
PROGRAM = """
from pathlib import Path
from flows.reproduce import reproduce
if __name__ == "__main__":
    reproduce("quick", 2, Path.cwd(), runner="dask", address={address!r})
"""


def run_on_dask(checkout: Checkout, address: str | None = None) -> tuple[int, str]:
    """Run the suite and return the exit code and what was printed."""
    program = checkout.root.parent / "program.py"
    program.write_text(PROGRAM.format(address=address))
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=checkout.root,
        env=checkout.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,
        check=False,
    )
    return done.returncode, done.stdout


def data_of(root: Path) -> dict[str, bytes]:
    """Every output of the suite, by its path."""
    files = [*(root / "data").rglob("*"), *(root / "reports").rglob("*"), root / "dvc.lock"]
    return {str(file.relative_to(root)): file.read_bytes() for file in files if file.is_file()}


def work_of(checkout: Checkout) -> int:
    """How many stages ran in the checkout itself: each writes a line into the folder it ran in."""
    path = checkout.root / "ran.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.slow
def test_a_run_on_two_workers_leaves_what_a_plain_run_leaves_and_makes_nothing_here(
    fresh: Checkout, finished: Checkout
) -> None:
    # Not committed, nor even known to git: the workers have to see it all the same.
    for checkout in (fresh, finished):
        checkout.change("rounding: 2", "rounding: 4")
    plain_repro("quick", finished.root)
    code, printed = run_on_dask(fresh)
    assert code == 0, printed
    assert "6 ran" in printed
    assert "ran here" not in printed
    assert data_of(fresh.root) == data_of(finished.root)
    assert work_of(fresh) == 0
    assert processes_in(fresh.root) == []
    assert not list((fresh.root / ".dvc/tmp/sentfold-workers").rglob("checkout")), "workers clear up"


@pytest.mark.slow
def test_a_stage_that_fails_on_a_worker_is_reported_with_its_log_and_the_rest_is_finished(finished: Checkout) -> None:
    finished.change("dimension: 4", "dimension: 5")
    text = (finished.root / "stage.py").read_text()
    (finished.root / "stage.py").write_text(text + "if label == 'embed-quick-a': sys.exit('no such thing')\n")
    code, printed = run_on_dask(finished)
    assert code != 0
    assert "the stage 'embed@a' failed" in printed
    assert "skipped, because they need it: evaluate, report" in printed
    assert "--runner dask" in printed, "the command that takes it up again"
    assert "no such thing" in (finished.root / ".dvc/tmp/sentfold-logs/embed@a.log").read_text()
    assert "embed@b" in read_outputs(finished.root / "dvc.lock")


# The stages of these checkouts, run as the project's own are: below its recorder.
PACKAGE = """
from pkgutil import extend_path
__path__ = extend_path(__path__, __name__)
"""
MAIN = """
import runpy, sys
from pipeline.lineage.recorder import recorded
with recorded(sys.argv[1:]):
    runpy.run_path("stage.py")
"""


def record_runs(checkout: Checkout) -> None:
    """Let every stage write down its runs."""
    (checkout.root / "pipeline").mkdir()
    (checkout.root / "pipeline/__init__.py").write_text(PACKAGE)
    (checkout.root / "pipeline/__main__.py").write_text(MAIN)
    for name, old, new in (
        ("dvc.yaml", "python stage.py", "python -m pipeline"),
        (".gitignore", "pids", "pids\n/.sentfold/\n__pycache__"),
    ):
        path = checkout.root / name
        path.write_text(path.read_text().replace(old, new))


@pytest.mark.slow
def test_the_runs_on_workers_are_in_the_manifest_here_with_what_git_says_here(fresh: Checkout) -> None:
    record_runs(fresh)
    commit = ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "x")
    for words in (("add", "-A"), commit):
        subprocess.run(["git", *words], cwd=fresh.root, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=fresh.root, check=True, capture_output=True, text=True)
    fresh.change("rounding: 2", "rounding: 4")
    (fresh.root / "notes.txt").write_text("no stage reads this")
    text = (fresh.root / "stage.py").read_text()
    (fresh.root / "stage.py").write_text(text + "if label == 'embed-quick-a': sys.exit('no such thing')\n")
    code, printed = run_on_dask(fresh)
    assert code != 0
    assert "3 ran" in printed
    assert work_of(fresh) == 0, "nothing ran here, where a stage would have written down its own run"
    manifest = read_manifest(fresh.root, "quick")
    runs = {run["stage"]: run for run in manifest.ended}
    assert len(manifest.started) == len(manifest.ended) == 4
    assert {name: run["exit"] for name, run in runs.items()} == {
        "download@a": 0, "download@b": 0, "embed@a": 1, "embed@b": 0
    }  # fmt: skip
    for run in runs.values():
        assert run["code"] == {"commit": head.stdout.strip(), "dirty": ["params.yaml", "stage.py"]}
        assert run["by_dvc"]
    written = (fresh.root / "data/quick/spaces/b").read_bytes()
    digest = {"sha256": hashlib.sha256(written).hexdigest(), "size": len(written)}
    assert runs["embed@b"]["outputs"] == {"data/quick/spaces/b": digest}


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
def test_an_existing_cluster_is_used_by_its_address_and_left_as_it_was(
    fresh: Checkout, finished: Checkout, cluster: str
) -> None:
    code, printed = run_on_dask(fresh, cluster)
    assert code == 0, printed
    assert data_of(fresh.root) == data_of(finished.root)
    assert work_of(fresh) == 0
    # Once more, by the same workers, whose old checkouts are replaced.
    fresh.change("rounding: 2", "rounding: 3")
    code, printed = run_on_dask(fresh, cluster)
    assert code == 0, printed
    assert "2 ran" in printed


def test_workers_elsewhere_need_a_server_that_they_can_reach(
    finished: Checkout, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.dask_route import refuse_loopback

    refuse_loopback("tcp://127.0.0.1:8786", "http://127.0.0.1:4200/api")
    refuse_loopback("tcp://192.0.2.7:8786", "http://192.0.2.1:4200/api")
    with pytest.raises(RunError, match="cannot reach this Prefect server"):
        refuse_loopback("tcp://192.0.2.7:8786", "http://127.0.0.1:4200/api")
