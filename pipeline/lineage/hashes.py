"""Hashes of files and folders as DVC computes them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from sentfold.errors import SentfoldError

# DVC never looks into these, whatever .dvcignore says.
ALWAYS_IGNORED = (".hg/", ".git/", ".git", ".dvc/")
# What .dvcignore keeps out of hashes, as compilers, editors, killed writers and DVC leave it in any folder.
EDITORS = (".ipynb_checkpoints/", ".*.sw?", "*~", ".#*", "._*", ".~lock.*#", "~$*", ".DS_Store")
LEFT_BEHIND = ("__pycache__/", *EDITORS, "*.tmp", ".gitignore")
PASSED_OVER = GitIgnoreSpec.from_lines([*ALWAYS_IGNORED, *LEFT_BEHIND])


# In a pattern: the time of a match can grow to this power with the length of a name, and with that of a path.
MOST_STARS, MOST_FOLDERS = 3, 2
MOST_LINES = 200  # of patterns in .dvcignore, each of which is matched with each file
# Letters of paths, once for each pattern that they are matched with; an audit of the largest suite has one million.
MOST_MATCHED = 10_000_000
MOST_STEPS = 10**9  # of all matches, where a pattern has more than one * or **; some seconds


class LineageError(SentfoldError):
    """A number, a commit or a record does not exist or cannot be read."""


@dataclass(frozen=True)
class Digest:
    """A file's md5, or a folder's "<md5>.dir" with the md5 of each file in it by relative path.

    unreadable  the reason for each file that cannot be read, by relative path ("" is the path itself). Then md5 is
                "", which no entry of dvc.lock can be.
    hidden      files and folders that .dvcignore keeps out of the hash, by relative path
    """

    md5: str
    files: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list, compare=False)

    def differing(self, other: Digest) -> list[str]:
        """Files of two folders that are not in both with the same bytes."""
        own, others = {**self.files, **self.unreadable}, {**other.files, **other.unreadable}
        return sorted(name for name in {*own, *others} if own.get(name) != others.get(name))


def md5_of(path: Path) -> str:
    """Hexadecimal md5 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def md5_of_bytes(content: bytes) -> str:
    """Hexadecimal md5 of bytes."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def folder_digest(files: Mapping[str, str], hidden: Iterable[str] = ()) -> Digest:
    """The digest of a folder from the md5 of each file, by POSIX path. DVC hashes the sorted JSON list."""
    listing = json.dumps([{"md5": md5, "relpath": name} for name, md5 in sorted(files.items())], sort_keys=True)
    return Digest(md5_of_bytes(listing.encode()) + ".dir", dict(files), hidden=list(hidden))


def _unusable(line: int, expected: str, got: str) -> LineageError:
    where = ".dvcignore" + (f", line {line}" if line else "")
    return LineageError("a pattern cannot be used", where=where, expected=expected, got=got[:80])


class IgnoreRules:
    """What a .dvcignore keeps out of a folder's hash. content: of the file; None is a file that does not exist.

    Raises LineageError for a pattern that is malformed, or that a name can make slow.
    """

    def __init__(self, content: bytes | None) -> None:
        lines = [] if content is None else content.decode("utf-8", "replace").splitlines()
        patterns = {number: line for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")}
        if len(patterns) > MOST_LINES:
            raise _unusable(0, f"at most {MOST_LINES:,} patterns", f"{len(patterns):,}")
        self._slow: list[tuple[int, int]] = []  # of patterns with more than one star or **, one less than each number
        for number, line in patterns.items():
            # `**` between slashes counts once; elsewhere each star of a row of them is tried by itself.
            folders = len(re.findall(r"(?<![^/])\*\*(?![^/])", line))
            stars = line.count("*") - 2 * folders
            if stars > 1 or folders > 1:
                self._slow.append((max(0, stars - 1), max(0, folders - 1)))
            if stars > MOST_STARS or folders > MOST_FOLDERS:
                expected = f"at most {MOST_STARS} times *, and {MOST_FOLDERS} times **, as more can take hours to match"
                raise _unusable(number, expected, line)
        self._count, self._matched, self._steps = len(patterns), 0, 0
        try:
            self._rules = GitIgnoreSpec.from_lines([*ALWAYS_IGNORED, *lines])
        except ValueError as error:
            raise _unusable(0, "patterns as .gitignore has them", str(error)) from None

    def skips(self, path: str) -> bool:
        """Whether a file, or a folder if the path ends with a slash, is kept out of the hash.

        Raises LineageError where all paths together take too long.
        """
        self._matched += len(path) * self._count
        if self._slow:
            names = path.split("/")
            longest = max(map(len, names))
            self._steps += sum(len(path) * longest**stars * len(names) ** folders for stars, folders in self._slow)
        if self._matched > MOST_MATCHED or self._steps > MOST_STEPS:
            raise _unusable(0, "fewer patterns, or fewer files", f"{self._count} patterns for very many or long paths")
        return self._rules.match_file(path)

    def hides(self, path: str) -> bool:
        """Whether it is kept out, and is none of LEFT_BEHIND."""
        return self.skips(path) and not PASSED_OVER.match_file(path)
