"""What a stranger's suite may not bring along: links, pipes, files of holes, and names of files that lead elsewhere.

DVC follows all of these unasked.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import subprocess
from pathlib import Path, PurePosixPath

import yaml

from pipeline.base.suite import FIRST, suite_folder
from sentfold.data.tables import refuse_holes
from sentfold.errors import SuiteError, first_line
from sentfold.files import require_regular

DVC_FILE = "dvc.yaml"
SETTINGS = (".dvc/config", ".dvc/.gitignore", ".dvc/plots")
SHARED = ("sentfold", "pipeline", "flows", "reports/benchmarks")  # what stages of every suite read
LISTING = re.compile(r"[0-9a-f]{32}\.dir")
LARGEST = 64 << 20  # bytes of a listing: half a million files


def refuse_odd_suite(suite: str, root: Path = Path()) -> None:
    """Raise SuiteError for a link or a pipe in the folders of a suite, and DataError for a file of holes.

    Reading a pipe or a device can last for ever, DVC hashes all that a link names, and a run that writes behind a link
    replaces files of the user's. dvc.yaml is a link, and outputs of DVC may be links to files in its cache.
    Raises SuiteError, too, as refuse_odd_settings does.
    """
    refuse_odd_settings(root)
    for name in SHARED:
        refuse_odd_files(root / name)
    if suite != FIRST:
        refuse_odd_files(root / suite_folder(suite))
    refuse_odd_files(root / "reports" / suite)
    refuse_odd_files(root / "data" / suite)


def refuse_odd_files(folder: Path) -> None:
    """As refuse_odd_suite, for one folder and all in it."""
    inside = (Path(place, name) for place, folders, files in os.walk(folder) for name in (*folders, *files))
    for path in (folder, *inside):
        if path.is_symlink() and path != folder / DVC_FILE and not _is_cached(path) and not _is_editors(path):
            raise _odd_file(path, f"a link to {path.readlink()}")
        if path.is_file():
            refuse_holes(path)
        elif path.exists() and not path.is_dir():
            raise _odd_file(path, "a pipe, a socket, a device, or a link to one")


def _is_cached(path: Path) -> bool:
    """Whether a link leads to a file of DVC's cache, as `cache.type symlink` makes outputs."""
    return path.is_file() and path.resolve().parent.parent.parts[-2:] == ("files", "md5")


def _is_editors(path: Path) -> bool:
    """Whether a link leads nowhere and has the name of those by which Emacs marks a file that it edits."""
    return path.name.startswith(".#") and not path.exists()


def _odd_file(path: Path, got: str) -> SuiteError:
    return SuiteError(
        "a suite has something else than files and folders",
        where=str(path),
        expected="files and folders; links are followed nowhere but at dvc.yaml",
        got=got,
        remedy="put the file or folder itself there, or remove it",
    )


def refuse_odd_listings(root: Path, lock: Path) -> None:
    """Raise SuiteError if a folder that dvc.lock records has a file outside of it, by its listing in DVC's cache.

    A listing names the files of a folder. DVC writes each of them to that name, also to `../../../.bashrc`.
    """
    cache = cache_folder(root)
    for value in sorted(_listings_of(lock)):
        # DVC 2 had no folders files/md5; DVC 3 reads its objects, too.
        for path in [cache / "files/md5" / value[:2] / value[2:], cache / value[:2] / value[2:]]:
            odd = [name for name in (_names_in(path) if path.exists() else []) if not _is_inner(name)]
            if odd or not LISTING.fullmatch(value):
                raise SuiteError(
                    "a folder that dvc.lock records has a file outside of the folder", where=f"{lock}, {value}",
                    expected="an md5 with .dir, and names below the folder", got=repr(odd[0]) if odd else value,
                    state="nothing was run",
                    remedy="do not use this suite: dvc checkout and dvc repro would write that file",
                )  # fmt: skip


def _listings_of(lock: Path) -> set[str]:
    """The values of a dvc.lock that DVC takes for hashes of folders, however they are written. Raises SuiteError."""
    if not lock.is_file():
        return set()
    try:
        events = yaml.parse(lock.read_bytes(), Loader=yaml.CLoader)
        return {event.value for event in events if isinstance(event, yaml.ScalarEvent) and event.value.endswith(".dir")}
    except (yaml.YAMLError, ValueError) as error:
        raise SuiteError(
            "dvc.lock is no YAML", where=str(lock), got=first_line(error), state="nothing was run",
            remedy=f"git checkout -- {lock.name}, in its folder",
        ) from None  # fmt: skip


def refuse_odd_settings(root: Path) -> None:
    """Raise SuiteError if git tracks more of .dvc and .sentfold than settings.

    DVC and a run read and write files there, also through links: a commit could have them write and empty any file.
    """
    try:
        words = ["git", "ls-files", "-z", "--", ".dvc", ".sentfold"]
        tracked = subprocess.run(words, cwd=root, capture_output=True, check=False).stdout.split(b"\0")
    except OSError:  # no git
        return
    odd = [os.fsdecode(name) for name in tracked if name and os.fsdecode(name) not in SETTINGS]
    if odd:
        raise SuiteError(
            "git tracks files that DVC and runs write", where=odd[0], expected="of .dvc and .sentfold the settings "
            "alone", got=f"{len(odd):,} files", state="nothing was run", remedy=f"git rm --cached {odd[0]}, and look "
            "who put it there",
        )  # fmt: skip


def cache_folder(root: Path) -> Path:
    """DVC's cache by the settings of the user and of the checkout, the last of which counts."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    folder = root / ".dvc/cache"
    for file in (home / "dvc/config", root / ".dvc/config", root / ".dvc/config.local"):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue
        if parser.has_option("cache", "dir"):
            folder = file.parent / Path(parser["cache"]["dir"].strip("\"'")).expanduser()
    return folder


def _names_in(path: Path) -> list[object]:
    """The names in a listing; of a file that is none, no name that could be inside of a folder."""
    require_regular(path)
    if path.stat().st_size > LARGEST:
        return [None]
    try:
        return [entry["relpath"] for entry in json.loads(path.read_bytes())]
    except (ValueError, TypeError, KeyError, RecursionError, OSError):
        return [None]


def _is_inner(name: object) -> bool:
    if not isinstance(name, str):
        return False
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name
