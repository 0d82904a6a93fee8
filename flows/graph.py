"""The stages of one suite, which of them are out of date, and which of them a target names.

The stages come from dvc.yaml, read as YAML; what is out of date comes from `dvc status --json`.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

from flows.processes import dvc_command, dvc_environment
from pipeline.base.suite import suite_file
from pipeline.environment import stage_environment
from pipeline.lineage.stages import Stage
from sentfold.errors import RunError
from sentfold.suggestions import did_you_mean


@dataclass(frozen=True)
class StageGraph:
    """The stages of one dvc.yaml by their addresses, as DVC prints them (`embed@x`).

    names    every stage, a stage's parents before it
    parents  stages whose outputs a stage reads, per stage
    outs     what a stage writes, per stage: paths from the root of the checkout
    """

    names: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]
    outs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def descendants(self, names: Iterable[str]) -> frozenset[str]:
        """Every stage that reads, directly or through others, an output of one of `names`."""
        below = set(names)
        for name in self.names:
            if not below.isdisjoint(self.parents[name]):
                below.add(name)
        return frozenset(below - set(names))

    def ancestors(self, names: Iterable[str]) -> frozenset[str]:
        """Every stage whose output one of `names` reads, directly or through others."""
        above = set(names)
        for name in reversed(self.names):
            if name in above:
                above.update(self.parents[name])
        return frozenset(above - set(names))

    def stale(self, changed: Iterable[str]) -> tuple[str, ...]:
        """The changed stages and all their descendants, a stage's parents before it."""
        changed = set(changed)
        stale = changed | self.descendants(changed)
        return tuple(name for name in self.names if name in stale)


def dvcfile_of(suite: str) -> Path:
    """The dvc.yaml of a suite, from the root of the checkout; the suite file is in the same folder."""
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


def build_graph(stages: Mapping[str, Stage], dvcfile: Path) -> StageGraph:
    """The graph of the stages of a dvc.yaml: a stage's parents are those that write what the stage depends on.

    Raises RunError if stages read each other's outputs in a circle.
    """
    prefix = "" if dvcfile == Path("dvc.yaml") else f"{dvcfile.as_posix()}:"
    writers: dict[str, set[str]] = defaultdict(set)  # path -> stages that write it or something in it
    whole: dict[str, str] = {}  # output -> its stage
    for name, stage in stages.items():
        for out in stage.outs:
            whole[out] = name
            for path in (PurePosixPath(out), *PurePosixPath(out).parents):
                writers[str(path)].add(name)

    def parents(name: str) -> tuple[str, ...]:
        found: set[str] = set()
        for dep in stages[name].deps:
            found |= writers.get(dep, set())
            found |= {whole[str(folder)] for folder in PurePosixPath(dep).parents if str(folder) in whole}
        return tuple(sorted(prefix + other for other in found - {name}))

    above = {prefix + name: parents(name) for name in sorted(stages)}
    outs = {prefix + name: tuple(sorted(stage.outs)) for name, stage in stages.items()}
    try:
        return StageGraph(tuple(TopologicalSorter(above).static_order()), above, outs)
    except CycleError as error:
        raise RunError(
            "stages read each other's outputs",
            where=str(dvcfile),
            expected="stages in an order",
            got=", ".join(error.args[1][:5]),
            state="no stage was started",
        ) from None


def changed_stages(dvcfile: Path, *, root: Path) -> frozenset[str]:
    """The stages whose own code, parameters, inputs or outputs changed, as `dvc status --json` names them.

    Raises RunError with the last lines of DVC's error if DVC fails: it cannot read dvc.yaml, or another dvc process
    writes what DVC would have to read. Cost: about two seconds, and the hashing of what changed.
    """
    done = subprocess.run(
        dvc_command("status", "--json", str(dvcfile)),
        cwd=root,
        env=dvc_environment(root, stage_environment()),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RunError(
            "`dvc status` failed",
            where=str(dvcfile),
            got="\n".join(done.stderr.strip().splitlines()[-5:]),
            state="no stage was started",
            remedy=f"correct what DVC names, or wait until other dvc processes end: dvc status {dvcfile}",
        )
    return frozenset(json.loads(done.stdout))


def group_of(stage: str) -> str:
    """The name that a stage has in dvc.yaml: `embed` for `suites/other/dvc.yaml:embed@x`."""
    return stage.rpartition(":")[2].partition("@")[0]


def select_stages(graph: StageGraph, targets: Sequence[str]) -> frozenset[str]:
    """The stages that `targets` name, and all that they need; every stage if there is no target.

    targets  each a stage (`embed@x`), a group of stages (`embed`), or a path: an output, something
             in it, or a folder that holds outputs

    Raises RunError naming the first target that is none of these.
    """
    if not targets:
        return frozenset(graph.names)
    named: set[str] = set()
    for target in targets:
        found = _named_by(graph, target)
        if not found:
            raise _unknown(graph, target)
        named |= found
    return graph.ancestors(named) | named


def _named_by(graph: StageGraph, target: str) -> set[str]:
    short = target.rpartition(":")[2]
    stages = {name for name in graph.names if target == name or short in (name.rpartition(":")[2], group_of(name))}
    return stages or _makers(graph, PurePosixPath(target))


def _makers(graph: StageGraph, path: PurePosixPath) -> set[str]:
    def touches(out: str) -> bool:
        return path.is_relative_to(out) or PurePosixPath(out).is_relative_to(path)

    return {name for name, outs in graph.outs.items() if any(map(touches, outs))}


def _unknown(graph: StageGraph, target: str) -> RunError:
    groups = dict.fromkeys(group_of(name) for name in graph.names)
    known = {*groups, *(name.rpartition(":")[2] for name in graph.names)}
    paths = {out for outs in graph.outs.values() for out in outs}
    return RunError(
        f"nothing here is called '{target}'",
        where="--target",
        expected=f"a stage, an output's path, or one of: {', '.join(groups)}",
        got=target,
        state="no stage was started",
        remedy=did_you_mean(target, sorted(known | paths), count=3, otherwise="'dvc stage list' names every stage"),
    )
