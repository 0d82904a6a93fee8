"""What a run had: the machine, its packages, and the commit of its code. The record of runs stays on this machine."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import resource
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline import SourceLoader
from pipeline.lineage.hashes import PASSED_OVER, LineageError
from pipeline.lineage.stages import Stage, related
from pipeline.lineage.trees import git
from sentfold.numeric_profile import profile_name

DATA_FOLDERS = ("data/", "reports/")  # dependencies under these are no code
DISTRIBUTION = re.compile(r"(.+?)-(\d[^-]*)(?:-py[\d.]+)?\.(?:dist|egg)-info")
# lines of a RECORD that differ between two environments of the same packages: commands, which name their environment's
# Python; notes of who installed the package and how; compiled files, which have no hash
OF_AN_ENVIRONMENT = re.compile(rb"\.\./|[^/]+\.dist-info/(INSTALLER|REQUESTED|direct_url\.json),|.*,,$")
LAYERS = ("sentfold", "pipeline", "flows")  # the packages that a checkout's stages import


def describe_machine() -> dict[str, Any]:
    """Host, container, system, processor and Python, and the numeric profile, which decides the bytes of a result."""
    return {
        "host": socket.gethostname(),
        "container": _container(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _processor(),
        "profile": profile_name(),
        "python": platform.python_version(),
    }


def describe_packages() -> dict[str, str]:
    """Every installed distribution and its version, by the names of their folders: opening each takes longer.

    Of several copies of one, that of the folder that Python looks into first.
    """
    found: dict[str, str] = {}
    for record in _distributions():
        if named := DISTRIBUTION.fullmatch(record.name):
            found.setdefault(normal_name(named[1]), named[2])
    return dict(sorted(found.items()))


def hash_packages() -> str:
    """sha256 over the files of every installed distribution but our own, by the hashes that each RECORD lists.

    Two environments of the same packages have the same, wherever they lie and whether pip or uv made them.
    """
    found = hashlib.sha256()
    for folder in _distributions():
        record = folder / "RECORD"
        if not folder.name.startswith("sentfold-") and record.is_file():
            lines = record.read_bytes().splitlines()
            kept = sorted(line for line in lines if not OF_AN_ENVIRONMENT.match(line))
            found.update(b"\n".join([os.fsencode(folder.name), *kept, b""]))
    return found.hexdigest()


def normal_name(name: str) -> str:
    """The name of a distribution as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_in(requirements: str) -> dict[str, str]:
    """The versions that a file such as requirements.lock pins, by the names of the distributions."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;+]+)", requirements, re.MULTILINE)
    return {normal_name(name): version for name, version in found}


def differing_packages(pins: Mapping[str, str], packages: Mapping[str, str]) -> dict[str, str]:
    """The installed versions that are not the pinned ones: "none" for a distribution that is not installed.

    A local version, as in 2.13.0+cpu, is a build of the pinned one.
    """
    have = {normal_name(name): str(version) for name, version in packages.items()}
    return {name: have.get(name, "none") for name, pin in pins.items() if have.get(name, "").split("+")[0] != pin}


def describe_differences(pins: Mapping[str, str], packages: Mapping[str, str]) -> list[str]:
    """The packages of differing_packages, each in words."""
    return [f"{name} {version}, pinned {pins[name]}" for name, version in differing_packages(pins, packages).items()]


def _distributions() -> list[Path]:
    folders = dict.fromkeys(Path(entry) for entry in sys.path if Path(entry).is_dir())
    return [record for folder in folders for record in sorted(folder.glob("*-info"))]


def peak_memory() -> int:
    """The largest memory of this process or one of its children, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _container() -> str | None:
    """The image of the container that this process is in, as whoever started it named it; None outside of one."""
    named = os.environ.get("SENTFOLD_CONTAINER") or os.environ.get("APPTAINER_CONTAINER")
    marks = (Path("/.dockerenv"), Path("/run/.containerenv"))
    return named or ("not named" if any(mark.exists() for mark in marks) else None)


# --- the code -------------------------------------------------------------------------------------


