"""The tasks of a fold: encode the texts of a partition, embed the landmarks, map a partition by the landmarks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_info

from sentfold.errors import first_line
from sentfold.files import FREE, PARQUET, RATIO, fixed_lists, read_bounded, require_regular
from sentfold.fold.parts import write_vectors
from sentfold.fold.source import Rows, read_texts, read_vectors, require_unchanged, take_vectors, unfit
from sentfold.fold.texts import TextEncoder
from sentfold.manifold.base.local import BLOCK
from sentfold.manifold.base.protocol import SolverSettings
from sentfold.manifold.landmark import Landmarks, draw_rows, fit_landmarks
from sentfold.manifold.landmark import Settings as LandmarkSettings
from sentfold.manifold.solver.eigensolver import solver_bar

Family = Literal["embed", "fold"]

# What decides the bytes of a part. A change of the manifold's code encodes no text again, which costs the most.
CODE: dict[Family, tuple[str, ...]] = {
    "embed": ("encoders/*.py", "words/*.py", "fold/source.py", "fold/texts.py"),
    "fold": ("fold/*.py", "kernels/*.py", "manifold/**/*.py", "neighbors/*.py"),
}
LIBRARIES: dict[Family, tuple[str, ...]] = {
    "embed": ("numpy", "pyarrow", "sentence-transformers", "tokenizers", "torch", "transformers"),
    "fold": ("numba", "numpy", "pyarrow", "scipy"),
}


@cache
def code_of(family: Family) -> dict[str, str]:
    """sha256 of the code, versions of the libraries, kernels of BLAS: parts of other ones are made again."""
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted({path for pattern in CODE[family] for path in root.glob(pattern)}):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return {
        "code": digest.hexdigest(),
        "kernels": _kernels(),
        **{name: _version(name) for name in LIBRARIES[family]},
    }


def _kernels() -> str:
    """For which processors this process's BLAS chose its loops, e.g. Haswell: others round differently."""
    return " ".join(sorted({str(blas.get("architecture")) for blas in threadpool_info() if blas["user_api"] == "blas"}))


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


@dataclass(frozen=True)
class EmbedTask:
    """Texts of a partition -> their vectors, row for row."""

    step: ClassVar[str] = "vectors"

    target: str
    number: int
    texts: Rows
    encoder: TextEncoder

    def record(self) -> dict[str, Any]:
        """As Task."""
        return {
            "inputs": [self.texts.record()],
            "made_by": code_of("embed"),
            "parameters": {"encoder": self.encoder.record()},
        }

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Encode and write; memory O(partition). Raises as read_texts and the encoder do."""
        texts = read_texts(self.texts)
        require_unchanged(self.texts)
        encoded = self.encoder.encode(texts)
        count, width = encoded.vectors.shape
        write_vectors(path, [encoded.vectors], width=width, record=self.record())
        return count, {**encoded.fallbacks, "dimension": width}

    def inputs(self) -> tuple[Rows, ...]:
        """As Task."""
        return (self.texts,)

    def moved(self, target: Path, copies: Path) -> Self:
        """As Task."""
        return replace(self, target=str(target), texts=self.texts.in_copy(copies))


@dataclass(frozen=True)
class LandmarkTask:
    """Vectors of all partitions -> the landmarks and their coordinates: the one eigenproblem of a fold.

    threads  change no byte
    """

    step: ClassVar[str] = "landmarks"
    number: ClassVar[int] = 0

    target: str
    vectors: tuple[Rows, ...]
    parameters: LandmarkSettings
    solver: SolverSettings
    threads: int = 1

    def record(self) -> dict[str, Any]:
        """As Task."""
        return {
            "inputs": [part.record() for part in self.vectors],
            "made_by": code_of("fold"),
            "parameters": {"eigensolve": self.solver.model_dump(), "manifold": self.parameters.model_dump()},
        }

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Draw rows from all partitions in one pass, then as fit_landmarks. Raises as it does."""
        numbers = draw_rows(sum(map(len, self.vectors)), self.parameters)
        drawn = take_vectors(self.vectors, numbers, size=BLOCK)
        with solver_bar() as progress:
            landmarks = fit_landmarks(
                drawn, numbers, self.parameters, self.solver, workers=self.threads, progress=progress
            )
        columns = {
            "row": landmarks.rows,
            "vector": fixed_lists(landmarks.vectors),
            "coordinates": fixed_lists(landmarks.coordinates),
        }
        pq.write_table(pa.table(columns), path, **PARQUET)
        return len(landmarks.rows), landmarks.notes

    def inputs(self) -> tuple[Rows, ...]:
        """As Task."""
        return self.vectors

    def moved(self, target: Path, copies: Path) -> Self:
        """As Task."""
        return replace(self, target=str(target), vectors=tuple(part.in_copy(copies) for part in self.vectors))


