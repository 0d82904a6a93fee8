"""The entries of a dvc.lock as text: what DVC wrote of a stage in one checkout is put into the dvc.lock of another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from pipeline.base.params import parse_yaml
from sentfold.errors import RunError
from sentfold.files import write_bytes_atomically

HEAD = "schema: '2.0'\nstages:\n"

# DVC indents the name of a stage by two, and all that it writes of the stage by four or more. A name of more than 128
# letters has a line of its own, which begins with `? `; the next line begins with a colon.
ENTRY = re.compile(r"^  (?:\? (?P<long>.+)\n  :.*|(?P<name>[^\s?].*):)\n(?:(?: {4}.*)?\n)+", re.MULTILINE)


def split_entries(lock: Path) -> dict[str, str]:
    """The text of each stage's entry, by the stage's name, in the order of the file. {} if there is no file."""
    text = lock.read_text(encoding="utf-8") if lock.exists() else ""
    return {(match["name"] or match["long"]).strip("'\""): match[0] for match in ENTRY.finditer(text)}


def write_entries(lock: Path, entries: Iterable[str]) -> None:
    """Write a dvc.lock of these entries; without entries there is no such file."""
    text = "".join(entries)
    if text:
        write_bytes_atomically(lock, (HEAD + text).encode())
    else:
        lock.unlink(missing_ok=True)


def read_entry(name: str, text: str) -> dict[str, Any]:
    """What an entry that arrived from another machine records. Raises RunError if it is no entry of that stage."""
    try:
        content = parse_yaml(text.encode(), of_dvc=True)
    except yaml.YAMLError:
        content = None
    match = ENTRY.fullmatch(text)
    if not match or not isinstance(content, dict) or list(content) != [name] or "cmd" not in content[name]:
        raise RunError(
            "a worker returned no entry of dvc.lock",
            where=name,
            expected="the lines that DVC writes of one stage",
            got=text[:200],
            state="the stage is not recorded as made",
        )
    return dict(content[name])


def hash_in(entry: dict[str, Any], path: str) -> str | None:
    """The md5 that an entry records of an output; None if it records none."""
    return next((str(out.get("md5")) for out in entry.get("outs", []) if out["path"] == path), None)
