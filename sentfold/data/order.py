"""Whether vectors that come without texts are in the order of the data, by the columns that both files have."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from sentfold.data.datasets import Dataset
from sentfold.data.tables import DataError, shorten

WHOLE = re.compile(r"[+-]?\d{1,40}(\.0+)?", re.ASCII)


def refuse_other_order(columns: Mapping[str, Sequence[Any]], data: Dataset, path: Path) -> None:
    """Raise DataError where vectors go to the texts by their place, and a column tells that their order is another.

    A column of the data that has the same values decides, also under another name if no value comes twice; of columns
    of one name without repeats the values that both have. Without such a column of the data, 0 or 1 to the last counts,
    and the index of pandas.
    """
    for name, cells in columns.items():
        values = [common_form(cell) for cell in cells]
        told: dict[bool | None, str] = {
            _is_in_order(values, known, named=key == name or data.kind == "queries"): f"the column {key} of {data.name}"
            for key, column in data.others.items()
            for known in _columns_for(len(values), [common_form(cell) for cell in column], data)
        }
        if True not in told and (False in told or _is_shuffled_index(name, values)):
            raise DataError(
                "vectors without texts are in another order than a column numbers them", where=f"{path}, column {name}",
                expected=f"the order of {told.get(False, data.name)}",
                got=", ".join([*map(shorten, values[:3]), "..."]),
                remedy="add the column of texts; or sort the vectors as the texts are; if they are so already, leave "
                "the column out (pandas: reset_index(drop=True))",
            )  # fmt: skip


def common_form(cell: Any) -> str:
    """A value as text, the same for 7, 7.0, "7", "007" and Decimal(7); empty for a missing one."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bytes):
        return str(UUID(bytes=cell)) if len(cell) == 16 else cell.hex()
    if isinstance(cell, (int, float, Decimal)) and math.isfinite(cell) and cell == int(cell):
        return str(int(cell))
    word = str(cell).strip()
    return str(int(word.partition(".")[0])) if WHOLE.fullmatch(word) else word


def _is_in_order(values: list[str], known: list[str], *, named: bool) -> bool | None:
    """Whether values are in the order of a column of the data; None where that column tells nothing of them.

    named  whether both columns have one name: then values may come twice, or be in one of the two alone
    """
    if values == known:
        return True
    alone = len(set(values)) == len(values) and len(set(known)) == len(known)
    if Counter(values) == Counter(known):
        return False if alone or named else None
    if any(values == [str(number + first) for number in range(len(values))] for first in (0, 1)):
        return None  # numbers of the rows, whatever the data count by that name
    place = {value: row for row, value in enumerate(known)}
    places = [place[value] for value in values if value and value in place]
    return False if alone and named and places != sorted(places) else None


def _columns_for(count: int, column: list[str], data: Dataset) -> list[list[str]]:
    """A column of the data for so many vectors: one for each item or cell, or one for each distinct text."""
    if count == len(column):
        return [column]
    cells = column if len(column) == data.cells else [*column, *column]  # of pairs: all left texts, then all right ones
    if count == len(cells):
        return [cells]
    return [[cells[cell] for cell in data.copies]] if count == len(data.copies) else []


def _is_shuffled_index(name: str, values: list[str]) -> bool:
    """Whether a column looks like the number of each row, and the rows are not in this order."""
    if not all(value.isascii() and value.isdecimal() for value in values):
        return False
    numbers = [int(value) for value in values]
    ordered = sorted(numbers)
    counted = ordered in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
    return (counted or name.startswith("__index_level_")) and len(set(numbers)) == len(numbers) and numbers != ordered
