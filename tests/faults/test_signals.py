"""SIGTERM and Ctrl-C of `dvc repro`, and a `dvc repro` beside a run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable

import pytest

from tests.faults.conftest import Disturbed
from tests.faults.processes import PLAIN_DVC, RUN, is_dvc, is_stage, press_ctrl_c, strike
from tests.faults.repetition import delays, injections


@pytest.mark.parametrize("number", injections())
def test_sigterm_ends_a_run_with_all_that_it_started(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for delay in delays(moments, 3.0):
        disturbed = disturb("transforms")
        command = disturbed.starter.start(*PLAIN_DVC)
        command.await_role(is_dvc)
        time.sleep(delay)
        if strike(command.process.pid, signal.SIGTERM):
            command.wait()
            disturbed.judge("SIGTERM of dvc repro", f"{delay:.3f} s after dvc's start", command)
            return
    pytest.fail(f"each time the run ended before it was struck:\n{command.printed}")


@pytest.mark.skipif(shutil.which("setsid") is None, reason="no setsid, which puts a run on a terminal of its own")
@pytest.mark.parametrize("number", injections())
def test_ctrl_c_on_the_terminal_ends_a_run_with_all_that_it_started(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    for delay in delays(moments, 1.0 if number % 2 else 3.0):
        disturbed = disturb("transforms")
        command, keyboard = disturbed.starter.start_on_terminal(*PLAIN_DVC)
        command.await_role(is_stage if number % 2 else is_dvc)
        time.sleep(delay)
        struck = press_ctrl_c(command, keyboard)
        command.wait()
        os.close(keyboard)
        if struck:
            disturbed.judge("Ctrl-C of dvc repro", f"{delay:.3f} s after it began", command)
            return
    pytest.fail(f"each time the run ended before it was interrupted:\n{command.printed}")


@pytest.mark.parametrize("number", injections(slow=10))
def test_a_plain_dvc_beside_a_run_may_be_refused_and_spoils_nothing(
    number: int, disturb: Callable[[str], Disturbed], moments: random.Random
) -> None:
    # dvc by hand does not know the outer lock; DVC's own make one of the two wait, or give up.
    disturbed = disturb("space")
    first = disturbed.starter.start(*RUN)
    delay = moments.uniform(0, 3.0)
    time.sleep(delay)
    second = disturbed.starter.start(*PLAIN_DVC)
    codes = first.wait(), second.wait()
    assert 0 in codes, first.printed + second.printed
    disturbed.judge("dvc repro beside sentfold run", f"{delay:.3f} s later", second)
