"""A mirror: a folder `<data set>/<split>.parquet`, its place given by SENTFOLD_MIRROR."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from pipeline.artifacts import sha256_of
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
    names = dataset.mirror.get(split, (f"{name}/{split}.parquet",))
    for relative in names:
        if not (folder / relative).exists():
            raise MissingError(
                f"the mirror lacks '{relative}'",
                where=f"{VARIABLE}/{relative}",
                remedy="add the file, or let the suite say `skip_missing: true`, or run the suite 'paper' from the hub",
            )
    frames = [_read_file(folder, relative) for relative in names]
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
    return Reading(frame=frame, source="mirror", files={relative: sha256_of(folder / relative) for relative in names})


def _read_file(folder: Path, relative: str) -> pl.DataFrame:
    try:
        return pl.read_parquet(folder / relative)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(
            "a mirror file cannot be read",
            where=f"{VARIABLE}/{relative}",
            expected="a whole Parquet file",
            got=first_line(error),
            remedy="copy the file to the mirror again",
        ) from None
