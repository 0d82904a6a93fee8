"""The tasks of folding vectors: draw some of each partition, embed them once, map every partition by them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.artifacts import Vectors, fixed_lists, read_lists
from pipeline.errors import first_line
from pipeline.manifold.landmarks import Landmarks, fit_landmarks
from pipeline.manifold.landmarks import Rows as Numbers
from pipeline.manifold.manifolds import LandmarkParameters
from pipeline.manifold.out_of_sample import BLOCK
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.partitions.made_by import made_by
from pipeline.partitions.parts import write_part
from pipeline.partitions.plan import Rows, SourceFile, require_unchanged, unfit
from pipeline.partitions.reading import vectors_of
from pipeline.partitions.tasks import Made


@dataclass(frozen=True)
class Held:
    """Vectors of one partition: rows of a file, its sha256, and its name in records.

    source  the file, if it is the source's own and may change under us
    """

    name: str
    sha256: str
    rows: Rows
    width: int
    source: SourceFile | None = None

    def record(self) -> dict[str, Any]:
        """JSON-able."""
        return {"file": self.name, "sha256": self.sha256, "start": self.rows.start, "stop": self.rows.stop}

    def check(self) -> None:
        """Raise ArtifactError if a file of the source has changed."""
        if self.source:
            require_unchanged(self.source)


@dataclass(frozen=True)
class DrawTask:
    """Vectors of one partition -> those among which landmarks are chosen. chosen: their rows in the partition."""

    step: ClassVar[str] = "drawn"

    target: str
    number: int
    held: Held
    chosen: tuple[int, ...]

    def record(self) -> dict[str, Any]:
        """As Task."""
        digest = hashlib.sha256(np.array(self.chosen, dtype="<i8").tobytes()).hexdigest()
        return {
            "inputs": [self.held.record()],
            "made_by": made_by("fold"),
            "parameters": {"rows": len(self.chosen), "rows_sha256": digest},
        }

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """One pass over the partition, a block at a time."""
        rows = np.array(self.chosen, dtype=np.int64)
        taken, start = [np.empty((0, self.held.width), dtype=np.float32)], 0
        for block in vectors_of(self.held.rows, size=BLOCK):
            first, last = np.searchsorted(rows, [start, start + len(block)])
            taken.append(block[rows[first:last] - start])
            start += len(block)
        self.held.check()
        write_part(path, iter(taken), width=self.held.width, record=self.record())
        return len(rows), {}


@dataclass(frozen=True)
class LandmarkTask:
    """What every partition drew -> the landmarks, embedded: the one eigenproblem of a run.

    rows  the numbers in the corpus of what was drawn, in the order of the parts
    """

    step: ClassVar[str] = "landmarks"
    number: ClassVar[int] = 0

    target: str
    drawn: tuple[Made, ...]
    rows: tuple[int, ...]
    parameters: LandmarkParameters
    solver: SolverParameters

    def record(self) -> dict[str, Any]:
        """As Task."""
        return {
            "inputs": [part.record() for part in self.drawn],
            "made_by": made_by("fold"),
            "parameters": {"eigensolve": self.solver.model_dump(), "manifold": self.parameters.model_dump()},
        }

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """fit_landmarks on one thread. Raises as it does."""
        parts = [block for part in self.drawn for block in vectors_of(part.whole(self.target), size=BLOCK)]
        numbers: Numbers = np.array(self.rows, dtype=np.int64)
        landmarks = fit_landmarks(np.concatenate(parts), numbers, self.parameters, self.solver, workers=1)
        table = pa.table(
            {
                "row": landmarks.rows,
                "vector": fixed_lists(landmarks.vectors),
                "coordinates": fixed_lists(landmarks.coordinates),
            }
        )
        pq.write_table(
            table, path, compression="none", use_dictionary=False, write_statistics=False, write_page_checksum=True
        )
        return len(landmarks.rows), landmarks.notes


@dataclass(frozen=True)
class MapTask:
    """Vectors of one partition -> their coordinates, by their neighbours among the landmarks."""

    step: ClassVar[str] = "folded"

    target: str
    number: int
    held: Held
    landmarks: Made
    parameters: LandmarkParameters

    def record(self) -> dict[str, Any]:
        """As Task."""
        return {
            "inputs": [self.held.record(), self.landmarks.record()],
            "made_by": made_by("fold"),
            "parameters": {"manifold": self.parameters.model_dump()},
        }

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Neighbours, weights and coordinates of a block at a time, on one thread."""
        landmarks = read_landmarks(str(Path(self.target) / self.landmarks.file), self.landmarks.sha256, self.parameters)
        blocks = (landmarks.map(block, workers=1) for block in vectors_of(self.held.rows, size=BLOCK))
        write_part(path, blocks, width=landmarks.coordinates.shape[1], record=self.record())
        self.held.check()
        return len(self.held.rows), {}


@lru_cache(maxsize=1)
def read_landmarks(path: str, sha256: str, parameters: LandmarkParameters) -> Landmarks:
    """What a LandmarkTask wrote, kept by the process for its next partition. Raises ArtifactError."""
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise unfit(Path(path), expected=f"the landmarks, sha256 {sha256}", got=first_line(error)) from None
    vectors: Vectors = np.ascontiguousarray(read_lists(table, "vector", path=Path(path)))
    coordinates = np.ascontiguousarray(read_lists(table, "coordinates", path=Path(path)))
    return Landmarks(table.column("row").to_numpy(), vectors, coordinates, parameters, {})
