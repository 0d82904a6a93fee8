"""The process that `flows.warm` starts: it imports what stages import, then forks for each that it is asked to run.

`python -m flows.warm_server SOCKET PARENT BLANKS`, the last of which make room for a stage's command line. On the
socket, lines of JSON: {"ready": 1} when all is imported; then, for each request, which holds arguments, cwd and
environment, {"pid": ...} and, when the stage has ended, {"code": ...}.

The project's own code is imported too, and may be edited between two stages. A fork forgets all of it, and reads it
anew, if one file of it has another time or size than when the server read it: the rule by which Python takes its own
compiled files for good.
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

from pipeline.hiding import hide_pandas

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
PACKAGES = ("flows", "pipeline")


def main() -> None:
    """Serve until the parent closes its end; return, in a fork, as the stage that was asked for."""
    connection, parent = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    die_with(parent)
    # Ctrl-C is for the stage; dvc, which ignores it meanwhile, ends this process when it ends itself.
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    hide_pandas()
    began, server, folder = time.time_ns(), os.getpid(), str(Path.cwd())
    import_what_stages_need()
    stamps = stamp_code()
    newest = max(changed for changed, _ in stamps.values())
    with connection.makefile("rw", encoding="utf-8", newline="\n") as lines:
        tell(lines, ready=1)
        for line in lines:
            request = json.loads(line)
            pid = os.fork()
            if pid == 0:
                die_with(server)
                if folder != request["cwd"] or newest > began or stamp_code() != stamps:
                    forget_code()
                signal.signal(signal.SIGINT, interrupted)
                become(request)
                os.close(connection.detach())
                return
            tell(lines, pid=pid)
            _, status = os.waitpid(pid, 0)
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


def stamp_code() -> dict[str, tuple[int, int]]:
    """Time of change, in ns, and size of each file of the project's code that has been imported; 0 if it is gone."""
    found = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.partition(".")[0] in PACKAGES and path:
            try:
                status = Path(path).stat()
            except OSError:
                found[path] = (0, 0)
            else:
                found[path] = (status.st_mtime_ns, status.st_size)
    return found


def forget_code() -> None:
    """Make the next import of the project's code read its files."""
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]


def tell(lines: Any, **answer: int) -> None:
    """Write one line of an answer."""
    lines.write(json.dumps(answer) + "\n")
    lines.flush()


def die_with(parent: int) -> None:
    """Make the kernel kill this process when `parent` dies."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def become(request: Mapping[str, Any]) -> None:
    """Make of a fork what `python -m pipeline ...` would be before its first line."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.path[0] = str(Path.cwd())
    sys.argv[1:] = request["arguments"]
    show_as(["python", "-m", "pipeline", *request["arguments"]])


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
