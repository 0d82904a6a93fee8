"""The DVC cache that a checkout shares with workers, and a mark by which they know that it is the same one."""

from __future__ import annotations

import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from flows.run_stage import dvc_command, stage_environment

# Beside DVC's own folders in the cache. Two caches may well have one path, on two machines.
MARK = "sentfold-cache-id"


@dataclass(frozen=True)
class SharedCache:
    """A folder, by its absolute path, and the mark that lies in it."""

    folder: Path
    mark: str

    def is_seen(self) -> bool:
        """Whether this process sees that very folder."""
        try:
            return (self.folder / MARK).read_text(encoding="utf-8") == self.mark
        except OSError:
            return False


def shared_cache(root: Path) -> SharedCache:
    """The cache of the checkout `root`; it is created, and marked, if it is not yet."""
    found = subprocess.run(
        dvc_command("cache", "dir"), cwd=root, env=stage_environment(), capture_output=True, text=True, check=True
    )
    folder = (root / found.stdout.strip()).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MARK
    if not path.exists():
        path.write_text(str(uuid.uuid4()), encoding="utf-8")
    return SharedCache(folder, path.read_text(encoding="utf-8"))
