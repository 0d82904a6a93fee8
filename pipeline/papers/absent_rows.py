"""Rows of the papers' tables that need vectors or models which no suite has: what they are, what would fill them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from pipeline.base.params import read_yaml
from pipeline.base.suite import Suite
from pipeline.report.made_of import describe_vectors
from sentfold.report.table import Entry
from sentfold.settings import Parameters, Slug, validate

ROWS_FILE = Path(__file__).with_name("absent_rows.yaml")
NO_STAGE = "no stage of sentfold runs this model"
UNTRAINED = "no stage trains encoders yet"


class Vectors(Parameters):
    """Word vectors that have to be fetched.

    files  each as `sentfold fetch-vectors` is to be told
    block  of `word_vectors:`, if params.yaml has none
    """

    files: list[str]
    block: dict[str, Any] = {}


class WordEncoder(Parameters):
    """An encoder over such vectors.

    method      what it is, in words
    like        the block of `word_encoders:` that it is like; settings: those that are not as there
    clustering  the block of `clusterings:` that its own clusters of words are like
    """

    method: str
    like: Slug
    vectors: Slug
    clustering: Slug | None = None
    settings: dict[str, Any] = {}

    @property
    def own_clustering(self) -> str:
        """What the clusters of these vectors' words are called; "" where the method needs none."""
        return f"{self.clustering}-{self.vectors}" if self.clustering else ""


class Transformer(Parameters):
    """A transformer on the hub, and the pooling that makes a sentence encoder of it."""

    hub: str
    dimension: int
    pooling: Literal["mean", "cls"]
    made_of: str


class AbsentRows(Parameters):
    """What absent_rows.yaml holds; every name is that of a row, but for those of vectors.

    unpinned   row -> the encoder whose weights have to be pinned for it
    untrained  rows of encoders that would have to be fine-tuned
    """

    vectors: dict[Slug, Vectors]
    word_encoders: dict[Slug, WordEncoder]
    encoders: dict[Slug, Transformer]
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
    if name in rows.models:
        return rows.models[name]
    if name in rows.encoders:
        return rows.encoders[name].made_of
    if name not in rows.word_encoders:
        return ""
    row = rows.word_encoders[name]
    clusters = f" by {row.own_clustering}" if row.own_clustering else ""
    return f"{row.method}{clusters}; {describe_vectors(row.vectors)}"


def absent_entry(suite: Suite, name: str) -> Entry | None:
    """The blank of such a row: why it is one, and what would fill it; None for a row that is not one of these."""
    rows = load_absent_rows()
    if name in rows.models:
        return Entry(reason=NO_STAGE, command="none yet, it needs an encoder of its own in sentfold/encoders")
    if name in rows.encoders:
        transformer = rows.encoders[name]
        reason = f"the weights of {transformer.hub} are on the hub alone, and have no pooling"
        return Entry(reason=reason, command=_to_pool(suite, name, transformer))
    if name in rows.word_encoders:
        vectors = rows.word_encoders[name].vectors
        reason = f"it needs word vectors that no package holds: {describe_vectors(vectors)}"
        return Entry(reason=reason, command=_to_encode(suite, name))
    if name in rows.untrained:
        return Entry(reason=UNTRAINED, command="none yet, it needs a stage that fine-tunes encoders")
    if name in rows.unpinned:
        reason = suite.blanks.get(name, "its weights are not in this suite's source")
        return Entry(reason=reason, command=_to_pin(rows.unpinned[name], name))
    return None


def _to_pin(encoder: str, name: str) -> str:
    """The commands and lines that make an encoder of the hub, or what is made of it, a row of the suite paper."""
    return (
        f"sentfold pin-encoder {encoder}, put the lines that it prints into params.yaml; in suites/paper/suite.yaml "
        f"name {name} among the spaces and take it out of blanks; run sentfold run --suite paper"
    )


def _to_encode(suite: Suite, name: str) -> str:
    """The commands and lines that make a row over word vectors a row of the suite."""
    rows = load_absent_rows()
    row = rows.word_encoders[name]
    vectors = rows.vectors[row.vectors]
    lines = [f"word_vectors.{row.vectors}: {_flow(vectors.block)}"] if vectors.block else []
    changes = {"vectors": row.vectors}
    if row.own_clustering:
        lines.append(f"clusterings.{row.own_clustering} as {row.clustering} but for {_flow(changes)}")
        changes = {**changes, "clustering": row.own_clustering}
    lines.append(f"word_encoders.{name} as {row.like} but for {_flow({**changes, **row.settings})}")
    return ", then ".join(
        [
            *(f"sentfold fetch-vectors {file}" for file in vectors.files),
            f"write into params.yaml {' and '.join(lines)}",
            f"name {name} among the spaces of {suite.written}",
            f"sentfold run --suite {suite.suite}",
        ]
    )


def _to_pool(suite: Suite, name: str, transformer: Transformer) -> str:
    """The commands and lines that make a transformer with a pooling an encoder of the suite."""
    folder = f"models/{name}"
    modules = f"[T('{transformer.hub}'), P({transformer.dimension}, '{transformer.pooling}')]"
    imports = "from sentence_transformers import SentenceTransformer as S"
    imports += "; from sentence_transformers.sentence_transformer.modules import Pooling as P, Transformer as T"
    return ", then ".join(
        [
            f'python -c "{imports}; S(modules={modules}).save_pretrained({folder!r})"',
            f"write into params.yaml encoders.{name}: {_flow({'folder': folder})}",
            f"sentfold pin-encoder {name}, whose lines belong there too",
            f"name {name} and what is to be made of it among the spaces of {suite.written}",
            f"sentfold run --suite {suite.suite}",
        ]
    )


def _flow(block: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(block), default_flow_style=True, sort_keys=False, width=1000).strip()
