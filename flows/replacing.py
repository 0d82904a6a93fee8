"""Put a file in another's place in one step, so that a kill or a full disk leaves the old one or the new one."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, fsync, rename; the old file's mode stays. Raises OSError, the old file whole."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(path, draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def drop_drafts(path: Path) -> None:
    """Remove what killed processes have left of files that were to take the place of `path`."""
    for draft in path.parent.glob(f".{path.name}.*.tmp"):
        owner = draft.name.removesuffix(".tmp").rpartition(".")[2]
        if not (owner.isdigit() and Path(f"/proc/{owner}").exists()):
            draft.unlink(missing_ok=True)
