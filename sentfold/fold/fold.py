"""The fold of a large file or folder by landmarks: encode, embed the landmarks, map every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pydantic import Field
from tqdm import tqdm

from sentfold.data.tables import part_of
from sentfold.files import write_json
from sentfold.fold.parts import (
    MANIFEST,
    Part,
    Task,
    hold_target,
    perform,
    remove_partial_files,
    remove_surplus,
)
from sentfold.fold.source import ROWS, Rows, SourceFile, cut_partitions, digest_of, list_source
from sentfold.fold.tasks import EmbedTask, Family, LandmarkTask, MapTask, code_of
from sentfold.fold.texts import TextEncoder
from sentfold.manifold.base.protocol import SolverSettings
from sentfold.manifold.landmark import Settings as LandmarkSettings
from sentfold.settings import Parameters

Item = TypeVar("Item")
Result = TypeVar("Result")


class FoldSettings(Parameters):
    """What a fold makes.

    encoder   of the source's texts; None: the source holds vectors
    manifold  the landmarks and their embedding; solver: of the landmarks' eigenproblem
    rows      of a partition, at most, where row groups allow it
    """

    encoder: TextEncoder | None = None
    manifold: LandmarkSettings
    solver: SolverSettings
    rows: int = Field(default=ROWS, ge=1)


class Executor(Protocol):
    """What calls a function on each item: in this process, or on other machines."""

    @property
    def threads(self) -> int:
        """Threads that one call may use."""

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], *, label: str) -> list[Result]:
        """The results in the order of the items; the calls may come in any order."""


@dataclass(frozen=True)
class InProcess:
    """An Executor that makes one call after another in this process."""

    threads: int = 1

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], *, label: str) -> list[Result]:
        """As Executor."""
        return [function(item) for item in tqdm(items, desc=label, unit=" parts", disable=None)]


@dataclass(frozen=True)
class Summary:
    """What a fold left.

    files    of the source, in the order in which they were read
    notes    of the landmarks
    reused   how many parts of each step an earlier run made
    counted  what the encoder did to how many texts that it could not take as they are
    """

    rows: int
    partitions: int
    files: list[str]
    notes: dict[str, Any]
    reused: dict[str, int]
    counted: dict[str, int]

    def __str__(self) -> str:
        kept = ", ".join(f"{count} {step}" for step, count in self.reused.items() if count)
        files = ""
        if len(self.files) > 1:
            kind = "parts" if all(part_of(Path(file)) for file in self.files) else "numbers"
            order = "" if self.files == sorted(self.files) else f" in the order of their {kind}"
            files = f" of {len(self.files)} files{order}, {self.files[0]!r} to {self.files[-1]!r},"
        seen = {what if what.isprintable() else repr(what): count for what, count in self.counted.items()}
        counted = "".join(f"; texts {what}: {count}" for what, count in seen.items() if count)
        return (
            f"{self.rows} rows{files} in {self.partitions} partitions by {self.notes['landmarks']} landmarks"
            f"{f'; kept from an earlier run: {kept}' if kept else ''}{counted}"
        )


def fold_files(source: Path, target: Path, settings: FoldSettings, *, executor: Executor | None = None) -> Summary:
    """Fold the texts or vectors of a Parquet dataset into the Parquet dataset `target`/folded, row for row.

    source    a Parquet file, or a folder of them in the order that list_source gives, with a column `text` of strings
              (settings.encoder is then given) or `vector` of fixed_size_list<float32>[d]
    target    a folder. Next to `folded`, whose column `vector` is (n, p) float32, the fold writes `vectors` (of
              texts), `landmarks`, a receipt per part, and at the very end manifest.json with the sha256 of every
              part. All bytes depend on source and settings alone, and not on the executor.
    executor  None: this process, with one thread. If another executor's machines do not see source and target by the
              same names, it moves the tasks (`Task.moved`) and brings the parts into the target.
    After a kill, the same call continues: parts that agree with their receipts are kept. A changed file of the source
    costs the vectors of its own partitions, and the landmarks and maps, which depend on all files.
    Memory of a task: the texts and vectors of one partition; O(block d + L d) where vectors are mapped; that of
    fit_landmarks where landmarks are embedded. Cost: the tasks, and one reading of the source for its sha256.
    Raises what the tasks and the executor raise, ParameterError and ArtifactError for a bad source or target.
    """
    files = list_source(source, "text" if settings.encoder else "vector")
    with hold_target(target, source=source):
        (target / MANIFEST).unlink(missing_ok=True)  # from here on, the folder may be neither the old nor the new fold
        fold = _Fold(target, files, settings, executor or InProcess())
        summary = fold.run()
        remove_surplus(target, fold.parts)
        remove_partial_files(target)  # of workers that were killed in this run
        write_json(target / MANIFEST, fold.manifest(summary))
    return summary


class _Fold:
    """The steps of one run, and the parts that they made."""

    def __init__(self, target: Path, files: tuple[SourceFile, ...], settings: FoldSettings, executor: Executor) -> None:
        self.target, self.settings, self.executor = target, settings, executor
        self.digests = executor.map(digest_of, files, label="reading the source")
        self.files = [Path(file.path).name for file in files]
        self.partitions = cut_partitions(files, self.digests, rows=settings.rows)
        self.parts: list[Part] = []

    def run(self) -> Summary:
        """Make all parts."""
        folder, manifold, threads = str(self.target.absolute()), self.settings.manifold, self.executor.threads
        vectors = self._encode(folder)
        (landmarks,) = self._perform(
            [LandmarkTask(folder, vectors, manifold, self.settings.solver, threads)], label="embedding landmarks"
        )
        basis = landmarks.whole(folder, width=vectors[0].width)
        maps = [MapTask(folder, number, rows, basis, manifold, threads) for number, rows in enumerate(vectors)]
        self._perform(maps, label="mapping")
        reused = Counter({Path(part.file).parent.name: 0 for part in self.parts})
        reused.update(Path(part.file).parent.name for part in self.parts if part.reused)
        counted: Counter[str] = Counter()
        for part in self.parts:
            if part.file.startswith(f"{EmbedTask.step}/"):
                counted.update({name: count for name, count in part.notes.items() if name != "dimension"})
        rows, partitions = sum(map(len, self.partitions)), len(self.partitions)
        return Summary(rows, partitions, self.files, landmarks.notes, dict(reused), dict(counted))

    def _encode(self, folder: str) -> tuple[Rows, ...]:
        """The vectors of every partition: those of the source, or those of its texts, which are made first."""
        encoder = self.settings.encoder
        if encoder is None:
            return self.partitions
        tasks = [EmbedTask(folder, number, rows, encoder) for number, rows in enumerate(self.partitions)]
        made = self._perform(tasks, label="encoding")
        return tuple(part.whole(folder, width=part.notes["dimension"]) for part in made)

    def _perform(self, tasks: Sequence[Task], *, label: str) -> list[Part]:
        made = self.executor.map(perform, tasks, label=label)
        self.parts += made
        return made

    def manifest(self, summary: Summary) -> dict[str, Any]:
        """What was made, and from what, JSON-able."""
        families: tuple[Family, ...] = ("embed", "fold") if self.settings.encoder else ("fold",)
        settings, source = self.settings, zip(self.files, self.digests, strict=True)
        return {
            "counted": summary.counted,
            "encoder": settings.encoder and settings.encoder.record(),
            "eigensolve": settings.solver.model_dump(),
            "files": [part.listed() for part in self.parts],
            "made_by": {family: code_of(family) for family in families},
            "manifold": settings.manifold.model_dump(),
            "notes": summary.notes,
            "partitions": [{"file": part.name, "start": part.start, "stop": part.stop} for part in self.partitions],
            "rows": summary.rows,
            "source": [{"file": name, "sha256": digest} for name, digest in source],
        }
