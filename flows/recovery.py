"""Repair what a killed dvc left damaged in its own files, and remove the outputs of stages that are gone.

DVC writes dvc.lock and its table of paths in use (`.dvc/tmp/rwlock`) in place. A kill in that moment, or a full disk,
leaves half a file, and every later dvc refuses to start.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
import yaml

from flows.lock_entries import HEAD
from pipeline.base.params import parse_yaml
from pipeline.base.suite import FIRST
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.machine import git_names
from pipeline.lineage.runs import ended_runs, files_under
from pipeline.lineage.stages import Entry, Graph, load_stages, read_locked, read_yaml, related
from pipeline.lineage.trees import WorkingTree, git
from pipeline.odd_files import refuse_conflict, refuse_odd_suite
from sentfold.errors import RunError
from sentfold.files import sha256_of, write_bytes_atomically

COPIES = Path(".dvc/tmp/sentfold-locks")
PATHS_IN_USE = Path(".dvc/tmp/rwlock")
KEPT = Path(".sentfold/kept")

# The first bytes of a dvc.lock; and the line with the name of a stage. The line after a long name begins with a colon
# (see lock_entries.py).
LOCK_START = HEAD.encode()
STAGE = re.compile(rb"^  [^\s:]", re.MULTILINE)

# Another dvc may be writing the table at this moment; that takes milliseconds.
TABLE_SECONDS = 1.0


def recover(root: Path) -> None:
    """Make the files that DVC starts from readable again, if a killed dvc left them damaged.

    A sound dvc.lock, of whichever suite, is copied; a damaged one is replaced by that copy. The copy may be some
    stages behind: those run again, or DVC restores them. Without a copy, a file that was cut short keeps its whole
    stages; a file with other damage stays as it is, and an error names it. Before a damaged file is replaced, it is
    copied to `dvc.lock.replaced` beside the sound copy. Prints what was repaired. Only for the holder of the checkout
    (see lock.py).

    Raises SuiteError if a dvc.lock holds a merge conflict, as only the user can say which side is right, and for a
    suite with a pipe or a link, which DVC would read; LineageError for a dvc.lock with other entries than those that
    DVC writes here.
    """
    for suite in [FIRST, *sorted(folder.name for folder in root.glob("suites/*"))]:
        refuse_odd_suite(suite, root)
    for lock in [root / "dvc.lock", *sorted(root.glob("suites/*/dvc.lock"))]:
        with suppress(FileNotFoundError):
            _keep_or_restore(lock, root / COPIES / "-".join(lock.relative_to(root).parts), name=lock.relative_to(root))
    _drop_damaged_table(root / PATHS_IN_USE)


def read_lock(content: bytes) -> dict[str, Any] | None:
    """The stages of a dvc.lock by their names; None unless the file is whole: one cut short can still be YAML."""
    document = _read_whole(content)
    return None if document is None else document["stages"]


def _read_whole(content: bytes) -> dict[str, Any] | None:
    """All that a dvc.lock holds; None unless the file is whole."""
    try:
        document = parse_yaml(content, of_dvc=True)
    except yaml.YAMLError:
        return None
    if not isinstance(document, dict) or not isinstance(document.get("stages"), dict) or not content.endswith(b"\n"):
        return None
    return document if all(map(_is_whole, document["stages"].values())) else None


def _is_whole(stage: Any) -> bool:
    """Whether nothing is missing at the end of a stage in dvc.lock; the end of a line can be where a file was cut."""
    if not isinstance(stage, dict) or "cmd" not in stage:
        return False
    sides, params = [stage.get(side, []) for side in ("deps", "outs")], stage.get("params", {})
    if not all(isinstance(side, list) for side in sides) or not isinstance(params, dict):
        return False
    entries = [entry for side in sides for entry in side]
    return all(isinstance(entry, dict) and "md5" in entry for entry in entries) and None not in params.values()


def clear_leftovers(graph: Graph, root: Path, *, say: Callable[[str], None] = typer.echo) -> None:
    """Remove the outputs of stages that dvc.lock records and dvc.yaml no longer has: artifacts, scores and sweeps.

    A folder over several outputs, such as all spaces, is hashed whole: with a leftover inside, its hash is one that
    no other checkout can have. An output is removed only if its bytes are still the recorded ones, so that DVC's
    cache or the stage can give it again; another is left and named. `say` is told a line for each. Only for the
    holder of the checkout.
    """
    tree = WorkingTree(root)
    for name, entry in _leftover_outputs(graph):
        here = tree.digest(entry.path)
        if here is None:
            continue
        if here.md5 == entry.md5:
            top = next(folder for folder in _folders(graph) if entry.path.startswith(f"{folder}/"))
            _remove(root / entry.path, root / top)
            say(f"removed {entry.path}: {name}, which wrote it, is no stage of {graph.dvcfile} any more")
        else:
            say(f"left {entry.path}, whose stage {name} is gone: it is not what was recorded; remove it by hand")


def keep_unknown_files(stage: str, suite: str, root: Path, *, say: Callable[[str], None]) -> None:
    """Copy the user's own files among the reports, which DVC is about to remove with the outputs of a stage.

    Such a file can be a spreadsheet beside a table, or a table that the user has edited. A file is not copied if git
    has its content, or if a run by DVC wrote its content. Other runs do not count: they do not empty the folder,
    so their records have the user's files too. Each call copies to a new folder below .sentfold/kept. `say` is told of
    the first file.
    """
    try:
        outputs = load_stages(WorkingTree(root), suite)[stage.rpartition(":")[2]].outs
    except (LineageError, KeyError):
        return  # DVC says what is wrong with dvc.yaml, and removes nothing
    outs = [out for out in outputs if out.startswith("reports/") and (root / out).exists()]
    files = {file for out in outs for file in files_under(root, out)}
    if not files:
        return
    committed: set[str] = set()
    held = _held_by_git(root, outs)
    with suppress(LineageError):  # git, whose filter may not be installed, knows no file then
        committed = {file for file, name in git_names(root, held).items() if name == held[file]}
    runs = [run for run in ended_runs(root, suite) if run.get("by_dvc")]
    written = {(file, facts["sha256"]) for run in runs for file, facts in run["outputs"].items()}
    kept = KEPT / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"  # a file of the same name may have been copied before
    try:
        unknown = [file for file in sorted(files - committed) if (file, sha256_of(root / file)) not in written]
        for file in unknown:
            copy = root / kept / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file, copy, follow_symlinks=False)
    except OSError as error:
        raise RunError(
            "files among the reports cannot be copied, and DVC would remove them", where=stage,
            expected=f"files that can be read, and room in {KEPT}", got=str(error), state="the stage was not started",
            remedy=f"move your own files out of {', '.join(outs)}, and run again",
        ) from None  # fmt: skip
    if unknown:
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        say(f"copied {unknown[0]}{more} to {kept}: DVC removes outputs; neither git nor a run by DVC has this content")


def _held_by_git(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """The files of git's index below some paths, each with the name that git gives to the content; {} without git."""
    listing = (git(root, "ls-files", "--stage", "-z", "--", *paths) or b"").decode("utf-8", "surrogateescape")
    entries = (entry.partition("\t") for entry in listing.split("\0") if entry)
    return {file: facts.split()[1] for facts, _, file in entries}


