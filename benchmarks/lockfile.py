"""CPU seconds to write dvc.lock after a stage has ended: DVC's own way, and by the entry (flows/dvc.py).

    python -m benchmarks.lockfile [--suite paper-mirror] [--repeat 5] [--json reports/benchmarks/lockfile.json]

In a clone of the committed state, the entry of one stage is written as it stands, in turn by DVC and by us; both
have to leave the committed bytes. Prints medians with their range, and the ratios of the pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.manifold import measure_machine
from pipeline.suite import suite_file

ROOT = Path(__file__).resolve().parents[1]


def time_writers(clone: Path, suite: str, repeat: int) -> dict[str, Any]:
    """CPU seconds of both writers on one stage of a suite, `repeat` times in turn after one that is not counted."""
    from dvc.dvcfile import Lockfile
    from dvc.repo import Repo

    from flows import dvc

    dvcfile = suite_file(suite).with_name("dvc.yaml")
    lock = clone / dvcfile.with_suffix(".lock")
    committed = lock.read_bytes()
    with Repo(str(clone)) as repo:
        stages = sorted(repo.stage.load_all(str(clone / dvcfile)), key=lambda stage: str(stage.name))
        stage = stages[len(stages) // 2]
        writers: dict[str, Callable[..., None]] = {"dvc": Lockfile.dump_stages, "by_entry": dvc.dump_stages}
        seconds: dict[str, list[float]] = {name: [] for name in writers}
        for turn in range(repeat + 1):
            for name, write in writers.items():
                start = time.process_time()
                write(Lockfile(repo, str(lock)), [stage])
                if turn:
                    seconds[name].append(time.process_time() - start)
                if lock.read_bytes() != committed:
                    sys.exit(f"{name} left other bytes than the committed ones")
    ratios = [theirs / ours for theirs, ours in zip(seconds["dvc"], seconds["by_entry"], strict=True)]
    return {
        "suite": suite,
        "stages": len(stages),
        "lines": committed.count(b"\n"),
        "stage": stage.name,
        **{name: spread(values, 3) for name, values in seconds.items()},
        "ratio": spread(ratios, 1),
    }


def spread(values: list[float], digits: int) -> dict[str, float]:
    """Median, least and greatest."""
    found = {"median": statistics.median(values), "least": min(values), "greatest": max(values)}
    return {name: round(value, digits) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="paper-mirror")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", "--no-local", str(ROOT), str(clone)], check=True)
        here = Path.cwd()
        os.chdir(clone)  # DVC's paths are from here
        try:
            measured = time_writers(clone, chosen.suite, chosen.repeat)
        finally:
            os.chdir(here)
    found = {**measured, "machine": measure_machine()}
    print(json.dumps(found, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
