"""Cases read from artifacts: the items of one corpus with their vectors in one space."""

from __future__ import annotations

from pathlib import Path

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

    Raises ArtifactError if the space has fewer vectors than the items need.
    """
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
