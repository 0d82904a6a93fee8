"""The state of a set of files as one string: equal as long as nobody touched any of them."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# What the templates of a dvc.yaml are filled with; it lies beside it.
VARIABLES = ("suite.yaml", "sensitivities.yaml")
# Beside what the stages read: what defines them, and the code that checks and runs them.
SETTINGS = ("params.yaml", "run.yaml", ".dvcignore", ".dvc/config", ".dvc/config.local", "pipeline", "flows")

# What Python compiles decides no result; DVC passes over it by .dvcignore.
PASSED_OVER = "__pycache__"


def footprint(paths: Iterable[str], *, root: Path) -> str:
    """sha256 over name, inode, size and times of every file at or below `paths`; an absent one counts as such.

    Cost: one stat per file, no reading.
    """
    digest = hashlib.sha256(sys.prefix.encode())
    for path in _outermost(paths):
        for line in _stats(str(root / path)):
            digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def definition_paths(dvcfile: Path) -> frozenset[str]:
    """What says which stages a dvc.yaml has and what they are, from the root of the checkout."""
    beside = (dvcfile, dvcfile.with_suffix(".lock"), *map(dvcfile.with_name, VARIABLES))
    return frozenset((*(path.as_posix() for path in beside), *SETTINGS))


def _outermost(paths: Iterable[str]) -> Iterator[str]:
    last = ""
    # With a slash behind each, a folder stands right before what is in it.
    for path in sorted(f"{path}/" for path in paths):
        if not last or not path.startswith(last):
            last = path
            yield path[:-1]


def _stats(path: str) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except NotADirectoryError:
        yield _line(path)
        return
    except OSError as error:
        yield f"{path} {error.errno}"
        return
    yield f"{path} {len(entries)}"
    for entry in entries:
        if entry.is_dir():
            if entry.name != PASSED_OVER:
                yield from _stats(entry.path)
        else:
            yield _line(entry.path)


def _line(path: str) -> str:
    try:
        stat = Path(path).stat()
    except OSError as error:
        return f"{path} {error.errno}"
    return f"{path} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
