"""What becomes of a process whose own Prefect server ends: every case in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import subprocess, sys, threading, time
from flows import server
from flows.server import _watch, _watched
from pipeline.errors import RunError
server.LEAVE_SECONDS = server.PRINT_SECONDS = 0.3
stand_in = subprocess.Popen([sys.executable, "-c", "import time; time.sleep({lives})"])
{action}
print("the end", flush=True)
time.sleep({afterwards})  # as Prefect's threads hold a process up
"""

LATE = """
stand_in.wait()
safe, left = threading.Event(), threading.Event()
safe.set()
_watch(stand_in, "again", safe, left)
"""

WELL = """
with _watched(stand_in, "again"):
    pass
stand_in.kill()
"""

FAILED = """
try:
    with _watched(stand_in, "again"):
        raise ValueError("of the block")
except ValueError:
    stand_in.kill()
"""

INTERRUPTED = """
try:
    with _watched(stand_in, "again"):
        time.sleep(600)
except RunError as error:
    print(error.what, error.remedy)
"""

DEAF = """
with _watched(stand_in, "again"):
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            pass
"""


@pytest.mark.parametrize(
    ("action", "lives", "afterwards", "code", "said"),
    [
        # A watch that wakes up after an orderly end takes it for none; nor does one that ends before its server.
        pytest.param(LATE, 0, 0, 0, "the end", id="late"),
        pytest.param(WELL, 600, 1, 0, "the end", id="well"),
        pytest.param(FAILED, 600, 1, 0, "the end", id="failed for a reason of its own"),
        # Interrupted, told why, and not held up to the end.
        pytest.param(INTERRUPTED, 1, 600, 2, "ended before the run did", id="interrupted"),
        pytest.param(DEAF, 1, 600, 2, "ended before the run did", id="deaf"),
    ],
)
def test_a_process_ends_with_its_server_and_only_with_it(
    action: str, lives: int, afterwards: int, code: int, said: str
) -> None:
    script = SCRIPT.format(action=action, lives=lives, afterwards=afterwards)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
