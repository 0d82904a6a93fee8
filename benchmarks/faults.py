"""Inject every fault of tests/faults and count what came of it.

    python -m benchmarks.faults [--hours] [--select EXPRESSION] [--jobs 2] [--records FILE] [--out reports/faults.json]
    python -m benchmarks.faults --kills [--jobs 2] [--records FILE] [--out reports/faults.json]
    python -m benchmarks.faults --print reports/faults.json
    python -m benchmarks.faults --time [--repeat 3]

Injects each fault once, as continuous integration does; --hours injects each about twenty times; --kills
injects a hundred: twenty kills at random moments of a stage, of dvc, of its guard, of the flow and of `sentfold run`.
Every outcome is appended to --records as it comes, and the table is of all that stand there, from one run or many.
An outcome is counted as it is, whether its test passes or fails. Prints a table in Markdown. --time injects
nothing and times an undisturbed run of the suite that the faults disturb, from nothing, best of --repeat: on an
idle machine, which the load before it tells.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# The tests of twenty kills each at random moments.
KILLS = "random_moment or (flow_that_is_ended and not SIG)"
COLUMNS = ("injected", "orphans", "wrong reads", "reruns completed", "equal bytes")


def count(outcomes: Iterable[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """The columns of the table per fault, in alphabetical order."""
    rows: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        row = rows.setdefault(outcome["fault"], dict.fromkeys(COLUMNS, 0))
        row["injected"] += 1
        row["orphans"] += outcome["orphans"]
        row["wrong reads"] += outcome["wrong_reads"]
        row["reruns completed"] += outcome["completed"]
        row["equal bytes"] += outcome["equal"]
    return dict(sorted(rows.items()))


def table(rows: dict[str, dict[str, int]]) -> str:
    """The rows and their sums in Markdown."""
    sums = {column: sum(row[column] for row in rows.values()) for column in COLUMNS}
    lines = [f"| fault | {' | '.join(COLUMNS)} |", "|---|" + "---:|" * len(COLUMNS)]
    for name, row in [*rows.items(), ("**all**", sums)]:
        lines.append(f"| {name} | {' | '.join(f'{row[column]:,}' for column in COLUMNS)} |")
    return "\n".join(lines)


def inject(records: Path, *, hours: bool, select: str, jobs: int = 1) -> int:
    """Run the tests, each of which appends its outcomes to `records`; pytest's exit code."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/faults",
        "-q",
        "-m",
        "hours or not hours" if hours else "not hours",
    ]
    if select:
        command += ["-k", select]
    if jobs > 1:
        command += ["-n", str(jobs), "--dist", "load"]
    # A test may also take its time: a machine that is busy is no fault.
    command += ["--timeout", "3600"]
    return subprocess.run(command, env={**os.environ, "SENTFOLD_FAULT_RECORDS": str(records)}, check=False).returncode


def time_undisturbed(folder: Path, environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """Seconds of `dvc repro` of the whole fixture suite, its CPU time, the load before it, and its stages.

    environment  variables beside those of this process
    """
    from tests.faults.fixture_suite import create_checkout
    from tests.faults.processes import PLAIN_DVC, Starter

    starter = Starter(create_checkout(folder / "checkout"), folder)
    starter.environment.update(environment or {})
    load, before, begin = os.getloadavg()[0], resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    run = starter.run(*PLAIN_DVC)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.wait():
        sys.exit(f"the undisturbed run failed:\n{run.printed}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "undisturbed_s": round(seconds, 1),
        "cpu_s": round(cpu, 1),
        "load": round(load, 1),
        "stages": len(run.remade()),
    }


def best_undisturbed(repeat: int) -> dict[str, float]:
    """The fastest of some runs, each printed."""
    times = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(prefix="sentfold-undisturbed-") as folder:
            times.append(time_undisturbed(Path(folder)))
        print(" ".join(f"{name} {value}" for name, value in times[-1].items()), flush=True)
    return min(times, key=lambda found: found["undisturbed_s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", action="store_true", help="each fault about twenty times")
    parser.add_argument("--kills", action="store_true", help="a hundred kills at random moments")
    parser.add_argument("--jobs", type=int, default=1, help="faults that are injected at a time")
    parser.add_argument("--select", default="", help="an expression of pytest's -k")
    parser.add_argument("--records", type=Path, default=Path(".dvc/tmp/sentfold-faults.jsonl"))
    parser.add_argument("--none", action="store_true", help="inject nothing, count what stands in --records")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--print", type=Path, metavar="FILE", help="print the table of an earlier --out")
    parser.add_argument("--time", action="store_true", help="time an undisturbed run, inject nothing")
    parser.add_argument("--repeat", type=int, default=3, help="undisturbed runs, of which the fastest counts")
    arguments = parser.parse_args()
    if arguments.time:
        best_undisturbed(arguments.repeat)
        return
    if arguments.print:
        print(table(json.loads(arguments.print.read_text(encoding="utf-8"))["faults"]))
        return
    arguments.records.parent.mkdir(parents=True, exist_ok=True)
    arguments.records.touch()
    hours, select = (True, KILLS) if arguments.kills else (arguments.hours, arguments.select)
    records = arguments.records.absolute()
    code = 0 if arguments.none else inject(records, hours=hours, select=select, jobs=arguments.jobs)
    outcomes = [json.loads(line) for line in arguments.records.read_text(encoding="utf-8").splitlines()]
    rows = count(outcomes)
    if arguments.out:
        content = {"undisturbed": best_undisturbed(arguments.repeat), "faults": rows, "outcomes": outcomes}
        arguments.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table(rows))
    sys.exit(code)


if __name__ == "__main__":
    main()
