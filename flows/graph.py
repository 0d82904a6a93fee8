"""DVC's stage graph of one suite, and which of its stages are out of date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

from pipeline.errors import RunError
from pipeline.suite import suite_file


@dataclass(frozen=True)
class StageGraph:
    """The stages of one dvc.yaml by their addresses, as DVC prints them (`embed@x`).

    names    every stage, a stage's parents before it
    parents  stages whose outputs a stage reads, per stage
    changed  stages that DVC's status names: their own code, parameters, inputs or outputs differ
    """

    names: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]
    changed: frozenset[str]

    @property
    def children(self) -> dict[str, tuple[str, ...]]:
        """Stages that read a stage's outputs, per stage."""
        return {name: tuple(other for other in self.names if name in self.parents[other]) for name in self.names}


def dvcfile_of(suite: str) -> Path:
    """The dvc.yaml of a suite, from the root of the checkout; it lies beside the suite file."""
    return suite_file(suite).with_name("dvc.yaml")


def require_dvcfile(suite: str, root: Path) -> Path:
    """`dvcfile_of(suite)` if it exists under `root`, else RunError."""
    dvcfile = dvcfile_of(suite)
    if not (root / dvcfile).is_file():
        raise RunError(
            f"there is no suite '{suite}'",
            where=str(root),
            expected=f"a file {dvcfile}",
            remedy="run from the root of the checkout; a new suite's dvc.yaml is a link to the root's",
        )
    return dvcfile


def read_graph(dvcfile: Path, *, root: Path) -> StageGraph:
    """Read the graph and the status of the stages in `root / dvcfile`. Nothing is written or run.

    Only this file is read, not the other suites' (their stages share nothing with these, or DVC
    would refuse to run any). Raises RunError if DVC cannot read it. Cost: about a second, plus
    hashing of whatever changed.
    """
    # In the function, because dvc takes half a second to import and only a run needs it.
    from dvc.exceptions import DvcException
    from dvc.repo import Repo
    from dvc.repo.index import Index

    path = str((root / dvcfile).absolute())
    try:
        with Repo(str(root)) as repo:
            graph = Index.from_file(repo, path).graph
            # DVC addresses a stage from the current folder; ours are always from the root.
            ours = {stage.addressing: _address(dvcfile, stage.name) for stage in graph}
            parents = {
                ours[stage.addressing]: tuple(sorted(ours[other.addressing] for other in graph.successors(stage)))
                for stage in graph
            }
            status = repo.status(targets=[path])
    except DvcException as error:
        raise RunError(
            "DVC cannot read the stages of this suite",
            where=str(dvcfile),
            got=" ".join(str(error).split()),
            remedy=f"correct what it names; 'dvc status {dvcfile}' tells more",
        ) from error
    names = tuple(TopologicalSorter(dict(sorted(parents.items()))).static_order())
    return StageGraph(names, parents, frozenset(ours[address] for address in status))


def stale_stages(graph: StageGraph) -> tuple[str, ...]:
    """The changed stages and all their descendants, a stage's parents before it."""
    stale: set[str] = set()
    for name in graph.names:
        if name in graph.changed or not stale.isdisjoint(graph.parents[name]):
            stale.add(name)
    return tuple(name for name in graph.names if name in stale)


def descendants(graph: StageGraph, names: Iterable[str]) -> frozenset[str]:
    """Every stage that reads, directly or through others, an output of one of `names`."""
    below = set(names)
    for name in graph.names:
        if not below.isdisjoint(graph.parents[name]):
            below.add(name)
    return frozenset(below - set(names))


def _address(dvcfile: Path, name: str) -> str:
    return name if dvcfile == Path("dvc.yaml") else f"{dvcfile.as_posix()}:{name}"
