"""The source of a split: a suite's own files, an installed package, a mirror folder, the hub, official archives."""

from __future__ import annotations

from importlib import import_module

import polars as pl

from pipeline.corpora.catalogue import Corpus, Dataset
from pipeline.corpora.reading import MissingError, Reading, check_columns, check_count


def read_checked(corpus: Corpus, split: str, *, source: str) -> Reading:
    """One split of a corpus with its canonical columns and a column `split`.

    Raises MissingError if the suite's source does not contain the split, SourceError if the columns or the number
    of items differ from the catalogue.
    """
    dataset = corpus.dataset
    reading = read_split(corpus.dataset_name, dataset, split, source=source)
    where = f"{corpus.slug} ({split}) from {reading.source}"
    check_count(reading.frame, dataset, split, where=where)
    frame = check_columns(reading.frame, dataset, where=where).with_columns(split=pl.lit(split))
    return Reading(frame, reading.source, reading.files, reading.replaced, reading.further)


def read_split(name: str, dataset: Dataset, split: str, *, source: str) -> Reading:
    """Read one split of a data set with the module of this package for the suite's kind of source.

    Raises MissingError if the source does not contain the split, SourceError if the content differs from the
    catalogue.
    """
    # Imported here: the hub needs the `datasets` library, which takes seconds to import.
    module = import_module(f"pipeline.corpora.{place_of(name, dataset, split, source=source)}")
    reading: Reading = module.read_split(name, dataset, split)
    return reading


def place_of(name: str, dataset: Dataset, split: str, *, source: str) -> str:
    """The module that reads a split: own, package, mirror, hub or archive.

    The source `hub` is the hub if the catalogue pins a revision, else the official archive. For a suite's own data,
    data inside an installed package and data inline in the catalogue, `source` is not used. Raises MissingError.
    """
    if dataset.folder is not None:
        return "own"
    if dataset.inline or dataset.package is not None:
        return "package"
    if source == "mirror":
        return "mirror"
    if source == "hub" and split in dataset.hub:
        return "hub"
    if source == "hub" and split in dataset.archive:
        return "archive"
    raise MissingError(
        f"no source of kind '{source}' for the split '{split}' of '{name}'",
        where="pipeline/catalogue.yaml",
        remedy="choose another `source:` in the suite file, or add a place to the catalogue",
    )
