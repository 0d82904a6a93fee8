"""What a stranger's suite may not bring along: links, pipes, files of holes, and a dvc.lock that leads elsewhere.

DVC follows all of these unasked.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pipeline import OWN
from pipeline.base.params import read_yaml
from pipeline.base.suite import FIRST, suite_file, suite_folder
from pipeline.corpora.catalogue import own_catalogue
from sentfold.data.tables import refuse_holes
from sentfold.errors import SuiteError, first_line

DVC_FILE = "dvc.yaml"
SHARED_STAGES = Path("../..") / DVC_FILE  # as the link in a suite's folder has it
WRITTEN = (".dvc", ".sentfold", "data")
SETTINGS = (".dvc/config", ".dvc/.gitignore", "data/README.md")
# A checkout of another account is listed, too, as of the host's account in a container; listing runs nothing.
LIST_FILES = ("git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "ls-files", "-z")
NEWLINE = b"\n"
# What git writes around the two sides of a conflict. DVC indents all but its two headings.
CONFLICT = re.compile(rb"^(<{7}|\|{7}|={7}|>{7})( |\r?$)", re.MULTILINE)
SHARED = (*OWN, "reports/benchmarks")  # what stages of every suite read, and packages that a suite can name


def refuse_odd_suite(suite: str, root: Path = Path()) -> None:
    """Raise SuiteError for a link or a pipe in the folders of suites, and DataError for a file of holes.

    Reading a pipe or a device can last for ever, DVC hashes all that a link names, and a run that writes behind a link
    replaces files of the user's. dvc.yaml is a link, and outputs of DVC may be links to files in its cache.
    Raises SuiteError, too, as refuse_odd_settings does.
    """
    refuse_odd_settings(root)
    for name in ("suites", "reports"):
        if (root / name).is_symlink():
            raise _odd_file(root / name, f"a link to {(root / name).readlink()}")
    for name in SHARED:
        refuse_odd_files(root / name)
    refuse_odd_files(root / "suites")
    if os.path.lexists(root / "suites" / FIRST):
        raise SuiteError(
            f"the suite '{FIRST}' has its files in the root of the checkout", where=f"suites/{FIRST}",
            expected="no such folder", remedy="remove or rename the folder",
        )  # fmt: skip
    refuse_odd_files(root / "reports" / suite)
    refuse_odd_files(root / "data" / suite)


def refuse_odd_files(folder: Path) -> None:
    """As refuse_odd_suite, for one folder and all in it."""
    inside = (Path(place, name) for place, folders, files in os.walk(folder) for name in (*folders, *files))
    for path in (folder, *inside):
        if path.is_symlink() and not (_is_shared(path) or _is_cached(path) or _is_editors(path)):
            raise _odd_file(path, f"a link to {path.readlink()}")
        if path.is_file():
            refuse_holes(path)
        elif path.exists() and not path.is_dir():
            raise _odd_file(path, "a pipe, a socket, a device, or a link to one")


def _is_shared(path: Path) -> bool:
    """Whether a link is the one from a suite to the stages of all suites, and leads nowhere else, now or later."""
    return path.name == DVC_FILE and path.readlink() == SHARED_STAGES


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
        expected=f"files and folders; of links only {DVC_FILE} to {SHARED_STAGES}",
        got=got,
        remedy="put the file or folder itself there, or remove it",
    )


def refuse_odd_lock(suite: str, root: Path = Path()) -> None:
    """Raise LineageError for a dvc.lock of a suite with other entries than those that DVC writes here.

    Raises SuiteError if it holds a merge conflict.
    """
    from pipeline.lineage import stages
    from pipeline.lineage.trees import WorkingTree

    tree, lock = WorkingTree(root), suite_file(suite).with_name("dvc.lock")
    refuse_conflict(lock, tree.read(str(lock)) or b"")
    stages.read_locked(str(lock), stages.read_yaml(tree, str(lock), of_dvc=True) or {})


def refuse_other_places(suite: str) -> None:
    """Raise SuiteError for a data set of a suite's own catalogue that is read from another place than its own folder.

    DVC asks any address that it is told to read, with the user's keys, and a package or a device is read unasked.
    """
    from pipeline.lineage.checks import places_elsewhere

    own = own_catalogue(suite)
    for name, found in places_elsewhere(read_yaml(own) if own.exists() else {}, PurePosixPath(suite_folder(suite))):
        raise SuiteError(
            "a data set of a suite's own is not in the folder of the suite",
            where=f"{own}: {name}",
            expected=f"folder: {suite_folder(suite) / name}, with a CSV file for each split",
            got=found,
            remedy="make the suite from a file by `sentfold new-suite`; public data are in pipeline/catalogue.yaml",
        )


def refuse_conflict(lock: Path, content: bytes) -> None:
    """Raise SuiteError for a dvc.lock in which git left both sides of a merge."""
    if found := CONFLICT.search(content):
        name = shlex.quote(str(lock))
        raise SuiteError(
            f"{lock} holds a merge conflict",
            where=f"{lock}, line {content.count(NEWLINE, 0, found.start()) + 1}",
            expected="a dvc.lock as DVC writes it",
            got="the lines that git puts around the two sides of a conflict",
            state="the file was left as it is",
            remedy=f"resolve the conflict, or take one side: git checkout --ours {name}, or "
            f"git checkout --theirs {name}; then run the command again",
        )


def _is_written(root: Path, top: str) -> bool:
    """Whether DVC and runs write into this folder of a checkout, which a disk without case may call .DVC or Data."""
    from pipeline.lineage.trees import folded

    if top in WRITTEN:
        return True
    with suppress(OSError):  # no such folder on the disk
        return folded(top) in WRITTEN and (root / top).samefile(root / folded(top))
    return False


def refuse_odd_settings(root: Path) -> None:
    """Raise SuiteError if git tracks more of .dvc, .sentfold and data than settings and a README.

    DVC and a run read and write files there, also through links: a commit could have them write and empty any file. A
    link `data` of the user's own, to another disk, is not tracked.
    """
    from pipeline.lineage.trees import git_environment

    try:
        done = subprocess.run(LIST_FILES, cwd=root, env=git_environment(), capture_output=True, check=True)
        names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError) as error:
        if not os.path.lexists(root / ".git"):
            return
        said = error.stderr.decode(errors="replace") if isinstance(error, subprocess.CalledProcessError) else ""
        raise SuiteError(
            "git does not say which files it tracks", where=str(root), state="nothing was run",
            got=first_line(ValueError(said.strip() or str(error))), remedy="install git, or do what git says",
        ) from None  # fmt: skip
    written = {top for top in {name.partition("/")[0] for name in names} if _is_written(root, top)}
    odd = [name for name in names if name.partition("/")[0] in written and name not in SETTINGS]
    odd = [name for name in odd if not name.startswith(".dvc/plots/")]
    if odd:
        raise SuiteError(
            "git tracks files that DVC and runs write", where=odd[0], got=f"{len(odd):,} files",
            state="nothing was run", expected="of .dvc, .sentfold and data the settings and data/README.md",
            remedy=f"do not use a commit that brings them; take your own out of git: "
            f"git rm --cached {shlex.quote(odd[0])}",
        )  # fmt: skip
