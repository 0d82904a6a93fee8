"""Stage `download`: fetch one corpus and write its distinct sentences, and its items, which name sentences by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from pipeline.base.artifacts import corpus_path, write_absence, write_table
from pipeline.base.suite import Suite, suite_folder
from pipeline.corpora.catalogue import Corpus, find_corpus
from pipeline.corpora.reading import MissingError, Reading, UnrecordedError
from pipeline.corpora.sources import read_checked

# For each layout: the columns that hold sentences, and the columns of items.parquet that hold the rows of these.
SENTENCE_COLUMNS = {
    "similarity": {"sentence1": "row1", "sentence2": "row2"},
    "regression": {"sentence1": "row1", "sentence2": "row2"},
    "example": {"sentence1": "row1", "sentence2": "row2"},
    "paraphrase": {"sentence1": "row1", "sentence2": "row2"},
    "inference": {"premise": "row1", "hypothesis": "row2"},
    "classification": {"text": "row"},
    "clustering": {"text": "row"},
    "ranking": {"query": "row1", "candidate": "row2"},
    "retrieval": {"query": "row1", "document": "row2"},
    "counts": {},
}


@dataclass(frozen=True)
class Download:
    """The result of a download: numbers of sentences and items, or the reason why the corpus is absent."""

    corpus: str
    sentences: int = 0
    items: int = 0
    absent: str | None = None


def download(slug: str, suite: Suite, *, skip_missing: bool | None = None) -> Download:
    """Fetch one corpus of a suite and write its artifacts.

    skip_missing  overrides `skip_missing` of the suite: if True, a corpus that its source lacks is recorded as
                  absent, if False it is an error. None: as the suite says, but an archive without a recorded
                  sha256 is always recorded as absent
    Raises SourceError if the source does not hold exactly what the catalogue states.
    """
    corpus = find_corpus(slug, suite.suite)
    try:
        readings = {split: read_checked(corpus, split, source=suite.source) for split in corpus.splits}
    except MissingError as error:
        by_default = suite.skip_missing or isinstance(error, UnrecordedError)
        if not (by_default if skip_missing is None else skip_missing):
            raise
        for part in ("sentences", "items"):
            write_absence(corpus_path(suite.suite, slug, part), error.what, kind=_kind(corpus, part))
        return Download(slug, absent=error.what)
    read = {name: sha for one in readings.values() if one.source == "mirror" for name, sha in one.files.items()}
    if read:
        from pipeline.corpora.mirror import pin_files

        pin_files(suite_folder(suite.suite) / "mirror.lock", read)
    return write_corpus(suite.suite, corpus, readings)


def write_corpus(suite: str, corpus: Corpus, readings: dict[str, Reading]) -> Download:
    """Write sentences.parquet (each distinct text once, in order of appearance) and items.parquet.

    Of a retrieval task the documents are the first sentences; the notes have their number.
    """
    row_columns = SENTENCE_COLUMNS[corpus.dataset.layout]
    frame, text = prepare_texts(corpus, pl.concat([reading.frame for reading in readings.values()]))
    further = [text for reading in readings.values() for text in reading.further]
    documents = list(dict.fromkeys(further)) if corpus.dataset.layout == "retrieval" else []
    sentences, rows = number_sentences([frame[column].to_list() for column in row_columns], further, first=documents)
    items = pl.DataFrame(dict(zip(row_columns.values(), rows, strict=True))).hstack(
        frame.drop(*row_columns).get_columns()
    )
    notes = {
        "corpus": corpus.slug,
        "dataset": corpus.dataset_name,
        "files": {name: digest for reading in readings.values() for name, digest in reading.files.items()},
        "resample": corpus.dataset.resample,
        "replaced_characters": sum(reading.replaced for reading in readings.values()),
        "source": "+".join(sorted({reading.source for reading in readings.values()})),
        "splits": {split: int((frame["split"] == split).sum()) for split in readings},
        "task": corpus.dataset.task,
        "text": text,
    }
    if documents:
        notes["documents"] = len(documents)
    if corpus.slug in corpus.dataset.supervised:
        notes["supervised"] = corpus.dataset.supervised[corpus.slug]
    if row_columns:
        write_table(
            corpus_path(suite, corpus.slug, "sentences"),
            pa.table({"text": pa.array(sentences, pa.string())}),
            kind=_kind(corpus, "sentences"),
            parameters={},
            notes=notes,
        )
    # Columns are converted one by one: polars' own conversion makes no plain Arrow strings.
    arrays = {
        name: pa.array(items[name].to_list(), pa.string()) if items[name].dtype == pl.String else items[name].to_numpy()
        for name in items.columns
    }
    write_table(
        corpus_path(suite, corpus.slug, "items"),
        pa.table(arrays),
        kind=_kind(corpus, "items"),
        parameters={},
        notes=notes,
    )
    return Download(corpus.slug, sentences=len(sentences), items=len(items))


def prepare_texts(corpus: Corpus, frame: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The items of a corpus with the texts that the catalogue asks for, and a description of how texts were changed."""
    dataset, text = corpus.dataset, corpus.dataset.text
    columns = SENTENCE_COLUMNS[dataset.layout]
    if corpus.slug in dataset.bodies:
        frame = frame.with_columns(pl.Series(column, [body_of(t) for t in frame[column]]) for column in columns)
    if dataset.bodies:
        text = f"{'bodies without headers' if corpus.slug in dataset.bodies else 'whole messages'}; {text}"
    longest = dataset.longest.get(corpus.slug)
    if longest is not None:
        short = [all(len(part.split()) <= longest for part in item) for item in frame.select(list(columns)).iter_rows()]
        frame, text = frame.filter(short), f"texts of at most {longest} words, split at blanks; {text}"
    return frame, text


def body_of(message: str) -> str:
    """The part of a message after its first empty line; the whole message if it has no empty line."""
    head, empty, body = message.replace("\r\n", "\n").partition("\n\n")
    return body if empty else head


def number_sentences(
    columns: list[list[str]], further: list[str], *, first: Sequence[str] = ()
) -> tuple[list[str], list[np.ndarray]]:
    """The distinct texts in order of first appearance (read item by item), and the row of each item's texts.

    columns  texts of the items, one list per sentence column, equally long
    further  texts of the corpus that are in no item
    first    distinct texts that come before all others
    Returns the texts, and one int32 array of row numbers per column.
    """
    known: dict[str, int] = {text: row for row, text in enumerate(first)}
    for item in zip(*columns, strict=True):
        for text in item:
            known.setdefault(text, len(known))
    for text in further:
        known.setdefault(text, len(known))
    return list(known), [np.array([known[text] for text in column], dtype=np.int32) for column in columns]


def _kind(corpus: Corpus, part: str) -> str:
    return part if part == "sentences" else f"items.{corpus.dataset.task}"
