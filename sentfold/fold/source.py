"""The texts or vectors to fold: Parquet files, cut into partitions and read a block at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentfold.data.tables import PARTS, part_of, refuse_holes
from sentfold.errors import ArtifactError, ParameterError, first_line
from sentfold.files import BATCH, FREE, RATIO, Vectors, require_regular, sha256_of, written_out_bytes

Column = Literal["text", "vector"]

ROWS = 16_384  # of a partition: the most that a killed process has to compute again
MOST = 100_000  # partitions; their names have five digits
BUFFER = 1 << 20  # bytes of a column that are read ahead; without a buffer Arrow reads a whole row group


@dataclass(frozen=True)
class SourceFile:
    """A file of the source, as its footer describes it.

    path    absolute; its last part is the name in records
    groups  rows of each row group
    width   d of the vectors, 0 for texts
    stamp   size and time of change, by which a later change is noticed
    """

    path: str
    groups: tuple[int, ...]
    width: int
    stamp: tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """Rows start to stop - 1 of a Parquet file.

    path    of the file; name: what records call the file
    sha256  of the whole file
    width   d of the vectors, 0 for texts
    stamp   as in SourceFile; None for a file that the fold itself made
    """

    path: str
    name: str
    sha256: str
    width: int
    start: int
    stop: int
    stamp: tuple[int, int] | None = None

    def __len__(self) -> int:
        return self.stop - self.start

    def record(self) -> dict[str, Any]:
        """What identifies the rows, JSON-able: no folder, no time."""
        return {"file": self.name, "sha256": self.sha256, "start": self.start, "stop": self.stop}

    @property
    def copy_name(self) -> str:
        """What a copy of the whole file is called on a machine that does not see the file."""
        return f"{self.sha256}.parquet"

    def in_copy(self, folder: Path) -> Rows:
        """The same rows in the copy that `folder` has."""
        return replace(self, path=str(folder / self.copy_name), stamp=None)


# --- files and partitions ---------------------------------------------------------------------------


def list_source(source: Path, column: Column) -> tuple[SourceFile, ...]:
    """The Parquet file `source`, or the Parquet files of the folder `source` in the order of their names.

    Where the names differ by numbers alone, part-2.parquet comes before part-10.parquet: programs that write parts
    count so. Files that are all named after the parts of a data set come in the order train, dev, test.
    Reads the footers only. Raises ArtifactError if a file is missing, is no Parquet, or lacks the column, or if the
    vectors of two files differ in width.
    """
    paths = [source]
    if source.is_dir():
        found = (path for path in source.iterdir() if path.suffix.lower() == ".parquet")
        paths = _in_order(path for path in found if not path.name.startswith((".", "_")))  # others are old copies
    if not paths:
        raise ArtifactError("a folder holds no dataset", where=str(source), expected="*.parquet files", got="none")
    files = []
    for path in paths:
        with open_parquet(path) as file:
            width = _width(path, file.schema_arrow, column)
            groups = _row_groups(path, file, width)
        files.append(SourceFile(str(path.absolute()), groups, width, _stamp(path)))
        if width != files[0].width:
            raise unfit(path, expected=f"vectors of width {files[0].width}, as in {paths[0]}", got=f"width {width}")
    return tuple(files)


def _in_order(paths: Iterable[Path]) -> list[Path]:
    """By part, as the other commands read a folder; or by name, but by number where all else in the names is the same.

    Hashes in names are no numbers.
    """
    ordered = sorted(paths)
    parts = [part_of(path) for path in ordered]
    if all(parts):
        keys = {path: (PARTS.index(part[0]), part[1]) for path, part in zip(ordered, parts, strict=True) if part}
        return sorted(ordered, key=lambda path: keys[path])
    if len({re.sub("[0-9]+", "0", path.name) for path in ordered}) > 1:
        return ordered
    return sorted(ordered, key=lambda path: [int(digits) for digits in re.findall("[0-9]+", path.name)])


def _row_groups(path: Path, file: pq.ParquetFile, width: int) -> tuple[int, ...]:
    """The rows of each row group. Raises ArtifactError for numbers that no file of this size can have."""
    total = file.metadata.num_rows
    groups = tuple(file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups))
    _refuse_oversize(path, 4 * max(width, 1) * max(sum(groups), total))
    _refuse_oversize(path, sum(file.metadata.row_group(group).total_byte_size for group in range(len(groups))))
    if min(groups, default=0) < 0 or sum(groups) != total:
        raise unfit(path, expected="row groups that have the rows of the file", got=f"{total} rows in {groups[:5]}")
    return groups


def digest_of(file: SourceFile) -> str:
    """sha256 of a file of the source. Raises ArtifactError if the file is gone or has changed."""
    _require_unchanged(file.path, file.stamp)
    try:
        return sha256_of(Path(file.path))
    except OSError as error:
        raise unfit(Path(file.path), expected="a file that can be read", got=first_line(error)) from None


def cut_partitions(files: Sequence[SourceFile], digests: Sequence[str], *, rows: int = ROWS) -> tuple[Rows, ...]:
    """The partitions of all files, in the order of the rows.

    digests  sha256 of each file
    rows     a partition takes whole row groups of one file while it has at most that many rows. A larger row group
             is cut into nearly equal ranges.
    Raises ParameterError if there are no rows, or too many partitions.
    """
    partitions = tuple(
        Rows(file.path, Path(file.path).name, digest, file.width, start, stop, file.stamp)
        for file, digest in zip(files, digests, strict=True)
        for start, stop in _ranges(file.groups, rows)
    )
    if not 1 <= len(partitions) <= MOST:
        raise ParameterError(
            "the dataset cannot be partitioned so",
            where=str(Path(files[0].path).parent),
            expected=f"1 to {MOST} partitions",
            got=f"{len(partitions)} of at most {rows} rows",
            remedy="raise the rows per partition" if partitions else "give a dataset with rows",
        )
    return partitions


def _ranges(groups: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that begin and end with row groups, except in groups of more than `most` rows."""
    start = stop = 0
    for count in groups:
        if stop > start and stop - start + count > most:
            yield start, stop
            start = stop
        if count > most:
            pieces = -(-count // most)
            yield from pairwise([start + count * piece // pieces for piece in range(pieces + 1)])
            start = stop = start + count
        else:
            stop += count
    if stop > start:
        yield start, stop


def require_unchanged(rows: Rows) -> None:
    """Raise ArtifactError if a file of the source has another size or age than when it was listed."""
    if rows.stamp is not None:
        _require_unchanged(rows.path, rows.stamp)


def _require_unchanged(path: str, stamp: tuple[int, int]) -> None:
    try:
        now = _stamp(Path(path))
    except OSError as error:
        raise unfit(Path(path), expected="the file that was listed", got=first_line(error)) from None
    if now != stamp:
        raise ArtifactError(
            "a file of the source changed while it was read",
            where=path,
            state="finished parts are kept",
            remedy="run again: parts made from the old file are made again",
        )


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


# --- reading ----------------------------------------------------------------------------------------


def open_parquet(path: Path, *, texts: Sequence[str] = ()) -> pq.ParquetFile:
    """A Parquet file whose page checksums are verified. Raises ArtifactError.

    texts  columns that are read as dictionaries: in these a text that a million rows refer to is there once
    """
    try:
        require_regular(path)
        refuse_holes(path)
        whole = path.absolute()  # pyarrow takes names with a colon for addresses
        return pq.ParquetFile(
            whole, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True, read_dictionary=list(texts)
        )
    except FileNotFoundError:
        raise ArtifactError("a file of the dataset is missing", where=str(path), got="no such file") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        remedy = "write the file again"
        if path.suffix.lower() in (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".txt"):
            made = f"sentfold encode {quote(str(path))} --encoder NAME --out vectors.parquet"
            remedy = f"`{made}`, and fold vectors.parquet"
        if path.suffix.lower() in (".npy", ".npz", ".safetensors"):
            remedy = "save the vectors as Parquet with their texts: columns text, vector"
        raise unfit(path, expected="a whole Parquet file", got=first_line(error), remedy=remedy) from None


def _refuse_oversize(path: Path, size: int) -> None:
    """Raise ArtifactError if rows take more memory than files of this size may: some bytes can stand for gigabytes."""
    most = FREE + RATIO * path.stat().st_size
    if size > most:
        raise unfit(path, expected=f"rows of at most {most:,} bytes in a file of this size", got=f"{size:,} or more")


def read_texts(rows: Rows) -> list[str]:
    """The texts of column `text`. Raises ArtifactError on a null or a damaged page."""
    texts: list[str] = []
    for start, column in _batches(rows, "text", size=len(rows)):
        if column.null_count:
            row = start + _first_null(column)
            raise unfit(Path(rows.path), expected="a text in every row", got=f"row {row}: null")
        texts.extend(column.to_pylist())
    return texts


def read_vectors(rows: Rows, *, size: int) -> Iterator[Vectors]:
    """The vectors of column `vector`, (m, d) float32, m <= size. Raises ArtifactError on a null, a NaN or damage."""
    path = Path(rows.path)
    for start, column in _batches(rows, "vector", size=size):
        if column.null_count:
            raise unfit(path, expected="a vector in every row", got=f"row {start + _first_null(column)}: null")
        values = column.flatten()
        if values.null_count:
            row = start + _first_null(values) // column.type.list_size
            raise unfit(path, expected="numbers", got=f"row {row}: a null in the vector")
        vectors: Vectors = values.to_numpy(zero_copy_only=False).reshape(len(column), column.type.list_size)
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise unfit(path, expected="finite numbers", got=f"row {start + bad[0]}: {vectors[bad[0]][:4]}...")
        yield vectors


def take_vectors(partitions: Sequence[Rows], numbers: np.ndarray[Any, np.dtype[np.int64]], *, size: int) -> Vectors:
    """The vectors of some rows, (len(numbers), d) float32.

    numbers  ascending; counted from 0 through all partitions
    size     rows read at a time
    Only partitions that have such a row are read. Raises as read_vectors and require_unchanged do.
    """
    taken = np.empty((len(numbers), partitions[0].width), dtype=np.float32)
    done = begin = 0
    for part in partitions:
        end = begin + len(part)
        if done < len(numbers) and numbers[done] < end:
            for block in read_vectors(part, size=size):
                last = int(np.searchsorted(numbers, begin + len(block)))
                taken[done:last] = block[numbers[done:last] - begin]
                done, begin = last, begin + len(block)
            require_unchanged(part)
        begin = end
    return taken


def _batches(rows: Rows, column: Column, *, size: int) -> Iterator[tuple[int, pa.Array]]:
    """Pieces of a column, and the number of the first row of each. Only row groups with wanted rows are read."""
    path, total = Path(rows.path), 0
    with open_parquet(path, texts=["text"] if column == "text" else []) as file:
        width = _width(path, file.schema_arrow, column) if column == "vector" else 0
        counts = _row_groups(path, file, width)
        if rows.width not in (0, width):
            raise unfit(path, expected=f"vectors of width {rows.width}", got=f"width {width}")
        if sum(counts) < rows.stop:
            raise unfit(path, expected=f"{rows.stop} rows", got=f"{sum(counts)}")
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
        groups = [g for g in range(len(counts)) if starts[g] < rows.stop and starts[g + 1] > rows.start]
        begin = int(starts[groups[0]]) if groups else rows.stop
        # Texts come group by group, as each group has a dictionary of its own.
        portions, most = ([[group] for group in groups], BATCH) if column == "text" else ([groups], max(size, 1))
        batches = (
            batch.column(0)
            for portion in portions
            for batch in file.iter_batches(batch_size=most, row_groups=portion, columns=[column])
        )
        while begin < rows.stop:
            try:
                batch = next(batches)
            except (pa.ArrowException, OSError, StopIteration) as error:
                raise unfit(path, expected="pages that match their checksums", got=first_line(error)) from None
            low, high = max(rows.start - begin, 0), min(rows.stop - begin, len(batch))
            if high > low:
                piece = batch.slice(low, high - low)
                if column == "text":
                    total += written_out_bytes(piece)
                    _refuse_oversize(path, total)
                    piece = piece.cast(pa.large_string())
                yield begin + low, piece
            begin += len(batch)


def _first_null(column: pa.Array) -> int:
    return int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))


def _width(path: Path, schema: pa.Schema, column: Column) -> int:
    """d of the vectors, 0 for texts. Raises ArtifactError if the column is missing or has another type."""
    kind = schema.field(column).type if schema.names.count(column) == 1 else None
    if kind is None:
        remedy = f"t = pq.read_table(OLD); pq.write_table(t.rename_columns({{NAME: '{column}'}}), NEW)"
        remedy += ", where NAME is the column that holds them"
        remedy += "; or, for a file of texts in a column `text`, name an encoder: --encoder" * (column == "vector")
        raise unfit(path, expected=f"a column `{column}`", got=", ".join(schema.names), remedy=remedy)
    if column == "text":
        if kind not in (pa.string(), pa.large_string()):
            remedy = _recast("text", "pa.string()")
            raise unfit(path, expected="a column `text` of strings", got=str(kind), remedy=remedy)
        return 0
    if not pa.types.is_fixed_size_list(kind) or kind.value_type != pa.float32():
        expected = "a column `vector` of fixed_size_list<float32>[d]"
        remedy = f"{_recast('vector', 'pa.list_(pa.float32(), D)')}, where D is the dimension"
        raise unfit(path, expected=expected, got=str(kind), remedy=remedy)
    width: int = kind.list_size
    return width


def _recast(column: str, kind: str) -> str:
    """What to do in Python, with pyarrow as pa and pyarrow.parquet as pq, about a column of another type."""
    return (
        f"t = pq.read_table(OLD); pq.write_table(t.set_column(t.column_names.index('{column}'), '{column}', "
        f"t['{column}'].cast({kind})), NEW)"
    )


def unfit(path: Path, *, expected: str, got: str, remedy: str = "write the file again") -> ArtifactError:
    """The error for a file of the dataset that is not what it must be."""
    return ArtifactError(
        "a file of the dataset cannot be used",
        where=str(path),
        expected=expected,
        got=got,
        state="finished parts are kept",
        remedy=remedy,
    )
