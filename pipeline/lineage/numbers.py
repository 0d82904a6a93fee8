"""Every number that a suite's tables print, where it comes from, and what the scores files say that it must be.

The report's index, reports/<suite>/tables/cells.json, says where each number comes from; pipeline/report/cells.py
defines it. The CSV files next to it say what is printed.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pipeline.base.artifacts import scores_path
from pipeline.lineage.hashes import LineageError
from pipeline.lineage.trees import MOST_TEXT, Tree
from sentfold.errors import first_line
from sentfold.suggestions import nearest_names

Origin = Literal["score", "difference", "derived", "printed", "unknown"]

SCHEMA = 1
LARGEST = 1e300  # a score beyond it is none; JSON has integers of any length
MOST_NUMBERS = 250_000  # of all tables of a suite; the largest suite has 88,000
MOST_TABLES = 1_000  # of a suite; the largest suite has 28
MOST_CELLS = 1_000_000  # of one table; the largest has 130,000
FIELDS = (
    "value", "low", "high", "difference", "difference_low", "difference_high",
    "control_difference", "control_low", "control_high",
)  # fmt: skip
# The other columns of tables with such fields. They name a number, or say how it was made.
NAMES = (
    "table", "panel", "origin", "row", "made_of", "space", "corpus", "task", "protocol", "n", "unit", "units",
    "difference_to", "control", "reason", "command", "caveats",
)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """One printed number.

    table     its file; line counts from 1, which is the header
    field     one of FIELDS
    text      what the CSV file prints; indexed: what the index says that it prints
    origin    score: copied from a scores file. difference: of two such. derived: computed by the report.
              printed: copied from a paper. unknown: the index has no such cell
    space     whose score it is; other: the space that it is compared with; both "" where no space is named
    vectors   for a derived number, the vectors that it was computed from, each "space/corpus"; () if not of vectors
    """

    table: str
    line: int
    row: str
    column: str
    field: str
    text: str
    indexed: str
    origin: Origin
    space: str = ""
    other: str = ""
    corpus: str = ""
    protocol: str = ""
    unit: str = "x100"
    vectors: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its name in messages: table, row, column, and which of a cell's numbers."""
        short = self.table.rpartition("/")[2]
        return f"{short}: {self.row} × {self.column}" + ("" if self.field == "value" else f", {self.field}")


def tables_folder(suite: str) -> str:
    """The folder of a suite's tables."""
    return f"reports/{suite}/tables"


def read_numbers(tree: Tree, suite: str) -> list[Number]:
    """Every number in every table of a suite. Raises LineageError if there is no table, or one cannot be read."""
    folder, index = tables_folder(suite), read_index(tree, suite)
    names = [name for name in tree.files_below(folder) if name.lower().endswith(".csv")]
    if len(names) > MOST_TABLES:
        raise _unreadable(tree, folder, f"at most {MOST_TABLES:,} tables", f"{len(names):,}")
    numbers: list[Number] = []
    for name in names:
        path = f"{folder}/{name}"
        numbers += read_table(tree, path, index.get(name, []))
        if len(numbers) > MOST_NUMBERS:
            raise _unreadable(tree, path, f"tables of at most {MOST_NUMBERS:,} numbers in all", "more")
    return numbers


