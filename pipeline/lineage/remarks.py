"""What an audit says beside its verdicts: what could not be looked at, or is worth knowing."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pipeline.lineage.phrases import listed
from pipeline.lineage.scope import Scope


def remarks_on(scope: Scope, run_again: Collection[str]) -> Iterator[str]:
    """The remarks on one suite. run_again: stages that wrote other bytes here than the committed ones."""
    graph = scope.graph
    if scope.head is None:
        yield "there is no git here: code was compared with this checkout alone"
    elif scope.revision is None and scope.head.digest(graph.lockfile) != scope.digest(graph.lockfile):
        yield f"{graph.lockfile} here is not the committed one"
    if graph.leftovers:
        yield f"{graph.lockfile} still has stages that {graph.dvcfile} has no more: {', '.join(graph.leftovers)}"
    if run_again:
        yield (
            f"stages that ran here wrote other bytes than the committed ones from the same inputs, as another "
            f"processor may{listed(sorted(run_again))}: --recompute compares their scores"
        )
