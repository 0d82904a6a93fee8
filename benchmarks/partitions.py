"""One huge corpus by row partitions: in one process, and on Dask workers under a limit of memory.

    python -m benchmarks.partitions --json reports/benchmarks/partitions-503867.json [--landmarks 10000] [--workers 2]

The corpus is every distinct line of 20 Newsgroups (503,867 texts), written as a Parquet dataset of four files. Each
route is a process of its own that embeds the texts, draws and embeds landmarks, and maps every line; wall and CPU
are of that process with all that it started, its start included. Afterwards the two folders are compared byte by
byte, and the coordinates with those that map-landmarks, which knows no partitions, makes of the same vectors.
numba's kernels are compiled before. The machine's load before each route is recorded: where others work
on it too, wall tells little, and CPU seconds are dearer than they would be alone.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.inputs import newsgroup_lines
from flows.partition_workers import peak_memory
from flows.partitions import fold_on_dask
from pipeline.manifold.landmarks_io import map_parquet
from pipeline.partitions.fold import check_target, fold_partitions
from pipeline.partitions.request import Request, request_by_name

FILES = 4
FOLDER = Path("data/benchmarks/partitions")


def write_corpus(folder: Path, lines: list[str], *, group: int) -> None:
    """The lines as a dataset."""
    # Sorted lines would make near-duplicates neighbours in a partition, and partitions of unlike lengths.
    lines = [lines[row] for row in np.random.default_rng(0).permutation(len(lines))]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    edges = [len(lines) * part // FILES for part in range(FILES + 1)]
    for part in range(FILES):
        table = pa.table({"text": lines[edges[part] : edges[part + 1]]})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=group)


def compile_kernels(folder: Path, lines: list[str], request: Request) -> None:
    """A small run, so that neither route pays for numba's first compilation on this machine."""
    write_corpus(folder / "source", lines[:2000], group=500)
    few = replace(request, parameters=request.parameters.model_copy(update={"landmarks": 500}))
    fold_partitions(folder / "source", folder / "target", few)
    shutil.rmtree(folder)


def run_route(route: str, request: Request, arguments: argparse.Namespace) -> dict[str, Any]:
    """One route, in this process; its peak, or those of its workers."""
    target = arguments.folder / route
    shutil.rmtree(target, ignore_errors=True)
    if route == "one-process":
        summary = fold_partitions(arguments.folder / "source", target, request)
        return {"partitions": summary.partitions, "notes": summary.notes, "peak_bytes": peak_memory()}
    summary, uses = fold_on_dask(
        arguments.folder / "source",
        target,
        request,
        address=None,
        workers=arguments.workers,
        memory_limit=arguments.memory_limit,
    )
    workers = [{"tasks": use.tasks, "cpu_s": round(use.cpu_seconds, 1), "peak_bytes": use.peak} for use in uses]
    return {"partitions": summary.partitions, "notes": summary.notes, "workers": workers, "peak_bytes": peak_memory()}


def measure(route: str, rows: int) -> dict[str, Any]:
    """The route in a process of its own: what it says, and what it took."""
    load, start = os.getloadavg()[0], time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.partitions", *sys.argv[1:], "--route", route])
    _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    if status:
        raise SystemExit(f"{route} failed")
    cpu = used.ru_utime + used.ru_stime
    return {
        "wall_s": round(wall, 1),
        "cpu_s": round(cpu, 1),
        "texts_per_wall_s": round(rows / wall),
        "texts_per_cpu_s": round(rows / cpu),
        "load_before": round(load, 1),
    }


def equal_folders(left: Path, right: Path) -> tuple[bool, int, int]:
    """Whether two folders hold the same files with the same bytes; their number and size."""
    files = [sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file()) for folder in (left, right)]
    same = files[0] == files[1] and all(filecmp.cmp(left / name, right / name, shallow=False) for name in files[0])
    return same, len(files[0]), sum((left / name).stat().st_size for name in files[0])


def equals_map_landmarks(folder: Path, request: Request) -> bool:
    """Whether the folded dataset has the numbers that map_parquet makes of the same vectors, bit for bit."""
    map_parquet(folder / "vectors", folder / "whole.parquet", request.parameters, request.solver)
    whole, parts = pq.ParquetFile(folder / "whole.parquet"), sorted((folder / "folded").glob("*.parquet"))
    one = (batch.column(0).flatten() for batch in whole.iter_batches(batch_size=1024))
    other = (batch.column(0).flatten() for part in parts for batch in pq.ParquetFile(part).iter_batches(1024))
    left, right = np.concatenate([np.asarray(b) for b in one]), np.concatenate([np.asarray(b) for b in other])
    (folder / "whole.parquet").unlink()
    return bool(np.array_equal(left.view(np.uint32), right.view(np.uint32)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", default="wordllama")
    parser.add_argument("--landmarks", type=int, default=10_000)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--partition-rows", type=int, default=16_384)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--route", choices=["one-process", "dask"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    request = request_by_name(
        arguments.encoder,
        "lp-landmark",
        landmarks=arguments.landmarks,
        tolerance=arguments.tolerance,
        rows=arguments.partition_rows,
    )
    if arguments.route:
        told = run_route(arguments.route, request, arguments)
        (arguments.folder / f"{arguments.route}.json").write_text(json.dumps(told))
        return
    lines = newsgroup_lines()
    rows = len(lines)
    compile_kernels(arguments.folder / "small", lines, request)
    write_corpus(arguments.folder / "source", lines, group=arguments.partition_rows)
    routes = {}
    for route in ("one-process", "dask"):
        taken = measure(route, rows)
        told = json.loads((arguments.folder / f"{route}.json").read_text())
        notes = told.pop("notes")
        routes[route] = {**taken, **told}
        print(route, json.dumps(routes[route]), flush=True)
    same, files, size = equal_folders(*(arguments.folder / route for route in routes))
    check_target(arguments.folder / "dask")
    asked = {name: getattr(arguments, name) for name in ("encoder", "landmarks", "workers", "memory_limit")}
    content = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "texts": rows,
        **asked,
        "manifold": request.parameters.model_dump(),
        "eigensolve": request.solver.model_dump(),
        "landmark_notes": {name: note for name, note in notes.items() if not isinstance(note, list)},
        "routes": routes,
        "folders_equal_byte_for_byte": same,
        "files": files,
        "bytes": size,
        "equal_to_map_landmarks": equals_map_landmarks(arguments.folder / "dask", request),
    }
    report = json.dumps(content, indent=1)
    print(report)
    if arguments.json:
        arguments.json.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
