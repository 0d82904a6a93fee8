"""The rows of a partition, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline.artifacts import Vectors
from pipeline.errors import first_line
from pipeline.partitions.plan import Column, Rows, open_parquet, unfit


def texts_of(rows: Rows) -> list[str]:
    """The texts, column `text`. Raises ArtifactError on a null or a damaged page."""
    texts: list[str] = []
    for start, column in _columns(rows, "text", size=len(rows)):
        if column.null_count:
            raise unfit(Path(rows.path), expected="a text in every row", got=f"row {start + _first_null(column)}: null")
        texts.extend(column.to_pylist())
    return texts


def vectors_of(rows: Rows, *, size: int) -> Iterator[Vectors]:
    """The vectors, column `vector`, (m, d) with m <= size. Raises ArtifactError on a null, a NaN or damage."""
    for start, column in _columns(rows, "vector", size=size):
        if column.null_count:
            raise unfit(
                Path(rows.path), expected="a vector in every row", got=f"row {start + _first_null(column)}: null"
            )
        values = column.flatten()
        if values.null_count:
            row = start + _first_null(values) // column.type.list_size
            raise unfit(Path(rows.path), expected="numbers", got=f"row {row}: a null among them")
        vectors: Vectors = values.to_numpy(zero_copy_only=False).reshape(len(column), column.type.list_size)
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if len(bad):
            raise unfit(
                Path(rows.path), expected="finite numbers", got=f"row {start + bad[0]}: {vectors[bad[0]][:4]}..."
            )
        yield vectors


def _first_null(column: pa.Array) -> int:
    return int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))


def _columns(rows: Rows, column: Column, *, size: int) -> Iterator[tuple[int, pa.Array]]:
    """Pieces of the column and the number of the first row of each. Only row groups that hold wanted rows are read."""
    path = Path(rows.path)
    with open_parquet(path) as file:
        groups: list[int] = []
        begin = row = 0
        for number in range(file.metadata.num_row_groups):
            count = file.metadata.row_group(number).num_rows
            if row < rows.stop and row + count > rows.start:
                if not groups:
                    begin = row
                groups.append(number)
            row += count
        if row < rows.stop:
            raise unfit(path, expected=f"{rows.stop} rows", got=f"{row}")
        if not groups:
            return
        batches = file.iter_batches(batch_size=max(size, 1), row_groups=groups, columns=[column])
        while begin < rows.stop:
            try:
                batch = next(batches)
            except (pa.ArrowException, OSError, StopIteration) as error:
                raise unfit(path, expected="pages that match their checksums", got=first_line(error)) from None
            low, high = max(rows.start - begin, 0), min(rows.stop - begin, batch.num_rows)
            if high > low:
                yield begin + low, batch.column(0).slice(low, high - low)
            begin += batch.num_rows
