"""A mirror: a folder `<data set>/<split>.parquet`, its place given by SENTFOLD_MIRROR."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import polars as pl

from pipeline.corpora.catalogue import Dataset
from pipeline.corpora.sources import MissingError, Reading
from pipeline.errors import SourceError, first_line

VARIABLE = "SENTFOLD_MIRROR"


def mirror_folder() -> Path:
    """The mirror's folder. Raises SourceError if the variable is unset or names no folder."""
    place = os.environ.get(VARIABLE, "")
    folder = Path(place)
    if not place or not folder.is_dir():
        raise SourceError(
            "there is no mirror",
            where=f"environment variable {VARIABLE}",
            expected="a folder with <data set>/<split>.parquet",
            got=place or "unset",
            remedy=f"set {VARIABLE}=FOLDER, or run the suite 'paper', which reads the hub",
        )
    return folder


def read_split(name: str, dataset: Dataset, split: str) -> Reading:
    """Read one split from the mirror, its files one after the other. Raises MissingError if one is not there."""
    folder = mirror_folder()
    names = dataset.mirror_files(name, split)
    for relative in names:
        if not (folder / relative).exists():
            raise MissingError(
                f"the mirror lacks '{relative}'",
                where=f"{VARIABLE}/{relative}",
                remedy="add the file, or let the suite say `skip_missing: true`, or run the suite 'paper' from the hub",
            )
    contents = {relative: (folder / relative).read_bytes() for relative in names}
    frames = [_parse(content, relative) for relative, content in contents.items()]
    try:
        frame = pl.concat(frames, how="diagonal")
    except pl.exceptions.PolarsError as error:
        raise SourceError(
            "the files of one split do not fit together",
            where=", ".join(f"{VARIABLE}/{relative}" for relative in names),
            expected="columns of one type under one name",
            got=first_line(error),
            remedy="copy the files to the mirror again",
        ) from None
    return Reading(
        frame=frame, source="mirror", files={name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
    )


def _parse(content: bytes, relative: str) -> pl.DataFrame:
    # From the very bytes that are hashed: given a path, polars would also expand patterns in it.
    try:
        return pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(
            "a mirror file cannot be read",
            where=f"{VARIABLE}/{relative}",
            expected="a whole Parquet file",
            got=first_line(error),
            remedy="copy the file to the mirror again",
        ) from None


def changed_files(recorded: dict[str, str]) -> list[str]:
    """Which of the files that a corpus was read from are gone from the mirror, or have other bytes now."""
    folder = mirror_folder()
    return [
        name
        for name, digest in recorded.items()
        if not (folder / name).is_file() or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest
    ]
