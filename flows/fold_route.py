# mypy: disallow-untyped-calls=False
"""The tasks of a fold on Dask workers that share no folder: `sentfold fold --address ADDRESS --remote NAME`.

Source and parts travel through a DVC remote. On each machine a fold has a DVC project of its own, without git, in the
checkout, with the remotes of the checkout. `dvc add` writes a small file for each file that travels, its *pointer*,
which goes along with the tasks. A worker pulls what its task reads, and pushes the part that it made.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast

from distributed import get_worker

from flows.clone import Unwanted
from flows.lock import hold_checkout
from flows.processes import Stop, dvc_command, dvc_environment
from flows.transfer import Remote
from pipeline.environment import remote_environment
from sentfold.errors import RunError
from sentfold.files import replace_whole, sha256_of, write_bytes_atomically
from sentfold.fold.fold import InProcess
from sentfold.fold.parts import Part, Task, is_whole, perform, read_receipt, write_receipt
from sentfold.fold.source import Rows, require_unchanged

if TYPE_CHECKING:
    from flows.dask_fold import DaskExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

FOLDS = Path(".sentfold/folds")  # in a checkout; a fold that ends well removes its folder
SETTINGS_FILES = ("config", "config.local")  # of DVC


@dataclass(frozen=True)
class FoldProject:
    """The DVC project of one fold on one machine. Its files have their sha256 as names, so no pointer becomes stale."""

    folder: Path
    remote: Remote

    @classmethod
    def open(cls, folder: Path, root: Path, remote: Remote) -> Self:
        """The project in `folder`, made if need be, with the remotes that the checkout `root` has now.

        Raises RunError.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # the settings of a checkout can hold a password
        (folder / ".dvc").mkdir(exist_ok=True)
        project = cls(folder, remote)
        project._take_settings(root / ".dvc")
        return project

    def _take_settings(self, source: Path) -> None:
        """Have the settings of DVC in a folder `.dvc`; those that an earlier run took may have been corrected since."""
        own, files = self.folder / ".dvc", [source / name for name in SETTINGS_FILES if (source / name).is_file()]
        taken = own / "taken-settings"
        now = json.dumps({file.name: sha256_of(file) for file in files})
        if taken.is_file() and taken.read_text() == now:
            return
        for name in (taken.name, *SETTINGS_FILES):
            (own / name).unlink(missing_ok=True)
        for file in files:
            shutil.copy(file, own / file.name)
        self._dvc("config", "--local", "core.no_scm", "true")
        write_bytes_atomically(taken, now.encode())

    def pointer(self, name: str) -> Path:
        """Where the pointer of a file is."""
        return self.folder / f"{name}.dvc"

    def add(self, names: Sequence[str]) -> None:
        """Have DVC copy files of the project into its cache and write their pointers. Raises RunError."""
        self._dvc("add", "--quiet", *names)

    def push(self, names: Iterable[str], *, stop: Stop | None = None) -> None:
        """Send files that were added to the remote, where it does not have them. Raises RunError."""
        self.remote.push([f"{name}.dvc" for name in names], self.folder, stop=stop)

    def pull(self, pointers: Mapping[str, str], *, stop: Stop | None = None, missing: bool = False) -> None:
        """Bring those files here that are not here. missing: what the remote does not have is no error.

        Raises RunError if that fails, or if a file that came is not the one of its name; that file is removed.
        """
        absent = [name for name in pointers if not (self.folder / name).is_file()]
        for name in absent:
            write_bytes_atomically(self.pointer(name), pointers[name].encode())
        if absent:
            self.remote.pull([f"{name}.dvc" for name in absent], self.folder, stop=stop, missing=missing)
        for name in absent:
            file = self.folder / name
            if file.is_file() and sha256_of(file) != file.stem:
                file.unlink()
                self.pointer(name).unlink()
                raise RunError(
                    "a file did not arrive as it was sent",
                    where=f"{name}, remote '{self.remote.name}'",
                    expected=f"sha256 {file.stem}",
                    got="other bytes",
                    state="the file was removed; finished parts are kept",
                    remedy="see to the remote: somebody else writes to it",
                )

    def _dvc(self, *words: str) -> None:
        environment = dvc_environment(self.folder, remote_environment())
        done = subprocess.run(
            dvc_command(*words), cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RunError(
                f"`dvc {words[0]}` failed",
                where=str(self.folder),
                got=(done.stdout + done.stderr).strip(),
                state="finished parts are kept",
                remedy="free space, or make the folder writable, and run the same command again",
            )


# --- on a worker ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FoldParcel:
    """What goes to a worker with a task of a fold. pointers: of the files that the task reads, by name."""

    fold: str
    task: Task
    pointers: Mapping[str, str]
    remote: Remote


def perform_in_clone(parcel: FoldParcel) -> tuple[Part, str]:
    """Do a task in the clone that this worker was started in; the part, and its pointer.

    Raises what `perform` raises, and RunError if the inputs do not come, or the part cannot be sent.
    """
    root, stop = Path.cwd(), Unwanted(str(get_worker().get_current_task()))
    try:
        with hold_checkout(root, wait=True, purpose="a part of a fold"):
            parcel.remote.require_verified(root)
            project = FoldProject.open(root / FOLDS / f"{parcel.fold}-worker", root, parcel.remote)
            project.pull(parcel.pointers, stop=stop)
            part = perform(parcel.task.moved(project.folder, project.folder))
            name = _copy_name(part)
            with replace_whole(project.folder / name) as temporary:
                shutil.copyfile(project.folder / part.file, temporary)
            project.add([name])
            project.push([name], stop=stop)
            return part, project.pointer(name).read_text(encoding="utf-8")
    except RunError as error:
        error.where = f"{socket.gethostname()}:{root}: {error.where}"
        raise


# --- on the machine of the run ----------------------------------------------------------------------


@dataclass(frozen=True)
class RemoteExecutor:
    """An Executor whose tasks are done by workers that share no folder with this machine.

    fold  names the fold on all machines
    """

    workers: DaskExecutor
    project: FoldProject
    fold: str

    @classmethod
    def open(cls, workers: DaskExecutor, target: Path, root: Path, remote: Remote) -> Self:
        """The executor of the fold into `target`, with a remote that the checkout `root` has. Raises RunError."""
        remote.require_verified(root)
        fold = hashlib.sha256(f"{socket.gethostname()}:{target.absolute()}".encode()).hexdigest()[:16]
        return cls(workers, FoldProject.open(root / FOLDS / f"{fold}-run", root, remote), fold)

    @property
    def threads(self) -> int:
        """One, as on each Dask worker."""
        return 1

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], *, label: str) -> list[Result]:
        """The results in the order of the items. What is no task of a fold is called here.

        Parts that workers made in an earlier run are in the remote, and are not made again.
        Raises what the tasks raise, RunError, and what DaskExecutor raises.
        """
        if function is not perform:  # the sha256 of the source, which is here
            return InProcess().map(function, items, label=label)
        return cast(list[Result], self._perform(cast(Sequence[Task], items), label))

    def _perform(self, tasks: Sequence[Task], label: str) -> list[Part]:
        parts = [self._known_part(task) for task in tasks]
        wanted = [number for number, part in enumerate(parts) if part is None]
        self._send({rows.copy_name: rows for number in wanted for rows in tasks[number].inputs()})

        def keep(place: int, made: tuple[Part, str]) -> None:
            part, pointer = made
            write_bytes_atomically(self.project.pointer(_copy_name(part)), pointer.encode())
            write_receipt(tasks[wanted[place]], part)
            parts[wanted[place]] = part

        if wanted:
            self.workers.map(
                perform_in_clone, [self._parcel(tasks[number]) for number in wanted], label=label, done=keep
            )
        made = [part for part in parts if part]
        self._fetch(made, Path(tasks[0].target))
        return made

    def _known_part(self, task: Task) -> Part | None:
        """The part of an earlier run, if it is in the target or in the remote."""
        part = read_receipt(task)
        if part and (self.project.pointer(_copy_name(part)).is_file() or is_whole(Path(task.target) / part.file, part)):
            return part
        return None

    def _parcel(self, task: Task) -> FoldParcel:
        names = {rows.copy_name for rows in task.inputs()}
        pointers = {name: self.project.pointer(name).read_text(encoding="utf-8") for name in sorted(names)}
        return FoldParcel(self.fold, task, pointers, self.project.remote)

    def _send(self, inputs: Mapping[str, Rows]) -> None:
        """Push what the workers will read and the remote does not have. Raises RunError, and as require_unchanged."""
        absent = [name for name in inputs if not self.project.pointer(name).is_file()]
        for name in absent:
            shutil.copyfile(inputs[name].path, self.project.folder / name)
            require_unchanged(inputs[name])
        if absent:
            self.project.add(absent)
        for name in absent:
            (self.project.folder / name).unlink()  # DVC's cache has it
        if inputs:
            self.project.push(inputs)

    def _fetch(self, parts: Iterable[Part], target: Path) -> None:
        """Bring parts into the target. Raises RunError if one is not what the worker made."""
        absent = {_copy_name(part): part for part in parts if not is_whole(target / part.file, part)}
        pointers = {name: self.project.pointer(name).read_text(encoding="utf-8") for name in absent}
        self.project.pull(pointers, missing=True)
        lost = []
        for name, part in absent.items():
            file = self.project.folder / name
            if is_whole(file, part):
                with replace_whole(target / part.file) as temporary:
                    shutil.move(file, temporary)
            else:
                file.unlink(missing_ok=True)
                self.project.pointer(name).unlink()
                lost.append(part)
        if lost:
            raise RunError(
                "a part did not arrive as it was made",
                where=lost[0].file + (f", and {len(lost) - 1} more" if len(lost) > 1 else ""),
                expected=f"sha256 {lost[0].sha256}",
                state="the other parts are kept",
                remedy="run the same command again: what did not arrive is made again",
            )

    def clear(self) -> None:
        """Remove the projects of the fold here and on the workers, after its end. The remote keeps what it has."""
        shutil.rmtree(self.project.folder)
        self.workers.client.run(_remove_project, f"{self.fold}-worker", on_error="ignore")


def _remove_project(name: str) -> None:
    """In a worker."""
    shutil.rmtree(Path.cwd() / FOLDS / name, ignore_errors=True)


def _copy_name(part: Part) -> str:
    return part.whole("", width=0).copy_name
