"""What becomes of a process whose Prefect server ends: every case in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import subprocess, sys, threading, time
from pathlib import Path
from flows import watch
from flows.watch import ConfiguredServer, OwnServer, watched
from pipeline.errors import RunError
watch.LEAVE_SECONDS = watch.PRINT_SECONDS = 0.3
watch.PATIENCE_SECONDS = 1.0
{server}
{action}
print("the end", flush=True)
time.sleep({afterwards})  # as Prefect's threads hold a process up
"""

OWN = """
process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep({lives})"])
stand_in = OwnServer(process, Path("its.log"))
"""

# Answers /health as Prefect does, for `lives` seconds after its first answer.
CONFIGURED = """
import http.server, os, sys, threading
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"true")
        threading.Timer({lives}, os._exit, [0]).start()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Health)
print(server.server_port, flush=True)
server.serve_forever()
"""
CONFIGURED = f"""
def serve(port):
    command = [sys.executable, "-c", {CONFIGURED!r}, str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())
process, port = serve(0)
stand_in = ConfiguredServer(f"http://127.0.0.1:{{{{port}}}}", every=0.1)
stand_in.process = process
assert stand_in.answers()
"""

LATE = """
stand_in.process.wait()
signs = watch.Signs()
signs.safe.set()
watch.watch(stand_in, "again", signs)
"""

WELL = """
with watched(stand_in, "again"):
    pass
stand_in.process.kill()
"""

FAILED = """
try:
    with watched(stand_in, "again"):
        raise ValueError("of the block")
except ValueError:
    stand_in.process.kill()
"""

INTERRUPTED = """
try:
    with watched(stand_in, "again"):
        time.sleep(600)
except RunError as error:
    print(error.what, error.remedy)
"""

# A stage failed while nobody listened: that is what its user has to know.
FAILED_UNHEARD = """
watch.PATIENCE_SECONDS = 600.0
try:
    with watched(stand_in, "again"):
        process.kill()
        process.wait()
        raise RunError("a stage failed", where="embed")
except RunError as error:
    print(error.what)
"""

DEAF = """
with watched(stand_in, "again"):
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            pass
"""

STARTED_ANEW = """
watch.PATIENCE_SECONDS = 20.0
with watched(stand_in, "again"):
    process.kill()
    while stand_in.answers():
        pass
    process, _ = serve(port)
    while not stand_in.answers():
        pass
    watch.PATIENCE_SECONDS = 0.5
    time.sleep(2)  # several patiences, in which a watch that still counted from its death would end this
process.kill()
"""


ENDED, SILENT = "ended before the run did", "went away during the run"


@pytest.mark.parametrize(
    ("server", "action", "lives", "afterwards", "code", "said"),
    [
        # A watch that wakes up after an orderly end takes it for none; nor does one that ends before its server.
        pytest.param(OWN, LATE, 0, 0, 0, "the end", id="late"),
        pytest.param(OWN, WELL, 600, 1, 0, "the end", id="well"),
        pytest.param(OWN, FAILED, 600, 1, 0, "the end", id="failed for a reason of its own"),
        pytest.param(CONFIGURED, FAILED_UNHEARD, 600, 600, 2, "a stage failed", id="configured, failed unheard"),
        # Interrupted, told why, and not held up to the end.
        pytest.param(OWN, INTERRUPTED, 1, 600, 2, ENDED, id="interrupted"),
        pytest.param(OWN, DEAF, 1, 600, 2, ENDED, id="deaf"),
        # The same of a server that others started, after some patience.
        pytest.param(CONFIGURED, WELL, 600, 1, 0, "the end", id="configured, well"),
        pytest.param(CONFIGURED, FAILED, 600, 1, 0, "the end", id="configured, failed for a reason of its own"),
        pytest.param(CONFIGURED, STARTED_ANEW, 600, 1, 0, "the end", id="configured, started anew"),
        pytest.param(CONFIGURED, INTERRUPTED, 1, 600, 2, SILENT, id="configured, interrupted"),
        pytest.param(CONFIGURED, DEAF, 1, 600, 2, SILENT, id="configured, deaf"),
    ],
)
def test_a_process_ends_with_its_server_and_only_with_it(
    server: str, action: str, lives: int, afterwards: int, code: int, said: str
) -> None:
    script = SCRIPT.replace("{server}", server).format(action=action, lives=lives, afterwards=afterwards)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
