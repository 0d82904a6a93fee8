"""What an audit says beside its verdicts: what could not be looked at, or is worth knowing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pipeline.lineage.errors import LineageError
from pipeline.lineage.numbers import read_numbers
from pipeline.lineage.phrases import listed
from pipeline.lineage.scope import Scope
from pipeline.suite import suite_file


def remarks_on(scope: Scope, numbers: int, run_again: Collection[str], edited: Sequence[str]) -> Iterator[str]:
    """The remarks on one suite.

    numbers    how many the report has here
    run_again  stages that wrote other bytes here than the committed ones
    edited     files of code that no stage lists and that differ from git's HEAD
    """
    graph = scope.graph
    if scope.head is None:
        yield "there is no git here: code was compared with this checkout alone"
    elif scope.revision is None:
        files = (graph.lockfile, graph.dvcfile, suite_file(scope.suite).as_posix(), ".dvcignore")
        yield from (f"{path} here is not the committed one" for path in files if scope.differs_from_head(path))
        if scope.committed is None:
            yield f"git's HEAD has no {graph.dvcfile} and dvc.lock that can be read: no record was held against them"
        committed = _committed_numbers(scope)
        if committed > numbers:
            yield f"the committed report has {committed} numbers, {committed - numbers} more than the one here"
    if graph.leftovers:
        yield f"{graph.lockfile} still has stages that {graph.dvcfile} has no more: {', '.join(graph.leftovers)}"
    if edited:
        yield f"files of code that no stage lists are not those of git's HEAD{listed(edited)}"
    if run_again:
        yield (
            f"stages that ran here wrote other bytes than the committed ones from the same inputs, as another "
            f"processor may{listed(sorted(run_again))}: --recompute compares their scores"
        )


def _committed_numbers(scope: Scope) -> int:
    """How many numbers the report of git's HEAD has; 0 where it has none that can be read."""
    try:
        return 0 if scope.head is None else len(read_numbers(scope.head, scope.suite))
    except LineageError:
        return 0
