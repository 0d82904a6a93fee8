"""A mount namespace of its own: disks that are full or read-only for some processes, and gone with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# Without root a user namespace is needed too; some systems forbid that.
UNSHARE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--mount")
ENTER = ("--mount",) if os.geteuid() == 0 else ("--user", "--preserve-credentials", "--mount")


@dataclass(frozen=True)
class Namespace:
    """A process that keeps the namespace alive; what it sees lies below `outside`."""

    pid: int

    def outside(self, path: Path) -> Path:
        """The path by which we see what `path` is inside."""
        return Path(f"/proc/{self.pid}/root") / path.relative_to("/")

    def entering(self, folder: Path) -> tuple[str, ...]:
        """A command that runs the command after it inside, in `folder`."""
        shell = ("sh", "-c", 'cd "$0" && exec "$@"', str(folder))
        return ("nsenter", "--target", str(self.pid), *ENTER, *shell)


@cache
def refused() -> str:
    """Why no namespace can be had here, or nothing if it can."""
    if not all(shutil.which(tool) for tool in ("unshare", "nsenter", "mount")):
        return "no unshare, nsenter and mount here"
    words = [*UNSHARE, "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"mounts are forbidden here: {run.stderr.strip()}" if run.returncode else ""


@contextmanager
def mounted(*mounts: str) -> Iterator[Namespace]:
    """A namespace in which these shell commands have run; everything in it ends with the block."""
    script = " && ".join([*mounts, "echo ready", "exec sleep infinity"])
    with subprocess.Popen([*UNSHARE, "sh", "-c", script], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n", script
            yield Namespace(holder.pid)
        finally:
            holder.kill()
