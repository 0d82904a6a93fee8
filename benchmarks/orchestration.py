"""What it costs to run a suite: by `dvc repro` and by `sentfold run`, on several jobs, and when there is nothing to do.

    python -m benchmarks.orchestration [--jobs 1 2 4] [--json FILE] [--fixture]

Each run is of the suite `quick` in a fresh clone of this checkout (committed state) with an empty DVC cache, so every
stage runs; then the same clone is timed with nothing to do, best of `--repeat`. Every run has to leave the same
entries in dvc.lock. `--fixture` takes the tests' repository of six tiny stages instead: seconds, not minutes. An
idle machine is asked for; the load before each timing is recorded. A configured Prefect server is not used.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "reports/benchmarks/orchestration.json"

PLAIN = ("dvc", "repro", "dvc.yaml")
FLOW = ("flows", "run", "--jobs")


def environment(source: Path) -> dict[str, str]:
    """This process's, with the code of `source` and without a Prefect server or a mirror."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "SENTFOLD_"))}
    return {**kept, "PYTHONPATH": str(source), "DVC_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1"}


def make_checkout(folder: Path, *, fixture: bool) -> dict[str, str]:
    """A repository in which nothing has run, and the environment of what runs in it."""
    if fixture:
        from tests.flows.checkout import create_checkout

        create_checkout(folder, environment(ROOT))
        source = ROOT
    else:
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
        source = folder
    # Prefect's database is created once per home, which is not what is measured.
    return {**environment(source), "PREFECT_HOME": str(folder.parent / "prefect")}


def timed(command: list[str], folder: Path, env: dict[str, str]) -> dict[str, float]:
    """Wall seconds of a command that has to succeed, and the load before it."""
    load = os.getloadavg()[0]
    begin = time.monotonic()
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed in {folder}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {"seconds": round(seconds, 2), "load": round(load, 2)}


def time_run(name: str, words: tuple[str, ...], work: Path, *, fixture: bool) -> dict[str, Any]:
    """One whole run in a checkout of its own, which is kept for the caller."""
    folder = work / name
    env = make_checkout(folder, fixture=fixture)
    result: dict[str, Any] = timed([sys.executable, "-m", *words], folder, env)
    lock = yaml.safe_load((folder / "dvc.lock").read_bytes())
    result["lock"] = hashlib.sha256(json.dumps(lock, sort_keys=True).encode()).hexdigest()
    print(f"{name:<14} {result['seconds']:8.2f} s  load {result['load']}", flush=True)
    return result


def time_nothing(folder: Path, env: dict[str, str], repeat: int) -> dict[str, Any]:
    """A finished checkout run again, by each of the two ways."""
    results: dict[str, Any] = {}
    for name, words in {"dvc repro": PLAIN, "sentfold run": (*FLOW, "2")}.items():
        times = [timed([sys.executable, "-m", *words], folder, env) for _ in range(repeat)]
        results[name] = min(times, key=lambda result: result["seconds"])
        print(f"nothing to do: {name:<16} {results[name]['seconds']:6.2f} s  load {results[name]['load']}", flush=True)
    return results


def main() -> None:
    """Time, print, and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--fixture", action="store_true")
    parser.add_argument("--json", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    ways: dict[str, tuple[str, ...]] = {"plain": PLAIN}
    ways |= {f"flow-{jobs}": (*FLOW, str(jobs)) for jobs in arguments.jobs}
    work = Path(tempfile.mkdtemp(prefix="sentfold-orchestration-"))
    try:
        runs = {name: time_run(name, words, work, fixture=arguments.fixture) for name, words in ways.items()}
        env = {**environment(ROOT if arguments.fixture else work / "plain"), "PREFECT_HOME": str(work / "prefect")}
        nothing = time_nothing(work / "plain", env, arguments.repeat)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if len({run.pop("lock") for run in runs.values()}) != 1:
        sys.exit("the runs left different entries in dvc.lock")
    report = {"suite": "fixture" if arguments.fixture else "quick", "runs": runs, "nothing_to_do": nothing}
    report["cores"] = os.cpu_count()
    arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"every run left the same entries in dvc.lock; written to {arguments.json}")


if __name__ == "__main__":
    main()
