"""`sentfold fold` of a large corpus: in one process, and on Dask workers under a limit of memory.

    python -m benchmarks.fold --json reports/benchmarks/fold.json [--landmarks 10000] [--workers 2] [--rows N]

The corpus is every distinct line of 20 Newsgroups (503,867 texts), written as a Parquet dataset of four files. Each
route is one call of the command, which encodes the texts by WordLlama's token vectors, embeds landmarks, and maps
every line. Wall and CPU seconds are of that process with all that it started, its start included; peak is the largest
resident memory of one process. Afterwards the two folders are compared byte by byte. A small run compiles numba's
kernels before. The machine's load before each route is recorded: under load, wall seconds tell little.
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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.inputs import newsgroup_lines

FILES = 4
FOLDER = Path("data/benchmarks/fold")
COMMAND = [sys.executable, "-c", "from sentfold.cli.main import main; main()", "fold", "--encoder=wordllama"]


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


def measure(source: Path, target: Path, *options: str) -> dict[str, Any]:
    """One call of the command: what it took."""
    shutil.rmtree(target, ignore_errors=True)
    load, start = os.getloadavg()[0], time.monotonic()
    process = subprocess.Popen([*COMMAND, str(source), str(target), *options])
    _, status, used = os.wait4(process.pid, 0)
    wall, cpu = time.monotonic() - start, used.ru_utime + used.ru_stime
    if status:
        raise SystemExit(f"{' '.join(options)} failed")
    rows = manifest_of(target)["rows"]
    return {
        "wall_s": round(wall, 1),
        "cpu_s": round(cpu, 1),
        "texts_per_wall_s": round(rows / wall),
        "texts_per_cpu_s": round(rows / cpu),
        "peak_bytes": used.ru_maxrss * 1024,
        "load_before": round(load, 1),
    }


def manifest_of(target: Path) -> dict[str, Any]:
    """What a finished fold says of itself."""
    return dict(json.loads((target / "manifest.json").read_bytes()))


def equal_folders(left: Path, right: Path) -> tuple[bool, int, int]:
    """Whether two folders hold the same files with the same bytes; their number and size."""
    files = [sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file()) for folder in (left, right)]
    same = files[0] == files[1] and all(filecmp.cmp(left / name, right / name, shallow=False) for name in files[0])
    return same, len(files[0]), sum((left / name).stat().st_size for name in files[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--landmarks", type=int, default=10_000)
    parser.add_argument("--partition-rows", type=int, default=16_384)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    lines, folder = newsgroup_lines()[: arguments.rows], arguments.folder.absolute()
    write_corpus(folder / "small", lines[:2000], group=500)
    measure(folder / "small", folder / "small-target", "--landmarks=500")
    write_corpus(folder / "source", lines, group=arguments.partition_rows)
    options = [f"--landmarks={arguments.landmarks}", f"--partition-rows={arguments.partition_rows}"]
    dask = [f"--workers={arguments.workers}", f"--memory-limit={arguments.memory_limit}"]
    routes = {
        "one-process": measure(folder / "source", folder / "one-process", *options, "--threads=1"),
        "dask": measure(folder / "source", folder / "dask", *options, *dask),
    }
    same, files, size = equal_folders(folder / "one-process", folder / "dask")
    manifest = manifest_of(folder / "dask")
    content = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "texts": len(lines),
        "workers": arguments.workers,
        "memory_limit": arguments.memory_limit,
        **{name: manifest[name] for name in ("encoder", "manifold", "eigensolve")},
        "landmark_notes": {name: note for name, note in manifest["notes"].items() if not isinstance(note, list)},
        "routes": routes,
        "folders_equal_byte_for_byte": same,
        "files": files,
        "bytes": size,
    }
    report = json.dumps(content, indent=1)
    print(report)
    if arguments.json:
        arguments.json.write_text(report + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
