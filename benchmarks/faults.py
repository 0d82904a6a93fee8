"""Inject every fault of tests/faults and count what came of it.

    python -m benchmarks.faults [--slow] [--select EXPRESSION] [--records FILE] [--out reports/faults.json]
    python -m benchmarks.faults --print reports/faults.json

--slow injects each kill twenty times instead of three, and the dearer faults at all, which takes hours: every
outcome is appended to --records as it comes, and the table is of all that stand there, from one run or many.
An outcome is counted as it is, whether its test passes or fails. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

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


def inject(records: Path, *, slow: bool, select: str) -> int:
    """Run the tests, each of which appends its outcomes to `records`; pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "tests/faults", "-q", "-m", "slow or not slow" if slow else "not slow"]
    if select:
        command += ["-k", select]
    # A test may also take its time: a machine that is busy is no fault.
    command += ["--timeout", "3600"]
    return subprocess.run(command, env={**os.environ, "SENTFOLD_FAULT_RECORDS": str(records)}, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--select", default="", help="an expression of pytest's -k")
    parser.add_argument("--records", type=Path, default=Path(".dvc/tmp/sentfold-faults.jsonl"))
    parser.add_argument("--none", action="store_true", help="inject nothing, count what stands in --records")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--print", type=Path, metavar="FILE", help="print the table of an earlier --out")
    arguments = parser.parse_args()
    if arguments.print:
        print(table(json.loads(arguments.print.read_text(encoding="utf-8"))["faults"]))
        return
    arguments.records.parent.mkdir(parents=True, exist_ok=True)
    arguments.records.touch()
    code = 0 if arguments.none else inject(arguments.records.absolute(), slow=arguments.slow, select=arguments.select)
    outcomes = [json.loads(line) for line in arguments.records.read_text(encoding="utf-8").splitlines()]
    rows = count(outcomes)
    if arguments.out:
        content = {"faults": rows, "outcomes": outcomes}
        arguments.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table(rows))
    sys.exit(code)


if __name__ == "__main__":
    main()
