"""What is judged: the items of one corpus and their vectors in one space."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Vectors, absence, corpus_path, read_record, read_table, read_vectors, space_path
from pipeline.errors import ArtifactError

Ints = npt.NDArray[np.int64]

TASKS = (
    "similarity", "classification", "example", "paraphrase", "clustering", "ranking", "inference", "regression",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One corpus in one space.

    items    columns of items.parquet; notes: of its record
    vectors  (n, d) float32, one per distinct sentence
    """

    corpus: str
    task: str
    items: dict[str, list[Any]]
    notes: dict[str, Any]
    vectors: Vectors

    @property
    def pairs(self) -> Ints:
        """(m, 2) rows of the vectors of each item's two texts."""
        return np.column_stack([self.items["row1"], self.items["row2"]]).astype(np.int64)

    @property
    def scaled(self) -> Vectors:
        """(n, d) the vectors, all times one number, so that their median length is 1.

        A penalty on coefficients is felt the more the shorter vectors are, and u * v beside |u - v| grows with
        their length. Spaces differ in it by a factor of a thousand, which says nothing about what they hold.
        Unit vectors stay as they are, so that they are judged as SentEval judges them. No label has a part in it.
        """
        lengths = np.linalg.norm(self.vectors, axis=1)
        median = float(np.median(lengths[lengths > 0])) if lengths.any() else 1.0
        scaled: Vectors = self.vectors / np.float32(median)
        return scaled

    @property
    def labels(self) -> Ints:
        """(m,) the class of each item, numbered from 0 in the order of the labels."""
        return np.unique(self.items["label"], return_inverse=True)[1].astype(np.int64)


def task_of(items_path: Path) -> str:
    """The task of a corpus, as its items declare it in the kind of their artifact."""
    for task in TASKS:
        try:
            read_record(items_path, kind=f"items.{task}")
        except ArtifactError as error:
            if "another kind" not in error.what:
                raise
        else:
            return task
    raise ArtifactError("items of no known task", where=str(items_path))


def load_case(suite: str, space: str, corpus: str) -> Case | str:
    """One corpus in one space, or the reason why there is none. Raises ArtifactError if the two do not fit."""
    items_path, vectors_path = corpus_path(suite, corpus, "items"), space_path(suite, space, corpus)
    reason = absence(vectors_path, kind="vectors")
    if reason is not None:
        return reason
    task = task_of(items_path)
    items = read_table(items_path, kind=f"items.{task}").to_pydict()
    vectors = read_vectors(vectors_path)
    last = max(max(items[column]) for column in ("row", "row1", "row2") if column in items)
    if last >= len(vectors):
        raise ArtifactError(
            "a space has fewer vectors than its corpus has sentences",
            where=str(vectors_path),
            expected=f"at least {last + 1}",
            got=str(len(vectors)),
            remedy="run `dvc repro`: the space was made from another version of the corpus",
        )
    return Case(corpus, task, items, read_record(items_path, kind=f"items.{task}")["notes"], vectors)
