"""From one printed number to everything that it rests on: a graph whose every edge carries a hash."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pipeline.lineage.audit import vector_paths
from pipeline.lineage.hashes import LineageError, folder_digest, md5_of_bytes
from pipeline.lineage.numbers import Number, Scores, find_number, find_table
from pipeline.lineage.runs import (
    RunFinder,
    code_text,
    inside_inputs,
    mapping_at,
    parse_object,
    record_of,
    sealed_inputs,
)
from pipeline.lineage.scope import Scope
from pipeline.lineage.stages import Entry, Locked, related

Kind = Literal["number", "file", "stage", "code", "model", "source"]
NodeState = Literal["", "as recorded", "absent here", "not as recorded"]

NO_RUN = "no record of the run that wrote these bytes is here"

# Facts of a corpus's source that do not say where it came from.
OTHER_FACTS = ("replaced_characters", "splits")


@dataclass(frozen=True)
class Node:
    """A thing that a number rests on. facts: what is known of it, in the order of reading."""

    key: str
    kind: Kind
    title: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    state: NodeState = ""


@dataclass(frozen=True)
class Edge:
    """`above` rests on `below`. hash: of what was handed over, with its algorithm, e.g. "md5 0a1b..."."""

    above: str
    below: str
    hash: str


@dataclass
class Trace:
    """The graph below one number, which is the first node."""

    number: Number
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def below(self, key: str) -> list[Edge]:
        """The edges that go down from a node."""
        return [edge for edge in self.edges if edge.above == key]


def trace(root: Path, table: str, *, row: str, column: str, field: str = "value", line: int | None = None) -> Trace:
    """Walk from one number of a table to its sources. Reads only.

    Raises LineageError if there is no such number, or if it rests on too many stages.
    Cost: hashing what the number rests on, as far as it is here.
    """
    suite, path = find_table(root, table)
    scope = Scope(root, suite)
    number = find_number(scope.tree, suite, path, row=row, column=column, field=field, line=line)
    try:
        return Tracer(scope, number).run()
    except RecursionError:
        raise LineageError(
            "a number rests on too many stages to follow",
            where=f"{path}, {row} × {column}",
            expected="some hundred stages, one on the other",
            got="more",
            remedy="take dvc.yaml and its variables from git again",
        ) from None


class Tracer:
    """One walk."""

    def __init__(self, scope: Scope, number: Number) -> None:
        self.scope = scope
        self.graph = scope.graph
        self.number = number
        self.found = Trace(number)
        self.finder = RunFinder(scope.root, scope.suite)
        self.lineage = parse_object(scope.tree.read(f"reports/{scope.suite}/lineage.json"))

    def run(self) -> Trace:
        """Start at the cell."""
        number = self.number
        facts = {"table": f"{number.table}, line {number.line}", "row": number.row, "column": number.column}
        about = {"field": number.field, "origin": number.origin, "protocol": number.protocol}
        state, found = self._compared()
        self._add(Node("number", "number", number.text, facts | about | found, state))
        for path in self._sources():
            self._file("number", path)
        return self.found

    def _compared(self) -> tuple[NodeState, dict[str, str]]:
        """The cell against the scores that it was copied from; nothing to compare if the report computed it."""
        scores = Scores(self.scope.tree, self.scope.suite)
        if self.number.origin not in ("score", "difference"):
            return "", {}
        text = scores.text_of(self.number)
        if text == self.number.text:
            return "as recorded", {}
        other = f"{scores.path(self.number.space)} {'has no such score' if text is None else f'gives {text}'}"
        absent = any(self.scope.digest(file) is None for file in self._sources())
        return ("absent here" if absent else "not as recorded"), {"score": other}

    def _sources(self) -> list[str]:
        """The files that a number was taken from."""
        number, scores = self.number, f"reports/{self.scope.suite}/scores"
        files = [f"{scores}/{space}.json" for space in (number.space, number.other) if space]
        if number.origin in ("score", "difference") and all(file in self.graph.producers for file in files):
            return files
        vectors = [path for path in vector_paths(self.scope.suite, number) if self.graph.makers_of(path)]
        return [number.table, *vectors]

    def _add(self, node: Node) -> bool:
        if node.key in self.found.nodes:
            return False
        self.found.nodes[node.key] = node
        return True

    def _join(self, above: str, below: str, hash_: str) -> None:
        edge = Edge(above, below, hash_)
        if edge not in self.found.edges:
            self.found.edges.append(edge)

    # --- files ------------------------------------------------------------------------------------

    def _file(self, above: str, path: str, *, handed: str = "") -> None:
        """A file or folder below a node, and the stage that wrote it. handed: the hash that the reader recorded."""
        makers = [name for name in self.graph.makers_of(path) if name in self.graph.locked]
        entries = [entry for name in makers if (entry := self._entry(name, path)) is not None]
        here, altered = self.scope.digest(path), self._is_altered(path, handed, entries)
        own = next((entry.md5 for entry in entries if entry.path == path), "")
        md5 = own or ("" if here is None or altered else here.md5)
        state: NodeState = "absent here" if here is None else "not as recorded" if altered else "as recorded"
        folders = {f"of {entry.path}": entry.md5 for entry in entries if entry.path != path}
        new = self._add(Node(path, "file", path, {"md5": md5, **folders}, state))
        self._join(above, path, handed or (f"md5 {md5}" if md5 else "md5 unknown: it is not here as recorded"))
        for name in makers if new else ():
            self._stage(path, name, path)

    def _is_altered(self, path: str, handed: str, entries: list[Entry]) -> bool:
        """Whether a file is not what its reader recorded of it, or its writers did."""
        kind, _, expected = handed.partition(" ")
        sealed = kind == "sha256" and (self.scope.root / path).is_file()
        if sealed and self.finder.sha256(path) != expected:
            return True
        # A sealed hash excuses a file from the alterations of others in its folder.
        return not all(self.scope.is_as_recorded(entry) for entry in entries if not sealed or entry.path == path)

    def _entry(self, name: str, path: str) -> Entry | None:
        return next((entry for out, entry in self.graph.locked[name].outs.items() if related(out, path)), None)

    # --- what a stage read ------------------------------------------------------------------------

    def _inputs(self, locked: Locked, wanted: str) -> Iterator[tuple[str, str]]:
        """The files that a stage read for one of its outputs, each with the hash that the output recorded of it.

        An artifact names the inputs that it was made of, and lineage.json repeats them for the spaces: they say
        which files of a folder were read. Of other inputs, the files that have the corpus's name are taken.
        """
        known = self._remembered(locked, wanted)
        yield from ((path, f"sha256 {sha256}") for path, sha256 in sorted(known.items()))
        for path, entry in locked.deps.items():
            if self.graph.makers_of(path) and not any(related(path, file) for file in known):
                yield from self._named(path, entry)

    def _remembered(self, locked: Locked, wanted: str) -> dict[str, str]:
        places = [wanted]
        if wanted.startswith("reports/"):
            # Scores name no inputs; the replicates of the same run do.
            places = [f"{out}/{self.number.corpus}.parquet" for out in locked.outs if out.startswith("data/")]
        for place in places:
            inputs = sealed_inputs(self.scope.root / place)
            parts = PurePosixPath(place).parts
            if not inputs and len(parts) == 5 and parts[2] == "spaces":
                inputs = inside_inputs(mapping_at(self.lineage, "spaces", f"{parts[3]}/{Path(parts[4]).stem}"))
            if inputs:
                return inputs
        return {}

    def _named(self, path: str, entry: Entry) -> list[tuple[str, str]]:
        """The files of a recorded folder that have the corpus's name; the whole folder if none has."""
        corpus = self.number.corpus
        listing = self.scope.digest(entry.path) if self.scope.is_as_recorded(entry) else None
        inside = [] if listing is None else [f"{path}/{file}" for file in listing.files]
        if listing is None:
            inside = [out for out in self.graph.producers if out.startswith(f"{path}/")]
        names = [file for file in inside if corpus in {PurePosixPath(part).stem for part in PurePosixPath(file).parts}]
        return [(file, "") for file in sorted(names)] or [(path, f"md5 {entry.md5}")]

    # --- stages -----------------------------------------------------------------------------------

    def _stage(self, above: str, name: str, wanted: str) -> None:
        """The stage that wrote a file, its code, its models, and the files that it read for it."""
        locked, key = self.graph.locked[name], f"stage {name}"
        entry = self._entry(name, wanted)
        self._join(above, key, f"md5 {'' if entry is None else entry.md5}")
        if not self._add(Node(key, "stage", name, self._stage_facts(locked))):
            return
        self._code(key, locked)
        for place, model in models_in(locked.params):
            self._model(key, place, model)
        if PurePosixPath(wanted).parts[2:3] == ("corpora",):
            self._origin(key, wanted)
        for path, handed in self._inputs(locked, wanted):
            self._file(key, path, handed=handed)

    def _stage_facts(self, locked: Locked) -> dict[str, Any]:
        facts: dict[str, Any] = {"command": locked.command}
        facts |= {f"{file}: {key}": value for file, keys in locked.params.items() for key, value in keys.items()}
        facts["run"] = self._run_text(locked)
        return facts

    def _run_text(self, locked: Locked) -> str:
        """The recorded run whose outputs and parameters are those of dvc.lock and of the files here, in words."""
        absent = [path for path, entry in locked.outs.items() if not self.scope.is_as_recorded(entry)]
        if absent:
            return f"not looked for, as {absent[0]} is not here as dvc.lock records it"
        run = self.finder.run_of(locked)
        if run is None:
            return NO_RUN
        machine, code = run["machine"], run["code"]
        told = [f"{name} {machine[name]}" for name in ("cpu", "container", "profile") if machine.get(name)]
        where = f"on {machine['host']}, {code_text(code)}"
        return ", ".join([str(run["started"]), f"{run['seconds']} s", where, *told])

    def _code(self, key: str, locked: Locked) -> None:
        entries = [entry for path, entry in locked.deps.items() if not self.graph.makers_of(path)]
        files = {entry.path: entry.md5 for entry in entries}
        digest = folder_digest(files).md5.removesuffix(".dir")
        altered = [entry.path for entry in entries if not self.scope.is_as_recorded(entry)]
        heads = [self.scope.head_digest(path) for path in files]
        in_git = all(head is not None and head.md5 == md5 for head, md5 in zip(heads, files.values(), strict=True))
        commit = self.scope.head.commit if self.scope.head is not None and in_git else "not all of it in git's HEAD"
        facts = {"commit": commit, "files": files, **({"not as recorded": altered} if altered else {})}
        title = f"code of {locked.name.partition('@')[0]}, {len(files)} files and packages"
        self._add(Node(f"code {digest}", "code", title, facts, "not as recorded" if altered else "as recorded"))
        self._join(key, f"code {digest}", f"md5 {digest} over {len(files)} files and packages")

    def _model(self, key: str, place: str, model: Mapping[str, Any]) -> None:
        """A block that pins a model: by the hash of its weights, by a revision, or by files of other kinds."""
        self._add(Node(f"model {place}", "model", place, dict(model)))
        hashes = model["sha256"] if isinstance(model.get("sha256"), Mapping) else {}
        weights = [f"sha256 {sha256}" for name, sha256 in hashes.items() if "safetensors" in name]
        revision = [f"revision {model['revision']}"] if model.get("revision") else []
        listing = f"md5 {md5_of_bytes(json.dumps(model, sort_keys=True).encode())}"
        self._join(key, f"model {place}", [*weights, *revision, listing][0])

    def _origin(self, key: str, wanted: str) -> None:
        """Where a corpus came from, as its artifact or lineage.json says."""
        corpus = "".join(PurePosixPath(wanted).parts[3:4])
        notes = mapping_at(self.lineage, "corpora", corpus)
        own = mapping_at(record_of(self.scope.root / "/".join(wanted.split("/")[:4]) / "sentences.parquet"), "notes")
        facts = {name: value for name, value in {**notes, **own}.items() if name not in OTHER_FACTS}
        if not facts:
            return
        place = f"source {facts.get('source', '')}: {facts.get('dataset', corpus)}"
        self._add(Node(place, "source", place, facts))
        files = facts.get("files")
        if isinstance(files, Mapping) and len(files) == 1:
            self._join(key, place, f"sha256 {next(iter(files.values()))}")
        else:
            listing = json.dumps(files or facts, sort_keys=True)
            self._join(key, place, f"md5 {md5_of_bytes(listing.encode())} over the list of files")


def models_in(params: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every block of parameters that pins files by sha256 or a repository by revision."""
    for key, value in params.items():
        if isinstance(value, Mapping):
            inner = f"{place}.{key}" if place and not place.endswith(".yaml") else str(key)
            if {"sha256", "revision"} & set(value):
                yield inner, value
            else:
                yield from models_in(value, inner)
