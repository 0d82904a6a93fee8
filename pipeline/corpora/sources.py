"""Where a split comes from: one function over packages, mirrors, the hub and archives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from pipeline.errors import SourceError, first_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.corpora.catalogue import Dataset

# The columns that every source must deliver, per task. Others may follow and are dropped.
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
    "inference": {"premise": pl.String, "hypothesis": pl.String, "label": pl.Int64},
    "example": {"sentence1": pl.String, "sentence2": pl.String, "score": pl.Float64, "subset": pl.String},
    "counts": {"word": pl.String, "count": pl.Int64},
}


@dataclass(frozen=True)
class Reading:
    """One split as it was read.

    frame     the canonical columns of the task, in the order of the source
    source    "package", "mirror", "hub", "archive" or "inline"
    files     what was read, by a name that holds no path of this machine -> sha256
    replaced  number of characters that stand as U+FFFD because their bytes were no valid text
    further   sentences of the corpus that no item points at, the unlabelled rest of its pool
    """

    frame: pl.DataFrame
    source: str
    files: dict[str, str] = field(default_factory=dict)
    replaced: int = 0
    further: tuple[str, ...] = ()


class MissingError(SourceError):
    """The source does not hold this split at all (as against holding something wrong)."""


def read_split(name: str, dataset: Dataset, split: str, *, source: str) -> Reading:
    """Read one split of a data set from the suite's kind of source.

    Raises MissingError if that source does not hold it, SourceError if it holds something else than
    the catalogue says. `hub` means the network: the hub where the catalogue pins a revision, else
    the official archive; data that ship inside an installed package need neither.
    """
    # Imported here: only the hub needs the `datasets` library, which takes seconds to import.
    if dataset.inline or dataset.package is not None:
        from pipeline.corpora import package as reader
    elif source == "mirror":
        from pipeline.corpora import mirror as reader  # type: ignore[no-redef]  # one name, four readers
    elif source == "hub" and split in dataset.hub:
        from pipeline.corpora import hub as reader  # type: ignore[no-redef]
    elif source == "hub" and split in dataset.archive:
        from pipeline.corpora import archive as reader  # type: ignore[no-redef]
    else:
        raise MissingError(
            f"no source of kind '{source}' for the split '{split}' of '{name}'",
            where="pipeline/corpora/catalogue.yaml",
            remedy="choose another `source:` in the suite file, or add a place to the catalogue",
        )
    reading: Reading = reader.read_split(name, dataset, split)
    return reading


def check_columns(frame: pl.DataFrame, dataset: Dataset, *, where: str) -> pl.DataFrame:
    """The canonical columns of `frame`, cast to their types and free of nulls. Raises SourceError."""
    wanted = COLUMNS[dataset.task]
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
        canonical = frame.select(pl.col(column).cast(kind) for column, kind in wanted.items())
    except pl.exceptions.PolarsError as error:
        raise SourceError(
            "a column has the wrong type", where=where, expected=str(dict(wanted)), got=first_line(error)
        ) from None
    for column, kind in wanted.items():
        holes = canonical[column].null_count()
        if kind == pl.Float64:
            holes += int((~canonical[column].is_finite()).sum())
        if holes:
            raise SourceError(f"column {column} has {holes} empty values", where=where, expected="none", got=str(holes))
    return canonical


def check_count(frame: pl.DataFrame, dataset: Dataset, split: str, *, where: str) -> None:
    """SourceError unless the split has as many items as were published."""
    if len(frame) != dataset.splits[split]:
        raise SourceError(
            f"the split '{split}' has the wrong number of items",
            where=where,
            expected=str(dataset.splits[split]),
            got=str(len(frame)),
            remedy="the source is another release, or the download is incomplete: remove it and try again",
        )
