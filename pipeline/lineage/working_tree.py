"""The tree of files as they lie on disk: read and hashed, never written."""

from __future__ import annotations

import stat
from functools import cached_property
from pathlib import Path

from pathspec import GitIgnoreSpec

from pipeline.lineage.digests import Digest, folder_digest, ignore_rules, md5_of
from pipeline.lineage.errors import LineageError

# What the system says of a path where there is nothing.
NOTHING_THERE = (FileNotFoundError, NotADirectoryError)


class WorkingTree:
    """The files as they lie on disk. Each is hashed once per object."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, Digest | None] = {}

    @property
    def name(self) -> str:
        """How messages call it."""
        return "this checkout"

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None if there is none. Raises LineageError if what is there cannot be read."""
        try:
            _require_file(self.root / path)
            return (self.root / path).read_bytes()
        except IsADirectoryError:
            return None
        except OSError as error:
            if not _lies_there(self.root / path):
                return None
            raise LineageError(
                "a file cannot be read",
                where=path,
                expected="a regular file",
                got=reason_of(self.root / path, error),
                remedy="remove it, or make it readable; what git tracks comes back by `git checkout -- FILE`",
            ) from None

    def digest(self, path: str) -> Digest | None:
        """The digest of a file or folder; None if nothing is there. Cost: O(bytes), once.

        What is there and cannot be read is named in the digest, which then equals no other.
        """
        if path not in self._known:
            self._known[path] = self._hash(path) if _lies_there(self.root / path) else None
        return self._known[path]

    def list_files(self, folder: str) -> list[str]:
        """Names of the files that lie directly in a folder, sorted."""
        place = self.root / folder
        return sorted(entry.name for entry in place.iterdir() if entry.is_file()) if place.is_dir() else []

    @cached_property
    def _ignored(self) -> GitIgnoreSpec:
        return ignore_rules(self.read(".dvcignore"))

    def _hash(self, path: str) -> Digest:
        place = self.root / path
        if not _is_folder(place):
            return _file_digest(place)
        files: dict[str, str] = {}
        unreadable: dict[str, str] = {}
        self._walk(path, "", (), files, unreadable)
        return Digest("", files, unreadable) if unreadable else folder_digest(files)

    def _walk(
        self,
        top: str,
        inner: str,
        above: tuple[tuple[int, int], ...],
        files: dict[str, str],
        unreadable: dict[str, str],
    ) -> None:
        """Hash what lies in a folder and below, links followed as DVC does. above: the folders we are in."""
        place = self.root / top / inner
        try:
            facts, names = place.stat(), sorted(entry.name for entry in place.iterdir())
        except OSError as error:
            unreadable[inner] = reason_of(place, error)
            return
        here = (facts.st_dev, facts.st_ino)
        if here in above:
            unreadable[inner] = "a link to a folder that it lies in"
            return
        for name in names:
            relative = f"{inner}/{name}" if inner else name
            folder = _is_folder(place / name)
            if self._ignored.match_file(f"{top}/{relative}" + ("/" if folder else "")):
                continue
            if folder:
                self._walk(top, relative, (*above, here), files, unreadable)
                continue
            digest = self._member(f"{top}/{relative}")
            if digest.unreadable:
                unreadable[relative] = digest.unreadable[""]
            else:
                files[relative] = digest.md5

    def _member(self, path: str) -> Digest:
        # A folder and a file in it are both asked for: the file's bytes are hashed for the first alone.
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = _file_digest(self.root / path)
        return found


def reason_of(place: Path, error: OSError) -> str:
    """Why a file cannot be read, in a few words."""
    if place.is_symlink() and isinstance(error, NOTHING_THERE):
        return f"a link to {place.readlink()}, which is not there"
    return (error.strerror or str(error)).lower()


def _lies_there(place: Path) -> bool:
    """Whether there is anything under this name, be it a link to nothing."""
    try:
        place.lstat()
    except NOTHING_THERE:
        return False
    except OSError:
        return True
    return True


def _is_folder(place: Path) -> bool:
    # Path.is_dir raises where a folder above may not be entered; here reading it will say so.
    try:
        return stat.S_ISDIR(place.stat().st_mode)
    except OSError:
        return False


def _file_digest(place: Path) -> Digest:
    try:
        _require_file(place)
        return Digest(md5_of(place))
    except OSError as error:
        return Digest("", unreadable={"": reason_of(place, error)})


def _require_file(place: Path) -> None:
    """Raise OSError unless a regular file is there: to open a pipe is to wait for whoever writes to it."""
    mode = place.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):
        raise OSError(0, "no regular file")
