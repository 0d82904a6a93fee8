"""sha256 of files, each big one read once for as long as it stays as it is."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path

from pipeline.artifacts import sha256_of
from pipeline.lineage.lines import append_line, read_lines

# Smaller ones are hashed faster than they are looked up.
BIG = 1 << 20


class Hashes:
    """Hashes of the files of one checkout.

    A big file's hash is kept under its path, size, inode, and times of change of content and of record. The last
    one (ctime) the kernel sets: an edit that puts the modification time back is still noticed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = root / ".sentfold/sha256.jsonl"

    def of(self, path: str) -> dict[str, dict[str, int | str]]:
        """File -> sha256 and size: of one file, or of every file in a folder; {} if there is nothing."""
        place = self.root / path
        if place.is_file():
            return {path: self._file(path)}
        inside = sorted(file.relative_to(self.root).as_posix() for file in place.rglob("*") if file.is_file())
        return {file: self._file(file) for file in inside if "__pycache__" not in file and not file.endswith(".tmp")}

    def _file(self, path: str) -> dict[str, int | str]:
        place = self.root / path
        facts = place.stat()
        if facts.st_size < BIG:
            return {"sha256": sha256_of(place), "size": facts.st_size}
        key = _key(path, facts)
        if key not in self._known:
            self._known[key] = sha256_of(place)
            append_line(self.store, {"key": key, "sha256": self._known[key]})
        return {"sha256": self._known[key], "size": facts.st_size}

    @cached_property
    def _known(self) -> dict[str, str]:
        records, _ = read_lines(self.store)
        return {str(record.get("key")): str(record.get("sha256")) for record in records}


def _key(path: str, facts: os.stat_result) -> str:
    return json.dumps([path, facts.st_size, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns])
