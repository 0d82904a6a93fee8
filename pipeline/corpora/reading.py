"""One split as a source delivers it, and the checks of its columns, types and number of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa

from pipeline.corpora.catalogue import Dataset
from sentfold.errors import SourceError, first_line
from sentfold.files import read_parquet

# The columns that every source must deliver, per task. Other columns are dropped.
COLUMNS: Mapping[str, dict[str, type[pl.DataType]]] = {
    "similarity": {"sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64, "subset": pl.String},
    "regression": {"sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64, "subset": pl.String},
    "classification": {"text": pl.String, "label": pl.Int64},
    "paraphrase": {"sentence1": pl.String, "sentence2": pl.String, "label": pl.Int64},
    "clustering": {"text": pl.String, "label": pl.Int64, "label_name": pl.String},
    "ranking": {
        "query_id": pl.String,
        "query": pl.String,
        "candidate_id": pl.String,
        "candidate": pl.String,
        "relevance": pl.Int64,
        "rank": pl.Int64,
    },
    "retrieval": {
        "query_id": pl.String,
        "query": pl.String,
        "document_id": pl.String,
        "document": pl.String,
        "relevance": pl.Int64,
    },
    "inference": {"premise": pl.String, "hypothesis": pl.String, "label": pl.Int64},
    "example": {"sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64, "subset": pl.String},
    "counts": {"word": pl.String, "count": pl.Int64},
}


# A table may have FREE_CELLS cells, and CELLS for each byte of its file. A CSV file has at most one for each byte.
FREE_CELLS, CELLS = 8 << 20, 12

# The values of a column that a measure has a meaning for, per task.
MEANINGS = {"inference": ("label", (0, 1, 2)), "ranking": ("relevance", (0, 1))}


@dataclass(frozen=True)
class Reading:
    """One split as it was read.

    frame     the canonical columns of the task, in the order of the source
    source    "package", "mirror", "hub", "archive", "inline" or "own"
    files     name of each file, without a path of this machine -> sha256
    replaced  number of characters that are U+FFFD because their bytes were not valid in the encoding
    further   sentences of the corpus that no item refers to; of a retrieval task, all documents
    """

    frame: pl.DataFrame
    source: str
    files: dict[str, str] = field(default_factory=dict)
    replaced: int = 0
    further: tuple[str, ...] = ()


class MissingError(SourceError):
    """The source does not contain this split; a split with wrong content is a plain SourceError."""


class UnrecordedError(MissingError):
    """The sha256 of an archive is not recorded yet, so the archive is not used and the corpus stays blank."""


def frame_of_parquet(content: bytes) -> pl.DataFrame:
    """The rows of a Parquet file. Raises as `read_parquet` does, and pa.ArrowInvalid for what polars cannot hold."""
    table = read_parquet(content)
    table.validate(full=True)  # polars takes the texts of Arrow for UTF-8, unread
    try:
        frame = pl.from_arrow(table)
    except pl.exceptions.PanicException as error:  # a BaseException, such as for a decimal256
        raise pa.ArrowInvalid(f"a type that polars lacks: {first_line(error)}") from None
    assert isinstance(frame, pl.DataFrame)
    return frame


def check_columns(frame: pl.DataFrame, dataset: Dataset, *, where: str) -> pl.DataFrame:
    """The canonical columns of `frame`, cast to their types, free of nulls and of values without a meaning.

    Raises SourceError.
    """
    if dataset.layout not in COLUMNS:
        raise SourceError(
            f"the columns of items for '{dataset.layout}' are not known",
            where=where,
            expected=f"one of: {', '.join(COLUMNS)}",
            got=dataset.layout,
            remedy="name a task with the same columns in the catalogue: `items_of: TASK`",
        )
    wanted = COLUMNS[dataset.layout]
    lacking = [column for column in wanted if column not in frame.columns]
    if lacking:
        raise SourceError(
            f"column{'s' if len(lacking) > 1 else ''} {', '.join(lacking)} missing",
            where=where,
            expected=", ".join(wanted),
            got=", ".join(frame.columns),
            remedy="the source changed: pin the revision that the catalogue describes",
        )
    try:
        if odd := [column for column in wanted if frame[column].dtype.is_temporal() or frame[column].dtype.is_nested()]:
            raise pl.exceptions.InvalidOperationError(f"column {odd[0]} is a {frame[odd[0]].dtype}")
        canonical = frame.select(pl.col(column).cast(kind) for column, kind in wanted.items())
    except pl.exceptions.PolarsError as error:
        raise SourceError(
            "a column has the wrong type", where=where, expected=str(dict(wanted)), got=first_line(error)
        ) from None
    for column, kind in wanted.items():
        if kind == pl.Int64 and frame[column].dtype.is_numeric() and (frame[column] != canonical[column]).any():
            raise SourceError(
                f"column {column} has values that are no whole numbers",
                where=where,
                expected="whole numbers",
                got=str(frame[column].filter(frame[column] != canonical[column])[0]),
                remedy="the labels of this source are of another kind: correct the catalogue, or the file",
            )
        holes = canonical[column].null_count()
        if kind == pl.Float64:
            holes += int((~canonical[column].is_finite()).sum())
        if holes:
            raise SourceError(f"column {column} has {holes} empty values", where=where, expected="none", got=str(holes))
    if dataset.layout in MEANINGS:
        column, meant = MEANINGS[dataset.layout]
        others = canonical[column].filter(~canonical[column].is_in(meant))
        if len(others):
            raise SourceError(
                f"column {column} has {len(others)} values that mean nothing to the task '{dataset.layout}'",
                where=where,
                expected=f"one of: {', '.join(map(str, meant))}",
                got=str(others[0]),
                remedy="leave these items out, `keep:` in the catalogue, or number the values as the task does",
            )
    if dataset.scale and "score" in wanted:
        _check_scale(canonical["score"], dataset.scale, where=where)
    return canonical


def _check_scale(scores: pl.Series, scale: tuple[float, float], *, where: str) -> None:
    outside = scores.filter(~scores.is_between(*scale))
    if len(outside):
        raise SourceError(
            f"column score has {len(outside)} values outside the scale of the corpus",
            where=where,
            expected=f"{scale[0]:g} to {scale[1]:g}",
            got=str(outside[0]),
            remedy="the source is another release, or its scores were rescaled: use the release in the catalogue",
        )


def check_cells(columns: int, rows: int, size: int, *, where: str = "") -> None:
    """Raise SourceError for a table that is small only in its file, because its rows are short and get filled up.

    rows, columns  of the table as it would be in memory
    size           bytes of its file
    """
    if columns * rows > FREE_CELLS + CELLS * size:
        raise SourceError(
            "the rows of a file leave out most of their columns",
            where=where,
            expected=f"at most {FREE_CELLS:,} cells, and {CELLS} for each byte of the file",
            got=f"{columns:,} columns, {rows:,} rows, {size:,} bytes",
        )


def check_count(frame: pl.DataFrame, dataset: Dataset, split: str, *, where: str) -> None:
    """Raise SourceError unless the split has the published number of items."""
    if len(frame) != dataset.splits[split]:
        raise SourceError(
            f"the split '{split}' has the wrong number of items",
            where=where,
            expected=str(dataset.splits[split]),
            got=str(len(frame)),
            remedy="own data: correct `splits` in the catalogue; else it is another release or an incomplete download",
        )
