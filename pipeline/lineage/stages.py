"""The stages of a suite: what dvc.yaml defines, and what dvc.lock records of the last run of each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import yaml

from pipeline.base.params import parse_yaml
from pipeline.base.suite import suite_file
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.templates import expand, malformed
from pipeline.lineage.trees import MOST_TEXT, Tree
from sentfold.errors import first_line

LONGEST_PATH, LONGEST_NAME = 2_000, 255  # letters; the system looks for no file of a longer name
MOST_PATHS = 50_000  # stages, inputs, outputs and parameters; the largest suite has some 5,000
MOST_STAGES = 4_000  # all of which can stand on all others; the largest suite has 231
MOST_LETTERS = 1 << 18  # of all commands together; the largest suite has some 15,000
MOST_NAMES = 1_000  # entries of one stage's params; the longest list has some ten
MD5 = re.compile(r"[0-9a-f]{32}(\.dir)?")

# The keys that DVC writes into dvc.lock of this project.
LOCK_KEYS = frozenset({"schema", "stages"})
STAGE_KEYS = frozenset({"cmd", "deps", "params", "outs"})
ENTRY_KEYS = frozenset({"path", "hash", "md5", "size", "nfiles", "isexec"})


@dataclass(frozen=True)
class Stage:
    """A stage as dvc.yaml defines it, references replaced.

    params    file -> dotted keys of that file; () are all of them
    uncached  the outputs that DVC does not put into its cache
    """

    name: str
    command: str
    deps: tuple[str, ...]
    params: Mapping[str, tuple[str, ...]]
    outs: tuple[str, ...]
    uncached: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A file or folder in dvc.lock."""

    path: str
    md5: str


@dataclass(frozen=True)
class Locked:
    """The last run of a stage in dvc.lock. params: file -> key -> value; deps and outs by path."""

    name: str
    command: str
    deps: Mapping[str, Entry]
    params: Mapping[str, Mapping[str, Any]]
    outs: Mapping[str, Entry]


@dataclass(frozen=True)
class Graph:
    """The stages of one suite: their definitions, and their last runs."""

    suite: str
    dvcfile: str
    lockfile: str
    stages: Mapping[str, Stage]
    locked: Mapping[str, Locked]

    @cached_property
    def _makers(self) -> tuple[Mapping[str, set[str]], Mapping[str, set[str]]]:
        """Path -> the stages that write it; and path -> the stages that write something inside of it."""
        exact: dict[str, set[str]] = {}
        inside: dict[str, set[str]] = {}
        for out, name in self.producers.items():
            exact.setdefault(out, set()).add(name)
            for folder in _folders_of(out):
                inside.setdefault(folder, set()).add(name)
        return exact, inside

    @cached_property
    def producers(self) -> Mapping[str, str]:
        """Output -> the stage that writes it, by dvc.lock and by dvc.yaml. Only stages that dvc.yaml defines."""
        recorded = {out: name for name, locked in self.locked.items() if name in self.stages for out in locked.outs}
        return {**recorded, **{out: name for name, stage in self.stages.items() for out in stage.outs}}

    def makers_of(self, path: str) -> list[str]:
        """The stages that write `path`, something inside it, or a folder that contains it."""
        exact, inside = self._makers
        found = [exact.get(place, ()) for place in (path, *_folders_of(path))]
        return sorted({name for names in (*found, inside.get(path, ())) for name in names})

    @property
    def leftovers(self) -> list[str]:
        """Stages that are in dvc.lock and not in dvc.yaml."""
        return sorted(set(self.locked) - set(self.stages))

    def inputs_of(self, name: str) -> list[str]:
        """The dependencies of a stage, by dvc.yaml and by dvc.lock."""
        wanted = self.stages[name].deps if name in self.stages else ()
        recorded = tuple(self.locked[name].deps) if name in self.locked else ()
        return list(dict.fromkeys([*wanted, *recorded]))

    def ancestors(self, name: str) -> tuple[str, ...]:
        """A stage, first, and every stage that it rests on."""
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
        """Every stage of dvc.yaml, the parents of a stage before it. Raises LineageError if there is a circle."""
        from graphlib import CycleError, TopologicalSorter

        try:
            return list(TopologicalSorter({name: self.parents(name) for name in sorted(self.stages)}).static_order())
        except CycleError as error:
            circle = ", ".join(error.args[1][:5])
            raise malformed(self.dvcfile, "stages", f"{circle} read each other's outputs", "no circle") from None


