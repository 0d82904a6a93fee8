"""The undisturbed run, made once for all workers; copies of it to disturb; and the table of what came of that."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.faults.fixture_suite import change_parameter, create_checkout
from tests.faults.prefect_server import Server, running_server
from tests.faults.processes import PLAIN_DVC, RUN, Command, Starter
from tests.faults.verdict import Outcome, Snapshot, take_snapshot, wrong_reads, wrong_records

SEED = "SENTFOLD_FAULT_SEED"
RECORDS = "SENTFOLD_FAULT_RECORDS"


@dataclass(frozen=True)
class State:
    """A finished checkout as data: its files' hashes and its dvc.lock; `root` is copied, never changed."""

    root: Path
    snapshot: Snapshot
    lock: dict[str, Any]


# What makes stages stale, by a name: parameters and their new values. Each name is also the state that results.
CHANGES: dict[str, dict[str, Any]] = {
    "transforms": {"manifolds.pca.components": 5, "manifolds.whitening.components": 5},
    "space": {"manifolds.lp.components": 5},
    "graph": {"knn_graph.neighbors": 9},
}


@dataclass
class Disturbed:
    """A copy of the finished checkout with a change that makes some stages stale, and where it has to end."""

    root: Path
    starter: Starter
    before: State
    after: State
    record: Callable[[str, object], None]

    def judge(
        self,
        fault: str,
        moment: str,
        command: Command | None,
        *,
        rerun: tuple[str, ...] = RUN,
        grace: float = 15.0,
        edited_lock: bool = False,
    ) -> Command:
        """Count what the fault left, run again, record the outcome; a harm fails the test. Returns that run.

        grace        seconds that processes may outlive the command: more than a guard gives its own, on a busy machine
        edited_lock  dvc.lock is the fault itself: what it records is not held against anybody
        """
        orphans = command.orphans(seconds=grace) if command else []
        wrong = [
            *wrong_reads(self.root, self.before.root, self.after.root),
            *([] if edited_lock else wrong_records(self.root, self.before.lock, self.after.lock)),
        ]
        again = self.starter.run(*rerun)
        completed = again.wait() == 0
        now = take_snapshot(self.root)
        differing = sorted(
            name for name in {*now, *self.after.snapshot} if now.get(name) != self.after.snapshot.get(name)
        )
        outcome = Outcome(fault, moment, len(orphans), len(wrong), completed, not differing)
        self.record("fault", outcome.as_json())
        story = f"{outcome}\norphans {orphans}\nwrong {wrong}\ndiffering {differing}"
        first = f"\nthe disturbed run:\n{command.printed}" if command else ""
        assert outcome.sound, f"{story}{first}\nthe next run:\n{again.printed}"
        return again


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all workers of this test run see."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "faults"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def undisturbed(shared: Path) -> Callable[[str], State]:
    """The state of a name in CHANGES, or `base`; each is made when it is first asked for, by one worker."""

    def make(name: str) -> State:
        folder = shared / name
        with (shared / f"{name}.guard").open("w") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            if not (folder / "state.json").exists():
                _make_state(folder, name, make)
        content = json.loads((folder / "state.json").read_text())
        return State(folder / "checkout", content["snapshot"], content["lock"])

    return make


def _make_state(folder: Path, name: str, make: Callable[[str], State]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if name == "base":
        root = create_checkout(folder / "checkout")
    else:
        root = copy_checkout(make("base").root, folder / "checkout")
        apply_change(root, name)
    starter = Starter(root, folder)
    run = starter.run(*PLAIN_DVC)
    assert run.wait() == 0, run.printed
    lock = yaml.safe_load((root / "dvc.lock").read_text())
    (folder / "state.json").write_text(json.dumps({"snapshot": take_snapshot(root), "lock": lock}))


def copy_checkout(source: Path, target: Path) -> Path:
    """A copy with all times, which DVC and numba go by."""
    return Path(shutil.copytree(source, target, symlinks=True))


def apply_change(root: Path, name: str) -> None:
    """Make the stages of a change stale."""
    for key, value in CHANGES[name].items():
        change_parameter(root, key, value)


@pytest.fixture
def disturb_without_server(
    tmp_path: Path, undisturbed: Callable[[str], State], record_property: Callable[[str, object], None]
) -> Iterator[Callable[[str], Disturbed]]:
    """Copies of the finished checkout to disturb, one for each call; no process of them outlives the test."""
    made: list[Disturbed] = []

    def copy(change: str) -> Disturbed:
        before, after = undisturbed("base"), undisturbed(change)
        root = copy_checkout(before.root, tmp_path / f"checkout-{len(made)}")
        if change != "base":
            apply_change(root, change)
        made.append(Disturbed(root, Starter(root, tmp_path), before, after, record_property))
        return made[-1]

    yield copy
    for disturbed in made:
        disturbed.starter.end()


@pytest.fixture
def disturb(disturb_without_server: Callable[[str], Disturbed], server: Server) -> Callable[[str], Disturbed]:
    """The same copies, whose runs use the tests' Prefect server; it takes 10 s to start."""

    def copy(change: str) -> Disturbed:
        disturbed = disturb_without_server(change)
        server.lend(disturbed.starter)
        return disturbed

    return copy


@pytest.fixture(scope="session")
def seed() -> str:
    """What every moment is drawn from: SENTFOLD_FAULT_SEED, or drawn anew and printed with each failure."""
    return os.environ.get(SEED) or os.urandom(4).hex()


@pytest.fixture
def moments(seed: str, request: pytest.FixtureRequest) -> random.Random:
    """Random moments of this test; the same again with the same seed."""
    print(f"replay with {SEED}={seed}")  # noqa: T201  (pytest shows it when the test fails)
    return random.Random(f"{seed} {request.node.name}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append every outcome to the file that SENTFOLD_FAULT_RECORDS names, for the table."""
    # With xdist the workers' reports come by here once more in the process that started them.
    if "PYTEST_XDIST_WORKER" in os.environ or report.when != "call" or RECORDS not in os.environ:
        return
    with Path(os.environ[RECORDS]).open("a", encoding="utf-8") as stream:
        for name, value in report.user_properties:
            if name == "fault":
                stream.write(f"{value}\n")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Prefect server that every run of a test worker may use."""
    with running_server(tmp_path_factory.mktemp("prefect")) as running:
        yield running