def describe_code(root: Path, stage: Stage | None) -> dict[str, Any]:
    """The commit that is checked out, and what of the code differs from it.

    dirty   code, and other files that decide the stage's result
    edited  these but for settings -> the name that git gives to the content, "" of a file that is gone

    Contents are compared: git can be told not to look at a file (`git update-index --skip-worktree`).
    Raises LineageError where git does not hash files.
    """
    commit = git(root, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "dirty": None}
    deciding = {"dvc.yaml", "pipeline/__main__.py", "params.yaml"}
    if stage is not None:
        deciding |= {*stage.params, *(dep for dep in stage.deps if not dep.startswith(DATA_FOLDERS))}
    listing = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".")
    above = _prefix(root)
    status = [f"{entry[:3]}{entry[3:].removeprefix(above)}" for entry in _names(listing)]
    status = [entry for entry in status if not PASSED_OVER.match_file(entry[3:])]  # an open folder is no edit
    declared = {entry[3:] for entry in status if any(related(entry[3:], path) for path in deciding)}
    inner = tuple(f"{layer}/" for layer in LAYERS)
    # No stage can import a new file outside of the layers.
    code = {e[3:] for e in status if is_code(e[3:]) and (e[:2] != "??" or e[3:].startswith(inner) or e[3:] in declared)}
    settings = {"dvc.yaml", "params.yaml", *(stage.params if stage is not None else ())}  # recorded by their values
    # What is missing and not in the status is left out of a sparse checkout.
    recorded = {
        name: content
        for name, content in _objects(root).items()
        if (is_code(name) or any(related(name, path) for path in deciding - settings)) and (root / name).is_file()
    }
    code |= {name for name, content in git_names(root, recorded).items() if content != recorded[name]}
    contents, dirty = git_names(root, code | (declared - settings)), sorted(declared | code)
    return {"commit": commit.decode().strip(), "dirty": dirty, "edited": contents}


def keep_loaded(root: Path, code: Mapping[str, Any]) -> dict[str, Any]:
    """What describe_code found when a stage began, where `edited` has the code that can have a part in its result.

    This is code that the process has loaded, and flows/, which may have started the process. Data that the stage
    declares stay. Git need not name new files: .gitignore can hide them, and so can a repository in a folder.
    """
    if "edited" not in code:
        return dict(code)
    place = os.path.realpath(root)
    files = (*SourceLoader.loaded, *_modules_in(place))
    ran = {os.path.relpath(file, place) for file in files if file.startswith(f"{place}/")}
    edited = {
        name: found
        for name, found in code["edited"].items()
        if name in ran or name.startswith("flows/") or not is_code(name)
    }
    new = ran - {*_names(git(root, "ls-files", "-z"))} - edited.keys()
    return {**code, "edited": dict(sorted({**edited, **git_names(root, new)}.items()))}


def is_code(path: str) -> bool:
    """Whether a file in git is code that may run in a stage: Python, also compiled, outside of tests and benchmarks."""
    elsewhere = (*DATA_FOLDERS, "tests/", "benchmarks/", "docs/", "flows/examples/")
    hidden = "/." in f"/{path}"  # such as the copies of JupyterLab: the name of a package has no dot
    return path.endswith((".py", ".so", ".pyc")) and not path.startswith(elsewhere) and not hidden


def _objects(root: Path) -> dict[str, str]:
    """The regular files of the commit that is checked out, each with the name that git gives to the content."""
    entries = (entry.partition("\t") for entry in _names(git(root, "ls-tree", "-r", "-z", "HEAD")))
    return {name: facts.split()[2] for facts, _, name in entries if facts.startswith("100")}


def git_names(root: Path, files: Iterable[str]) -> dict[str, str]:
    """The name that git gives to the content of each file; "" of those that are gone or cannot be read.

    Raises LineageError where git does not hash files.
    """
    wanted = sorted(files)
    here = [file for file in wanted if (root / file).is_file() and os.access(root / file, os.R_OK)]
    odd = [file for file in here if re.search(r'[\r\n]|^"', file)]  # which git reads otherwise in a list of lines
    plain = [file for file in here if file not in odd]
    above = _prefix(root)
    paths = "".join(f"{above}{file}\n" for file in plain).encode("utf-8", "surrogateescape")
    listed, others = git(root, "hash-object", "--stdin-paths", stdin=paths), git(root, "hash-object", "--", *odd)
    if listed is None or others is None:
        raise LineageError(
            "git does not hash files", where=str(root), expected="the output of `git hash-object`",
            remedy="`git status` may say what is wrong, such as a filter that is not installed",
        )  # fmt: skip
    hashes = [*listed.decode().split(), *others.decode().split()]
    return {**dict.fromkeys(wanted, ""), **dict(zip([*plain, *odd], hashes, strict=True))}


def _modules_in(place: str) -> list[str]:
    """The files of modules and packages that this process has loaded from a folder itself, not from folders in it."""
    files = {
        os.path.realpath(file) for module in [*sys.modules.values()] if (file := getattr(module, "__file__", None))
    }
    folders = {file: file.parents[1] if file.stem == "__init__" else file.parent for file in map(Path, files)}
    return [str(file) for file, folder in folders.items() if str(folder) == place]


def _prefix(root: Path) -> str:
    """What git puts before the names of files in a status or a list, where its repository begins above `root`."""
    return (git(root, "rev-parse", "--show-prefix") or b"").decode("utf-8", "surrogateescape").removesuffix("\n")


def _names(listing: bytes | None) -> list[str]:
    return [name for name in (listing or b"").decode("utf-8", "surrogateescape").split("\0") if name]
