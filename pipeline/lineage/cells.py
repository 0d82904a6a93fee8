"""Find one printed number by its table, row and column."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from pipeline.lineage.errors import LineageError
from pipeline.lineage.numbers import Number, known_spaces, read_table
from pipeline.lineage.trees import Tree


def find_table(root: Path, table: str) -> tuple[str, str]:
    """Suite and path of a table. Raises LineageError with the nearest names."""
    path = Path(table)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    parts = path.parts
    if len(parts) == 4 and (parts[0], parts[2]) == ("reports", "tables") and (root / path).is_file():
        return parts[1], path.as_posix()
    known = sorted(file.relative_to(root).as_posix() for file in root.glob("reports/*/tables/*.csv"))
    raise LineageError(
        f"there is no table '{table}'",
        where=str(root),
        expected="reports/<suite>/tables/<table>.csv",
        got=_near(table, known),
        remedy="name one of the tables; `sentfold repro` makes those of a suite that has none",
    )


def find_number(
    tree: Tree, suite: str, path: str, *, row: str, column: str, field: str = "value", line: int | None = None
) -> Number:
    """The number of one cell. Raises LineageError with the nearest rows or columns, or with what to choose from.

    column  the corpus, the protocol, or both with a blank or a slash between them, as far as it needs both
    field   value, low, high, difference, difference_low, difference_high, control_difference, control_low or
            control_high
    line    of the file, where several cells have one name
    """
    numbers = read_table(tree, path, known_spaces(tree, suite))
    rows = [number for number in numbers if number.row == row]
    if not rows:
        raise _unknown("row", row, (number.row for number in numbers), path)
    asked = column.replace("/", " ")
    fitting = [n for n in rows if asked in (n.column, n.corpus, n.protocol)]
    if not fitting:
        raise _unknown("column", column, (number.column for number in rows), path)
    cells = [n for n in fitting if n.field == field and line in (None, n.line)]
    if not cells:
        where = "" if line is None else f" in line {line}"
        raise _unknown("number of this cell", f"{field}{where}", (f"{n.field} in line {n.line}" for n in fitting), path)
    if len(cells) > 1:
        same = len({number.column for number in cells}) == 1
        choices = (f"--line {n.line}: {n.text}" if same else n.column for n in cells)
        raise LineageError(
            f"'{row}' × '{column}' is {len(cells)} cells",
            where=path,
            got="; ".join(dict.fromkeys(choices)),
            remedy="name one of them",
        )
    return cells[0]


def _unknown(what: str, asked: str, known: Iterable[str], path: str) -> LineageError:
    return LineageError(
        f"there is no {what} '{asked}'",
        where=path,
        got=_near(asked, list(dict.fromkeys(known))),
        remedy="name one that there is",
    )


def _near(asked: str, known: list[str]) -> str:
    """The names most like the one that was asked for, or the first of all."""
    if not known:
        return "there are none"
    near = get_close_matches(asked, known, n=5, cutoff=0.5)
    inside = [name for name in known if asked and asked in name]
    shown = list(dict.fromkeys([*near, *inside]))[:8]
    return f"nearest: {', '.join(shown)}" if shown else f"there are: {', '.join(known[:12])}"
