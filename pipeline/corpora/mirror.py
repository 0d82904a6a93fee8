"""A mirror: a folder with `<data set>/<split>.parquet`; the variable SENTFOLD_MIRROR names the folder."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import polars as pl
import pyarrow as pa

from pipeline.corpora.catalogue import Dataset
from pipeline.corpora.reading import MissingError, Reading, check_cells, frame_of_parquet
from sentfold.errors import SourceError, first_line
from sentfold.files import require_regular

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
    """Read one split from the mirror, its files concatenated. Raises MissingError if a file is missing."""
    folder = mirror_folder()
    names = dataset.mirror_files(name, split)
    for relative in names:
        if not (folder / relative).exists():
            raise MissingError(
                f"the mirror lacks '{relative}'",
                where=f"{VARIABLE}/{relative}",
                remedy="add the file, or let the suite say `skip_missing: true`, or run the suite 'paper' from the hub",
            )
    contents = {relative: _read(folder, relative) for relative in names}
    frames = [_parse(content, relative) for relative, content in contents.items()]
    columns, size = {column for frame in frames for column in frame.columns}, sum(map(len, contents.values()))
    check_cells(len(columns), sum(map(len, frames)), size, where=f"{VARIABLE}/{names[0]}")  # `diagonal` fills up
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
        frame=_canonical(frame, dataset, where=", ".join(f"{VARIABLE}/{relative}" for relative in names)),
        source="mirror",
        files={name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
    )


def _read(folder: Path, relative: str) -> bytes:
    try:
        require_regular(folder / relative)
        return (folder / relative).read_bytes()
    except OSError as error:
        raise SourceError(
            "a mirror file cannot be read", where=f"{VARIABLE}/{relative}", got=first_line(error)
        ) from None


def _canonical(frame: pl.DataFrame, dataset: Dataset, *, where: str) -> pl.DataFrame:
    """The frame with the mirror's names of columns and labels replaced by the canonical names."""
    for column, own in dataset.mirror_columns.items():
        if own not in frame.columns:
            raise SourceError(
                f"column {own} missing", where=where, expected=f"{own}, for {column}", got=", ".join(frame.columns)
            )
        frame = frame.with_columns(pl.col(own).alias(column))
    if not dataset.mirror_labels:
        return frame
    if "label" not in frame.columns:
        raise SourceError("column label missing", where=where, expected="label", got=", ".join(frame.columns))
    labels = frame["label"].cast(pl.String)
    strange = sorted(set(labels.drop_nulls()) - set(dataset.mirror_labels))
    if strange:
        raise SourceError(
            "a label is not in the catalogue",
            where=where,
            expected=", ".join(dataset.mirror_labels),
            got=", ".join(strange),
        )
    return frame.with_columns(label=labels.replace_strict(dataset.mirror_labels, return_dtype=pl.Int64))


def _parse(content: bytes, relative: str) -> pl.DataFrame:
    # The bytes that were hashed are parsed: the file is not read again.
    try:
        return frame_of_parquet(content)
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError) as error:
        raise SourceError(
            "a mirror file cannot be read",
            where=f"{VARIABLE}/{relative}",
            expected="a complete Parquet file of plausible unpacked size",
            got=first_line(error),
            remedy="copy the file to the mirror again",
        ) from None


def changed_files(recorded: dict[str, str]) -> list[str]:
    """The names of the recorded files that are missing from the mirror now, or have other bytes."""
    folder = mirror_folder()
    return [
        name
        for name, digest in recorded.items()
        if not (folder / name).is_file() or hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest
    ]


def pin_files(lock: Path, files: dict[str, str]) -> None:
    """Compare mirror files with the sha256 in a lock file, and add files that the lock file lacks.

    lock   lines `sha256  file` in the format of sha256sum; made at the first use, and to be committed
    files  name -> sha256 of the bytes that were read
    Raises SourceError if a file has other bytes than at its first use, or the lock file is a link or malformed.
    """
    text = _read_lock(lock)
    pinned: dict[str, set[str]] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], start=1):
        pin = re.fullmatch(r"([0-9a-f]{64}) [ *](.+)", line)
        if pin is None:
            raise SourceError(
                "a line of a lock file of mirror files cannot be parsed",
                where=f"{lock}, line {number}",
                expected="a sha256, two blanks and a file, as sha256sum writes them",
                got=repr(line[:80]),
                remedy="correct or remove the line",
            )
        pinned.setdefault(pin[2], set()).add(pin[1])  # downloads that run in parallel may add one line twice
    for name, digest in files.items():
        if pinned.get(name, {digest}) != {digest}:
            raise SourceError(
                "a mirror file has other bytes than at its first use",
                where=f"{VARIABLE}/{name}",
                expected=f"sha256 {' and '.join(sorted(pinned[name]))}",
                got=digest,
                remedy=f"put the file back; or, if the new one is right, remove its line from {lock}",
            )
    new = "".join(f"{digest}  {name}\n" for name, digest in files.items() if name not in pinned)
    if new:
        ended = "" if text.endswith("\n") or not text else "\n"
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644)
            with os.fdopen(handle, "wb") as stream:  # one write: downloads run in parallel
                stream.write((ended + new).encode())
        except OSError as error:
            raise SourceError(
                "a lock file of mirror files cannot be written", where=str(lock), got=first_line(error)
            ) from None


def _read_lock(lock: Path) -> str:
    try:
        require_regular(lock)
        if lock.is_symlink():
            raise OSError("a symbolic link")
        return lock.read_text(encoding="utf-8") if lock.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            "a lock file of mirror files cannot be read",
            where=str(lock),
            expected="a regular file of text",
            got=first_line(error),
            remedy="put the lock file back as it was committed",
        ) from None
