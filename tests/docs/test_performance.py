"""The tables of docs/performance.md are those of the benchmarks' results."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/performance.md"
RESULTS = ROOT / "reports/benchmarks"


def test_the_tables_of_the_page_are_current() -> None:
    command = [sys.executable, ".ci/performance_tables.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_has_the_command_that_remakes_each_result() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"python -m benchmarks\.(\w+)", text))
    assert {name for name in named if not (ROOT / f"benchmarks/{name}.py").is_file()} == set()
    kinds = {re.split(r"-\d", path.stem)[0].replace("-", "_") for path in RESULTS.glob("*.json")}
    assert kinds - {"decide_simulation", "cluster"} <= named  # they are in docs/your-own-data.md and docs/cluster.md
