"""Where DVC keeps copies of artifacts: its cache, read directly, and whether a remote is configured."""

from __future__ import annotations

import configparser
from functools import cached_property
from pathlib import Path

from pipeline.lineage.digests import Digest, parse_listing


class Storage:
    """DVC's cache of one checkout. Reads only; takes no lock."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def _config(self) -> configparser.ConfigParser:
        config = configparser.ConfigParser(interpolation=None)
        config.read([self.root / ".dvc/config", self.root / ".dvc/config.local"], encoding="utf-8")
        return config

    @cached_property
    def cache(self) -> Path:
        """The folder of the cache."""
        folder = self._config.get("cache", "dir", fallback="cache")
        # DVC resolves a relative folder from the config file's own.
        return self.root / ".dvc" / folder

    @cached_property
    def has_remote(self) -> bool:
        """Whether `dvc pull` has a place to pull from."""
        return self._config.has_option("core", "remote")

    def place(self, md5: str) -> Path:
        """Where an object lies if the cache has it."""
        return self.cache / "files/md5" / md5[:2] / md5[2:]

    def holds(self, md5: str) -> bool:
        """Whether the cache has a file, or a folder with every file in it."""
        if not self.place(md5).is_file():
            return False
        listing = self.listing(md5)
        return listing is None or all(self.place(name).is_file() for name in listing.files.values())

    def listing(self, md5: str) -> Digest | None:
        """The files of a folder's `.dir` object, or None if the cache lacks it or it is not what its name says."""
        if not md5.endswith(".dir"):
            return None
        try:
            digest = parse_listing(self.place(md5).read_bytes())
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return digest if digest.md5 == md5 else None
