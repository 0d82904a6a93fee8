"""Large sets of vectors: Parquet in, landmarks, Parquet out, a block of rows at a time."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from pipeline.artifacts import ROW_GROUP, Vectors, fixed_lists
from pipeline.errors import ArtifactError, ParameterError, first_line
from pipeline.manifold.landmarks import Landmarks, Rows, draw_rows, fit_landmarks
from pipeline.manifold.manifolds import LandmarkParameters
from pipeline.manifold.out_of_sample import BLOCK
from pipeline.manifold.solver_bar import solver_bar
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.params import validate

COLUMN = "vector"
RECORD = b"sentfold-landmarks"
BUFFER = 1 << 20  # bytes of a column that are read ahead; without a buffer a whole row group is


def map_parquet(
    source: Path,
    target: Path,
    parameters: LandmarkParameters,
    solver: SolverParameters,
    *,
    block: int = BLOCK,
    workers: int = 2,
    verbose: bool = False,
) -> dict[str, Any]:
    """Embed the vectors of Parquet files by landmarks among them, into one Parquet file.

    source   a Parquet file with a column `vector` of fixed_size_list<float32>, or a folder of such files,
             which are read in the order of their names; other columns are not read
    target   gets a column `vector`, (n, p) float32, row for row; it appears whole or not at all, and
             replaces what stands there
    block    rows mapped at a time; workers: threads. Neither changes a byte.
    verbose  show progress on stderr
    Returns what was counted and certified; the target's metadata hold the same under `sentfold-landmarks`,
    with the parameters and the sha256 of the landmarks' rows (int64, little-endian).
    Two passes over the source: one takes the landmarks, one maps. Memory: O(L d), one row group of the
    target and O(block d), whatever n and the row groups of the source are.
    Raises ArtifactError if the source is no such file, holds a vector that is not finite, or the disk
    refuses; ParameterError and SolverError as fit_landmarks does.
    """
    with VectorFiles(source) as files:
        _refuse_target(target, files.paths)
        drawn = draw_rows(files.rows, parameters)
        with tqdm(total=files.rows, desc="reading landmarks", unit="row", disable=not verbose) as bar:
            vectors = files.take(drawn, bar)
        with solver_bar(disable=not verbose) as progress:
            landmarks = fit_landmarks(vectors, drawn, parameters, solver, workers=workers, progress=progress)
        del vectors
        schema = pa.schema([(COLUMN, pa.list_(pa.float32(), landmarks.coordinates.shape[1]))])
        record = _record(landmarks, solver, files)
        with (
            appearing(target) as temporary,
            VectorSink(temporary, schema.with_metadata({RECORD: json.dumps(record, sort_keys=True)})) as sink,
            tqdm(total=files.rows, desc="mapping", unit="row", disable=not verbose) as bar,
        ):
            for part in files.blocks(block):
                sink.write(landmarks.map(part, block=block, workers=workers))
                bar.update(len(part))
    return record


def embed_large(
    source: Path,
    target: Path,
    *,
    landmarks: int = 10_000,
    selection: str = "random",
    neighbors: int = 30,
    components: int = 128,
    regularization: float = 1e-3,
    scaling: str = "unit",
    seed: int = 0,
    tolerance: float = 1e-3,
    workers: int = 2,
    verbose: bool = True,
) -> dict[str, Any]:
    """map_parquet with its parameters by name, checked. Raises ParameterError naming the first that is wrong."""
    block = {
        "method": "lle-landmark",
        "landmarks": landmarks,
        "selection": selection,
        "neighbors": neighbors,
        "regularization": regularization,
        "components": components,
        "scaling": scaling,
        "seed": seed,
    }
    chosen = validate(LandmarkParameters, block, where="map-landmarks")
    solver = validate(
        SolverParameters, {"tolerance": tolerance, "null_tolerance": 1e-10, "seed": seed}, where="map-landmarks"
    )
    return map_parquet(source, target, chosen, solver, workers=workers, verbose=verbose)


def _record(landmarks: Landmarks, solver: SolverParameters, files: VectorFiles) -> dict[str, Any]:
    return {
        "eigensolve": solver.model_dump(),
        "landmark_rows_sha256": hashlib.sha256(landmarks.rows.astype("<i8").tobytes()).hexdigest(),
        "notes": landmarks.notes,
        "parameters": landmarks.parameters.model_dump(),
        "rows": files.rows,
    }


# --- reading -----------------------------------------------------------------------------------


class VectorFiles:
    """The column `vector` of one Parquet file, or of every one in a folder, as one long array of rows.

    paths  of the files, in the order of their names; rows: of all together; width: d
    """

    def __init__(self, source: Path) -> None:
        self.paths = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
        if not self.paths:
            raise ArtifactError(
                "a folder holds no vectors", where=str(source), expected="*.parquet files", got="none of them"
            )
        self._files: list[pq.ParquetFile] = []
        try:
            for path in self.paths:
                self._files.append(_open(path))
            widths = [_width(path, file.schema_arrow) for path, file in zip(self.paths, self._files, strict=True)]
            self.rows, self.width = sum(file.metadata.num_rows for file in self._files), widths[0]
            for path, width in zip(self.paths, widths, strict=True):
                if width != self.width:
                    raise _unfit(path, expected=f"vectors of width {self.width}, as in {self.paths[0]}", got=str(width))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> VectorFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def blocks(self, size: int) -> Iterator[Vectors]:
        """All rows in order, at most `size` at a time. Raises ArtifactError on a damaged or missing value."""
        for path, file in zip(self.paths, self._files, strict=True):
            row = 0
            batches = file.iter_batches(batch_size=size, columns=[COLUMN])
            while True:
                try:
                    batch = next(batches, None)
                except (pa.ArrowException, OSError) as error:
                    raise _unfit(path, expected="pages that match their checksums", got=first_line(error)) from None
                if batch is None:
                    break
                yield self._checked(path, row, batch.column(0))
                row += batch.num_rows

    def take(self, rows: Rows, bar: tqdm[Any]) -> Vectors:
        """These rows, ascending, (len(rows), d), in one pass over all."""
        taken = np.empty((len(rows), self.width), dtype=np.float32)
        start = 0
        for part in self.blocks(BLOCK):
            first, last = np.searchsorted(rows, [start, start + len(part)])
            taken[first:last] = part[rows[first:last] - start]
            start += len(part)
            bar.update(len(part))
        return taken

    def _checked(self, path: Path, row: int, column: pa.FixedSizeListArray) -> Vectors:
        values = column.flatten()
        if column.null_count or values.null_count:
            raise _unfit(path, expected="a vector in every row", got=f"a null in rows {row} to {row + len(column) - 1}")
        vectors: Vectors = values.to_numpy(zero_copy_only=False).reshape(len(column), self.width)
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise _unfit(path, expected="finite numbers", got=f"row {row + bad[0]}: {vectors[bad[0]][:4]}...")
        return vectors


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)
    except FileNotFoundError:
        raise ArtifactError("a file of vectors is missing", where=str(path), got="no such file") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unfit(path, expected="a whole Parquet file", got=first_line(error)) from None


def _width(path: Path, schema: pa.Schema) -> int:
    held = schema.field(COLUMN).type if COLUMN in schema.names else None
    if held is None or not pa.types.is_fixed_size_list(held) or held.value_type != pa.float32():
        raise _unfit(
            path, expected=f"a column `{COLUMN}` of fixed_size_list<float32>[d]", got=str(held or schema.names)
        )
    width: int = held.list_size
    return width


def _unfit(path: Path, *, expected: str, got: str) -> ArtifactError:
    return ArtifactError(
        "a file of vectors cannot be used",
        where=str(path),
        expected=expected,
        got=got,
        remedy="write the file again",
    )


# --- writing -----------------------------------------------------------------------------------


class VectorSink:
    """A Parquet file of vectors that grows; its row groups, and so its bytes, do not show how it was fed."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
            use_compliant_nested_type=False,
        )
        self._schema = schema
        self._waiting = np.empty((ROW_GROUP, schema.field(COLUMN).type.list_size), dtype=np.float32)
        self._held = 0

    def __enter__(self) -> VectorSink:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            self._writer.close()

    def write(self, vectors: Vectors) -> None:
        """Append (m, p) rows."""
        start = 0
        while start < len(vectors):
            part = vectors[start : start + ROW_GROUP - self._held]
            self._waiting[self._held : self._held + len(part)] = part
            self._held += len(part)
            start += len(part)
            if self._held == ROW_GROUP:
                self._flush()

    def _flush(self) -> None:
        if self._held:
            column = fixed_lists(self._waiting[: self._held])
            self._writer.write_table(pa.table([column], schema=self._schema), row_group_size=ROW_GROUP)
            self._held = 0


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A temporary name beside `target`; what was written there gets the target's name if nothing failed.

    Raises ArtifactError when the disk refuses; whatever stood at `target` before then still stands.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        yield temporary
        _fsync(temporary)
        temporary.replace(target)
        _fsync(target.parent)
    except OSError as error:
        raise ArtifactError(
            "cannot write a file of vectors",
            where=str(target),
            got=f"{errno.errorcode.get(error.errno or 0, 'OSError')}: {error.strerror or first_line(error)}",
            state="no partial file was left",
            remedy="free space, or make the folder writable, and run again",
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sweep(target: Path) -> None:
    """Remove what a killed writer of the same target left behind."""
    for stale in target.parent.glob(f".{target.name}.*.tmp"):
        if not Path("/proc", stale.name.split(".")[-2]).exists():
            stale.unlink(missing_ok=True)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_target(target: Path, sources: list[Path]) -> None:
    where = target.absolute()
    if where.is_dir() or where.resolve() in {path.resolve() for path in sources}:
        raise ParameterError(
            "the target cannot be written there",
            where=str(target),
            expected="a file that is none of the sources",
            got="a folder" if where.is_dir() else "a source",
        )
