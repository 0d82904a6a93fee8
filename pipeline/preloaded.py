"""Which of the project's files a process had imported before it knew that it would be a stage."""

from __future__ import annotations

import sys
from pathlib import Path

# Of a file: when it changed, when anything about it changed, which no program can set, its size and its number.
Stamp = tuple[int, int, int, int]

PACKAGES = ("flows", "pipeline")

# Whether this process was forked from one that had imported the libraries.
warm = False

# By path, the files that had been imported, as they were then.
stamps: dict[str, Stamp] = {}


def stamp(path: str) -> Stamp:
    """The stamp of a file as it is; zeros if it is gone."""
    try:
        status = Path(path).stat()
    except OSError:
        return (0, 0, 0, 0)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def stamp_imported() -> dict[str, Stamp]:
    """The stamps of the project's files that this process has imported."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES]
    return {path: stamp(path) for module in modules if (path := getattr(module, "__file__", None))}


def changed_since_imported() -> list[str]:
    """The absolute paths of those files of `stamps` that are others by now."""
    return sorted(str(Path(path).absolute()) for path, known in stamps.items() if stamp(path) != known)