def _folders_of(path: str) -> Iterator[str]:
    """The folders that a path is in, the innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def related(one: str, other: str) -> bool:
    """Whether two paths are equal, or one is inside the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def load_graph(tree: Tree, suite: str) -> Graph:
    """Read dvc.yaml, its variables and dvc.lock of a suite. Raises LineageError. A missing dvc.lock has no entries."""
    dvcfile, lockfile = (str(PurePosixPath(suite_file(suite)).with_name(name)) for name in ("dvc.yaml", "dvc.lock"))
    locked = read_locked(lockfile, read_yaml(tree, lockfile, of_dvc=True) or {})
    return Graph(suite, dvcfile, lockfile, load_stages(tree, suite), locked)


def read_locked(lockfile: str, content: Mapping[str, Any]) -> dict[str, Locked]:
    """The stages in the content of a dvc.lock, by name.

    Raises LineageError for a key or a hash that DVC does not write here. DVC reads, writes and removes files by these
    keys, also outside of the checkout.
    """
    if odd := sorted(map(str, set(content) - LOCK_KEYS)):
        raise malformed(lockfile, "its keys", odd[0][:80], f"at most {', '.join(sorted(LOCK_KEYS))}")
    entries = _mapping(lockfile, content)
    locked = {str(name): _locked(lockfile, str(name), entry) for name, entry in entries.items()}
    if sum(len(entry.deps) + len(entry.outs) + 1 for entry in locked.values()) > MOST_PATHS:
        raise malformed(lockfile, "its entries", "more", f"at most {MOST_PATHS:,} stages, inputs and outputs")
    return locked


def load_stages(tree: Tree, suite: str) -> dict[str, Stage]:
    """The stages that a suite's dvc.yaml defines, by name. Raises LineageError. Cost: some 20 ms for 150 of them."""
    dvcfile = str(PurePosixPath(suite_file(suite)).with_name("dvc.yaml"))
    content, context = require_suite(tree, suite), load_variables(tree, suite)
    stages, paths, letters = {}, 0, 0
    for name, definition in _mapping(dvcfile, content).items():
        if not isinstance(definition, dict):
            raise malformed(dvcfile, f"stage {name}", f"a {type(definition).__name__}", "a mapping with cmd")
        for address, filled in expand(name, definition, context, where=dvcfile):
            stage = stages[address] = _stage(dvcfile, address, filled)
            paths += 1 + len(stage.deps) + len(stage.outs) + sum(map(len, stage.params.values()))
            letters += len(stage.command)
            if len(stages) > MOST_STAGES:
                raise LineageError(
                    "a suite has too many stages", where=dvcfile, expected=f"at most {MOST_STAGES:,}",
                    remedy="make two suites of it",
                )  # fmt: skip
            if letters > MOST_LETTERS:
                raise malformed(dvcfile, "its commands", "more", f"at most {MOST_LETTERS:,} letters of all commands")
            if paths > MOST_PATHS:
                raise malformed(
                    dvcfile, "its stages", "more", f"at most {MOST_PATHS:,} stages, inputs, outputs and parameters"
                )
    return stages


