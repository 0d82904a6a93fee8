"""The use of a space: the most similar texts, new texts added to a file without a refit, and when a refit is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentfold.data.columns import assign_columns
from sentfold.data.tables import DataError, read_arrow_table, read_table
from sentfold.data.vectors import LISTS, read_arrays
from sentfold.decision.shares import CONFIDENCE, bound_share
from sentfold.decision.spaces import LandmarkSpace, SmoothedSpace, Space, space_widths
from sentfold.files import PARQUET, ROW_GROUP, fixed_lists, replace_whole
from sentfold.neighbors.neighbors import nearest_among, nearest_neighbors
from sentfold.retrieval.base.ranking import first_places, unit_rows

Floats = npt.NDArray[np.float32]
Floating = npt.NDArray[np.floating[Any]]

FAR = 0.99  # of the landmarks are nearer to another one than a vector that counts as far
DUE = 0.05  # share of far vectors from which on a refit is due; 0.01 is expected without any change


def most_similar(query: Floating, vectors: Floating, count: int) -> list[tuple[int, float]]:
    """The rows of (n, d) vectors with the largest cosines to a query, (d,), and these; equal ones by row."""
    similar = unit_rows(vectors) @ unit_rows(query[None])[0]
    return [(int(row), float(similar[row])) for row in first_places(similar, count)]


@dataclass(frozen=True)
class Drift:
    """How many of new vectors are far from all landmarks of a space.

    share  of them; low: its lower bound at 95%. Far is what 1 in 100 landmarks is from all others
    """

    vectors: int
    share: float
    low: float

    @property
    def refit(self) -> bool:
        """Whether more than DUE are far, at 95%."""
        return self.low > DUE

    def describe(self) -> str:
        """One sentence."""
        seen = (
            f"{100 * self.share:.1f}% of {self.vectors:,} new vectors are farther from all landmarks than 1% would be"
        )
        if self.refit:
            return f"A refit is due: {seen}; fit the space again with such texts."
        return f"No refit is due: {seen}."


def measure_drift(space: Space, vectors: Floating) -> Drift | None:
    """How far (m, d) new vectors are from the rows that a space maps by; None for a space that has none.

    Cost O((m + L) L d) for L landmarks.
    """
    fixed = space.landmarks if isinstance(space, LandmarkSpace) else None
    fixed = space.pool if isinstance(space, SmoothedSpace) else fixed
    if fixed is None or not len(vectors):
        return None
    among = nearest_neighbors(fixed, 1, workers=1).distances[:, 0]
    new = nearest_among(np.asarray(vectors, dtype=fixed.dtype), fixed, 1, workers=1).distances[:, 0]
    far = new > np.quantile(among, FAR)
    low, _ = bound_share(far, np.arange(len(far)), level=1 - CONFIDENCE)
    return Drift(len(far), float(far.mean()), low)


def map_vectors(space: Space, vectors: Floating, folder: Path) -> Floats:
    """(m, p) images. Raises DataError for vectors of another width than those that the folder's space was fitted on."""
    width = space_widths(space)[0]
    if width not in (None, vectors.shape[1]):
        raise DataError(
            "the space was fitted on vectors of another encoder", where=str(folder), expected=f"{width} dimensions",
            got=str(vectors.shape[1]), remedy="name the encoder that the space was fitted with",
        )  # fmt: skip
    return space.transform(vectors)


def read_texts(path: Path, columns: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The texts of a file, one or more, and notes; empty ones are left out and counted. Raises DataError."""
    table = read_table(path)
    _, roles, guessed = assign_columns(table, columns)
    used = [role for role in ("text", "left", "right") if role in roles]
    named = ", ".join(f"{role} = {roles[role]}" for role in used)
    notes = [f"columns: {named}" + (" (guessed; --columns overrides)" if guessed else ""), *table.notes]
    cells = [(role, row) for role in used for row in range(len(table))]
    empty = [(role, row) for role, row in cells if not _is_text(table.columns[roles[role]][row])]
    if empty:
        role, row = empty[0]
        notes.append(f"{len(empty)} cells without a text are left out; the first: {table.place(row, roles[role])}")
    return [table.columns[roles[role]][row] for role, row in cells if _is_text(table.columns[roles[role]][row])], notes


def _is_text(cell: object) -> bool:
    return isinstance(cell, str) and bool(cell.strip())


def new_texts(path: Path, texts: Sequence[str]) -> list[str]:
    """The distinct texts that a file of texts and vectors lacks; all where there is no file. Raises DataError."""
    known = set(_read_texts(path)) if path.exists() else set()
    return [text for text in dict.fromkeys(texts) if text not in known]


def append_vectors(path: Path, texts: Sequence[str], vectors: Floats) -> int:
    """Add texts with their (m, p) vectors to a Parquet file, or begin one; return how many it then has.

    The file is replaced whole. Raises DataError for a file of another form or width, ArtifactError.
    """
    from pyarrow import parquet

    table = pa.table({"text": pa.array(texts, pa.string()), "vector": fixed_lists(np.ascontiguousarray(vectors))})
    if path.exists():
        known, (_, arrays) = _read_texts(path), read_arrays(path)
        old = arrays["vector"]
        if old.shape[1] != vectors.shape[1]:
            raise DataError(
                "the file has vectors of another space",
                where=str(path),
                expected=f"{vectors.shape[1]} dimensions",
                got=f"{old.shape[1]}",
                remedy="name another file",
            )
        before = pa.table({"text": pa.array(known, pa.string()), "vector": fixed_lists(old.astype(np.float32))})
        table = pa.concat_tables([before, table])
    with replace_whole(path) as temporary:
        parquet.write_table(table, temporary, row_group_size=ROW_GROUP, **PARQUET)
    return int(table.num_rows)


def _read_texts(path: Path) -> list[str]:
    table = read_arrow_table(path)
    kinds = {field.name: field.type for field in table.schema}
    is_text = kinds.get("text") in (pa.string(), pa.large_string())
    if not is_text or not any(test(kinds.get("vector", pa.null())) for test in LISTS):
        raise DataError(
            "a file has no texts with vectors",
            where=str(path),
            expected="the columns text, of strings, and vector, of lists",
            got=", ".join(f"{name} {kind}" for name, kind in kinds.items()),
        )
    texts: list[str] = table.column("text").to_pylist()
    return texts
