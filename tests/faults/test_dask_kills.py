"""kill -9 of a Dask worker under a run."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable

import psutil
import pytest
import yaml

from tests.faults.conftest import Disturbed
from tests.faults.prefect_server import Server
from tests.faults.processes import RUN, is_dask_worker, is_stage, strike
from tests.faults.repetition import CI, delays, injections
from tests.faults.verdict import take_snapshot
from tests.flows.checkout import alive, until


@pytest.mark.parametrize("number", injections(ci=CI))
def test_a_dask_worker_that_is_killed_takes_its_stage_along_and_nothing_else(
    number: int, server: Server, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for delay in delays(moments, 1.0):
        disturbed = disturb("transforms")
        command = disturbed.starter.start(*RUN, "--runner", "dask")
        victim = command.await_role(is_dask_worker)
        command.await_role(is_stage)
        time.sleep(delay)
        below = _processes_below(victim) if victim is not None else []
        if victim is not None and strike(victim, signal.SIGKILL):
            until(lambda: not any(map(alive, below)), f"what ran below the worker to end: {below}", seconds=60)  # noqa: B023
            code = command.wait()
            # Dask gives the stage to another worker, which is well, or gives it up, which fails that stage alone.
            lacking = _stages_not_made(disturbed)
            assert len(lacking) <= 1, f"{lacking}\n{command.printed}"
            assert (code != 0) == bool(lacking), f"exit code {code}, not made: {lacking}\n{command.printed}"
            assert all(f"the stage '{name}'" in command.printed for name in lacking), command.printed
            disturbed.judge("kill -9 of a Dask worker", f"{delay:.3f} s after the first stage began", command)
            return
    pytest.fail(f"each time the worker ended before it was struck:\n{command.printed}")


def _processes_below(pid: int) -> list[int]:
    try:
        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _stages_not_made(disturbed: Disturbed) -> list[str]:
    """Of the stages that were stale, those whose record or whose files are not as an undisturbed run leaves them."""
    before, after = disturbed.before.lock["stages"], disturbed.after.lock["stages"]
    here = yaml.safe_load((disturbed.root / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    stale = [name for name in after if after[name] != before.get(name)]
    assert len(stale) > 1, "a change that makes one stage stale cannot tell what became of the others"
    files, right = take_snapshot(disturbed.root), disturbed.after.snapshot

    def made(name: str) -> bool:
        outputs = tuple(out["path"] for out in after[name]["outs"])
        paths = {path for path in {*files, *right} if path.startswith(outputs)}
        return here.get(name) == after[name] and all(files.get(path) == right.get(path) for path in paths)

    return [name for name in stale if not made(name)]