def _keep_or_restore(lock: Path, copy: Path, *, name: Path) -> None:
    content = lock.read_bytes()
    if copy.exists() and copy.read_bytes() == content:
        return
    refuse_conflict(name, content)
    if (whole := _read_whole(content)) is not None:
        read_locked(str(name), whole)
        write_bytes_atomically(copy, content)
        return
    # An editor may have left out the last line break, and what the user wrote there is in no other file.
    replaced = copy.with_name(f"{copy.name}.replaced")
    told = f"the damaged file is kept as {COPIES / replaced.name}"
    if copy.exists():
        write_bytes_atomically(replaced, content)
        write_bytes_atomically(lock, copy.read_bytes())
        typer.echo(f"{name} was damaged; the last whole one was put back; {told}")
    elif (kept := _whole_stages(content)) is not None:
        write_bytes_atomically(replaced, content)
        write_bytes_atomically(lock, kept)
        read_locked(str(name), _read_whole(kept) or {})
        typer.echo(f"{name} was cut short; {len(read_lock(kept) or ())} whole stages were kept; {told}")
    else:
        read_locked(str(name), read_yaml(WorkingTree(lock.parent), lock.name, of_dvc=True) or {})


def _whole_stages(content: bytes) -> bytes | None:
    """A dvc.lock that was cut short, up to its last whole stage; None if it has other damage."""
    content = content.rstrip(b" ")
    *_, last = (0, *(found.start() for found in STAGE.finditer(content)))
    kept = content if read_lock(content) is not None else content[:last]
    if LOCK_START.startswith(content) or kept == LOCK_START:  # no stage is whole
        return LOCK_START[:-1] + b" {}\n"
    return kept if read_lock(kept) is not None else None


def _drop_damaged_table(table: Path) -> None:
    end = time.monotonic() + TABLE_SECONDS
    while not _is_readable(table):
        if time.monotonic() > end:
            table.unlink(missing_ok=True)
            typer.echo(f"{table.name}, where DVC notes paths in use, was damaged and was removed")
            return
        time.sleep(TABLE_SECONDS / 20)


def _is_readable(table: Path) -> bool:
    try:
        json.loads(table.read_bytes())
    except FileNotFoundError:
        return True
    except (ValueError, RecursionError):
        return False
    return True


def _leftover_outputs(graph: Graph) -> Iterator[tuple[str, Entry]]:
    """The outputs of leftover stages that are in these folders and are no part of any stage's output."""
    for name in graph.leftovers if graph.stages else ():
        for path, entry in graph.locked[name].outs.items():
            inside = path.startswith(tuple(f"{folder}/" for folder in _folders(graph))) and ".." not in Path(path).parts
            if inside and not any(related(path, out) for out in graph.producers):
                yield name, entry


def _folders(graph: Graph) -> tuple[str, ...]:
    """Where each stage has outputs of its own. Files of reports that the stage `report` writes are replaced with it."""
    return (f"data/{graph.suite}", *(f"reports/{graph.suite}/{name}" for name in ("scores", "sweeps")))


def _remove(place: Path, top: Path) -> None:
    """Remove a file or folder, and the folders above it that are empty then, up to `top`."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()
    with suppress(OSError):  # The first folder that is not empty ends it.
        for folder in place.parents:
            if folder == top:
                return
            folder.rmdir()
