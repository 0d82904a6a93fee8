"""Progress bars: on a terminal, with a count, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios

import pytest

CODE = """
import time
from contextlib import nullcontext
from sentfold.decision import progress
progress.DELAY = {delay}
with progress.progress_bars() if {asked} else nullcontext():
    for part in progress.counted(([0] * 3, [0] * 4), 7, "pair", len):
        time.sleep(0.15)  # longer than the delay after which a bar appears
print("done")
"""


def errors_on_a_terminal(asked: bool, delay: float) -> str:
    """What a process writes to a stderr that is a terminal."""
    ours, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))  # a terminal of no width would show nothing
    subprocess.run(
        [sys.executable, "-c", CODE.format(asked=asked, delay=delay)],
        stderr=terminal, stdout=subprocess.PIPE, check=True, timeout=60,
    )  # fmt: skip
    os.write(terminal, b"END")
    os.close(terminal)
    text = b""
    while not text.endswith(b"END"):
        text += os.read(ours, 4096)
    os.close(ours)
    return text.decode().removesuffix("END")


def test_a_long_step_counts_its_units_on_a_terminal() -> None:
    shown = errors_on_a_terminal(asked=True, delay=0.1)
    assert "pairs" in shown
    assert "3/7" in shown


@pytest.mark.parametrize(("asked", "delay"), [(False, 0.1), (True, 2.0)])
def test_a_call_of_the_library_and_a_short_step_show_no_bar(asked: bool, delay: float) -> None:
    assert errors_on_a_terminal(asked, delay) == ""


def test_no_bar_goes_into_a_file() -> None:
    code = CODE.format(asked=True, delay=0.1)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_a_closed_stderr_takes_no_bars_and_its_notes_do_not_go_to_stdout() -> None:
    """tqdm has no stream to write to then: it kept its lock, and other threads waited for ever."""
    code = "from sentfold.suggestions import prepare_streams; from sentfold.cli.inputs import print_notes\n" + CODE
    code = code.replace('print("done")', 'print_notes(["a note"]); print("done")').format(asked=True, delay=0.1)
    for begin in ("", "prepare_streams()\n"):
        command = [
            "sh",
            "-c",
            'exec "$0" -c "$1" 2>&-',
            sys.executable,
            code.replace("import time", f"{begin}import time"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout[-5:]) == (0, "done\n")
    assert done.stdout == "done\n"


def test_notes_for_a_terminal_that_has_gone_end_no_command() -> None:
    ours, terminal = pty.openpty()
    os.close(ours)
    code = 'from sentfold.cli.inputs import print_notes; print_notes(["a note", "another"]); print("done")'
    done = subprocess.run(
        [sys.executable, "-c", code], stderr=terminal, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    os.close(terminal)
    assert done.stdout == "done\n"