def _mapping(file: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """What is under `stages` of dvc.yaml or dvc.lock."""
    stages = content.get("stages") or {}
    if not isinstance(stages, dict):
        raise malformed(file, "stages", f"a {type(stages).__name__}", "a mapping of stages")
    return stages


def variable_files(tree: Tree, suite: str) -> list[str]:
    """The files that a suite's dvc.yaml takes its variables from. Raises LineageError if there is no such suite."""
    folder = PurePosixPath(suite_file(suite)).parent
    entries = require_suite(tree, suite).get("vars") or []
    names = [entry for entry in entries if isinstance(entry, str)] if isinstance(entries, list) else [""]
    if wrong := [name for name in names if not is_inside(name)]:
        dvcfile = str(folder / "dvc.yaml")
        raise malformed(dvcfile, "vars", wrong[0][:80] or str(entries)[:80], "a list of files of the suite's folder")
    return [str(folder / entry) for entry in names]


def load_variables(tree: Tree, suite: str) -> dict[str, Any]:
    """The variables of a suite's dvc.yaml. Raises LineageError."""
    found: dict[str, Any] = {}
    for file in variable_files(tree, suite):
        found |= read_yaml(tree, file) or {}
    return found


def require_suite(tree: Tree, suite: str) -> dict[str, Any]:
    """The content of a suite's dvc.yaml. Raises LineageError if there is none."""
    dvcfile = str(PurePosixPath(suite_file(suite)).with_name("dvc.yaml"))
    content = read_yaml(tree, dvcfile)
    if content is None:
        known = dict.fromkeys(["quick", *(path.partition("/")[0] for path in tree.files_below("suites"))])
        raise LineageError(
            f"there is no suite '{suite}' in {tree.name}",
            where=dvcfile,
            expected=f"one of: {', '.join(known)}",
            got=suite,
            remedy="run from the root of the checkout, with --suite and the name of a folder of suites/, or quick",
        )
    return content


def read_yaml(tree: Tree, path: str, *, of_dvc: bool = False) -> dict[str, Any] | None:
    """The mapping in a YAML file of a tree, None if there is no file. Raises LineageError if it is malformed."""
    content = tree.read(path)
    if content is None:
        return None
    if len(content) > MOST_TEXT:
        where, got = f"{path} of {tree.name}", f"{len(content):,} bytes"
        raise LineageError(f"{path} is too large", where=where, expected=f"at most {MOST_TEXT:,} bytes", got=got)
    try:
        parsed = parse_yaml(content, of_dvc=of_dvc)
    except yaml.YAMLError as error:
        got = " ".join(str(error).split())
        raise LineageError(f"{path} is not valid YAML", where=f"{path} of {tree.name}", got=got) from None
    if not isinstance(parsed, dict):
        raise LineageError(f"{path} holds no mapping", where=f"{path} of {tree.name}", got=type(parsed).__name__)
    if _letters(parsed) > MOST_TEXT:
        where, expected = f"{path} of {tree.name}", f"at most {MOST_TEXT:,} letters, with every alias copied out"
        raise LineageError(f"{path} is too large", where=where, expected=expected, got="more")
    return parsed


def _letters(value: Any) -> int:
    """The letters of the texts in a value of YAML; a text counts at every alias, as a message would print it there."""
    if isinstance(value, Mapping):
        return sum(_letters(key) + _letters(inner) for key, inner in value.items())
    if isinstance(value, list | tuple | set):
        return sum(map(_letters, value))
    return len(value) if isinstance(value, str | bytes) else 0


def tracked_values(content: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """The values of dotted keys in a YAML file; of all its keys if none is named. Absent keys are left out."""
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


class _Dumper(yaml.SafeDumper):
    """Quotes texts such as 08 and 1e5, which are texts in YAML 1.1 and numbers in DVC's YAML 1.2."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "'" if re.fullmatch(r"[-+.]*\d[\w.+-]*", text) and _read_alone(text) != text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _read_alone(text: str) -> Any:
    try:
        return parse_yaml(text)
    except yaml.YAMLError:  # YAML 1.1 and 1.2 read it differently
        return None


_Dumper.add_representer(str, _represent_text)


def dump_yaml(content: Any) -> str:
    """YAML that every reader here reads as the same content, with keys in their order."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=120, default_flow_style=None)


def alike(one: Any, other: Any) -> bool:
    """Whether two values of YAML are equal, `1` and `true` told apart; Python and DVC call those two equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


# --- entries --------------------------------------------------------------------------------------


def _stage(dvcfile: str, name: str, filled: Mapping[str, Any]) -> Stage:
    params: dict[str, tuple[str, ...]] = {}
    with _well_formed(dvcfile, name, "cmd, a command; deps, params and outs, lists"):
        entries = filled.get("params", [])
        if len(entries) > MOST_NAMES:
            raise ValueError(f"params: more than {MOST_NAMES:,} entries")
        for entry in entries:
            for file, keys in ({"params.yaml": [entry]} if isinstance(entry, str) else entry).items():
                if not all(isinstance(key, str) for key in keys or ()):
                    raise TypeError(f"params: {keys}")
                params[file] = (*params.get(file, ()), *(keys or ()))
        entries = [entry for section in ("outs", "metrics", "plots") for entry in filled.get(section, [])]
        outs = list(_paths(entries))
        uncached = _paths([entry for entry in entries if isinstance(entry, dict) and not _is_cached(entry)])
        deps = dict.fromkeys(_paths(filled.get("deps", [])))  # an input that is named twice is one input
        _require_inside([*deps, *outs, *params])
        if not shlex.split(filled["cmd"]):  # which raises ValueError for a quote without its end
            raise ValueError("an empty command")
        return Stage(name, filled["cmd"].strip(), tuple(deps), params, tuple(outs), tuple(uncached))


def _paths(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        yield from [entry] if isinstance(entry, str) else entry


def _is_cached(entry: Mapping[str, Any]) -> bool:
    """Whether DVC puts an output with options into its cache: `path: {cache: false}` says that it does not."""
    return all((options or {}).get("cache", True) for options in entry.values())


def _locked(lockfile: str, name: str, entry: Mapping[str, Any]) -> Locked:
    with _well_formed(lockfile, name, "an entry as DVC writes it"):
        _require_keys(entry, STAGE_KEYS, f"stage {name}")
        deps, outs = (_recorded(entry.get(section, [])) for section in ("deps", "outs"))
        params = entry.get("params", {})
        if not all(isinstance(values, dict) for values in (params, *params.values())):
            raise TypeError(f"params: {params}")
        _require_inside([*deps, *outs])
        return Locked(name, str(entry["cmd"]).strip(), deps, params, outs)


def _recorded(items: list[Any]) -> dict[str, Entry]:
    """The entries by their path. Raises ValueError if one has no md5, or a path has two: DVC goes by the last one."""
    found: dict[str, Entry] = {}
    for item in items:
        new = Entry(item["path"], str(item.get("md5")))
        _require_keys(item, ENTRY_KEYS, new.path)
        if not MD5.fullmatch(new.md5) or item.get("hash", "md5") != "md5":
            raise ValueError(f"md5 '{new.md5}' of {new.path}, hash {item.get('hash')}")
        if found.setdefault(new.path, new) != new:
            raise ValueError(f"md5 '{found[new.path].md5}' and '{new.md5}' of {new.path}")
    return found


def _require_keys(entry: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    """Raise ValueError for another key: `files` of an output names files that DVC writes, wherever they lead."""
    if odd := sorted(map(str, set(entry) - known)):
        raise ValueError(f"key '{odd[0][:80]}' of {where}")


def _require_inside(paths: Iterable[str]) -> None:
    """Raise ValueError for a path that leaves the checkout: what stages write is removed and overwritten."""
    for path in paths:
        if not is_inside(path):
            raise ValueError(f"'{path[:200]}' is outside of the checkout, or no name of a file")


def is_inside(path: str) -> bool:
    """Whether a path can be one in the checkout, and is not the checkout itself."""
    parts = PurePosixPath(path).parts
    named = "\0" not in path and len(path) < LONGEST_PATH and all(len(part) <= LONGEST_NAME for part in parts)
    # DVC asks a server for ssh://host/file.
    return named and not (not parts or path.startswith("/") or ".." in parts or ":" in parts[0])


@contextmanager
def _well_formed(file: str, name: str, expected: str) -> Iterator[None]:
    """Turn what a malformed stage raises into a LineageError that names it."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        got = f"no {error}" if isinstance(error, KeyError) else first_line(error)
        raise malformed(file, f"stage {name}", got, expected) from None