def read_index(tree: Tree, suite: str) -> dict[str, list[dict[str, Any]]]:
    """Name of a CSV file -> its cells, each with the fields that the index declares. Raises LineageError."""
    path = f"{tables_folder(suite)}/cells.json"
    remedy = f"run `sentfold run --suite {suite}`, or take {tables_folder(suite)} from git"
    content = tree.read(path)
    if content is None:
        raise LineageError(f"suite '{suite}' has no tables in {tree.name}", where=path, remedy=remedy)
    try:
        index = json.loads(_bounded(content))
        if index["schema"] != SCHEMA:
            raise ValueError(f"schema {index['schema']}")
        fields = index["fields"]
        return {
            name: [dict(zip(fields, cell, strict=True)) for cell in cells] for name, cells in index["tables"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LineageError(
            "the index of cells cannot be read",
            where=f"{path} of {tree.name}",
            expected=f"an index of schema {SCHEMA}",
            got=f"{type(error).__name__}: {first_line(error)}",
            remedy=remedy,
        ) from None


def read_table(tree: Tree, path: str, cells: Iterable[Mapping[str, Any]]) -> list[Number]:
    """The numbers of one CSV file. cells: the file's part of the index. Raises LineageError."""
    content = tree.read(path)
    try:
        rows = csv.reader(io.StringIO(_bounded(content or b"").decode("utf-8"), newline=""))
        header = next(rows, [])
        if len(set(header)) < len(header):
            raise csv.Error("two columns have one name")
        printed = {}
        for line, row in enumerate(rows, 2):
            # One cell too many shifts no column, so nothing else would notice it.
            if len(row) != len(header) or not row:
                raise csv.Error(f"row {line} has {len(row)} cells, the header {len(header)}")
            if line * len(row) > MOST_CELLS:
                raise csv.Error(f"it has more than {MOST_CELLS:,} cells")
            printed[line] = dict(zip(header, row, strict=True))
        numbers = list(islice(_numbers(path, printed, cells), MOST_NUMBERS + 1))
        if len(numbers) > MOST_NUMBERS:
            raise ValueError(f"it has more than {MOST_NUMBERS:,} numbers")
        return numbers
    except (csv.Error, ValueError, KeyError, AttributeError, TypeError) as error:
        got = f"{type(error).__name__}: {first_line(error)}"
        raise _unreadable(tree, path, "a CSV file that the stage report wrote", got) from None


def _bounded(content: bytes) -> bytes:
    """The content of a file that is to be parsed. Raises ValueError if the result could fill the memory."""
    if len(content) > MOST_TEXT:
        raise ValueError(f"it has {len(content):,} bytes, more than {MOST_TEXT:,}")
    return content


def _unreadable(tree: Tree, path: str, expected: str, got: str) -> LineageError:
    return LineageError(
        "a table cannot be read",
        where=f"{path} of {tree.name}",
        expected=expected,
        got=got,
        remedy=f"take it from git again, or sentfold run --suite {path.split('/')[1]}",
    )


def _numbers(
    path: str, printed: Mapping[int, Mapping[str, str]], cells: Iterable[Mapping[str, Any]]
) -> Iterator[Number]:
    known: set[tuple[int, str]] = set()
    for cell in cells:
        for column, indexed in cell["texts"].items():
            known.add((cell["line"], column))
            yield _number(path, cell, column, indexed, printed.get(cell["line"], {}))
    for line, row in printed.items():
        name = row.get("row", row.get("space", ""))
        # A table without these columns (sts.csv) has a name and then numbers.
        names = NAMES if any(field in row for field in FIELDS) else list(row)[:1]
        for field in [field for field in row if field not in names]:
            if row[field] and (line, field) not in known:
                yield Number(path, line, name, "", field, row[field], "", "unknown")


def _number(path: str, cell: Mapping[str, Any], column: str, indexed: str, line: Mapping[str, str]) -> Number:
    corpus, protocol, key = cell["corpus"], cell["protocol"], list(cell["key"])
    # Of other types they could be no keys of a mapping, and so end the audit.
    if not all(
        isinstance(part, str) for part in (cell["row"], corpus, protocol, cell["origin"], cell["unit"], indexed)
    ):
        raise TypeError(f"a cell of line {cell['line']} has something else where texts are")
    if not indexed:  # a line that the table lacks has no text either, and would agree
        raise ValueError(f"a cell of line {cell['line']} has no number")
    if not all(isinstance(part, str | int) for part in (cell["line"], *key)):
        raise TypeError(f"a cell of line {cell['line']} has something else where names and numbers are")
    # sts.csv, the table for programs, has a column per corpus.
    field, title = (column, " ".join(filter(None, (corpus, protocol)))) if column in FIELDS else ("value", column)
    origin: Origin = cell["origin"]
    spaces = key[:1] if origin == "score" else key[:2] if origin == "difference" else []
    space, other = (*spaces, "", "")[:2]
    vectors = tuple(map(str, key)) if origin == "derived" else ()
    if origin in ("score", "difference") and len(key) != (3 if origin == "score" else 4):
        raise ValueError(f"a cell of line {cell['line']} has a key of {len(key)} parts")
    if any("/" in str(name) for name in (space, other)):  # such a file of scores could be one that no stage writes
        raise ValueError(f"a cell of line {cell['line']} has a path in the place of a space: {key}")
    if origin == "difference" and field.endswith(("low", "high")):
        origin = "derived"  # from the replicates of two scores
    if origin in ("score", "difference") or space:
        corpus, protocol = key[-2:]
    return Number(
        path, cell["line"], cell["row"], title, field, line.get(column, ""), indexed, origin, space, other, corpus,
        protocol, cell["unit"], vectors,
    )  # fmt: skip


# --- one number ---------------------------------------------------------------------------------------


def find_table(root: Path, table: str) -> tuple[str, str]:
    """Suite and path of a table. Raises LineageError with the nearest names."""
    path = Path(table)
    if path.is_absolute() and path.is_relative_to(root):
        path = path.relative_to(root)
    parts = path.parts
    if len(parts) == 4 and (parts[0], parts[2]) == ("reports", "tables") and (root / path).is_file():
        return parts[1], path.as_posix()
    known = sorted(file.relative_to(root).as_posix() for file in root.glob("reports/*/tables/*.csv"))
    raise _unknown("table", table, known, str(root))


def find_number(
    tree: Tree, suite: str, path: str, *, row: str, column: str, field: str = "value", line: int | None = None
) -> Number:
    """The number of one cell. Raises LineageError with the nearest rows or columns, or with the cells to choose from.

    column  the corpus, the protocol, or both with a blank or a slash between them, as far as it needs both
    field   one of FIELDS
    line    of the file, where several cells have one name
    """
    numbers = read_table(tree, path, read_index(tree, suite).get(path.rpartition("/")[2], []))
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
        got = "; ".join(dict.fromkeys(choices))
        raise LineageError(f"'{row}' × '{column}' is {len(cells)} cells", where=path, got=got, remedy="name one")
    return cells[0]


def _unknown(what: str, asked: str, known: Iterable[str], where: str) -> LineageError:
    """The error for a name that there is not, with the names most like it, or the first of all."""
    names = list(dict.fromkeys(known))
    near = nearest_names(asked, names, count=8, cutoff=0.5)
    got = f"nearest: {', '.join(near)}" if near else f"there are: {', '.join(names[:12]) or 'none'}"
    return LineageError(f"there is no {what} '{asked}'", where=where, got=got, remedy="name one that exists")


# --- scores -------------------------------------------------------------------------------------------


class Scores:
    """scores/<space>.json of one suite in one tree. Each file is read once."""

    def __init__(self, tree: Tree, suite: str) -> None:
        self.tree = tree
        self.suite = suite
        self._files: dict[str, dict[str, Any]] = {}
        self._bytes = 0  # read so far

    def path(self, space: str) -> str:
        """The scores file of a space."""
        return scores_path(self.suite, space).as_posix()

    def score(self, space: str, corpus: str, protocol: str) -> dict[str, Any]:
        """value, low and high of one score on the x100 scale; {} if there is no such score.

        Raises LineageError if all files that were read have more than MOST_TEXT bytes.
        """
        if space not in self._files:
            self._files[space] = self._read(space)
        found: Any = self._files[space]
        for key in ("corpora", corpus, "scores", protocol):
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def text_of(self, number: Number) -> str | None:
        """What a table must print for a score, or for a difference of two; None if there is no such score."""
        names, field = [number.space], number.field
        if number.origin == "difference":
            names, field = [number.space, number.other], "value"
        found = [self.score(space, number.corpus, number.protocol).get(field) for space in names]
        values = [float(value) for value in found if isinstance(value, int | float) and abs(value) <= LARGEST]
        if len(values) < len(names):
            return None
        first, *others = values
        if others:
            difference = round(first - others[0], 2) + 0.0  # plus 0: what rounds to -0.0 is 0
            if number.unit == "nats":
                return f"{difference / 100:+.4f}" if number.text.startswith("+") else f"{difference / 100:.4f}"
            return f"{difference:+.2f}" if number.text.startswith("+") else f"{difference:.2f}"
        if number.unit == "nats":  # stored times 100, printed with four digits, its bounds with three
            return f"{first / 100:.4f}" if number.field == "value" else f"{first / 100:.3f}"
        return f"{first:.2f}"

    def _read(self, space: str) -> dict[str, Any]:
        try:
            text = self.tree.read(self.path(space)) or b"null"
        except LineageError:
            return {}
        self._bytes += len(text)
        if self._bytes > MOST_TEXT:
            raise LineageError(
                "the scores of a suite would fill the memory",
                where=f"{self.path(space)} of {self.tree.name}",
                expected=f"at most {MOST_TEXT:,} bytes in all files of scores",
                got="more",
                remedy="take reports/ from git again",
            )
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}
