"""What dvc.yaml wants and what dvc.lock records of each stage, read as YAML from any tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import yaml

from pipeline.errors import first_line
from pipeline.lineage.errors import LineageError
from pipeline.lineage.templates import expand
from pipeline.lineage.trees import Tree
from pipeline.suite import suite_file

# The C parser reads the lock of 120 stages in a tenth of a second, the Python one in seconds.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # a base that depends on how PyYAML was built
    """YAML 1.2's floats beside 1.1's: DVC writes 1e-10, which 1.1 takes for text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z"), list("-+.0123456789")
)


@dataclass(frozen=True)
class Stage:
    """A stage as dvc.yaml defines it, references replaced.

    params  file -> dotted keys that are tracked in it; () stands for all of them
    """

    name: str
    command: str
    deps: tuple[str, ...]
    params: Mapping[str, tuple[str, ...]]
    outs: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """A file or folder as dvc.lock records it."""

    path: str
    md5: str


@dataclass(frozen=True)
class Locked:
    """A stage as dvc.lock records its last run. params: file -> key -> value; deps and outs by path."""

    name: str
    command: str
    deps: Mapping[str, Entry]
    params: Mapping[str, Mapping[str, Any]]
    outs: Mapping[str, Entry]


@dataclass(frozen=True)
class Graph:
    """The stages of one suite, as they are wanted and as they last ran."""

    suite: str
    dvcfile: str
    lockfile: str
    stages: Mapping[str, Stage]
    locked: Mapping[str, Locked]

    @cached_property
    def producers(self) -> Mapping[str, str]:
        """Output -> the stage that writes it, as wanted and as recorded; not those that dvc.yaml has no more."""
        recorded = {out: name for name, locked in self.locked.items() if name in self.stages for out in locked.outs}
        return {**recorded, **{out: name for name, stage in self.stages.items() for out in stage.outs}}

    def makers_of(self, path: str) -> list[str]:
        """The stages that write `path`, something inside it, or the folder it lies in."""
        return sorted({name for out, name in self.producers.items() if related(out, path)})

    @property
    def leftovers(self) -> list[str]:
        """Stages that dvc.lock still has and dvc.yaml has no more."""
        return sorted(set(self.locked) - set(self.stages))

    def inputs_of(self, name: str) -> list[str]:
        """The dependencies of a stage, wanted and recorded."""
        wanted = self.stages[name].deps if name in self.stages else ()
        recorded = tuple(self.locked[name].deps) if name in self.locked else ()
        return list(dict.fromkeys([*wanted, *recorded]))

    def ancestors(self, name: str) -> tuple[str, ...]:
        """A stage and every stage that its inputs come from, itself first."""
        found, waiting = {name: None}, [name]
        while waiting:
            for parent in self.parents(waiting.pop()):
                if parent not in found:
                    found[parent] = None
                    waiting.append(parent)
        return tuple(found)

    def parents(self, name: str) -> list[str]:
        """The stages whose outputs a stage reads."""
        if name not in self._parents:
            makers = {maker for dep in self.inputs_of(name) for maker in self.makers_of(dep)}
            self._parents[name] = sorted(makers - {name})
        return self._parents[name]

    @cached_property
    def _parents(self) -> dict[str, list[str]]:
        return {}

    def in_order(self) -> list[str]:
        """Every stage of dvc.yaml, a stage's parents before it."""
        from graphlib import TopologicalSorter

        return list(TopologicalSorter({name: self.parents(name) for name in sorted(self.stages)}).static_order())


def related(one: str, other: str) -> bool:
    """Whether two paths are the same, or one lies inside the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def load_graph(tree: Tree, suite: str) -> Graph:
    """Read dvc.yaml, dvc.lock and the suite file of a suite. Raises LineageError; a missing lock is an empty one."""
    folder = PurePosixPath(suite_file(suite)).parent
    dvcfile, lockfile = str(folder / "dvc.yaml"), str(folder / "dvc.lock")
    stages = load_stages(tree, suite)
    lock = read_yaml(tree, lockfile) or {}
    entries = lock.get("stages") or {}
    if not isinstance(entries, dict):
        raise _malformed(lockfile, "stages", f"a {type(entries).__name__}", "a mapping of stages")
    locked = {str(name): _locked(lockfile, str(name), entry) for name, entry in entries.items()}
    return Graph(suite, dvcfile, lockfile, stages, locked)


def load_stages(tree: Tree, suite: str) -> dict[str, Stage]:
    """The stages that a suite's dvc.yaml defines, by name. Raises LineageError. Cost: some 20 ms for 150 of them."""
    folder = PurePosixPath(suite_file(suite)).parent
    dvcfile = str(folder / "dvc.yaml")
    content = require_suite(tree, suite)
    context: dict[str, Any] = {}
    for entry in content.get("vars") or []:
        context |= entry if isinstance(entry, dict) else read_yaml(tree, str(folder / str(entry))) or {}
    definitions = content.get("stages") or {}
    if not isinstance(definitions, dict):
        raise _malformed(dvcfile, "stages", f"a {type(definitions).__name__}", "a mapping of stages")
    stages = {}
    for name, definition in definitions.items():
        if not isinstance(definition, dict):
            raise _malformed(dvcfile, f"stage {name}", f"a {type(definition).__name__}", "a mapping with cmd")
        for address, filled in expand(name, definition, context, where=dvcfile):
            stages[address] = _stage(dvcfile, address, filled)
    return stages


