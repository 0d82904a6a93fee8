"""kill -9 of what `dvc repro` and `sentfold run` start, at random and at chosen moments."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import Disturbed
from tests.faults.processes import (
    PLAIN_DVC,
    RUN,
    Command,
    is_dvc,
    is_flow,
    is_guard,
    is_stage,
    strike,
)
from tests.faults.repetition import delays, injections

# What is stale by turns: two cheap stages side by side, a chain, a longer chain with a branch.
TURNS = ("transforms", "space", "transforms", "graph")

# The command that is run, who is killed, and seconds that the victim lives on a quiet machine: the moment after it
# appeared is drawn from them. A kill of `sentfold run` itself is in test_flow_kills.py.
VICTIMS = {
    "stage": (PLAIN_DVC, is_stage, 1.0),
    "dvc": (PLAIN_DVC, is_dvc, 3.0),
    "guard": (RUN, is_guard, 3.0),
    "flow": (RUN, is_flow, 6.0),
}


@pytest.mark.parametrize(
    ("role", "number"),
    [
        *injections("dvc"),
        *injections("guard"),
        *injections("flow"),
    ],
)
def test_a_kill_at_a_random_moment_does_no_harm(
    role: str, number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    _kill(role, number, disturb, moments, rerun=RUN)


@pytest.mark.parametrize("number", injections())
def test_a_kill_of_a_stage_at_a_random_moment_does_no_harm(
    number: int, disturb_without_server: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # dvc lives on and keeps its lock whole, so dvc itself can go on from there.
    _kill("stage", number, disturb_without_server, moments, rerun=PLAIN_DVC)


def _kill(
    role: str, number: int, disturb: Callable[[str], Disturbed], moments: random.Random, *, rerun: tuple[str, ...]
) -> None:
    words, _, life = VICTIMS[role]
    for delay in delays(moments, life):
        disturbed = disturb(TURNS[number % len(TURNS)])
        command = disturbed.starter.start(*words)
        victim = _await_victim(command, role, moments)
        time.sleep(delay)
        if victim is not None and strike(victim, signal.SIGKILL):
            command.wait()
            disturbed.judge(f"kill -9 of {role}", f"{delay:.3f} s after its start", command, rerun=rerun)
            return
    pytest.fail(f"each time the process ended before it was struck:\n{command.printed}")


def _await_victim(command: Command, role: str, moments: random.Random) -> int | None:
    victim = command.await_role(VICTIMS[role][1])
    # Of two stages one at random, so that it is not always the first that is hit.
    if role == "stage" and victim is not None and moments.random() < 0.5:
        victim = command.await_role(is_stage, passing=frozenset({victim}))
    return victim


@pytest.mark.parametrize("number", injections())
def test_a_kill_while_dvc_writes_its_lock_costs_no_more_than_that_stage(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # DVC empties the file and fills it again, which takes it some tens of milliseconds. A run has kept a copy.
    for delay in delays(moments, 0.03):
        disturbed = disturb("transforms")
        disturbed.starter.run(*RUN, "--target", "plan")
        command = disturbed.starter.start(*PLAIN_DVC)
        dvc = command.await_role(is_dvc)
        assert dvc is not None
        _await_cut(disturbed.root, command)
        time.sleep(delay)
        if strike(dvc, signal.SIGKILL):
            command.wait()
            disturbed.judge("kill -9 of dvc writing dvc.lock", f"{delay:.3f} s into it", command)
            return
    pytest.fail(f"each time dvc ended before it was struck:\n{command.printed}")


def _await_cut(root: Path, command: Command) -> None:
    lock = root / "dvc.lock"
    whole = lock.stat().st_size
    while lock.stat().st_size >= whole:
        assert command.process.poll() is None, f"dvc.lock was never written:\n{command.printed}"


def list_files(folder: Path) -> list[Path]:
    """The files of a folder, which DVC may remove and make again at any moment."""
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


@pytest.mark.parametrize("number", injections())
def test_a_kill_while_a_stage_writes_an_artifact_leaves_no_half_of_it(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for _ in range(20):
        disturbed = disturb("transforms")
        command = disturbed.starter.start(*PLAIN_DVC)
        stage = command.await_role(is_stage)
        folders = [disturbed.root / f"data/quick/spaces/wl-average-{name}" for name in ("pca", "whitening")]
        # The temporary name stands for a millisecond or two, while the file is written and synced.
        while command.process.poll() is None:
            if any(path.name.endswith(".tmp") for folder in folders for path in list_files(folder)):
                break
        at_hand = command.process.poll() is None and stage is not None
        victims = [pid for pid, words in command.processes().items() if at_hand and is_stage(words)]
        struck = [pid for pid in victims if strike(pid, signal.SIGKILL)]
        command.wait()
        if struck:
            disturbed.judge("kill -9 of a stage writing an artifact", "at the first temporary file", command)
            return
    pytest.fail("no temporary file was ever seen")
