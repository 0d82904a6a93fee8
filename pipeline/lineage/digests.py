"""Hashes of files and folders exactly as DVC computes them, without DVC and its lock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

# DVC never looks into these, whatever .dvcignore says.
ALWAYS_IGNORED = (".hg/", ".git/", ".git", ".dvc/")


@dataclass(frozen=True)
class Digest:
    """A file's md5, or a folder's "<md5>.dir" with the md5 of each file in it by relative path.

    unreadable  what cannot be read of it, by relative path ("" is itself), and why; then md5 is "", as no record's is
    """

    md5: str
    files: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def differing(self, other: Digest) -> list[str]:
        """Files of two folders that are not in both with the same bytes."""
        ours, theirs = {**self.files, **self.unreadable}, {**other.files, **other.unreadable}
        return sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))


def md5_of(path: Path) -> str:
    """Hexadecimal md5 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def md5_of_bytes(content: bytes) -> str:
    """Hexadecimal md5 of bytes."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def folder_digest(files: Mapping[str, str]) -> Digest:
    """The digest of a folder out of its files' md5s by POSIX path: DVC hashes their sorted JSON list."""
    listing = json.dumps([{"md5": md5, "relpath": name} for name, md5 in sorted(files.items())], sort_keys=True)
    return Digest(md5_of_bytes(listing.encode()) + ".dir", dict(files))


def parse_listing(content: bytes) -> Digest:
    """The digest that a `.dir` object of DVC's cache stands for."""
    return folder_digest({entry["relpath"]: entry["md5"] for entry in json.loads(content)})


def ignore_rules(content: bytes | None) -> GitIgnoreSpec:
    """The rules of a .dvcignore file; those of none if there is no such file."""
    lines = [] if content is None else content.decode("utf-8", "replace").splitlines()
    return GitIgnoreSpec.from_lines([*ALWAYS_IGNORED, *lines])
