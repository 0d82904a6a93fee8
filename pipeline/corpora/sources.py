"""Where a split comes from: an installed package, a mirror folder, the hub, official archives, a suite's own files."""

from __future__ import annotations

from importlib import import_module

import polars as pl

from pipeline.corpora.catalogue import Corpus, Dataset
from pipeline.corpora.reading import MissingError, Reading, check_columns, check_count


def read_checked(corpus: Corpus, split: str, *, source: str) -> Reading:
    """One split of a corpus with its canonical columns and a column `split`.

    Raises MissingError if the suite's source does not hold the split, SourceError if its columns or its number of
    items are not those of the catalogue.
    """
    dataset = corpus.dataset
    reading = read_split(corpus.dataset_name, dataset, split, source=source)
    where = f"{corpus.slug} ({split}) from {reading.source}"
    check_count(reading.frame, dataset, split, where=where)
    frame = check_columns(reading.frame, dataset, where=where).with_columns(split=pl.lit(split))
    return Reading(frame, reading.source, reading.files, reading.replaced, reading.further)


def read_split(name: str, dataset: Dataset, split: str, *, source: str) -> Reading:
    """Read one split of a data set from the suite's kind of source: a module of this package.

    Raises MissingError if that source does not hold it, SourceError if it holds something else than
    the catalogue says.
    """
    # Imported here: the hub needs the `datasets` library, which takes seconds to import.
    module = import_module(f"pipeline.corpora.{place_of(name, dataset, split, source=source)}")
    reading: Reading = module.read_split(name, dataset, split)
    return reading


def place_of(name: str, dataset: Dataset, split: str, *, source: str) -> str:
    """The module that reads a split: own, package, mirror, hub or archive.

    `hub` means the network: the hub where the catalogue pins a revision, else the official archive. A suite's own
    data, data inside an installed package, and data in the catalogue itself need neither. Raises MissingError.
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
