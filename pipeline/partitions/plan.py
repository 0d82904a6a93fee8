"""Which rows of which file each task takes: decided by the files' footers alone, the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.artifacts import sha256_of
from pipeline.errors import ArtifactError, ParameterError, first_line

Column = Literal["text", "vector"]

ROWS = 16_384  # of a partition: what a killed worker has to do again
MOST = 100_000  # partitions; their names have five digits
BUFFER = 1 << 20  # bytes of a column that are read ahead; without a buffer a whole row group is


@dataclass(frozen=True)
class SourceFile:
    """A file of the source, as its footer describes it.

    path       absolute; name: within the source, which is what records hold
    groups     rows of each row group; stamp: its size and time of change when it was planned
    """

    path: str
    name: str
    groups: tuple[int, ...]
    stamp: tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """Rows start..stop-1 of a Parquet file."""

    path: str
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Partition:
    """Rows of one file of the source; first: the number of the first of them in the whole corpus."""

    number: int
    file: SourceFile
    rows: Rows
    first: int


@dataclass(frozen=True)
class Plan:
    """The partitions of a source, in the order of its rows.

    column  what is read; width: d of the vectors, None for texts
    """

    column: Column
    width: int | None
    files: tuple[SourceFile, ...]
    partitions: tuple[Partition, ...]

    @property
    def rows(self) -> int:
        """Of the whole corpus."""
        return sum(len(partition.rows) for partition in self.partitions)


def plan_partitions(source: Path, column: Column, *, rows: int = ROWS) -> Plan:
    """Cut a Parquet file, or a folder of them in the order of their names, into partitions.

    rows  a partition takes whole row groups of one file while it has no more rows than this; a row group
          that is larger by itself is cut into nearly equal ranges. The workers change nothing.
    Raises ArtifactError if a file is missing, no Parquet, or has not the column that the others have;
    ParameterError if there are too many partitions. Reads footers only.
    """
    paths = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    if not paths:
        raise ArtifactError("a folder holds no dataset", where=str(source), expected="*.parquet files", got="none")
    files, widths = [], []
    for path in paths:
        with open_parquet(path) as file:
            widths.append(_width(path, file.schema_arrow, column))
            counts = tuple(file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups))
        files.append(SourceFile(str(path.absolute()), path.name, counts, stamp_of(path)))
        if widths[-1] != widths[0]:
            raise unfit(path, expected=f"vectors of width {widths[0]}, as in {paths[0]}", got=f"width {widths[-1]}")
    partitions: list[Partition] = []
    first = 0
    for file in files:
        for start, stop in _ranges(file.groups, rows):
            partitions.append(Partition(len(partitions), file, Rows(file.path, start, stop), first))
            first += stop - start
    if not 1 <= len(partitions) <= MOST:
        raise ParameterError(
            "the dataset cannot be partitioned so",
            where=str(source),
            expected=f"1 to {MOST} partitions",
            got=f"{len(partitions)} of at most {rows} rows",
            remedy="raise the rows per partition" if partitions else "give a dataset with rows",
        )
    return Plan(column, widths[0], tuple(files), tuple(partitions))


def _ranges(groups: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that begin and end with row groups, but for groups of more than `most` rows."""
    start = stop = 0
    for count in groups:
        if stop > start and stop - start + count > most:
            yield start, stop
            start = stop
        if count > most:
            pieces = -(-count // most)
            edges = [start + count * piece // pieces for piece in range(pieces + 1)]
            yield from pairwise(edges)
            start = stop = start + count
        else:
            stop += count
    if stop > start:
        yield start, stop


def digest_of(file: SourceFile) -> str:
    """sha256 of a file of the source. Raises ArtifactError if it is gone or has changed since it was planned."""
    require_unchanged(file)
    try:
        return sha256_of(Path(file.path))
    except OSError as error:
        raise unfit(Path(file.path), expected="a file that can be read", got=first_line(error)) from None


def require_unchanged(file: SourceFile) -> None:
    """ArtifactError unless the file is as large and as old as when it was planned."""
    try:
        stamp = stamp_of(Path(file.path))
    except OSError as error:
        raise unfit(Path(file.path), expected="the file that was planned", got=first_line(error)) from None
    if stamp != file.stamp:
        raise ArtifactError(
            "a file of the source has changed while it was read",
            where=file.path,
            state="finished parts are kept",
            remedy="run again: what was made from the old file is made again",
        )


def stamp_of(path: Path) -> tuple[int, int]:
    """Size, and time of change in nanoseconds."""
    held = path.stat()
    return held.st_size, held.st_mtime_ns


def open_parquet(path: Path) -> pq.ParquetFile:
    """A Parquet file, page checksums to be verified. Raises ArtifactError."""
    try:
        return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)
    except FileNotFoundError:
        raise ArtifactError("a file of the dataset is missing", where=str(path), got="no such file") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unfit(path, expected="a whole Parquet file", got=first_line(error)) from None


def _width(path: Path, schema: pa.Schema, column: Column) -> int | None:
    held = schema.field(column).type if schema.names.count(column) == 1 else None
    if column == "text":
        if held not in (pa.string(), pa.large_string()):
            raise unfit(path, expected="a column `text` of strings", got=str(held or schema.names))
        return None
    if held is None or not pa.types.is_fixed_size_list(held) or held.value_type != pa.float32():
        raise unfit(path, expected="a column `vector` of fixed_size_list<float32>[d]", got=str(held or schema.names))
    width: int = held.list_size
    return width


def unfit(path: Path, *, expected: str, got: str) -> ArtifactError:
    """A file of the dataset is not what it must be."""
    return ArtifactError(
        "a file of the dataset cannot be used",
        where=str(path),
        expected=expected,
        got=got,
        state="finished parts are kept",
        remedy="write the file again",
    )
