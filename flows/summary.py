"""What a run did, and the error that tells what it could not do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from flows.run_stage import StageResult
from pipeline.errors import RunError


@dataclass(frozen=True)
class Summary:
    """What a run did: how each stale stage ended, in the order they ended, and the whole time."""

    results: tuple[StageResult, ...]
    seconds: float

    def __str__(self) -> str:
        if not self.results:
            return f"everything is up to date (looked for {self.seconds:.1f} s)"
        counts = Counter(result.outcome for result in self.results)
        parts = [f"{count} {outcome}" for outcome, count in sorted(counts.items())]
        longest = max(self.results, key=lambda result: result.seconds)
        return (
            f"{len(self.results)} stages in {self.seconds:.1f} s: {', '.join(parts)}; "
            f"longest {longest.stage} {longest.seconds:.1f} s"
        )


def unfinished(errors: Mapping[str, RunError], summary: Summary, *, resume: str) -> RunError:
    """One error for a run in which stages failed: each one's name, cause and log, and what was skipped.

    errors  why each stage failed, at least one
    resume  the command that takes the run up again
    """
    first = next(iter(errors.values()))
    if len(errors) == 1:
        what, where, got = first.what, first.where, first.got
    else:
        what = f"{len(errors)} stages failed: {', '.join(errors)}"
        where = ", ".join(error.where for error in errors.values())
        got = "\n".join(f"{error.what}, {error.where}: {error.got}" for error in errors.values())
    skipped = [result.stage for result in summary.results if result.outcome == "skipped"]
    return RunError(
        what,
        where=where,
        got=got,
        state=f"skipped, because they need it: {', '.join(skipped) or 'none'}; stages that finished are kept",
        remedy=f"mend the cause, then: {resume}",
    )
