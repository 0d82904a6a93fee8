"""A checkout as bytes: everything that git keeps or would keep, as it lies there now."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from pipeline.errors import RunError


def pack_sources(root: Path) -> bytes:
    """A tar archive of the tracked files of `root`, as edited, and of the untracked ones that git does not ignore.

    So a run on workers sees the very parameters and code that a run here would see, committed or not.
    Raises RunError if git cannot list them.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        raise RunError(
            "git cannot list the files of this checkout",
            where=str(root),
            got=listed.stderr.decode("utf-8", "replace").strip(),
            state="no stage was started",
            remedy="workers are sent what git keeps: run in a clone, or without --runner dask",
        )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name in sorted(set(filter(None, listed.stdout.decode("utf-8", "surrogateescape").split("\0")))):
            path = root / name
            # A tracked file may have been deleted; a folder here is another repository.
            if path.is_symlink() or path.is_file():
                archive.add(path, arcname=name, recursive=False)
    return buffer.getvalue()


def unpack_sources(packed: bytes, root: Path) -> None:
    """Write what `pack_sources` read below `root`, which is created."""
    root.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
        # Python before 3.11.4, Debian 12's among them, has no filters; the archive is our own and needs none.
        if hasattr(tarfile, "data_filter"):
            archive.extractall(root, filter="data")
        else:
            archive.extractall(root)
