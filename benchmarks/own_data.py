"""Seconds and memory of `sentfold decide` and `sentfold compress` on a user's vectors, each printed next to its limit.

    python -m benchmarks.own_data [--only "decide, 1,000 pairs alone"] [--json reports/benchmarks/own-data.json]

The data are made up: vectors around 50 centres whose pairs have the score of their correlation. Each command is a
process of its own, so that its seconds and its memory are those that a user sees. Use a machine that is idle.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.manifold import measure_machine

CODE = "from sentfold.cli.main import main; main()"
DIMENSIONS = 384
BLOCK = 50_000  # vectors that are made at a time


@dataclass(frozen=True)
class Case:
    """A command on so many vectors and pairs, the seconds on two cores and the megabytes that it may take."""

    command: str
    vectors: int
    pairs: int
    seconds: float | None
    megabytes: int


CASES = {
    "decide, 1,000 pairs alone": Case("decide", 2_000, 1_000, 10.0, 1_000),
    "decide, 20,000 vectors and 1,000 pairs": Case("decide", 20_000, 1_000, 60.0, 1_000),
    "compress, 1,000,000 vectors and 1,000 pairs": Case("compress", 1_000_000, 1_000, None, 2_000),
}


def write_data(folder: Path, case: Case) -> None:
    """vectors.npy, and pairs.csv, which names rows of it."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(50, DIMENSIONS)).astype(np.float32)
    x = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float32, shape=(case.vectors, DIMENSIONS))
    for start in range(0, case.vectors, BLOCK):
        size = min(BLOCK, case.vectors - start)
        x[start : start + size] = centres[rng.integers(50, size=size)] + rng.normal(size=(size, DIMENSIONS))
    alike = rng.uniform(0, 1, case.pairs)
    left, right = np.arange(case.pairs), np.arange(case.pairs, 2 * case.pairs)
    x[right] = alike[:, None] * x[left] + np.sqrt(1 - alike**2)[:, None] * x[right]
    x.flush()
    rows = [f"{a},{b},{score:.3f}" for a, b, score in zip(left, right, alike, strict=True)]
    (folder / "pairs.csv").write_text("\n".join(["row1,row2,score", *rows]) + "\n")


def run_case(case: Case, folder: Path) -> dict[str, Any]:
    """Wall seconds, CPU seconds and largest resident memory of the command. Raises RuntimeError if it fails."""
    write_data(folder, case)
    words = [case.command, "pairs.csv", "--vectors", "vectors.npy", "--to", "out"]
    begin = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", CODE, *words], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"sentfold {' '.join(words)} ended with status {process.returncode}")
    return {
        "wall_seconds": round(time.monotonic() - begin, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "megabytes": round(used.ru_maxrss / 1024),
        "allowed_seconds": case.seconds,
        "allowed_megabytes": case.megabytes,
    }


def main() -> None:
    """Run the cases, print one line each, and write them all as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    measured = {}
    for name, case in CASES.items():
        if chosen.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                measured[name] = run_case(case, Path(folder))
            print(f"{name}: {measured[name]}", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": measure_machine(), "cases": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
