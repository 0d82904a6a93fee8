"""A whole run over one huge corpus: plan, embed, draw, solve once, map; here or wherever a mapper takes it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from tqdm import tqdm

from pipeline.artifacts import sha256_of
from pipeline.errors import ArtifactError, first_line
from pipeline.manifold.landmarks import draw_rows
from pipeline.partitions.embedding import EmbedTask
from pipeline.partitions.files import MANIFEST, PLAN, appearing, hold_target, keep_only, sweep
from pipeline.partitions.folding import DrawTask, Held, LandmarkTask, MapTask
from pipeline.partitions.made_by import made_by
from pipeline.partitions.plan import Plan, digest_of, plan_partitions
from pipeline.partitions.request import Request
from pipeline.partitions.tasks import RECEIPTS, Receipt, Task, as_json, perform

Item = TypeVar("Item")
Result = TypeVar("Result")


class Mapper(Protocol):
    """Whatever calls a function on each item, anywhere, in any order, and returns the results in theirs."""

    def __call__(self, function: Callable[[Item], Result], items: Sequence[Item], *, label: str) -> list[Result]: ...


def map_here(function: Callable[[Item], Result], items: Sequence[Item], *, label: str) -> list[Result]:
    """One after another in this process: the route that any other must equal byte for byte."""
    return [function(item) for item in tqdm(items, desc=label, unit=" parts", disable=None)]


@dataclass(frozen=True)
class Summary:
    """What a run left: rows, partitions, the landmarks' notes, and how many files of each step stood already."""

    rows: int
    partitions: int
    notes: dict[str, Any]
    reused: dict[str, int]

    def __str__(self) -> str:
        stood = ", ".join(f"{count} {step}" for step, count in self.reused.items() if count)
        return (
            f"{self.rows} rows in {self.partitions} partitions by {self.notes['landmarks']} landmarks"
            f"{f'; stood already: {stood}' if stood else ''}"
        )


def fold_partitions(source: Path, target: Path, request: Request, *, mapper: Mapper = map_here) -> Summary:
    """Fold the texts or vectors of a Parquet dataset into the Parquet dataset `target`/folded.

    source  a Parquet file, or a folder of them read in the order of their names, with a column `text`
            (request.encoder is then given) or `vector`
    target  a folder, by the same name on every machine that the mapper uses. Beside `folded` it gets
            `vectors` (of texts), `drawn`, `landmarks`, a receipt per file, plan.json, and at the very end
            manifest.json with the sha256 of every file. Every byte of them depends on source and request
            alone, and not on the mapper.
    A run that was killed is taken up by calling it again: files that stand with their receipt are kept.
    Parts are rows of at most one file, so a changed file of the source costs its own partitions, and the
    landmarks and maps, which depend on all.
    Memory of a task: the texts and vectors of one partition; O(block d + L d) where vectors are mapped; that of
    fit_landmarks where landmarks are embedded. Cost: that of the tasks, and one reading of the source for its sha256.
    Raises what the tasks and the mapper raise.
    """
    plan = plan_partitions(source, "text" if request.encoder else "vector", rows=request.rows)
    with hold_target(target, source=source):
        (target / MANIFEST).unlink(missing_ok=True)  # from here on, the folder may be neither the old nor the new
        run = _Run(str(target.absolute()), plan, request, mapper)
        digests = run.digest_source()
        _write(target / PLAN, run.described(digests))
        held = run.hold_vectors(digests)
        landmarks = run.fit(held)
        run.perform(
            [
                MapTask(run.target, number, part, landmarks.made(), request.parameters)
                for number, part in enumerate(held)
            ],
            label="mapping",
        )
        run.remove_surplus()
        sweep(target)  # of workers that were killed in this run
        _write(target / MANIFEST, run.manifest(digests, landmarks))
    return Summary(plan.rows, len(plan.partitions), landmarks.notes, dict(run.reused))


