"""`sentfold fold` of a large corpus: in one process, and on Dask workers under a limit of memory.

    python -m benchmarks.fold --json reports/benchmarks/fold.json [--landmarks 10000] [--workers 2] [--rows N]
    python -m benchmarks.fold --ssh --json reports/benchmarks/fold-503867-ssh.json

The corpus is every distinct line of 20 Newsgroups (503,867 texts), written as a Parquet dataset of four files. Each
route is one call of the command, which encodes the texts by WordLlama's token vectors, embeds landmarks, and maps
every line. Wall and CPU seconds are of that process with all that it started, its start included; peak is the largest
resident memory of one process. Afterwards the two folders are compared byte by byte. A small run compiles numba's
kernels before. The machine's load before each route is recorded: under load, wall seconds tell little.

With --ssh, the second route has workers in clones of the commit. They do not see the folder of the run (a mount hides
it), and files go through a DVC remote on an sshd of loopback. The seconds of that route begin when the run starts; its
CPU seconds are of the run, scheduler, workers and sshd together, and numba compiles in each clone. As root, on Linux.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.inputs import newsgroup_lines
from sentfold.files import sha256_of
from sentfold.numeric_profile import SETTINGS

ROOT = Path(__file__).resolve().parents[1]
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


def measure(
    source: Path, target: Path, *options: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """One call of the command: what it took."""
    shutil.rmtree(target, ignore_errors=True)
    load, start = os.getloadavg()[0], time.monotonic()
    process = subprocess.Popen([*COMMAND, str(source), str(target), *options], cwd=cwd, env=environment)
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


def measure_ssh(folder: Path, workers: int, options: Sequence[str]) -> dict[str, Any]:
    """The command on workers that do not see `folder`/here, where source and target are: what it took, and sent."""
    from tests.flows.checkout import Checkout
    from tests.flows.ssh import missing, ssh_server
    from tests.flows.workers import APART, clone, cluster, commit, tls

    if why := missing():
        raise SystemExit(why)
    here, remote = folder / "here", folder / "ssh"
    for old in (remote, here / "checkout", *folder.glob("worker-*")):
        shutil.rmtree(old, ignore_errors=True)
    (folder / "scheduler.json").unlink(missing_ok=True)
    remote.mkdir()
    before = _cpu_seconds()
    with ssh_server(remote) as (address, client):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **SETTINGS, **tls(folder), **client}
        run = clone(Checkout(ROOT, environment), here / "checkout")
        commit(run, remote=address)
        for name, value in {"keyfile": str(remote / "client"), "user": "root"}.items():
            words = ["-m", "dvc", "remote", "modify", "--local", "shared", name, value]
            subprocess.run([sys.executable, *words], cwd=run.root, env=environment, check=True)
        clones = [clone(run, folder / f"worker-{number}").root for number in range(workers)]
        for each in clones:
            shutil.copy(run.root / ".dvc/config.local", each / ".dvc/config.local")
        hidden = (*APART, str(here))
        with cluster(folder, environment, clones, "--protocol", "tls", within=hidden) as (scheduler, _):
            words = [*options, "--address", scheduler, "--remote", "shared"]
            took = measure(here / "source", here / "ssh", *words, cwd=run.root, environment=environment)
    sent = [file for file in (remote / "store").rglob("*") if file.is_file()]
    took["cpu_s"] = round(_cpu_seconds() - before, 1)
    took["texts_per_cpu_s"] = round(manifest_of(here / "ssh")["rows"] / took["cpu_s"])
    del took["peak_bytes"]  # of the run alone
    return {**took, "files_in_remote": len(sent), "bytes_in_remote": sum(file.stat().st_size for file in sent)}


def _cpu_seconds() -> float:
    """Of all processes that this one started, and that have ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
    parser.add_argument("--ssh", action="store_true", help="workers that share no folder, in the place of others")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    lines, folder = newsgroup_lines()[: arguments.rows], arguments.folder.absolute()
    here, second = folder / "here", "ssh" if arguments.ssh else "dask"
    write_corpus(here / "small", lines[:2000], group=500)
    measure(here / "small", here / "small-target", "--landmarks=500")
    write_corpus(here / "source", lines, group=arguments.partition_rows)
    options = [f"--landmarks={arguments.landmarks}", f"--partition-rows={arguments.partition_rows}"]
    dask = [f"--workers={arguments.workers}", f"--memory-limit={arguments.memory_limit}"]
    routes = {"one-process": measure(here / "source", here / "one-process", *options, "--threads=1")}
    if arguments.ssh:
        routes["ssh"] = measure_ssh(folder, arguments.workers, options)
    else:
        routes["dask"] = measure(here / "source", here / "dask", *options, *dask)
    same, files, size = equal_folders(here / "one-process", here / second)
    manifest = manifest_of(here / second)
    content = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "texts": len(lines),
        "workers": arguments.workers,
        "memory_limit": None if arguments.ssh else arguments.memory_limit,
        "partitions": len(manifest["partitions"]),
        **{name: manifest[name] for name in ("encoder", "manifold", "eigensolve")},
        "landmark_notes": {name: note for name, note in manifest["notes"].items() if not isinstance(note, list)},
        "routes": routes,
        "manifest_sha256": {name: sha256_of(here / name / "manifest.json") for name in routes},
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
