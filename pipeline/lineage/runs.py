"""One record per stage of what made the artifacts: the manifest's where it has the run, else dvc.lock's."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.artifacts import sha256_of
from pipeline.lineage.errors import LineageError
from pipeline.lineage.manifest import Manifest, read_manifest
from pipeline.lineage.stages import Entry, Locked
from pipeline.lineage.trees import git


@dataclass(frozen=True)
class StageRun:
    """How a stage came to its recorded outputs.

    inputs, outputs  path -> hash with its algorithm, "md5:..." or "sha256:..."
    recorded         the manifest's line, {} where it has none of this run: then times are those of the commit
    """

    name: str
    identifier: str
    command: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    parameters: Mapping[str, Any]
    started: datetime
    ended: datetime
    recorded: Mapping[str, Any] = field(default_factory=dict)


def stage_runs(
    root: Path, suite: str, stages: list[str], locked: Mapping[str, Locked], lockfile: str
) -> list[StageRun]:
    """A record for each of the named stages. Raises LineageError for a stage that has not run.

    A line of the manifest counts for a stage if the outputs it names are those that lie here. Cost: hashing them.
    """
    manifest = read_manifest(root, suite)
    when = lock_time(root, lockfile)
    found = []
    for name in stages:
        if name not in locked:
            raise LineageError(
                f"stage '{name}' has not run", where=lockfile, remedy=f"run `sentfold repro --suite {suite}` first"
            )
        run = matching_run(root, manifest, name)
        found.append(from_lock(locked[name], suite, when) if run is None else from_manifest(locked[name], run))
    return found


def matching_run(root: Path, manifest: Manifest, name: str) -> Mapping[str, Any] | None:
    """The last good run of a stage in the manifest, if what it wrote is what lies here."""
    run = manifest.latest().get(name)
    if run is None or not run["outputs"]:
        return None
    places = {path: root / path for path in run["outputs"]}
    same = all(place.is_file() and sha256_of(place) == run["outputs"][path]["sha256"] for path, place in places.items())
    return run if same else None


def wrote(root: Path, suite: str, locked: Locked, path: str) -> bool:
    """Whether a recorded run of a stage wrote what lies under one of its outputs now, from the inputs that lie here.

    Cost: hashing the output and the inputs, once per recorded run that could be the one.
    """
    known: dict[str, str] = {}

    def sha256(file: str) -> str:
        if file not in known:
            known[file] = sha256_of(root / file) if (root / file).is_file() else ""
        return known[file]

    place = root / path
    files = [path] if place.is_file() else [file.relative_to(root).as_posix() for file in place.rglob("*")]
    here = {file for file in files if (root / file).is_file() and not file.endswith(".tmp")}
    for run in read_manifest(root, suite).ended:
        if run.get("stage") != locked.name or run.get("exit") != 0:
            continue
        outputs = {file: facts for file, facts in run["outputs"].items() if file == path or file.startswith(f"{path}/")}
        # An input that is not here any more says nothing; the records of it agree, or another check speaks.
        inputs = {file: facts for file, facts in run["inputs"].items() if (root / file).is_file()}
        same = all(sha256(file) == facts["sha256"] for file, facts in {**outputs, **inputs}.items())
        if outputs and outputs.keys() == here and same:
            return True
    return False


def from_manifest(locked: Locked, run: Mapping[str, Any]) -> StageRun:
    """The record of a run that the manifest has."""
    inputs, outputs = (
        {path: f"sha256:{facts['sha256']}" for path, facts in run[section].items()} for section in ("inputs", "outputs")
    )
    began, ended = (datetime.fromisoformat(run[key]) for key in ("started", "ended"))
    identifier = str(uuid.UUID(run["run"]))
    return StageRun(locked.name, identifier, run["command"], inputs, outputs, run["parameters"], began, ended, run)


def from_lock(locked: Locked, suite: str, when: datetime) -> StageRun:
    """The record of a run that only dvc.lock knows; its identifier is made of its hashes."""
    inputs, outputs = (hashes(section) for section in (locked.deps, locked.outs))
    text = f"{suite} {locked.name} {sorted(inputs.items())} {sorted(outputs.items())}"
    identifier = str(uuid.uuid5(uuid.NAMESPACE_URL, text))
    return StageRun(locked.name, identifier, locked.command, inputs, outputs, locked.params, when, when)


def hashes(entries: Mapping[str, Entry]) -> dict[str, str]:
    """path -> "md5:..." of files and folders."""
    return {path: f"md5:{entry.md5}" for path, entry in entries.items()}


def lock_time(root: Path, lockfile: str) -> datetime:
    """When dvc.lock was committed last; without git, when the file was written."""
    said = (git(root, "log", "-1", "--format=%cI", "--", lockfile) or b"").decode().strip()
    if said:
        return datetime.fromisoformat(said)
    place = root / lockfile
    return datetime.fromtimestamp(place.stat().st_mtime, UTC) if place.exists() else datetime.now(UTC)