def check_target(target: Path) -> dict[str, Any]:
    """The manifest of a finished run, after comparing every file that it lists. Raises ArtifactError."""
    try:
        manifest: dict[str, Any] = json.loads((target / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise ArtifactError(
            "a partitioned dataset is not finished",
            where=str(target / MANIFEST),
            got=first_line(error),
            remedy="run the command that makes it again; finished parts are kept",
        ) from None
    for listed in manifest["files"]:
        path = target / listed["file"]
        got = sha256_of(path) if path.is_file() else "no such file"
        if got != listed["sha256"]:
            raise ArtifactError(
                "a part is not the one that was made",
                where=str(path),
                expected=listed["sha256"],
                got=got,
                state="the file was left as it is",
                remedy="run the command that makes it again; it makes this part anew",
            )
    return manifest


class _Run:
    """The tasks of one run, in the order in which they are possible."""

    def __init__(self, target: str, plan: Plan, request: Request, mapper: Mapper) -> None:
        self.target, self.plan, self.request, self.mapper = target, plan, request, mapper
        self.made: list[Receipt] = []
        self.reused: Counter[str] = Counter()

    def perform(self, tasks: Sequence[Task], *, label: str) -> list[Receipt]:
        """Do the tasks of one step, all of them."""
        receipts = self.mapper(perform, tasks, label=label)
        self.made += receipts
        self.reused[tasks[0].step] += sum(receipt.reused for receipt in receipts)
        return receipts

    def remove_surplus(self) -> None:
        """Remove what an earlier plan made and this one did not: a reader takes all files of a folder."""
        for step in (EmbedTask.step, DrawTask.step, LandmarkTask.step, MapTask.step):
            files = {Path(receipt.file) for receipt in self.made}
            keep_only(Path(self.target) / step, {file.name for file in files if file.parent.name == step})
        keep_only(Path(self.target) / RECEIPTS, {Path(receipt.note).name for receipt in self.made})

    def digest_source(self) -> dict[str, str]:
        """sha256 of each file of the source, by its path."""
        digests = self.mapper(digest_of, self.plan.files, label="reading the source")
        return {file.path: digest for file, digest in zip(self.plan.files, digests, strict=True)}

    def hold_vectors(self, digests: dict[str, str]) -> list[Held]:
        """The vectors of every partition: the source's own, or those of its texts, which are made first."""
        parts, encoder = self.plan.partitions, self.request.encoder
        if encoder is None:
            width = int(self.plan.width or 0)
            return [Held(part.file.name, digests[part.file.path], part.rows, width, part.file) for part in parts]
        done = self.perform(
            [EmbedTask(self.target, part, digests[part.file.path], encoder) for part in parts], label="embedding"
        )
        return [
            Held(receipt.file, receipt.sha256, receipt.made().whole(self.target), receipt.notes["dimension"])
            for receipt in done
        ]

    def fit(self, held: Sequence[Held]) -> Receipt:
        """Draw from every partition, then choose and embed the landmarks in one task."""
        rows = draw_rows(self.plan.rows, self.request.parameters)
        edges = np.searchsorted(rows, [part.first for part in self.plan.partitions] + [self.plan.rows])
        tasks = [
            DrawTask(self.target, part.number, held[part.number], tuple((rows[low:high] - part.first).tolist()))
            for part, low, high in zip(self.plan.partitions, edges, edges[1:], strict=False)
        ]
        drawn = self.perform(tasks, label="drawing landmarks")
        task = LandmarkTask(
            self.target,
            tuple(receipt.made() for receipt in drawn),
            tuple(rows.tolist()),
            self.request.parameters,
            self.request.solver,
        )
        return self.perform([task], label="embedding landmarks")[0]

    def described(self, digests: dict[str, str]) -> dict[str, Any]:
        """What will be made, JSON-able."""
        encoder = self.request.encoder
        return {
            "encoder": encoder and encoder.record(),
            "eigensolve": self.request.solver.model_dump(),
            "manifold": self.request.parameters.model_dump(),
            "partitions": [
                {"file": part.file.name, "start": part.rows.start, "stop": part.rows.stop}
                for part in self.plan.partitions
            ],
            "source": [{"file": file.name, "sha256": digests[file.path]} for file in self.plan.files],
        }

    def manifest(self, digests: dict[str, str], landmarks: Receipt) -> dict[str, Any]:
        """What was made, JSON-able."""
        counted: Counter[str] = Counter()
        for receipt in self.made:
            if receipt.file.startswith("vectors/"):
                counted.update({name: count for name, count in receipt.notes.items() if name != "dimension"})
        return {
            **self.described(digests),
            "counted": dict(counted),
            "files": [receipt.listed() for receipt in self.made],
            "made_by": {"fold": made_by("fold"), **({"embed": made_by("embed")} if self.request.encoder else {})},
            "notes": landmarks.notes,
            "rows": self.plan.rows,
        }


def _write(path: Path, content: dict[str, Any]) -> None:
    with appearing(path) as temporary:
        temporary.write_bytes(as_json(content))
