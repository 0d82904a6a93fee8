"""Rows of the papers' tables that need vectors or models which no suite has: what they are, what would fill them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pipeline.base.params import read_yaml
from pipeline.base.suite import Suite
from pipeline.report.made_of import describe_vectors
from sentfold.report.table import Entry
from sentfold.settings import Parameters, Slug, validate

ROWS_FILE = Path(__file__).with_name("absent_rows.yaml")
NO_STAGE = "no stage of sentfold runs this model"
UNTRAINED = "it is fine-tuned from bert-base-uncased, whose weights are on the hub alone"
UNPOOLED = "its weights are on the hub alone"


class WordEncoder(Parameters):
    """An encoder over word vectors.

    method  what it is, in words
    like    the block of `word_encoders:` that it is like
    """

    method: str
    like: Slug
    vectors: Slug


class AbsentRows(Parameters):
    """What absent_rows.yaml holds; every name is that of a row, but for those of vectors.

    vectors    word vectors that have to be fetched -> their files, as `sentfold fetch-vectors` is told
    encoders   rows from the layers of a transformer of the hub -> what each is made of; models: what no stage runs
    unpinned   row -> the encoder whose weights have to be pinned for it
    untrained  rows of encoders that would have to be fine-tuned
    """

    vectors: dict[Slug, list[str]]
    word_encoders: dict[Slug, WordEncoder]
    encoders: dict[Slug, str]
    models: dict[Slug, str]
    unpinned: dict[Slug, Slug]
    untrained: list[Slug]


@cache
def load_absent_rows(path: Path = ROWS_FILE) -> AbsentRows:
    """The rows of the file, checked. Raises ParameterError naming the key that is wrong."""
    return validate(AbsentRows, read_yaml(path), where=str(path))


def describe_absent(name: str) -> str:
    """What a row that no suite makes would be made of; "" for one that the file does not know."""
    rows = load_absent_rows()
    if name in rows.word_encoders:
        return f"{rows.word_encoders[name].method}; {describe_vectors(rows.word_encoders[name].vectors)}"
    return (rows.models | rows.encoders).get(name, "")


def absent_entry(suite: Suite, name: str) -> Entry | None:
    """The blank of such a row: why it is one, and what would fill it; None for a row that is not one of these."""
    rows = load_absent_rows()
    if name in rows.models:
        return Entry(reason=NO_STAGE)
    if name in rows.encoders:
        command = f"its encoder pinned by sentfold pin-encoder, a block in poolings:, its space in {suite.written}"
        return Entry(reason=UNPOOLED, command=command)
    if name in rows.untrained:
        command = f"sentfold pin-encoder bert-base, base: bert-base in trainings:, its spaces in {suite.written}"
        return Entry(reason=UNTRAINED, command=command)
    if name in rows.word_encoders:
        row = rows.word_encoders[name]
        fetched = ", ".join(f"sentfold fetch-vectors {file}" for file in rows.vectors[row.vectors])
        reason = f"it needs word vectors that no package holds: {describe_vectors(row.vectors)}"
        return Entry(reason=reason, command=f"{fetched}, and {row.like} over them in params.yaml and {suite.written}")
    if name in rows.unpinned:
        reason = suite.blanks.get(name, "its weights are not in this suite's source")
        return Entry(
            reason=reason, command=f"sentfold pin-encoder {rows.unpinned[name]}, and {name} in the suite paper"
        )
    return None
