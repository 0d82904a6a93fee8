"""Cases read from artifacts: the items of one corpus with their vectors in one space."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.base.artifacts import absence, corpus_path, kind_of, read_record, read_table, read_vectors, space_path
from sentfold.errors import ArtifactError
from sentfold.measures.base.case import Case


def task_of(items_path: Path) -> str:
    """The task of a corpus: its items are an artifact of the kind "items.<task>". Raises ArtifactError."""
    kind = kind_of(items_path)
    if not kind.startswith("items."):
        raise ArtifactError("an artifact has no items", where=str(items_path), expected="items.<task>", got=kind)
    return kind.removeprefix("items.")


def load_case(suite: str, space: str, corpus: str) -> Case | str:
    """One corpus in one space, or the reason why its vectors are absent.

    Raises ArtifactError if the items name a row below 0, or the space has fewer vectors than the items need.
    """
    items_path, vectors_path = corpus_path(suite, corpus, "items"), space_path(suite, space, corpus)
    reason = absence(vectors_path, kind="vectors")
    if reason is not None:
        return reason
    task = task_of(items_path)
    items = read_table(items_path, kind=f"items.{task}").to_pydict()
    vectors = read_vectors(vectors_path)
    refuse_far_rows(items, len(vectors), where=f"{items_path}, {vectors_path}")
    return Case(corpus, task, items, read_record(items_path, kind=f"items.{task}")["notes"], vectors)


def refuse_far_rows(items: Mapping[str, list[Any]], n: int, *, where: str) -> None:
    """Raise ArtifactError unless the items name sentences or vectors from 0 to n - 1."""
    for column in ("row", "row1", "row2"):
        rows = np.array(items.get(column, []))
        if rows.size and not (rows.dtype.kind == "i" and rows.min() >= 0 and rows.max() < n):
            raise ArtifactError(
                "a space has fewer vectors than its corpus has sentences, or items name what is no sentence",
                where=where,
                expected=f"rows from 0 to {n - 1} in the column {column}",
                got=f"{rows.min()} to {rows.max()}" if rows.dtype.kind == "i" else "values that are no whole numbers",
                state="the files are unchanged",
                remedy="run `dvc repro`: the space was made from another version of the corpus",
            )
