"""Commands that need a checkout: each is executed in the checkout's folder by the package that owns the command.

Nothing of these packages is imported: the library can be installed without them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from importlib.machinery import all_suffixes
from itertools import product
from pathlib import Path

from sentfold.errors import RunError

# What `python -m` imports from the working folder before the project's own code keeps the folder out, unless an
# environment has imported it already, as that of `make install` has.
STARTERS = (
    "collections", "contextlib", "functools", "importlib", "keyword", "operator", "reprlib", "types", "warnings",
)  # fmt: skip
FOLDER_VARIABLE = "SENTFOLD_FOLDER"  # where the user ran `sentfold`, seen from the root of the checkout

# Command -> the package that has it, and its line in `sentfold --help`.
CHECKOUT_COMMANDS = {
    "run": ("flows", "Bring a suite up to date, independent stages in parallel, and print its table."),
    "new-suite": ("pipeline", "Write a suite from a file of your own pairs or labels."),
    "deploy": ("flows", "Register the deployments of prefect.yaml at a Prefect server."),
    "show": ("pipeline", "Print the table of a suite."),
    "check": ("pipeline", "Check params.yaml, a suite and the catalogue of corpora; run nothing."),
    "plan": ("pipeline", "Write plan.yaml: everything that follows from a suite's corpora and spaces."),
    "claims": ("pipeline", "Print the verdict on each claim of a paper."),
    "catalogue": ("pipeline", "List the corpora: task, size, terms, sources."),
    "audit": ("pipeline", "Verify every reported number."),
    "trace": ("pipeline", "Trace one reported number back to its corpus, model, parameters and code."),
    "diff": ("pipeline", "Compare the reported numbers of two commits."),
    "crate": ("pipeline", "Write a report with the runs behind it as an RO-Crate."),
    "pin-encoder": ("pipeline", "Print the lines that pin an encoder in params.yaml."),
    "fetch-vectors": ("pipeline", "Download published word vectors."),
}


def run_in_checkout(words: list[str], folder: Path) -> None:
    """Replace this process by a command of the checkout that holds `folder`. The command runs in the checkout's root.

    words  the command and its options. Paths in them begin at `folder`, which the command reads from FOLDER_VARIABLE.
    Raises RunError if the folder is in no checkout, in a checkout inside another one, or below another user's checkout.
    """
    root = find_checkout(folder)
    if root is None:
        raise RunError(
            f"`sentfold {words[0]}` needs a checkout of the project",
            where=str(folder),
            expected="a folder with dvc.yaml and pipeline/, or a folder inside of one",
            state="nothing was run",
            remedy="clone the project and run the command there",
        )
    outer = find_checkout(root.parent)
    # Another user's is no reason not to work in one's own.
    if outer and _owners(outer) <= {os.getuid(), 0} and not _is_worktree(root, outer):
        raise RunError(
            "this checkout is inside another checkout, so it is unclear whose code should run",
            where=str(root),
            expected=f"no other dvc.yaml and pipeline/__main__.py below {outer}; unpacked data can contain such files",
            state="nothing was run",
            remedy=f"work in {outer}; if the inner checkout is yours, move it out",
        )
    refuse_others_code(root, folder)
    refuse_stand_ins(root)
    os.environ.pop("PYTHONSAFEPATH", None)  # pipeline/__init__.py keeps other modules of the folder out
    os.environ[FOLDER_VARIABLE] = os.path.relpath(folder, root)
    os.chdir(root)
    package, _ = CHECKOUT_COMMANDS[words[0]]
    os.execv(sys.executable, [sys.executable, "-m", package, *words])


def program_name(package: str) -> str:
    """What the user typed before the command: the name that the package's help and its errors of usage print."""
    return "sentfold" if FOLDER_VARIABLE in os.environ else f"python -m {package}"


def find_checkout(folder: Path) -> Path | None:
    """The nearest folder, from `folder` upwards, that is a checkout; None if there is none."""
    for place in (folder, *folder.parents):
        if (place / "dvc.yaml").is_file() and (place / "pipeline" / "__main__.py").is_file():
            return place
    return None


def _is_worktree(root: Path, outer: Path) -> bool:
    """Whether the repository of `outer` has a worktree at `root`; its own list says so, which no unpacked data can."""
    words = ["git", "-C", str(outer), "worktree", "list", "--porcelain"]  # -z is new in git 2.36
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # a hook has GIT_DIR
    with suppress(OSError):
        listed = subprocess.run(words, env=plain, capture_output=True, check=False).stdout.split(b"\n")
        return f"worktree {root.resolve()}".encode() in listed
    return False


def _owners(root: Path) -> set[int]:
    """The accounts that own a checkout and the files that make it one."""
    places = (root, root / "dvc.yaml", root / "pipeline", root / "pipeline" / "__main__.py")
    return {place.stat().st_uid for place in places}


def refuse_others_code(root: Path, folder: Path) -> None:
    """Raise RunError for a checkout above `folder` that another user wrote, who could lay one into /tmp or /home.

    In the root of a checkout its code is what the user asks for, if one user owns all of it. git's safe.directory has
    the same reason (CVE-2022-24765).
    """
    owners = _owners(root)
    if not owners <= {os.getuid(), 0} and (root != folder or len(owners) > 1):
        raise RunError(
            "the checkout here belongs to another user, whose code would run with your rights",
            where=str(root),
            expected="a checkout of your own",
            state="nothing was run",
            remedy="if you trust its code, run the command in that folder itself",
        )


def refuse_stand_ins(root: Path) -> None:
    """Raise RunError for a module in a checkout, such as a folder of unpacked data, that Python would start with."""
    for name, suffix in product(STARTERS, all_suffixes()):
        for path in (root / name / f"__init__{suffix}", root / f"{name}{suffix}"):
            if path.exists():
                raise RunError(
                    "a file of the checkout has the name of a module that Python starts with, so its code would run",
                    where=str(path),
                    state="nothing was run",
                    remedy="rename it, or move it out of the checkout; unpack data into a folder of its own",
                )
