"""The record of runs on this machine: what ran when, on what code, with what, and what it wrote.

One file of JSON lines per suite, .sentfold/runs/<suite>.jsonl, outside of what DVC hashes and git tracks. Several
processes append to it, and it survives a killed writer.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.lineage.hashes import PASSED_OVER
from pipeline.lineage.stages import Locked, is_inside
from sentfold.errors import ArtifactError, first_line
from sentfold.files import require_regular, sha256_of


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record in one write, so that lines of parallel writers never mix. Raises OSError.

    Where a killed writer left half a line, the record starts a new one. A symbolic link is not followed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, ensure_ascii=False, sort_keys=False).encode() + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            line = b"\n" + line
        written = os.write(handle, line)
    finally:
        os.close(handle)
    if written != len(line):
        raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes could be written")


def read_lines(path: Path, begin: int = 0) -> tuple[list[dict[str, Any]], list[int]]:
    """Every whole record from a byte on, and the numbers of the lines that are none: torn by a kill, or edited.

    Raises ArtifactError for a folder, a pipe or a device in its place.
    """
    try:
        require_regular(path)
        with path.open("rb") as stream:
            stream.seek(begin)
            content = stream.read()
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise ArtifactError(
            "the record of runs cannot be read",
            where=str(path),
            expected="a regular file",
            got=error.strerror or first_line(error),
            remedy="remove it: it is a record of this machine alone, and runs begin a new one",
        ) from None
    records, torn = [], []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            records.append(record)
        else:
            torn.append(number)
    return records, torn


def runs_path(root: Path, suite: str) -> Path:
    """The file of a suite's runs."""
    return root / ".sentfold" / "runs" / f"{suite}.jsonl"


# What the last line of a run must hold to be believed; `recorder.end_run` writes it.
NEEDED = (
    "run", "stage", "command", "started", "ended", "seconds", "exit", "peak_memory_bytes",
    "code", "machine", "packages", "parameters", "outputs",
)  # fmt: skip


def ended_runs(root: Path, suite: str) -> list[dict[str, Any]]:
    """The record of every run that ended, with or without success, in the order of their ends.

    A record that lacks a part, or has something else in its place, is left out.
    """
    records, _ = read_lines(runs_path(root, suite))
    return [record for record in records if record.get("event") == "ended" and _is_whole(record)]


def _is_whole(record: Mapping[str, Any]) -> bool:
    blocks = [record.get(key) for key in ("code", "machine", "packages", "parameters", "outputs")]
    return (
        all(key in record for key in NEEDED)
        and all(isinstance(block, dict) for block in blocks)
        and {"commit", "dirty"} <= set(record["code"])
        and "host" in record["machine"]
        and isinstance(record["stage"], str | None)
        and isinstance(record["code"]["commit"], str | None)
        and isinstance(edited := record["code"].get("edited", {}), dict)
        and all(isinstance(content, str) for content in edited.values())
        and all(isinstance(facts, dict) and "sha256" in facts for facts in record["outputs"].values())
    )


class RunFinder:
    """Finds the recorded runs that wrote what dvc.lock records of a stage and what is here. Hashes each file once."""

    def __init__(self, root: Path, suite: str) -> None:
        self.root = root
        self.ended = ended_runs(root, suite)
        self.known: dict[str, list[Mapping[str, Any]]] = {}  # stage -> its runs, as far as they were asked for
        self._sha256: dict[str, str] = {}

    def run_of(self, locked: Locked) -> Mapping[str, Any] | None:
        """The last of runs_of; None if none is recorded."""
        return next(iter(self.runs_of(locked)), None)

    def runs_of(self, locked: Locked) -> list[Mapping[str, Any]]:
        """The runs with these parameters whose outputs are the files that are here, the last one first.

        Cost: hashing the stage's outputs, if a run of the stage is recorded.
        """
        return [run for run in self.writers_of(locked) if not self.other_parameters(run, locked)]

    def writers_of(self, locked: Locked) -> list[Mapping[str, Any]]:
        """As runs_of, with any parameters."""
        if locked.name not in self.known:
            here = {file for out in locked.outs for file in files_under(self.root, out)}
            runs = [run for run in reversed(self.ended) if run["stage"] == locked.name and run["exit"] == 0]
            self.known[locked.name] = [
                run for run in runs if here and run["outputs"].keys() == here and self._wrote(run)
            ]
        return self.known[locked.name]

    def other_parameters(self, run: Mapping[str, Any], locked: Locked) -> list[str]:
        """The files of parameters that a run had otherwise than dvc.lock has them."""
        return sorted(
            file
            for file in {*run["parameters"], *locked.params}
            if _as_json(run["parameters"].get(file)) != _as_json(locked.params.get(file))
        )

    def _wrote(self, run: Mapping[str, Any]) -> bool:
        return all(self.sha256(file) == facts["sha256"] for file, facts in run["outputs"].items())

    def sha256(self, file: str) -> str:
        """The sha256 of a file that is here."""
        if file not in self._sha256:
            self._sha256[file] = sha256_of(self.root / file)
        return self._sha256[file]


def code_text(code: Mapping[str, Any]) -> str:
    """The commit of a run, and which files were not as in it, in words."""
    edited, commit = sorted(mapping_at(code, "edited")), f"commit {str(code.get('commit'))[:10]}"
    more = f" and {len(edited) - 3} more" if len(edited) > 3 else ""
    return f"{commit} with edits of {', '.join(edited[:3])}{more}" if edited else commit


def files_under(root: Path, path: str) -> list[str]:
    """The files of an output, by their paths from the root; [] if it is not here."""
    place = root / path
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    names = (file.relative_to(root).as_posix() for file in files)
    return [name for name in names if not PASSED_OVER.match_file(name)]


def _as_json(content: Any) -> str:
    return json.dumps(content, sort_keys=True, default=str)


def record_of(path: Path) -> dict[str, Any]:
    """The record in the metadata of a Parquet artifact; {} if the file is none, or is not here."""
    if path.suffix != ".parquet" or not path.is_file():
        return {}
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return parse_object((pq.read_metadata(path).metadata or {}).get(b"sentfold"))
    except (pa.ArrowException, OSError, ArtifactError):
        return {}


def sealed_inputs(path: Path) -> dict[str, str]:
    """Input -> sha256, from the record in an artifact; only files of the checkout: a forged record can name any."""
    return inside_inputs(record_of(path))


def inside_inputs(record: Mapping[str, Any]) -> dict[str, str]:
    """Input -> sha256, as a record has them under `inputs`, without paths that leave the checkout."""
    return {name: str(sha256) for name, sha256 in mapping_at(record, "inputs").items() if is_inside(name)}


def mapping_at(content: Any, *keys: str) -> dict[str, Any]:
    """The mapping under keys of JSON that may be anyone's; {} where there is none."""
    for key in keys:
        content = content.get(key) if isinstance(content, Mapping) else None
    return content if isinstance(content, dict) else {}


def parse_object(content: bytes | None) -> dict[str, Any]:
    """A JSON object; {} if there is none, or something else."""
    try:
        parsed = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