def require_suite(tree: Tree, suite: str) -> dict[str, Any]:
    """The content of a suite's dvc.yaml. Raises LineageError if there is none."""
    dvcfile = str(PurePosixPath(suite_file(suite)).with_name("dvc.yaml"))
    content = read_yaml(tree, dvcfile)
    if content is None:
        raise LineageError(
            f"there is no suite '{suite}' in {tree.name}",
            where=dvcfile,
            remedy="run from the root of the checkout, with --suite and the name of a folder of suites/, or quick",
        )
    return content


def read_yaml(tree: Tree, path: str) -> dict[str, Any] | None:
    """The mapping in a YAML file of a tree, None if there is no file. Raises LineageError if it is malformed."""
    content = tree.read(path)
    if content is None:
        return None
    try:
        parsed = yaml.load(content, Loader=_Loader)
    except yaml.YAMLError as error:
        raise LineageError(
            f"{path} is not valid YAML", where=f"{path} of {tree.name}", got=" ".join(str(error).split())
        ) from None
    if not isinstance(parsed, dict):
        raise LineageError(f"{path} holds no mapping", where=f"{path} of {tree.name}", got=type(parsed).__name__)
    return parsed


def tracked_values(content: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """The values of dotted keys in a YAML file, of all its keys where none is named; absent keys are left out."""
    if not keys:
        return dict(content)
    found: dict[str, Any] = {}
    for key in keys:
        value: Any = content
        for part in key.split("."):
            if not isinstance(value, Mapping) or part not in value:
                break
            value = value[part]
        else:
            found[key] = value
    return found


def _stage(dvcfile: str, name: str, filled: Mapping[str, Any]) -> Stage:
    try:
        return _defined(name, filled)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        got = f"no {error}" if isinstance(error, KeyError) else first_line(error)
        raise _malformed(dvcfile, f"stage {name}", got, "cmd, a command; deps, params and outs, lists") from None


def _defined(name: str, filled: Mapping[str, Any]) -> Stage:
    params: dict[str, tuple[str, ...]] = {}
    for entry in filled.get("params", []):
        if isinstance(entry, str):
            params["params.yaml"] = (*params.get("params.yaml", ()), entry)
        else:
            for file, keys in entry.items():
                params[file] = tuple(keys or ())
    outs = [path for section in ("outs", "metrics", "plots") for path in _paths(filled.get(section, []))]
    return Stage(name, " ".join(filled["cmd"].split()), tuple(_paths(filled.get("deps", []))), params, tuple(outs))


def _paths(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        yield from [entry] if isinstance(entry, str) else entry


def _locked(lockfile: str, name: str, entry: Mapping[str, Any]) -> Locked:
    try:
        deps, outs = (
            {item["path"]: Entry(item["path"], str(item.get("md5"))) for item in entry.get(section, [])}
            for section in ("deps", "outs")
        )
        params = entry.get("params", {})
        if not all(isinstance(values, dict) for values in (params, *params.values())):
            raise TypeError(f"params: {params}")
        return Locked(name, " ".join(str(entry["cmd"]).split()), deps, params, outs)
    except (KeyError, TypeError, AttributeError) as error:
        got = f"no {error}" if isinstance(error, KeyError) else first_line(error)
        raise _malformed(lockfile, f"stage {name}", got, "an entry as DVC writes it") from None


def _malformed(file: str, place: str, got: str, expected: str) -> LineageError:
    return LineageError(
        f"{file} is malformed",
        where=f"{file}: {place}",
        expected=expected,
        got=got,
        remedy=f"take it from git again: git checkout -- {file}",
    )
