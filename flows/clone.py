# mypy: disallow-untyped-calls=False
"""What a Dask worker does in its own clone: pull what a stage reads, make the stage, push what it wrote.

A worker is started in a clone of the run's commit and shares no folder with the run. Large outputs go through a DVC
remote. The entry of dvc.lock, the outputs that DVC does not cache and the record of the run travel with the task.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distributed import get_worker

from flows.lock import hold_checkout
from flows.lock_entries import split_entries, write_entries
from flows.run_stage import Order, StageResult, run_stage
from flows.transfer import Remote
from pipeline.lineage.machine import describe_packages, differing_packages, pins_in
from pipeline.lineage.runs import files_under, read_lines, runs_path
from pipeline.lineage.trees import git
from sentfold.errors import RunError
from sentfold.files import write_bytes_atomically
from sentfold.numeric_profile import is_supported

REQUIREMENTS = "requirements.lock"


@dataclass(frozen=True)
class Basis:
    """What decides the bytes of a stage, of the run and of a worker.

    commit   that is checked out
    edited   files that differ from it; a run and its workers have none
    other    installed versions that requirements.lock does not pin
    profile  whether the processor has the numeric profile
    threads  stages at a time in one checkout; of a worker one, as two would take each other's files
    """

    commit: str
    edited: tuple[str, ...]
    other: Mapping[str, str]
    profile: bool
    threads: int


@dataclass(frozen=True)
class Parcel:
    """What goes to a worker with a stage.

    order     what all stages of the run have in common; its root is the worker's own
    entries   of dvc.lock: of the stage, if it has one, and of the stages whose outputs it reads
    inputs    the stages whose outputs are to be pulled
    files     inputs that DVC does not cache: each, and the content of its files by path
    outs      the stage's outputs that DVC caches
    uncached  the stage's outputs that it does not cache
    """

    stage: str
    order: Order
    basis: Basis
    remote: Remote
    entries: Mapping[str, str]
    inputs: tuple[str, ...]
    files: Mapping[str, Mapping[str, bytes]]
    outs: tuple[str, ...]
    uncached: tuple[str, ...]


@dataclass(frozen=True)
class Made:
    """What comes back. record: the last line of the run that made it; None if the clone had the outputs already."""

    result: StageResult
    entry: str
    files: Mapping[str, bytes]
    record: Mapping[str, Any] | None


@dataclass(frozen=True)
class Unwanted:
    """A Stop: set when nobody waits for a task any more: the run was interrupted, or its process is gone."""

    key: str

    def is_set(self) -> bool:
        """Whether Dask's scheduler has cancelled the task."""
        task = get_worker().state.tasks.get(self.key)
        return task is None or task.state == "cancelled"


def basis_of(root: Path, *, threads: int = 1) -> Basis:
    """What decides the bytes of a stage here. Reports and dvc.lock may differ from the commit: stages write them."""
    commit = (git(root, "rev-parse", "HEAD") or b"").decode().strip()
    listing = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all") or b""
    names = [name[3:] for name in listing.decode("utf-8", "surrogateescape").split("\0") if name]
    edited = [name for name in names if not name.startswith("reports/") and Path(name).name != "dvc.lock"]
    lock = root / REQUIREMENTS
    pins = pins_in(lock.read_text(encoding="utf-8")) if lock.is_file() else {}
    return Basis(commit, tuple(edited), differing_packages(pins, describe_packages()), is_supported(), threads)


def require_same(here: Basis, run: Basis) -> None:
    """Raise RunError if a worker would make other bytes than the machine of the run."""
    for name, own, wanted in (
        ("another commit", here.commit, run.commit),
        ("edited files", ", ".join(here.edited[:5]), ""),
        ("other packages", _listed(here.other), _listed(run.other)),
        ("another numeric profile", here.profile, run.profile),
        ("several threads", here.threads, run.threads),
    ):
        if own != wanted:
            raise RunError(
                f"a worker has {name}",
                where=f"{socket.gethostname()}:{Path.cwd()}",
                expected=str(wanted) or "none",
                got=str(own) or "none",
                state="the stage was not started",
                remedy="start workers with --nthreads 1 in clones of the run's commit, with requirements.lock",
            )


def make_in_clone(parcel: Parcel, key: str) -> Made:
    """Make one stage in the clone that this worker was started in. Raises RunError if that fails."""
    root, stage, stop = Path.cwd(), parcel.stage, Unwanted(key)
    order = replace(parcel.order, root=root)
    records = runs_path(root, order.suite)
    require_same(basis_of(root, threads=get_worker().state.nthreads), parcel.basis)
    try:
        parcel.remote.require_verified(root)  # by the configuration of this clone
        with hold_checkout(root, wait=True, purpose=f"the stage {stage} of a run on {parcel.basis.commit[:10]}"):
            write_entries(order.lock, parcel.entries.values())
            for path, files in parcel.files.items():
                replace_files(root, path, files)
            if parcel.inputs:
                parcel.remote.pull(parcel.inputs, root, stop=stop)
            begin = records.stat().st_size if records.exists() else 0
            result = run_stage(stage, order, stop=stop)
            if parcel.outs:
                parcel.remote.push([stage], root, stop=stop)
            return _packed(parcel, root, result, begin)
    except RunError as error:
        error.where = f"{socket.gethostname()}:{root}: {error.where}"
        raise


def _packed(parcel: Parcel, root: Path, result: StageResult, begin: int) -> Made:
    name = parcel.stage.rpartition(":")[2]
    entry = split_entries(root / parcel.order.dvcfile.with_suffix(".lock"))[name]
    events, _ = read_lines(runs_path(root, parcel.order.suite), begin)
    ended = [event for event in events if event.get("event") == "ended" and event.get("stage") == name]
    return Made(result, entry, read_files(root, parcel.uncached), ended[-1] if ended else None)


def replace_files(root: Path, path: str, files: Mapping[str, bytes]) -> None:
    """Put files in the place of a file or folder."""
    if (root / path).is_dir():
        shutil.rmtree(root / path)
    for file, content in files.items():
        write_bytes_atomically(root / file, content)


def read_files(root: Path, outs: Iterable[str]) -> dict[str, bytes]:
    """The content of all files of some outputs, by path."""
    return {file: (root / file).read_bytes() for out in outs for file in files_under(root, out)}


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
