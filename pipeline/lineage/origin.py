"""What git says of a checkout, for a copy of its files that has no git of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.lineage.trees import git

# Outside of what DVC hashes and git tracks, as the manifest is.
FILE = Path(".sentfold/origin.json")


@dataclass(frozen=True)
class Origin:
    """The commit that is checked out, None without git, and every file that differs from it, new ones included."""

    commit: str | None
    changed: tuple[str, ...]

    def keep(self, root: Path) -> None:
        """Write it into the copy `root`. Raises OSError."""
        path = root / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"commit": self.commit, "changed": self.changed}), encoding="utf-8")


def ask_origin(root: Path) -> Origin:
    """What git says of `root` now."""
    commit = git(root, "rev-parse", "HEAD")
    if commit is None:
        return Origin(None, ())
    said = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all") or b""
    names = (entry[3:] for entry in said.decode("utf-8", "replace").split("\0"))
    return Origin(commit.decode().strip(), tuple(sorted(filter(None, names))))


def kept_origin(root: Path) -> Origin | None:
    """What was written into this copy; None if it is none."""
    try:
        content: dict[str, Any] = json.loads((root / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Origin(content["commit"], tuple(content["changed"]))
