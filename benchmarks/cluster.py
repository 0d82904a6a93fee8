"""What a run on workers with clones of their own costs: measured on many tiny stages, and a model of large runs.

    python -m benchmarks.cluster --measure [--stages 200] [--workers 4] [--json FILE]
    python -m benchmarks.cluster --model

`--measure` makes a repository of tiny stages, starts a Dask scheduler and workers on this machine, runs the suite, and
prints for each stage the seconds that its own command does not take. Run it on an idle machine. The CPU seconds are
of all processes, the stages' own included, and depend little on the load. `--model` compares, for runs of several
sizes, the minutes by the formula of docs/cluster.md with those of a simulation of the same costs.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "reports/benchmarks/cluster.json"


@dataclass(frozen=True)
class Costs:
    """Seconds.

    stage    of a stage's own command, on average
    worker   of a worker in addition: git, `dvc pull`, `dvc repro`, `dvc push`, and the bytes
    remote   of the remote's link, which all share: the bytes that are read and written for a stage
    server   of the flow's process and Prefect's server, which do one stage at a time
    entry    of writing one entry of dvc.lock, which is written whole for each stage
    """

    stage: float = 60.0
    worker: float = 4.0
    remote: float = 0.1
    server: float = 0.3
    entry: float = 1e-5


def formula(stages: int, workers: int, layers: int, costs: Costs) -> float:
    """The seconds of a run: what holds it up most, the longest chain of stages, or one of `shares`."""
    chain = layers * (costs.stage + costs.worker + costs.remote + costs.server)
    return max(chain, *shares(stages, workers, costs).values())


def shares(stages: int, workers: int, costs: Costs) -> dict[str, float]:
    """The seconds that each part of the whole needs for all stages, if it waits for no other."""
    return {
        "workers": stages * (costs.stage + costs.worker) / workers,
        "remote": stages * costs.remote,
        "server": stages * (costs.server + costs.entry * stages / 2),
    }


def simulate(stages: int, workers: int, layers: int, costs: Costs) -> float:
    """The seconds of the same run, event by event: chains of stages, so many at a time as workers, a remote, a server.

    A stage goes to a worker, then waits for the remote and for the server, which take one at a time; only then the next
    of its chain may begin, and another stage is sent out. A stage takes half to one and a half of the mean, in a fixed
    pattern.
    """
    ready = deque((chain, 0) for chain in range(stages // layers))
    events: list[tuple[float, int, int, int]] = []  # time, what is over (worker, remote, server), chain, layer
    now = remote_free = server_free = 0.0
    free, done = workers, 0
    while ready or events:
        while ready and free:
            chain, layer = ready.popleft()
            length = costs.stage * (0.5 + ((chain * 37 + layer * 11) % 101) / 100)
            heapq.heappush(events, (now + length + costs.worker, 0, chain, layer))
            free -= 1
        now, over, chain, layer = heapq.heappop(events)
        if over == 0:
            remote_free = max(remote_free, now) + costs.remote
            heapq.heappush(events, (remote_free, 1, chain, layer))
        elif over == 1:
            done += 1
            server_free = max(server_free, now) + costs.server + costs.entry * done
            heapq.heappush(events, (server_free, 2, chain, layer))
        else:
            free += 1
            ready.extend([(chain, layer + 1)] if layer + 1 < layers else [])
    return now


def print_model() -> None:
    """The table of docs/cluster.md."""
    costs = Costs()
    print(costs)
    print("| stages | workers | workers, min | remote, min | server and lock, min | formula, min | simulation, min |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for stages, workers in ((200, 4), (1_000, 20), (10_000, 200), (10_000, 1_000)):
        parts = [*shares(stages, workers, costs).values()]
        parts += [way(stages, workers, 6, costs) for way in (formula, simulate)]
        print(f"| {stages:,} | {workers:,} | {' | '.join(f'{part / 60:.0f}' for part in parts)} |")


def measure(stages: int, workers: int, path: Path) -> None:
    """Run a suite of tiny stages on workers of this machine; write what a stage costs beyond its command."""
    from tests.flows.checkout import create_checkout
    from tests.flows.workers import clone, cluster, commit, tls

    with tempfile.TemporaryDirectory(prefix="sentfold-cluster-") as name:
        folder = Path(name)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder / "prefect"), **tls(folder)}
        checkout = create_checkout(folder / "run", environment)
        chains = {f"c{number}": {} for number in range((stages - 2) // 2)}
        plan = {"suite": "quick", "root": ".", "file": "plan.yaml", "stages": {"download": chains, "embed": chains}}
        (checkout.root / "plan.yaml").write_text(json.dumps(plan))
        checkout.change("{a: 1, b: 1}", json.dumps(dict.fromkeys(chains, 1)))
        (folder / "remote").mkdir()
        commit(checkout, remote=str(folder / "remote"))
        clones = [clone(checkout, folder / f"worker-{number}").root for number in range(workers)]
        used, load = getrusage(RUSAGE_CHILDREN), os.getloadavg()[0]
        with cluster(folder, environment, clones, "--protocol", "tls") as (address, _):
            begin = time.monotonic()
            words = ["--address", address, "--remote", "shared", "--jobs", str(workers)]
            done = subprocess.run(
                [sys.executable, "-m", "flows", "run", *words], cwd=checkout.root, env=environment, check=True
            )
            seconds = time.monotonic() - begin
        after = getrusage(RUSAGE_CHILDREN)
        runs = [json.loads(line) for line in (checkout.root / ".sentfold/runs/quick.jsonl").read_text().splitlines()]
        own = sum(run["seconds"] for run in runs)
    result = {
        "stages": len(runs),
        "workers": workers,
        "cores": os.cpu_count(),
        "load_before": round(load, 1),
        "load_after": round(os.getloadavg()[0], 1),
        "seconds": round(seconds, 1),
        "cpu_per_stage": round((after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) / len(runs), 3),
        "overhead_per_stage": round((seconds - own / workers) / len(runs), 3),
        "exit": done.returncode,
    }
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(result)


def main() -> None:
    """Measure or model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--model", action="store_true")
    parser.add_argument("--stages", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--json", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.model:
        print_model()
    if arguments.measure:
        measure(arguments.stages, arguments.workers, arguments.json)


if __name__ == "__main__":
    main()
