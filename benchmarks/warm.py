"""Seconds of `sentfold repro` from nothing: each stage in a Python of its own, as DVC starts it, and forked warm.

    python -m benchmarks.warm [--repeat 5] [--json reports/benchmarks/warm.json]

The suite is that of the fault tests: thirteen of the project's own stages over sentences written for them. Runs take
turns, on a machine that should be idle; all leave the same bytes, or this stops. Prints medians with their range, and
the ratios of the pairs. CPU seconds are those of all processes that were waited for, the server among them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.faults import time_undisturbed
from benchmarks.lockfile import spread
from benchmarks.manifold import measure_machine
from tests.faults.verdict import take_snapshot

WAYS = {"cold": "0", "warm": None}


def time_ways(repeat: int) -> dict[str, Any]:
    """Wall and CPU seconds of both ways, `repeat` times in turn after one pair that is not counted."""
    found: dict[str, dict[str, list[float]]] = {way: {"wall_s": [], "cpu_s": [], "load": []} for way in WAYS}
    snapshot = None
    stages = 0.0
    for turn in range(repeat + 1):
        for way, setting in WAYS.items():
            with tempfile.TemporaryDirectory(prefix="sentfold-warm-") as folder:
                times = time_undisturbed(Path(folder), {} if setting is None else {"SENTFOLD_WARM": setting})
                left = take_snapshot(Path(folder) / "checkout")
            snapshot, stages = snapshot or left, times["stages"]
            if left != snapshot:
                sys.exit(f"the {way} run left other bytes than the first")
            print(way, *(f"{name} {value}" for name, value in times.items()), flush=True)
            if turn:
                for name, key in (("wall_s", "undisturbed_s"), ("cpu_s", "cpu_s"), ("load", "load")):
                    found[way][name].append(times[key])
    pairs = zip(found["cold"]["wall_s"], found["warm"]["wall_s"], strict=True)
    return {
        "stages": stages,
        **{way: {name: spread(values, 1) for name, values in rows.items()} for way, rows in found.items()},
        "ratio": spread([cold / warm for cold, warm in pairs], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    found = {**time_ways(chosen.repeat), "machine": measure_machine()}
    print(json.dumps(found, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
