"""A million vectors from Parquet to Parquet by landmarks: time, memory, sentences per second.

    python -m benchmarks.million [--rows 1000000] [--landmarks 10000] [--workers 1] [--json FILE]

The first rows are the WordLlama vectors of the distinct lines of 20 Newsgroups; the rest are the same once more with
noise of a tenth of their length, which is fine for speed and says nothing of quality. They are written before the
clock starts; the map is a process of its own, its start included in the wall time. Needs SENTFOLD_MIRROR.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.inputs import newsgroup_lines, wordllama_vectors
from benchmarks.manifold import peak

FOLDER = Path("data/benchmarks/million")
GROUP = 50_000
NOISE = 0.1


def write_vectors(path: Path, rows: int) -> dict[str, int]:
    """The source; how many of its rows are real lines."""
    real = wordllama_vectors(newsgroup_lines()[:rows])
    rng = np.random.default_rng(0)
    schema = pa.schema([("vector", pa.list_(pa.float32(), real.shape[1]))])
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for start in range(0, rows, GROUP):
            numbers = np.arange(start, min(start + GROUP, rows))
            writer.write_table(pa.table([_column(real, numbers, rng)], schema=schema), row_group_size=GROUP)
    return {"rows": rows, "real": min(len(real), rows), "width": real.shape[1]}


def _column(
    real: npt.NDArray[np.float32], numbers: npt.NDArray[np.int64], rng: np.random.Generator
) -> pa.FixedSizeListArray:
    part = real[numbers % len(real)]
    copies = numbers >= len(real)
    noise = rng.standard_normal((int(copies.sum()), part.shape[1])) * (NOISE / np.sqrt(part.shape[1]))
    part[copies] += noise.astype(np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), part.shape[1])


def work(arguments: argparse.Namespace) -> None:
    """Map, and print one line of JSON."""
    from pipeline.manifold.landmarks_io import embed_large

    cpu = time.process_time()
    record = embed_large(
        FOLDER / "source.parquet",
        FOLDER / "target.parquet",
        landmarks=arguments.landmarks,
        workers=arguments.workers,
        verbose=False,
    )
    facts = {"cpu_s": time.process_time() - cpu, "process_mb": peak(), "landmarks": record["notes"]["landmarks"]}
    print(json.dumps(facts | {"rows_written": pq.read_metadata(FOLDER / "target.parquet").num_rows}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--landmarks", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments)
        return
    result: dict[str, Any] = write_vectors(FOLDER / "source.parquet", arguments.rows)
    command = [sys.executable, "-m", "benchmarks.million", "--work", f"--landmarks={arguments.landmarks}"]
    start = time.monotonic()
    done = subprocess.run(
        [*command, f"--workers={arguments.workers}"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    wall = time.monotonic() - start
    result |= json.loads(done.stdout) | {"wall_s": wall, "workers": arguments.workers}
    result["sentences_per_cpu_s"] = round(arguments.rows / result["cpu_s"])
    text = json.dumps(result, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
