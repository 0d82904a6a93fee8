"""DVC's command line, which writes dvc.lock by the entry: `python -m flows.dvc repro ...`.

DVC parses and prints the whole file anew for each stage that ends, and keeps comments while it does: 14 s for the
20,000 lines of 150 stages, more than most of the stages take. Here the entries of the stages that ended are
printed, by DVC's own printer, and put in the place of the old ones; every other line stays as it is. The bytes are
those that DVC would have written, because an entry is printed alike wherever it stands: provided that the other
entries are as DVC prints them. Those that were seen to be so are remembered by their hash; a file with any other
line is left to DVC. One internal of DVC is replaced for this, `Lockfile.dump_stages`, whose version is pinned.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dvc.cli import main
from dvc.dvcfile import Lockfile
from dvc.stage import serialize
from dvc.utils.serialize import dumps_yaml

HEAD = "schema: '2.0'\nstages:\n"
ENTRY = re.compile(r"  (?P<name>[^\s'\"#&*!|>%@`{}\[\]-][^\s'\"#]*):\n(?:    .*\n)+")

# In DVC's folder for temporary files: hashes of the entries of one dvc.lock, all as DVC prints them. May be deleted.
MEMORY = "sentfold-lock-entries"

_dump_stages = Lockfile.dump_stages


def split_entries(text: str) -> dict[str, str] | None:
    """The lines of each stage in a dvc.lock, by its name, in their order; None if it has any other lines."""
    if not text.startswith(HEAD):
        return None
    entries: dict[str, str] = {}
    place = len(HEAD)
    while place < len(text):
        found = ENTRY.match(text, place)
        if not found or found["name"] in entries:
            return None
        entries[found["name"]] = found[0]
        place = found.end()
    return entries


def print_entries(content: Mapping[str, Any]) -> dict[str, str] | None:
    """Entries as DVC prints them; None if that is not what this module takes for the shape of an entry."""
    entries = split_entries(dumps_yaml({"schema": "2.0", "stages": dict(content)}))
    return entries if entries and set(entries) == set(content) else None


def hash_entry(entry: str) -> str:
    """sha256 of an entry's lines."""
    return hashlib.sha256(entry.encode()).hexdigest()


@dataclass(frozen=True)
class EntryMemory:
    """Which entries of one dvc.lock are known to be as DVC prints them, in a file of their hashes."""

    path: Path

    def knows(self, entries: Iterable[str]) -> bool:
        """Whether all of `entries` are known."""
        try:
            known = set(self.path.read_text(encoding="ascii").split())
        except (OSError, ValueError):
            return False
        return all(hash_entry(entry) in known for entry in entries)

    def learn(self, entries: Iterable[str]) -> None:
        """Know these `entries` and no others."""
        self.path.write_text("".join(f"{hash_entry(entry)}\n" for entry in entries), encoding="ascii")


def dump_stages(lockfile: Any, stages: Sequence[Any], **more: Any) -> None:
    """In the place of `Lockfile.dump_stages`: write the entries of `stages` and leave the others."""
    if not stages:
        return
    path, folder = Path(lockfile.path), Path(lockfile.repo.tmp_dir)
    memory = EntryMemory(folder / "-".join((MEMORY, *Path(lockfile.relpath).parts)))
    made: dict[str, Any] = {}
    for stage in stages:
        made.update(serialize.to_lockfile(stage, **more))
    text = _replaced(path, memory, made)
    if text is None:
        _dump_stages(lockfile, stages, **more)
        # What DVC has just printed is as DVC prints it.
        memory.learn((split_entries(path.read_text(encoding="utf-8")) or {}).values())
        return
    # In one step: DVC itself writes in place, and leaves half a file if it is killed.
    draft = folder / f"dvc.lock.{os.getpid()}.tmp"
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    lockfile.repo.scm_context.track_file(lockfile.relpath)


def _replaced(path: Path, memory: EntryMemory, made: Mapping[str, Any]) -> str | None:
    """The text of the file with the entries that were `made`, which are remembered; None if that is left to DVC."""
    try:
        entries = split_entries(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not entries or not memory.knows(entries.values()):
        return None
    printed = print_entries(made)
    if printed is None:
        return None
    entries |= printed
    memory.learn(entries.values())
    return HEAD + "".join(entries.values())


if __name__ == "__main__":
    Lockfile.dump_stages = dump_stages
    sys.exit(main(sys.argv[1:]))
