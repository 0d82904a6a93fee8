"""What a checkout holds after a fault, judged against an undisturbed run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from pipeline.base.artifacts import read_table
from sentfold.errors import ArtifactError
from sentfold.files import sha256_of

# Relative path -> sha256, of everything that a run of the suite leaves; of dvc.lock, the content itself.
Snapshot = Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """One fault and what came of it.

    fault        its name in the table
    moment       when it struck, for a replay
    orphans      processes that outlived the command
    wrong_reads  artifacts, cache objects or records of dvc.lock that a reader would take for good and that no
                 undisturbed run makes
    completed    whether the next run ended well
    equal        whether every file then had the bytes of the undisturbed run
    """

    fault: str
    moment: str
    orphans: int
    wrong_reads: int
    completed: bool
    equal: bool

    @property
    def sound(self) -> bool:
        """Whether the fault did no harm."""
        return not self.orphans and not self.wrong_reads and self.completed and self.equal

    def as_json(self) -> str:
        """For pytest's report."""
        return json.dumps(asdict(self))


def take_snapshot(root: Path) -> dict[str, str]:
    """Every file of the suite's data and results, hidden and temporary ones too, and the stages of dvc.lock.

    The order of the stages is that in which they first ended.
    """
    paths = [path for folder in ("data", "reports/quick") for path in (root / folder).rglob("*") if path.is_file()]
    files = {str(path.relative_to(root)): sha256_of(path) for path in sorted(paths)}
    lock = root / "dvc.lock"
    if lock.exists():
        files["dvc.lock"] = json.dumps(yaml.safe_load(lock.read_text(encoding="utf-8")), sort_keys=True)
    return files


def wrong_reads(root: Path, *allowed: Path) -> list[str]:
    """What a reader would accept although it holds what stands in none of the `allowed` undisturbed checkouts."""
    paths = sorted((root / "data").rglob("*.parquet")) + sorted((root / "reports/quick").rglob("*.json"))
    names = [path.relative_to(root) for path in paths]
    found = [name for name in names if not _innocent(root / name, [state / name for state in allowed])]
    return [*map(str, found), *_wrong_objects(root / ".dvc/cache/files/md5")]


def wrong_records(root: Path, *allowed: Mapping[str, Any]) -> list[str]:
    """Outputs in dvc.lock under a hash that none of the `allowed` locks gives them; none if it is no YAML."""
    try:
        found = _records(yaml.safe_load((root / "dvc.lock").read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError):
        return []
    right = set().union(*(_records(lock) for lock in allowed))
    return [f"dvc.lock: {stage}: {path}" for stage, path, digest in sorted(found - right)]


def _records(lock: Any) -> set[tuple[str, str, str]]:
    """Stage, output and whole hash, of every output of a lock that may be cut short anywhere."""
    stages = lock.get("stages") if isinstance(lock, dict) else None
    return {
        (name, str(out.get("path")), out["md5"])
        for name, stage in (stages or {}).items()
        for out in (isinstance(stage, dict) and stage.get("outs")) or []
        if isinstance(out, dict) and len(str(out.get("md5")).removesuffix(".dir")) == 32
    }


def _innocent(path: Path, allowed: list[Path]) -> bool:
    """Whether a file has the bytes or the rows of an allowed one, or is refused by those who read it."""
    known = [state for state in allowed if state.exists()]
    if sha256_of(path) in map(sha256_of, known):
        return True
    content = _read(path)
    # A flipped bit in a place that means nothing, such as a page's size before compression, changes no row.
    return content is None or content in map(_read, known)


def _read(path: Path) -> Any:
    """The rows or the JSON of a file; None if it is refused."""
    try:
        return json.loads(path.read_bytes()) if path.suffix == ".json" else read_table(path, kind=_kind_of(path))
    except (ArtifactError, ValueError):
        return None


def _kind_of(path: Path) -> str:
    """The kind that the file claims, so that a wrong kind is not what saves us."""
    try:
        return str(json.loads(pq.read_metadata(path).metadata[b"sentfold"])["kind"])
    except Exception:  # noqa: BLE001  (a damaged file may fail in any way; it then has no kind)
        return "vectors"


def _wrong_objects(cache: Path) -> list[str]:
    """Objects of DVC's cache under the name of other bytes: DVC believes the names."""
    objects = [path for path in cache.glob("??/*") if len(path.name.removesuffix(".dir")) == 30]
    return [
        f"cache {path.parent.name}{path.name}"
        for path in objects
        if hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        != path.parent.name + path.name.removesuffix(".dir")
    ]
