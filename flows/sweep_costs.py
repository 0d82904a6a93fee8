"""What the sweeps of a run took beside their budgets, as their logs say it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from flows.run_stage import log_file
from flows.summary import Summary
from pipeline.selection.budget import MARK


def sweep_costs(summary: Summary, root: Path) -> Iterator[str]:
    """The line that each sweep of a run printed of its cost, in the order they ended; none of one that ran elsewhere.

    A log keeps the last run of its stage, and only stages of this run are looked up.
    """
    for result in summary.results:
        log = log_file(result.stage, root=root)
        swept = result.stage.rpartition(":")[2].startswith("sweep@") and result.outcome != "skipped"
        if swept and log.exists():
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            yield from (line for line in lines if line.startswith(MARK))