@dataclass(frozen=True)
class MapTask:
    """Vectors of a partition -> their coordinates, by their neighbours among the landmarks.

    threads  change no byte
    """

    step: ClassVar[str] = "folded"

    target: str
    number: int
    vectors: Rows
    landmarks: Rows
    parameters: LandmarkSettings
    threads: int = 1

    def record(self) -> dict[str, Any]:
        """As Task."""
        return {
            "inputs": [self.vectors.record(), self.landmarks.record()],
            "made_by": code_of("fold"),
            "parameters": {"manifold": self.parameters.model_dump()},
        }

    def write(self, path: Path) -> tuple[int, dict[str, Any]]:
        """Neighbours, weights and coordinates of a block of rows at a time."""
        landmarks = read_landmarks(self.landmarks.path, self.landmarks.sha256, self.parameters)
        if landmarks.vectors.shape[1] != self.vectors.width:
            got = f"{landmarks.vectors.shape[1]}"
            raise unfit(Path(self.landmarks.path), expected=f"landmarks of {self.vectors.width} dimensions", got=got)
        blocks = (landmarks.map(block, workers=self.threads) for block in read_vectors(self.vectors, size=BLOCK))
        write_vectors(path, blocks, width=landmarks.coordinates.shape[1], record=self.record())
        require_unchanged(self.vectors)
        return len(self.vectors), {}

    def inputs(self) -> tuple[Rows, ...]:
        """As Task."""
        return self.vectors, self.landmarks

    def moved(self, target: Path, copies: Path) -> Self:
        """As Task."""
        vectors, landmarks = self.vectors.in_copy(copies), self.landmarks.in_copy(copies)
        return replace(self, target=str(target), vectors=vectors, landmarks=landmarks)


@lru_cache(maxsize=1)
def read_landmarks(path: str, sha256: str, parameters: LandmarkSettings) -> Landmarks:
    """What a LandmarkTask wrote, which the process keeps for its next partition. Raises ArtifactError."""
    file = Path(path)
    try:
        require_regular(file)
        open_file = partial(pq.ParquetFile, file, page_checksum_verification=True)
        table = read_bounded(open_file, FREE + RATIO * file.stat().st_size)
        vectors, coordinates = (_array(table, name) for name in ("vector", "coordinates"))
        if table.schema.field("row").type != pa.int64() or table.column("row").null_count:
            raise ValueError("the numbers of the rows are no integers")
        if len(table) <= parameters.neighbors:
            raise ValueError(f"{len(table)} landmarks")
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise unfit(file, expected=f"the landmarks, sha256 {sha256}", got=first_line(error)) from None
    return Landmarks(table.column("row").to_numpy(), vectors, coordinates, parameters, {})


def _array(table: pa.Table, column: str) -> np.ndarray[Any, np.dtype[Any]]:
    """A column of lists of one length, (n, d). Raises KeyError, and ValueError for what is no finite number."""
    kind, flat = table.schema.field(column).type, table.column(column).combine_chunks()
    if not pa.types.is_fixed_size_list(kind) or kind.value_type not in (pa.float32(), pa.float64()):
        raise ValueError(f"the column {column} is {kind}")
    array = np.asarray(flat.flatten()).reshape(len(flat), kind.list_size)
    if flat.null_count or not np.isfinite(array).all():
        raise ValueError(f"the column {column} holds other things than finite numbers")
    return array
