"""Hold what a user writes against each other before anything is run."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from flows.footprint import PASSED_OVER, VARIABLES
from pipeline.suite import suite_file

MIRROR_VARIABLE = "SENTFOLD_MIRROR"

# Where the digest of what was found sound last is kept, per suite.
FOLDER = Path(".dvc/tmp")


def check_suite(suite: str, *, touched: bool = True) -> None:
    """Raise the first error that a run of the suite in the working folder would meet.

    touched  False: nothing in the checkout was touched since it was sound, so that only a mirror, which
             is none of its files, can have changed

    What was found sound is not checked again while its bytes stay, whatever their times say: the check
    imports the libraries of every method. Cost: seconds if something changed, milliseconds if not, and
    without a mirror.
    """
    digest = _digest(suite) if touched else ""
    sound = not touched or (_memory(suite).is_file() and _memory(suite).read_bytes() == digest.encode())
    if sound and not os.environ.get(MIRROR_VARIABLE):
        return
    from pipeline.check import check_everything, mirror_changes
    from pipeline.suite import load_suite

    if sound:
        mirror_changes(load_suite(suite))
        return
    chosen = check_everything(suite)
    _remember(suite, digest)
    mirror_changes(chosen)


def _digest(suite: str) -> str:
    """sha256 over the parameters, the suite's files, the code that checks them with its catalogues, and the Python."""
    digest = hashlib.sha256(f"{sys.prefix} {sys.version}".encode())
    suite_files = (suite_file(suite).with_name(name) for name in VARIABLES)
    for path in (Path("params.yaml"), Path("requirements.lock"), *suite_files, *_code()):
        content = path.read_bytes() if path.is_file() else b"absent"
        digest.update(f"\n{path.as_posix()} {hashlib.sha256(content).hexdigest()}".encode())
    return digest.hexdigest()


def _code() -> Iterator[Path]:
    for path in sorted(Path("pipeline").rglob("*")):
        if path.is_file() and PASSED_OVER not in path.parts:
            yield path


def _remember(suite: str, digest: str) -> None:
    path = _memory(suite)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    draft.write_text(digest, encoding="utf-8")
    draft.replace(path)


def _memory(suite: str) -> Path:
    return FOLDER / f"sentfold-checked-{suite}"
