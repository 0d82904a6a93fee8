"""DVC's command line, which writes dvc.lock by the entry and starts stages warm: `python -m flows.dvc repro ...`.

DVC parses and prints the whole file anew for each stage that ends, and keeps comments while it does: seven seconds for
the 20,000 lines of 150 stages (`python -m benchmarks.lockfile`), more than many of the stages take. Here the entries of
the stages that ended are printed, by DVC's own printer, and put in the place of the old ones; every other line stays as
it is. The bytes are those that DVC would have written, because an entry is printed alike wherever it stands and however
often: provided that the other entries are as DVC prints them. Each is tried once and remembered by its hash; a file
with any other line, such as a user's, is left to DVC.

DVC also parses params.yaml some ten times for each stage, 30 ms each; here a text is parsed once.

Its stages start warm (see warm.py). Three internals of DVC, whose version is pinned, are replaced for all this:
`Lockfile.dump_stages`, `parse_yaml` where files are loaded, and `_run` of a stage's command.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import dvc
import ruamel.yaml
from dvc.cli import main
from dvc.dvcfile import Lockfile
from dvc.exceptions import DvcException
from dvc.stage import serialize
from dvc.utils.serialize import _yaml, dumps_yaml, parse_yaml_for_update

from flows.replacing import replace_file
from flows.warm import warm_stages
from pipeline.leaving import leave

HEAD = "schema: '2.0'\nstages:\n"
ENTRY = re.compile(r"  (?P<name>[^\s'\"#&*!|>%@`{}\[\]-][^\s'\"#]*):\n(?:    .*\n)+")

# What is printed by more than its entry: an object that stands in two places, which is named by its number in the
# file or as a user named it, and a user's remark, which may belong to the line above it.
SHARED = re.compile(r"(?:: |- )[&*]\S|(?:^|\s)#", re.MULTILINE)

# DVC prints a number such as 2.7890840981819507e+20 with another last digit when it prints it again.
EXPONENT = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?e[-+]\d")

# Whose printing the memory vouches for.
PRINTERS = f"dvc {dvc.__version__}, ruamel.yaml {ruamel.yaml.__version__}"

# In DVC's folder for temporary files: hashes of the entries of one dvc.lock, all as DVC prints them. May be deleted.
MEMORY = "sentfold-lock-entries"

_dump_stages = Lockfile.dump_stages
_parse_yaml = _yaml.parse_yaml


def split_entries(text: str) -> dict[str, str] | None:
    """The lines of each stage in a dvc.lock, by its name, in their order; None if it has any other lines."""
    if not text.startswith(HEAD) or SHARED.search(text):
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
    """Entries as DVC prints them, first and ever after; None if it does not, or not in the shape known here."""
    text = dumps_yaml({"schema": "2.0", "stages": dict(content)})
    entries = split_entries(text)
    return entries if entries and set(entries) == set(content) and _stays(text) else None


def _stays(text: str) -> bool:
    """Whether DVC prints a text that it has printed with the same bytes again, once it has read it."""
    # Reading takes as long as printing, and nearly all that is printed stays.
    return (not EXPONENT.search(text) and text.replace("\n", "").isprintable()) or is_as_printed(text)


def is_as_printed(text: str) -> bool:
    """Whether a dvc.lock is what DVC prints once it has read it. Cost: as if DVC wrote it, 40 ms for an entry."""
    try:
        again: str = dumps_yaml(parse_yaml_for_update(text, "dvc.lock"))
    except (DvcException, ruamel.yaml.error.YAMLError):
        return False
    return again == text


def hash_entry(entry: str) -> str:
    """sha256 of an entry's lines, and of what would print them."""
    return hashlib.sha256(f"{PRINTERS} {entry}".encode()).hexdigest()


@dataclass(frozen=True)
class EntryMemory:
    """Which entries of one dvc.lock are known to be as DVC prints them, in a file of their hashes."""

    path: Path

    def unknown(self, entries: Iterable[str]) -> list[str]:
        """Those of `entries` that are not known."""
        try:
            known = set(self.path.read_text(encoding="ascii").split())
        except (OSError, ValueError):
            known = set()
        return [entry for entry in entries if hash_entry(entry) not in known]

    def learn(self, entries: Iterable[str]) -> None:
        """Know these `entries` and no others, or, if the disk refuses, fewer: any part of a memory is true."""
        with suppress(OSError):
            self.path.write_text("".join(f"{hash_entry(entry)}\n" for entry in entries), encoding="ascii")


def dump_stages(lockfile: Any, stages: Sequence[Any], **more: Any) -> None:
    """In the place of `Lockfile.dump_stages`: write the entries of `stages` and leave the others."""
    if not stages:
        return
    path = Path(lockfile.path).resolve()
    memory = EntryMemory(Path(lockfile.repo.tmp_dir) / "-".join((MEMORY, *Path(lockfile.relpath).parts)))
    made: dict[str, Any] = {}
    for stage in stages:
        made.update(serialize.to_lockfile(stage, **more))
    text = _replaced(path, memory, made)
    if text is None:
        _dump_stages(lockfile, stages, **more)
        # What DVC has just printed is as DVC prints it, if it stays so.
        entries = split_entries(path.read_text(encoding="utf-8")) or {}
        memory.learn(entry for entry in entries.values() if _stays(f"{HEAD}{entry}"))
    elif text != path.read_text(encoding="utf-8"):
        # DVC itself writes in place, and leaves half a file if it is killed.
        replace_file(path, text.encode())
        lockfile.repo.scm_context.track_file(lockfile.relpath)


def _replaced(path: Path, memory: EntryMemory, made: Mapping[str, Any]) -> str | None:
    """The text of the file with the entries that were `made`, which are remembered; None if that is left to DVC."""
    try:
        entries = split_entries(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not entries or not all(is_as_printed(f"{HEAD}{entry}") for entry in memory.unknown(entries.values())):
        return None
    printed = print_entries(made)
    if printed is None:
        return None
    entries |= printed
    memory.learn(entries.values())
    return HEAD + "".join(entries.values())


def parse_yaml(text: str, path: Any, typ: str = "safe") -> Any:
    """In the place of `parse_yaml`: what a text says, anew for each caller, who may change it."""
    # Pickled by this very process a moment ago, never read from a file: the quickest copy that shares nothing.
    return pickle.loads(_parsed(text, path)) if typ == "safe" else _parse_yaml(text, path, typ)


@lru_cache(maxsize=16)
def _parsed(text: str, path: Any) -> bytes:
    return pickle.dumps(_parse_yaml(text, path))


if __name__ == "__main__":
    Lockfile.dump_stages = dump_stages
    _yaml.parse_yaml = parse_yaml
    warm = warm_stages(sys.argv[1:])
    code = main(sys.argv[1:]) or 0
    if warm:
        warm.end()
    leave(code)
