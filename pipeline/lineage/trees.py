"""Trees of files: what they are asked, and the one that a commit holds; read and hashed, never written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from pipeline.lineage.digests import Digest, folder_digest, ignore_rules, md5_of_bytes
from pipeline.lineage.errors import LineageError

SYMLINK = "120000"

# Of git's own variables, those that say which settings a machine has are not about one repository.
CONFIG = "GIT_CONFIG"


class Tree(Protocol):
    """Files by POSIX path relative to the root of the checkout."""

    @property
    def name(self) -> str:
        """How messages call it."""

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None if there is none."""

    def digest(self, path: str) -> Digest | None:
        """The digest of a file or folder as DVC computes it, or None if it is not there."""

    def list_files(self, folder: str) -> list[str]:
        """Names of the files that lie directly in a folder, sorted; [] if there is no folder."""


class Revision:
    """The files that a commit holds. Raises LineageError if there is no such commit."""

    def __init__(self, root: Path, revision: str) -> None:
        self.root = root
        commit = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if not commit:
            raise LineageError(
                f"there is no commit '{revision}'",
                where=str(root),
                expected="a commit, branch or tag of this repository",
                got=revision,
                remedy="`git log --oneline` lists commits; a shallow clone gets the others by `git fetch --unshallow`",
            )
        self.revision = revision
        self.commit = commit.decode().strip()
        self._contents: dict[str, bytes] = {}

    @property
    def name(self) -> str:
        """How messages call it."""
        short = self.commit[:10]
        return f"git's {self.revision}" if self.revision.startswith(short) else f"git's {self.revision} ({short})"

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, symlinks followed; None if the commit has none."""
        place = self._resolve(path)
        if place is None:
            return None
        self._load([place])
        return self._contents[place]

    def digest(self, path: str) -> Digest | None:
        """The digest of a file or folder; None if the commit has none."""
        content = self.read(path)
        if content is not None:
            return Digest(md5_of_bytes(content))
        rules = ignore_rules(self.read(".dvcignore"))
        inside = [name for name in self._entries if name.startswith(f"{path}/") and not rules.match_file(name)]
        if not inside:
            return None
        self._load(inside)
        return folder_digest({name[len(path) + 1 :]: md5_of_bytes(self._contents[name]) for name in inside})

    def list_files(self, folder: str) -> list[str]:
        """Names of the files that lie directly in a folder, sorted."""
        inside = (name[len(folder) + 1 :] for name in self._entries if name.startswith(f"{folder}/"))
        return sorted(name for name in inside if "/" not in name)

    def all_files(self) -> list[str]:
        """Every file of the commit."""
        return list(self._entries)

    @cached_property
    def _entries(self) -> dict[str, tuple[str, str]]:
        # path -> (mode, object)
        listing = git(self.root, "ls-tree", "-r", "-z", "--full-tree", self.commit) or b""
        entries = {}
        for line in listing.decode("utf-8", "surrogateescape").split("\0"):
            facts, _, path = line.partition("\t")
            if path:
                mode, kind, name = facts.split()
                if kind == "blob":
                    entries[path] = (mode, name)
        return entries

    def _resolve(self, path: str) -> str | None:
        for _ in range(8):
            if path not in self._entries:
                return None
            if self._entries[path][0] != SYMLINK:
                return path
            self._load([path])
            target = PurePosixPath(path).parent / self._contents[path].decode("utf-8", "surrogateescape")
            path = os.path.normpath(target)
        return None

    def _load(self, paths: Iterable[str]) -> None:
        wanted = [path for path in paths if path not in self._contents]
        if not wanted:
            return
        names = "".join(f"{self._entries[path][1]}\n" for path in wanted)
        stream = git(self.root, "cat-file", "--batch", stdin=names.encode()) or b""
        for path in wanted:
            header, _, stream = stream.partition(b"\n")
            facts = header.split()
            # "<object> missing", or nothing at all where git itself fails.
            if len(facts) != 3 or facts[1] != b"blob":
                raise self._lacking(path)
            size = int(facts[2])
            self._contents[path] = stream[:size]
            stream = stream[size + 1 :]

    def _lacking(self, path: str) -> LineageError:
        return LineageError(
            "git lacks a file of a commit",
            where=f"{path} of {self.name}",
            expected=f"the object {self._entries[path][1]}",
            got="`git cat-file` does not find it",
            remedy="`git fsck` names what is lost; `git fetch --refetch` gets it again from a remote",
        )


def git(root: Path, *arguments: str, stdin: bytes | None = None) -> bytes | None:
    """What git prints, or None where it fails or is not there. Takes no lock, so a read-only checkout will do."""
    # A hook's GIT_DIR would point at another repository, and a replacement shows other bytes under an object's name.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or key.startswith(CONFIG)}
    environment = {**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, input=stdin, env=environment, capture_output=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def head_of(root: Path) -> Revision | None:
    """The commit that is checked out, or None where there is no git."""
    try:
        return Revision(root, "HEAD")
    except LineageError:
        return None
