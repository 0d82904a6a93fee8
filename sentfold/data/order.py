"""Whether vectors that come without texts are in the order of the data, by the columns that both files have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from uuid import UUID

from sentfold.data.datasets import Dataset
from sentfold.data.tables import DataError, shorten

LARGEST = 100  # digits of a number that is written out


def refuse_other_order(columns: Mapping[str, Sequence[Any]], data: Dataset, path: Path) -> list[str]:
    """Raise DataError where vectors go to the texts by their place, and a column tells that their order is another.

    A column of the same name in the data decides: its values may come twice, and without repeats those that both have
    count. If it tells nothing, or there is none, other columns of the data with the same values, none of them twice,
    decide; else 0 or 1 to the last, and the index of pandas.
    Returns a note for each column of one name whose values have nothing in common.
    """
    notes = []
    own = {key: [common_form(cell) for cell in column] for key, column in data.others.items()} if columns else {}
    for name, cells in columns.items():
        values = [common_form(cell) for cell in cells]
        told = {}
        for key, column in own.items():
            for known in _columns_for(len(values), column, data):
                told[key] = _is_in_order(values, known, named=key == name or data.kind == "queries")
                if key == name and not set(values) & set(known):
                    notes.append(
                        f"the columns {name} of {path.name} and of {data.name} have no value in common, and so do not "
                        "tell whether the order is the same"
                    )
        if told.get(name) is not None:
            told = {name: told[name]}
        wrong = next((key for key, is_right in told.items() if is_right is False), None)
        if True not in told.values() and (wrong is not None or _is_shuffled_index(name, values)):
            raise DataError(
                "vectors without texts are in another order than a column numbers them", where=f"{path}, column {name}",
                expected=f"the order of {data.name}" if wrong is None else f"that of the column {wrong} of {data.name}",
                got=", ".join([*(value if value.isdecimal() else shorten(value) for value in values[:3]), "..."]),
                remedy="add the column of texts; or sort the vectors as the texts are; if they are so already, leave "
                "the column out (pandas: reset_index(drop=True))",
            )  # fmt: skip
    return notes


def common_form(cell: Any) -> str:
    """A value as text, the same for all spellings of a number, a time or a UUID; empty for a missing one.

    7, 7.0, "007" and Decimal(7); "2024-01-01" and "2024-01-01T00:00:00.000"; 16 bytes of a UUID and its letters.
    """
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, bytes):
        return str(UUID(bytes=cell)) if len(cell) == 16 else cell.hex()
    word = str(cell).strip()
    for read in (_number, _time, _uuid):
        try:
            return read(word)
        except (ValueError, InvalidOperation, OverflowError):
            continue
    return word


def _number(word: str) -> str:
    number = Decimal(word)
    if not number.is_finite() or abs(number.adjusted()) > LARGEST:
        raise ValueError(word)
    whole = int(number)
    return str(whole) if number == whole else repr(float(number))


def _time(word: str) -> str:
    time = datetime.fromisoformat(word)
    return (time if time.tzinfo is None else time.astimezone(UTC)).isoformat()


def _uuid(word: str) -> str:
    return str(UUID(word))


def _is_in_order(values: list[str], known: list[str], *, named: bool) -> bool | None:
    """Whether values are in the order of a column of the data; None where that column tells nothing of them.

    named  whether both columns have one name: then values may come twice, or be in one of the two alone
    """
    if values == known:
        return True
    alone = len(set(values)) == len(values) and len(set(known)) == len(known)
    if Counter(values) == Counter(known):
        return False if alone or named else None
    if values[0].isdecimal() and values == [str(int(values[0]) + row) for row in range(len(values))]:
        return None  # numbers of the rows, whatever the data count by that name
    place = {value: row for row, value in enumerate(known)}
    places = [place[value] for value in values if value and value in place]
    most = 2 * len(places) > len(values)  # fewer can be in both by chance
    return False if alone and named and most and places != sorted(places) else None


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
