"""One stage in a folder of its own, which holds what the stage declares and nothing else."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline.environment import audit_environment
from pipeline.lineage.checks import entry_files, package_of
from pipeline.lineage.stages import Graph, Stage, dump_yaml, read_yaml, tracked_values
from pipeline.lineage.trees import Tree

LIBRARY = re.compile(r"^from (sentfold(?:\.\w+)+) import", re.MULTILINE)
LATE = re.compile(r"^\s*from (sentfold(?:\.\w+)+) import", re.MULTILINE)  # also in functions


def lay_out(tree: Tree, graph: Graph, stage: Stage, *, artifacts: Path, folder: Path) -> None:
    """Fill a new folder with what a stage declares: its code, its parameters, and links to artifacts."""
    for path in (*stage.deps, *undeclared_code(tree, stage), ".dvcignore"):
        if graph.makers_of(path):
            _link_files(artifacts, path, folder)
        else:
            _copy_files(tree, path, folder)
    for file, keys in stage.params.items():
        # A plan is one value, checked as a whole.
        if PurePosixPath(file).name == "plan.yaml":
            _copy_files(tree, file, folder)
        elif file not in stage.deps:
            values = _nested(tracked_values(read_yaml(tree, file) or {}, keys))
            _write(folder / file, dump_yaml(values).encode())  # a stage can follow the order of values


def undeclared_code(tree: Tree, stage: Stage) -> list[str]:
    """What a stage runs and does not declare: the entry of its package, and what the entry imports at its top.

    A stage without code (`plan`) holds the files of the checkout against each other, so it gets all code.
    """
    package = package_of(stage)
    if not package:
        return []
    if not any(dep.startswith(f"{package}/") for dep in stage.deps):
        # A suite of a user's data has a catalogue of its own, next to its plan.
        catalogues = [
            str(PurePosixPath(file).with_name("catalogue.yaml")) for file in stage.deps if file.startswith("suites/")
        ]
        return [package, "sentfold", *dict.fromkeys(catalogues)]
    entry = (tree.read(f"{package}/__main__.py") or b"").decode("utf-8", "replace")
    imports = re.findall(rf"^from {package}\.(\w+)(\.\w+)? import", entry, re.MULTILINE)
    # A package counts whole: its modules import each other when a stage runs.
    # A suite's own catalogue is read together with the shared one, which has no data set of the same name (checks.py).
    shared = [f"{package}/catalogue.yaml" for file in stage.params if PurePosixPath(file).name == "catalogue.yaml"]
    modules = [f"{package}/{name}" + ("" if inner else ".py") for name, inner in imports]
    return [*entry_files(stage), *modules, *_library_modules(tree, package, modules), *shared[:1]]


def _library_modules(tree: Tree, package: str, modules: Iterable[str]) -> list[str]:
    """The modules of the library that the entry of a package imports at its top, and some of its modules anywhere."""
    inside = [f"{path}/{file}" for path in modules for file in tree.files_below(path) if file.endswith(".py")]
    late = [name for path in (*modules, *inside) for name in _imports(tree, path, LATE)]
    waiting, found = [f"{package}/__main__.py", *late], dict.fromkeys(["sentfold/__init__.py", *late])
    while waiting:
        names = _imports(tree, waiting.pop(), LIBRARY)
        waiting += [name for name in names if name not in found]
        found |= dict.fromkeys(names)
    return list(found)


def _imports(tree: Tree, path: str, form: re.Pattern[str]) -> list[str]:
    """The files of the modules of the library that a file imports."""
    source = (tree.read(path) or b"").decode("utf-8", "replace")
    return [name.replace(".", "/") + ".py" for name in form.findall(source)]


def _copy_files(tree: Tree, path: str, folder: Path) -> None:
    """Copy the files that a hash of `path` covers."""
    digest = tree.digest(path)
    for name in [] if digest is None else [f"{path}/{file}" for file in digest.files] or [path]:
        _write(folder / name, tree.read(name) or b"")


def _link_files(source: Path, path: str, folder: Path) -> None:
    place = source / path
    for file in [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]:
        target = folder / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(file.resolve())


def _nested(values: dict[str, Any]) -> dict[str, Any]:
    """Values by dotted key as nested mappings."""
    content: dict[str, Any] = {}
    for key, value in values.items():
        inner = content
        *above, last = key.split(".")
        for part in above:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return content


def _write(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def run_command(command: str, folder: Path) -> tuple[int, str]:
    """Run a stage's command in a folder, with no other place for modules; its exit code, and what it said of it."""
    words = shlex.split(command)
    program = [sys.executable, *words[1:]] if words[0] == "python" else words
    kept = {name: value for name, value in audit_environment().items() if not name.startswith("PYTHON")}
    environment = {**kept, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
    try:
        done = subprocess.run(
            program, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        return 127, f"{program[0]} cannot be started: {error.strerror}"
    said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
    # The last line of a traceback names the error, the first line of our own errors does.
    return done.returncode, said[-1] if said[0].startswith("Traceback") else said[0]
