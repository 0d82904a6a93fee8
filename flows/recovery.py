"""Put right what a DVC that was killed while it wrote has left in its own files.

DVC writes dvc.lock and its table of paths in use (`.dvc/tmp/rwlock`) in place. Whoever ends it in
that moment, or a full disk, leaves half a file or none of it, and every later dvc then refuses to
start. Our own runs write dvc.lock in one step (see dvc.py), but not where they leave it to DVC, as after
a user's edit; a plain `dvc repro` takes a tenth of a second and more for it, after every stage.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from pathlib import Path

import typer
import yaml

from flows.lockfile import YAML_LOADER
from flows.replacing import drop_drafts, replace_file
from pipeline.errors import RunError

COPIES = Path(".dvc/tmp/sentfold-locks")
PATHS_IN_USE = Path(".dvc/tmp/rwlock")

# What git writes around the two sides of a conflict. DVC indents all but its two headings.
CONFLICT = re.compile(rb"^(<{7}|\|{7}|={7}|>{7})( |\r?$)", re.MULTILINE)

# Another dvc may be writing the table just now; it takes milliseconds.
TABLE_SECONDS = 1.0


def recover(root: Path) -> None:
    """Make the files that DVC starts from readable again, if a killed dvc left them damaged.

    A sound dvc.lock, of whichever suite, is copied aside; a damaged one is replaced by that copy,
    which may be some stages behind: those run again, or DVC restores them. Without a copy it is left
    as it is, and DVC says what it cannot read. Prints what it mends. Only for the holder of the
    checkout (see lock.py); cost: a few milliseconds when nothing changed.

    Raises RunError if a dvc.lock holds a merge conflict: which side is right is for the user to say, and
    the copy may be neither.
    """
    for lock in [root / "dvc.lock", *sorted(root.glob("suites/*/dvc.lock"))]:
        drop_drafts(lock)
        with suppress(FileNotFoundError):
            _keep_or_restore(lock, root / COPIES / "-".join(lock.relative_to(root).parts), name=lock.relative_to(root))
    _drop_damaged_table(root / PATHS_IN_USE)


def _keep_or_restore(lock: Path, copy: Path, *, name: Path) -> None:
    content = lock.read_bytes()
    if copy.exists() and copy.read_bytes() == content:
        return
    if found := CONFLICT.search(content):
        raise _conflict(name, content.count(b"\n", 0, found.start()) + 1)
    if _sound(content):
        copy.parent.mkdir(parents=True, exist_ok=True)
        replace_file(copy, content)
    elif copy.exists():
        replace_file(lock, copy.read_bytes())
        typer.echo(f"{name} was damaged by a run that was cut short; the last whole one was put back")


def _conflict(name: Path, line: int) -> RunError:
    return RunError(
        f"{name} holds a merge conflict",
        where=f"{name}, line {line}",
        expected="a dvc.lock as DVC writes it",
        got="the lines that git puts around the two sides of a conflict",
        state="it was left as it is",
        remedy=f"resolve the conflict, or take one side (git checkout --ours {name}, or --theirs), then run again",
    )


def _sound(content: bytes) -> bool:
    """Whether this is a dvc.lock from its first line to its last: one cut short can still be YAML."""
    try:
        document = yaml.load(content, Loader=YAML_LOADER)
    except yaml.YAMLError:
        return False
    if not isinstance(document, dict) or not isinstance(document.get("stages"), dict) or not content.endswith(b"\n"):
        return False
    return all(isinstance(stage, dict) and "cmd" in stage for stage in document["stages"].values())


def _drop_damaged_table(table: Path) -> None:
    end = time.monotonic() + TABLE_SECONDS
    while not _readable(table):
        if time.monotonic() > end:
            table.unlink(missing_ok=True)
            typer.echo(f"{table.name}, where DVC notes paths in use, was damaged and was removed")
            return
        time.sleep(TABLE_SECONDS / 20)


def _readable(table: Path) -> bool:
    try:
        json.loads(table.read_bytes())
    except FileNotFoundError:
        return True
    except ValueError:
        return False
    return True
