"""The record of runs on this machine: what ran when, on what code, with what, and what it wrote.

One file of JSON lines per suite, .sentfold/runs/<suite>.jsonl, outside of what DVC hashes and git tracks. Several
processes append to it, and it survives a killed writer.
"""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.lineage.hashes import LineageError
from pipeline.lineage.stages import Entry, Graph, Locked
from pipeline.lineage.trees import git
from sentfold.files import sha256_of

MEGA = 1_000_000


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record in one write, so that lines of parallel writers never mix. Raises OSError.

    Where a killed writer left half a line, the record starts a new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, ensure_ascii=False, sort_keys=False).encode() + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(handle, line)
    finally:
        os.close(handle)
    if written != len(line):
        raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes could be written")


def read_lines(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Every whole record, and the numbers of the lines that are none: torn by a kill, or edited."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return [], []
    records, torn = [], []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            records.append(record)
        else:
            torn.append(number)
    return records, torn


def runs_path(root: Path, suite: str) -> Path:
    """The file of a suite's runs."""
    return root / ".sentfold" / "runs" / f"{suite}.jsonl"


@dataclass(frozen=True)
class RunLog:
    """The runs of one suite's stages on this machine.

    ended    the record of every run that ended, with or without success, in the order of their ends
    started  the first line of every run
    torn     numbers of lines that are no record
    """

    ended: tuple[Mapping[str, Any], ...]
    started: tuple[Mapping[str, Any], ...]
    torn: tuple[int, ...]

    @property
    def unfinished(self) -> tuple[Mapping[str, Any], ...]:
        """Runs that started and have no second line: they were killed, or still run."""
        ended = {record.get("run") for record in self.ended}
        return tuple(record for record in self.started if record.get("run") not in ended)

    def succeeded(self, stage: str) -> list[Mapping[str, Any]]:
        """The runs of a stage that succeeded, the last one first."""
        return [run for run in reversed(self.ended) if run.get("stage") == stage and run.get("exit") == 0]


def read_runs(root: Path, suite: str) -> RunLog:
    """The runs of a suite; none if nothing was recorded."""
    records, torn = read_lines(runs_path(root, suite))
    by_event: dict[str, list[Mapping[str, Any]]] = {"started": [], "ended": []}
    for record in records:
        by_event.setdefault(str(record.get("event")), []).append(record)
    return RunLog(tuple(by_event["ended"]), tuple(by_event["started"]), tuple(torn))


def run_that_wrote(
    root: Path, log: RunLog, stage: str, outs: Iterable[str], *, same_inputs: bool = False
) -> Mapping[str, Any] | None:
    """The last run of a stage that wrote exactly the files that are under `outs` now; None if no recorded run did.

    same_inputs  whether the inputs that are here must be those that the run read, too. An input that is not here
                 says nothing.

    Cost: hashing the outputs, and the inputs of each run that could be the one.
    """
    known: dict[str, str] = {}
    here = {file for out in outs for file in _files_under(root, out)}

    def is_same(files: Mapping[str, Mapping[str, Any]]) -> bool:
        for file, facts in files.items():
            if file not in known:
                known[file] = sha256_of(root / file)
            if known[file] != facts["sha256"]:
                return False
        return True

    for run in log.succeeded(stage):
        outputs = {file: facts for file, facts in run["outputs"].items() if _is_under(file, outs)}
        inputs = {file: facts for file, facts in run["inputs"].items() if same_inputs and (root / file).is_file()}
        if here and outputs.keys() == here and is_same(outputs) and is_same(inputs):
            return run
    return None


def _files_under(root: Path, path: str) -> list[str]:
    place = root / path
    files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
    names = (file.relative_to(root).as_posix() for file in files)
    return [name for name in names if not name.endswith((".tmp", ".gitignore"))]


def _is_under(file: str, outs: Iterable[str]) -> bool:
    return any(file == out or file.startswith(f"{out}/") for out in outs)


# --- one record per stage, for exports ----------------------------------------------------------------


@dataclass(frozen=True)
class StageRun:
    """The run that made a stage's outputs.

    inputs, outputs  path -> hash with its algorithm, "md5:..." or "sha256:..."
    recorded         the record of the run on this machine; {} if there is none, and the times are the commit's
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


def stage_runs(root: Path, graph: Graph) -> list[StageRun]:
    """A record of each stage of a suite, in order: of this machine if it wrote the files here, else of dvc.lock.

    Raises LineageError for a stage that has not run. Cost: hashing the outputs of recorded runs.
    """
    log, when = read_runs(root, graph.suite), _lock_time(root, graph.lockfile)
    found = []
    for name in graph.in_order():
        if name not in graph.locked:
            remedy = f"run `sentfold run --suite {graph.suite}` first"
            raise LineageError(f"stage '{name}' has not run", where=graph.lockfile, remedy=remedy)
        locked = graph.locked[name]
        run = run_that_wrote(root, log, name, tuple(locked.outs))
        found.append(_from_lock(locked, graph.suite, when) if run is None else _from_record(locked, run))
    return found


def _from_record(locked: Locked, run: Mapping[str, Any]) -> StageRun:
    inputs, outputs = (
        {path: f"sha256:{facts['sha256']}" for path, facts in run[section].items()} for section in ("inputs", "outputs")
    )
    began, ended = (datetime.fromisoformat(run[key]) for key in ("started", "ended"))
    identifier = str(uuid.UUID(run["run"]))
    return StageRun(locked.name, identifier, run["command"], inputs, outputs, run["parameters"], began, ended, run)


def _from_lock(locked: Locked, suite: str, when: datetime) -> StageRun:
    inputs, outputs = (_hashes(section) for section in (locked.deps, locked.outs))
    text = f"{suite} {locked.name} {sorted(inputs.items())} {sorted(outputs.items())}"
    identifier = str(uuid.uuid5(uuid.NAMESPACE_URL, text))
    return StageRun(locked.name, identifier, locked.command, inputs, outputs, locked.params, when, when)


def _hashes(entries: Mapping[str, Entry]) -> dict[str, str]:
    return {path: f"md5:{entry.md5}" for path, entry in entries.items()}


def _lock_time(root: Path, lockfile: str) -> datetime:
    """The time of the last commit of dvc.lock; without git, of the last change of the file."""
    committed = (git(root, "log", "-1", "--format=%cI", "--", lockfile) or b"").decode().strip()
    if committed:
        return datetime.fromisoformat(committed)
    place = root / lockfile
    return datetime.fromtimestamp(place.stat().st_mtime, UTC) if place.exists() else datetime.now(UTC)


# --- in words -----------------------------------------------------------------------------------------


def runs_text(log: RunLog, suite: str) -> str:
    """One line per run, the latest last; then the runs that did not end, and lines that cannot be read."""
    if not log.started and not log.ended:
        return f"suite {suite}: no run of a stage is recorded on this machine"
    lines = [_line(run) for run in log.ended]
    lines += [f"{run['started'][:19]}  {_fate(run)}  {run['stage'] or run['command']}" for run in log.unfinished]
    if log.torn:
        lines.append(f"lines that are no record, torn by a kill or edited: {', '.join(map(str, log.torn))}")
    return "\n".join(lines)


def _line(run: Mapping[str, Any]) -> str:
    code = run["code"]
    commit = (code["commit"] or "no git")[:10] + (" edited" if code["dirty"] else "")
    ended = "ok" if run["exit"] == 0 else f"exit {run['exit']}"
    cost = f"{run['seconds']:8.1f} s  {run['peak_memory_bytes'] / MEGA:7.0f} MB"
    return f"{run['started'][:19]}  {cost}  {ended}  {commit}  {run['stage'] or run['command']}"


def _fate(run: Mapping[str, Any]) -> str:
    alive = Path(f"/proc/{run['pid']}").exists()
    return "still runs, or another process has its number" if alive else "was killed"
