"""DVC's stage graph of one suite, and which of its stages are out of date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from flows.contention import BusyError, describe_blocker
from flows.footprint import definition_paths, footprint
from flows.lockfile import YAML_LOADER
from pipeline.errors import RunError
from pipeline.suite import suite_file


@dataclass(frozen=True)
class StageGraph:
    """The stages of one dvc.yaml by their addresses, as DVC prints them (`embed@x`).

    names    every stage, a stage's parents before it
    parents  stages whose outputs a stage reads, per stage
    changed  stages that DVC's status names: their own code, parameters, inputs or outputs differ
    outs     what a stage writes, per stage: paths from the root of the checkout
    in_git   those of `outs` that DVC does not cache, because git keeps them
    reads    every file and folder, from the root, whose content decides what is changed
    seen     the footprint of `reads` before DVC was asked what is changed
    """

    names: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]
    changed: frozenset[str]
    outs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    in_git: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    seen: str = ""

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
    would refuse to run any). Raises RunError if DVC cannot read it, BusyError if another dvc process is
    in its way. Cost: about a second, plus hashing of whatever changed.
    """
    # In the function, because dvc takes half a second to import and only a run needs it.
    from dvc.exceptions import DvcException
    from dvc.lock import LockError

    definitions = definition_paths(dvcfile)
    before = footprint(definitions, root=root)
    try:
        graph = _ask_dvc(dvcfile, definitions, root=root)
    except LockError as error:
        raise BusyError(
            describe_blocker(str(error)),
            where=str(dvcfile),
            got=" ".join(str(error).split()),
            state="no stage was started",
            remedy="wait until it ends, and run again",
        ) from error
    except DvcException as error:
        raise RunError(
            "DVC cannot read the stages of this suite",
            where=str(dvcfile),
            got=" ".join(str(error).split()),
            remedy=f"correct what it names; 'dvc status {dvcfile}' tells more",
        ) from error
    if footprint(definitions, root=root) != before:
        return replace(graph, seen="")  # the stages may be others by now: nothing may ever equal this
    return graph


def _ask_dvc(dvcfile: Path, definitions: frozenset[str], *, root: Path) -> StageGraph:
    """The stages as DVC reads them, and its status. Raises what DVC raises."""
    from dvc.repo import Repo, lock_repo
    from dvc.repo.index import Index

    # All under DVC's lock, as its own status is: whoever holds it may be writing what is read here.
    with Repo(str(root)) as repo, lock_repo(repo), inputs_read_once():
        graph = Index.from_file(repo, str((root / dvcfile).absolute())).graph
        # DVC addresses a stage from the current folder; ours are always from the root.
        ours = {stage.addressing: _address(dvcfile, stage.name) for stage in graph}
        parents = {
            ours[stage.addressing]: tuple(sorted(ours[other.addressing] for other in graph.successors(stage)))
            for stage in graph
        }
        names = tuple(TopologicalSorter(dict(sorted(parents.items()))).static_order())
        outs = {ours[stage.addressing]: tuple(sorted(_path(out, root) for out in stage.outs)) for stage in graph}
        in_git = frozenset(_path(out, root) for stage in graph for out in stage.outs if not out.use_cache)
        reads = definitions.union(_path(item, root) for stage in graph for item in (*stage.deps, *stage.outs))
        # Before the status, so that whatever is changed during it, or after, is noticed the next time.
        seen = footprint(reads, root=root)
        # What `repo.status` does, but for reading dvc.yaml and dvc.lock, which it would do once more.
        changed = frozenset(ours[stage.addressing] for stage in graph if stage.status(check_updates=True))
    return StageGraph(names, parents, changed, outs, in_git, reads, seen)


@contextmanager
def inputs_read_once() -> Iterator[None]:
    """Let DVC parse each file of parameters, and look up the hash of each input, once in a `with` block.

    It does so once for each stage that has it: a file of code is an input of most of them. That is more than half of
    the time of a status. DVC only reads what it parsed.
    """
    from dvc.dependency import Dependency, param

    load, get_hash = param.load_path, Dependency.get_hash
    known: dict[tuple[str, str, str], Any] = {}

    def get_hash_once(self: Any) -> Any:
        key = (self.fs.protocol, self.fs_path, self.hash_name)
        if key not in known:
            known[key] = get_hash(self)
        return known[key]

    param.load_path = cache(load)
    Dependency.get_hash = get_hash_once
    try:
        yield
    finally:
        param.load_path = load
        Dependency.get_hash = get_hash


def stage_groups(dvcfile: Path) -> frozenset[str]:
    """The names of a dvc.yaml's stages as they stand there, also of those whose matrix is empty."""
    content = yaml.load(dvcfile.read_bytes(), Loader=YAML_LOADER)
    return frozenset(content["stages"])


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


def ancestors(graph: StageGraph, names: Iterable[str]) -> frozenset[str]:
    """Every stage whose output one of `names` reads, directly or through others."""
    above = set(names)
    for name in reversed(graph.names):
        if name in above:
            above.update(graph.parents[name])
    return frozenset(above - set(names))


def group_of(stage: str) -> str:
    """The name a stage has in dvc.yaml: `embed` for `suites/other/dvc.yaml:embed@x`."""
    return stage.rpartition(":")[2].partition("@")[0]


def _path(item: Any, root: Path) -> str:
    path, top = Path(item.fs_path), root.absolute()
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else path.as_posix()


def _address(dvcfile: Path, name: str) -> str:
    return name if dvcfile == Path("dvc.yaml") else f"{dvcfile.as_posix()}:{name}"
