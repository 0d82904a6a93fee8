"""The means of the fault tests, where a mistake would count faults that never struck."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.processes import Starter, press_ctrl_c, strike
from tests.flows.checkout import until


def test_a_process_that_has_ended_is_not_struck_though_its_parent_has_not_looked() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    until(lambda: ") Z " in Path(f"/proc/{process.pid}/stat").read_text(), "the child to end")
    os.kill(process.pid, signal.SIGTERM)  # the system itself takes no offence
    assert not strike(process.pid, signal.SIGTERM)
    process.wait()
    assert not strike(process.pid, signal.SIGTERM), "nor one that is gone"


def test_a_process_that_runs_is_struck() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert strike(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.skipif(shutil.which("setsid") is None, reason="no setsid, which puts a run on a terminal of its own")
def test_ctrl_c_of_a_command_that_has_ended_does_not_count(tmp_path: Path) -> None:
    starter = Starter(tmp_path, tmp_path)
    command, keyboard = starter.start_on_terminal("-c", "pass")
    command.wait()
    assert not press_ctrl_c(command, keyboard)
    os.close(keyboard)
