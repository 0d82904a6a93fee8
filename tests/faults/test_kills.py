"""kill -9 of a stage, of dvc, of its guard, and of `sentfold repro`, at random and at chosen moments."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.dvc import MEMORY
from tests.faults.conftest import Disturbed
from tests.faults.processes import (
    PLAIN_DVC,
    REPRO,
    Command,
    is_dvc,
    is_guard,
    is_runner,
    is_stage,
    is_warm_server,
    strike,
)
from tests.faults.repetition import CI, delays, injections

# What is stale by turns: two cheap stages side by side, a chain, a longer chain with a branch.
TURNS = ("transforms", "space", "transforms", "graph")

ROLES = {
    "stage": is_stage,
    "dvc": is_dvc,
    "guard": is_guard,
    "sentfold repro": is_runner,
    "warm server": is_warm_server,
}

# Seconds that each lives on a quiet machine; the moment after it appeared is drawn from them. A stage that is forked
# has its libraries already.
LIVES = {"stage": 1.0, "warm stage": 0.25, "dvc": 3.0, "guard": 3.0, "sentfold repro": 4.0, "warm server": 8.0}


@pytest.mark.parametrize(
    ("role", "number"),
    [
        *injections("stage", ci=CI),
        *injections("dvc", ci=CI),
        *injections("guard", default=0),
        *injections("sentfold repro"),
        *injections("warm server", ci=CI),
    ],
)
def test_a_kill_at_a_random_moment_does_no_harm(
    role: str, number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # By turns, too, so that each change meets both: stages in Pythons of their own, and all of them forked.
    is_warm = role == "warm server" or (number + number // len(TURNS)) % 2 == 0
    for delay in delays(moments, LIVES["warm stage" if is_warm and role == "stage" else role]):
        disturbed = disturb(TURNS[number % len(TURNS)])
        disturbed.starter.environment["SENTFOLD_WARM"] = "1" if is_warm else "0"
        command = disturbed.starter.start(*REPRO)
        victim = _await_victim(command, role, moments)
        time.sleep(delay)
        if victim is not None and strike(victim, signal.SIGKILL):
            command.wait()
            disturbed.judge(f"kill -9 of {role}", f"{delay:.3f} s after its start", command)
            return
    pytest.fail(f"each time the process ended before it was struck:\n{command.printed}")


def _await_victim(command: Command, role: str, moments: random.Random) -> int | None:
    victim = command.await_role(ROLES[role])
    # Of two stages one at random, so that it is not always the first that is hit.
    if role == "stage" and victim is not None and moments.random() < 0.5:
        victim = command.await_role(is_stage, passing=frozenset({victim}))
    return victim


@pytest.mark.parametrize("number", injections())
def test_a_kill_while_dvc_writes_its_lock_costs_no_more_than_that_stage(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # DVC empties the file and fills it again, which takes it some tens of milliseconds.
    _kill_at_the_lock(PLAIN_DVC, "kill -9 of plain dvc writing dvc.lock", _await_cut, 0.03, disturb, moments)


@pytest.mark.parametrize("number", injections())
def test_a_kill_while_dvc_lock_is_replaced_costs_no_more_than_that_stage(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # What is remembered of the new file is written first, then its draft, which takes the file's place.
    _kill_at_the_lock(REPRO, "kill -9 of dvc replacing dvc.lock", _await_memory, 0.01, disturb, moments)


def _kill_at_the_lock(
    words: tuple[str, ...],
    fault: str,
    await_writing: Callable[[Path, Command], None],
    seconds: float,
    disturb: Callable[[str], Disturbed],
    moments: random.Random,
) -> None:
    """Kill the dvc of a command within some seconds after it began to write."""
    for delay in delays(moments, seconds):
        disturbed = disturb("transforms")
        command = disturbed.starter.start(*words)
        dvc = command.await_role(is_dvc)
        assert dvc is not None
        await_writing(disturbed.root, command)
        time.sleep(delay)
        if strike(dvc, signal.SIGKILL):
            command.wait()
            disturbed.judge(fault, f"{delay:.3f} s into it", command)
            return
    pytest.fail(f"each time dvc ended before it was struck:\n{command.printed}")


def _await_cut(root: Path, command: Command) -> None:
    lock = root / "dvc.lock"
    whole = lock.stat().st_size
    while lock.stat().st_size >= whole:
        assert command.process.poll() is None, f"dvc.lock was never written:\n{command.printed}"


def _await_memory(root: Path, command: Command) -> None:
    memory = root / f".dvc/tmp/{MEMORY}-dvc.lock"
    before = memory.stat().st_mtime_ns
    while memory.stat().st_mtime_ns == before:
        assert command.process.poll() is None, f"dvc.lock was never replaced:\n{command.printed}"


@pytest.mark.parametrize("number", injections())
def test_a_kill_while_a_stage_writes_an_artifact_leaves_no_half_of_it(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for _ in range(20):
        disturbed = disturb("transforms")
        command = disturbed.starter.start(*REPRO)
        stage = command.await_role(is_stage)
        folders = [disturbed.root / f"data/quick/spaces/wl-average-{name}" for name in ("pca", "whitening")]
        # The temporary name stands for a millisecond or two, while the file is written and synced.
        while command.process.poll() is None:
            if any(path.name.endswith(".tmp") for folder in folders if folder.exists() for path in folder.iterdir()):
                break
        at_hand = command.process.poll() is None and stage is not None
        victims = [pid for pid, words in command.processes().items() if at_hand and is_stage(words)]
        struck = [pid for pid in victims if strike(pid, signal.SIGKILL)]
        command.wait()
        if struck:
            disturbed.judge("kill -9 of a stage writing an artifact", "at the first temporary file", command)
            return
    pytest.fail("no temporary file was ever seen")
