"""The process that `flows.warm` starts: it imports what stages import, then forks for each that it is asked to run.

`python -m flows.warm_server SOCKET PARENT BLANKS`, the last of which make room for a stage's command line. On the
socket, lines of JSON: {"ready": 1} when all is imported; then, for each request, which holds arguments, cwd and
environment, {"pid": ...} and, when the stage has ended, {"code": ...}.

The project's own code is imported too, and may be edited at any time. A fork forgets all of it, and reads it anew,
if one file of it is not what it was before this process began. What is edited after that, and before the recorder
has taken the hashes of the stage's code, the recorder sees (pipeline/preloaded.py).
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline import preloaded
from pipeline.hiding import hide_pandas
from pipeline.leaving import die_with

# What stages that may run warm import, as `python -X importtime` tells. Not polars, not torch: they start threads,
# which would not live through a fork; the one of pyarrow's jemalloc is started anew by its own handler.
LIBRARIES = (
    "numpy", "pyarrow.parquet", "pyarrow.dataset", "yaml", "pydantic", "typer", "psutil", "threadpoolctl", "numba",
    "scipy.sparse.linalg", "scipy.spatial", "scipy.stats", "scipy.special", "sklearn.model_selection",
    "sklearn.cluster", "sklearn.linear_model", "sklearn.metrics", "sklearn.neighbors",
)  # fmt: skip
OWN = (
    "pipeline.lineage.recorder", "pipeline.lineage.lines", "pipeline.lineage.machine", "pipeline.lineage.manifest",
    "pipeline.lineage.sha256", "pipeline.lineage.commands", "pipeline.suite", "pipeline.encoders.encode",
    "pipeline.manifold.knn_graph", "pipeline.manifold.reconstruction_weights", "pipeline.manifold.eigensolve",
    "pipeline.manifold.transform", "pipeline.manifold.graph_transform", "pipeline.selection.budget",
    "pipeline.evaluate.evaluate",
)  # fmt: skip
# A file's time is that of the kernel's last tick, a few milliseconds ago.
TICK_NS = 50_000_000


def main() -> None:
    """Serve until the parent closes its end; return, in a fork, as the stage that was asked for."""
    connection, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    if not die_with(parent):
        os._exit(1)
    began, server, folder = time.time_ns() - TICK_NS, os.getpid(), str(Path.cwd())
    hide_pandas()
    import_what_stages_need()
    stamps = preloaded.stamp_imported()
    is_sure = all(changed < began for _, changed, _, _ in stamps.values())
    with connection.makefile("rw", encoding="utf-8", newline="\n") as lines:
        tell(lines, ready=1)
        for line in lines:
            request = json.loads(line)
            pid = os.fork()
            if pid == 0:
                if not die_with(server):
                    os._exit(1)
                known = is_sure and folder == request["cwd"] and preloaded.stamp_imported() == stamps
                become(request, stamps if known else None)
                os.close(connection.detach())
                # Last: an interrupt that came meanwhile is for the stage.
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                return
            # Ctrl-C is for the stage, also when it came before there was one.
            if signal.SIGINT in signal.sigpending():
                os.kill(pid, signal.SIGINT)
            tell(lines, pid=pid)
            _, status = os.waitpid(pid, 0)
            while signal.sigtimedwait({signal.SIGINT}, 0):
                pass
            tell(lines, code=os.waitstatus_to_exitcode(status))
    # At once: what has been imported need not be taken apart.
    os._exit(0)


def import_what_stages_need() -> None:
    """Import libraries and code, and what numba loads when a function is first called, compiled or not."""
    for name in (*LIBRARIES, *OWN):
        with suppress(Exception):  # the stage that needs it will say so
            importlib.import_module(name)
    with suppress(Exception):
        import numba
        import numpy

        numba.njit(lambda row: row.sum())(numpy.ones(1))


def tell(lines: Any, **answer: int) -> None:
    """Write one line of an answer."""
    lines.write(json.dumps(answer) + "\n")
    lines.flush()


def become(request: Mapping[str, Any], stamps: dict[str, preloaded.Stamp] | None) -> None:
    """Make of a fork what `python -m pipeline ...` would be before its first line.

    stamps  of the project's files, if what was imported of them is to be used; None: forget it
    """
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.path[0] = str(Path.cwd())
    sys.argv[1:] = request["arguments"]
    show_as(["python", "-m", "pipeline", *request["arguments"]])
    if stamps is None:
        for name in [name for name in sys.modules if name.partition(".")[0] in preloaded.PACKAGES]:
            del sys.modules[name]
    own: Any = importlib.import_module("pipeline.preloaded")
    own.warm, own.stamps = True, stamps or {}


def show_as(command: Sequence[str]) -> None:
    """Write a command line over our own, for `ps` and whoever looks for a stage; what does not fit is cut off."""
    with suppress(OSError, ValueError):
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5), without pid and name
        text = "\0".join([*command, ""]).encode()[: end - start - 1]
        ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    main()
    # Here as the stage: it ends, and dies, as any program does.
    runpy.run_module("pipeline", run_name="__main__", alter_sys=True)
