"""Files of rows as one kind of table: CSV, TSV, JSONL, Parquet, plain text, and folders of these."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, takewhile
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sentfold.errors import SentfoldError, first_line
from sentfold.files import FREE, RATIO, read_parquet, require_regular
from sentfold.forms import compose

LONGEST = 1_000_000  # characters of one cell
MOST_COLUMNS = 5_000  # the time that pyarrow takes grows with the square of their number
MOST_ROWS = 2_000_000  # of a file of any size: pairs of few texts take less than a byte a row in Parquet
FREE_CELLS, CELLS_A_BYTE = 5_000_000, 3  # of lines of JSON, where a key that a line lacks is a cell, too
NARROW = 10  # columns up to which MOST_ROWS holds; of twice as many columns, half as many rows
ROW = 200  # bytes of memory that a row of a table takes at least
HEADER, FIRST = 100_000, 20  # characters and rows of a file, with its header, that its delimiter is looked for in
TRUE_WORDS = {
    "true": 1.0, "yes": 1.0, "match": 1.0, "duplicate": 1.0, "t": 1.0, "false": 0.0, "no": 0.0, "different": 0.0,
    "f": 0.0,
}  # fmt: skip
SPLITS = {
    "train": "train", "training": "train", "dev": "dev", "validation": "dev", "valid": "dev", "val": "dev",
    "test": "test",
}  # fmt: skip
DELIMITERS = (",", "\t", ";", "|")
TWICE = "a key that comes twice"
ONE_A_LINE = (
    "write one object a line. From a list: jq -c '.[]' OLD > NEW.jsonl. From objects of several lines: "
    "jq -c . OLD > NEW.jsonl"
)
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".txt")
TABLES = tuple(suffix for suffix in SUFFIXES if suffix != ".txt")  # of the parts in a folder
PARTS = ("train", "dev", "test")  # in the order in which they are read
LIKE_PART = re.compile(f"({'|'.join([*SPLITS, 'eval', 'evaluation'])})(?![a-z])", re.IGNORECASE)
# For no name: here, by writers that write none, by pandas, R, SheetJS and polars.
MADE_UP = re.compile(r"(\0\d+|Unnamed: \d+(\.\d+)?|\.\.\.\d+|X\.\d+|__EMPTY(_\d+)?|_duplicated_\d+)?")
IN_NO_COLUMN = "have cells in a column without a name"
SAVED = ("dataset_dict.json", "state.json")  # of a folder that `save_to_disk` of datasets wrote
IDLE = (".md", ".py", ".ipynb", ".sh", ".log", ".yaml", ".yml", ".npy", ".npz", ".safetensors")  # and names of a part
PART = re.compile(r"(\w+)-(\d+)-of-(\d+)(?:-[0-9a-f]+)?")  # train-00000-of-00002, and a hash behind it


class DataError(SentfoldError, ValueError):
    """A file of the user's, or an array, is not what was asked for."""


@dataclass(frozen=True)
class Table:
    """Rows of a file, or of the files of a folder one after the other.

    name     of the file or folder
    columns  name -> one value per row: texts from text files, typed values from JSON and Parquet
    places   per row, its file and its line (of text files) or row (of others; counted from 1)
    notes    how the file was read, in words
    """

    name: str
    columns: dict[str, list[Any]]
    places: list[tuple[str, str, int]]
    notes: tuple[str, ...] = ()

    def place(self, row: int, column: str = "") -> str:
        """Where a value is, for a message."""
        file, unit, number = self.places[row]
        return f"{file}, {unit} {number}" + (f", column {column}" if column else "")

    def __len__(self) -> int:
        return len(self.places)


def read_table(path: Path, named: Collection[str] = ()) -> Table:
    """The rows of a file or a folder. Raises DataError that names file and line.

    named  columns that the user named: a JSON object with one of these is a row

    The first line of CSV and TSV is the header. A folder holds files named by their part (train.csv,
    test-00000-of-00002.parquet); the part then becomes the column `split`.
    """
    if path.is_dir():
        return _read_folder(path, named)
    json_lines = partial(_read_json_lines, named=named)
    readers: dict[str, Callable[[Path], Table]] = {
        ".jsonl": json_lines,
        ".json": json_lines,
        ".ndjson": json_lines,
        ".parquet": _read_parquet,
        ".txt": _read_lines,
    }
    if not path.exists():
        raise DataError("there is no such file", where=str(path), remedy="correct the path")
    refuse_holes(path)
    table = readers.get(path.suffix.lower(), _read_delimited)(path)
    if not len(table):
        raise DataError("a file has no rows", where=str(path), expected="at least one row below the header")
    return table


def refuse_holes(path: Path) -> None:
    """Raise DataError for a file of more than 1 MiB whose larger part was never written.

    An archive of a few bytes can hold such a file of any size, and every limit on what a file may unpack to counts its
    size. A file that cannot be opened is left to its reader.
    """
    if not path.is_file() or path.stat().st_size <= 1 << 20:
        return
    written, place, size = 0, 0, path.stat().st_size
    try:
        with path.open("rb") as stream:
            while place < size:
                start = os.lseek(stream.fileno(), place, os.SEEK_DATA)
                place = os.lseek(stream.fileno(), start, os.SEEK_HOLE)
                written += place - start
    except OSError as error:
        if error.errno != errno.ENXIO:  # which says that nothing is written behind `place`
            return  # the file cannot be opened, or its file system does not tell
    if 2 * written < size:
        raise DataError(
            "most of a file was never written", where=str(path), expected="a file without holes",
            got=f"{written:,} bytes in a file of {size:,}", remedy="copy the file again from where it was written",
        )  # fmt: skip


def refuse_value(table: Table, row: int, column: str, what: str, *, expected: str, remedy: str = "") -> DataError:
    """The error for one value of a table."""
    return DataError(
        what, where=table.place(row, column), expected=expected, got=shorten(table.columns[column][row]), remedy=remedy
    )


@contextmanager
def unchanged(*paths: Path | None) -> Iterator[list[Path]]:
    """Raise DataError at the end if a file that was read is another one than at the beginning.

    A file is read before or after it is hashed: one that is written meanwhile would have the hash of other bytes.
    paths  files and folders in which it is looked; the caller adds those files to the list that it reads
    """
    given, read = [path for path in paths if path is not None and path != Path()], list[Path]()
    before = _states(given)
    yield read
    after = _states(given)
    for path in read:
        if before.get(path) != after.get(path):
            raise DataError(
                "a file was changed while it was read", where=str(path), remedy="call the command again, on a file "
                "that no other program writes",
            )  # fmt: skip


def _states(paths: Iterable[Path]) -> dict[Path, tuple[int, int, int]]:
    """Each file, also those of a folder and of the folders in it, with what changes whenever it is written."""
    files = [file for path in paths for file in ((path,) if path.is_file() else (*path.glob("*"), *path.glob("*/*")))]
    states = {file: file.stat() for file in files if file.is_file()}
    return {file: (state.st_ino, state.st_size, state.st_mtime_ns) for file, state in states.items()}


def shorten(value: object, most: int = 60) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


# --- text files --------------------------------------------------------------------------------------


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark. Raises DataError that names the line."""
    refuse_holes(path)
    try:
        require_regular(path)
        content = path.read_bytes()
    except OSError as error:
        raise DataError("a file cannot be read", where=str(path), got=first_line(error)) from None
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    if encoding == "utf-8-sig" and b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise DataError(
            "a file is binary, not text", where=f"{path}, line {line}", expected=f"one of {', '.join(SUFFIXES)}",
            remedy="unpack it (gunzip, bunzip2, unzip), or write it in one of these forms",
        )  # fmt: skip
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            "a file is not UTF-8",
            where=f"{path}, line {content[: error.start].count(10) + 1}",
            expected="UTF-8, or UTF-16 with a byte order mark",
            got=f"byte {content[error.start : error.start + 1]!r}",
            remedy="save the file as UTF-8, in Excel as `CSV UTF-8`; or iconv -f ENCODING -t utf-8, with the encoding "
            "of the file: cp1252 for Western Europe, cp1251 for Cyrillic. Then look at the texts: iconv takes any",
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise DataError(
            "a file is not UTF-16, although it begins with its mark", where=f"{path}, line {line}",
            expected="UTF-8, or UTF-16 with a byte order mark", got="characters of no text",
            remedy="if it is UTF-32: iconv -f utf-32 -t utf-8",
        )  # fmt: skip
    return text


def lines_of(path: Path) -> list[str]:
    """The lines of a file; not those of splitlines(), which also splits at characters inside of a sentence.

    Raises DataError, as read_text does, and for a file in which some lines end in carriage returns and others do not.
    """
    text = read_text(path)
    if "\n" not in text:  # Excel's "Text (Macintosh)" ends each line by a carriage return
        return text.split("\r")
    lines = [line.rstrip("\r") for line in text.split("\n")]
    if odd := next((number for number, line in enumerate(lines, start=1) if "\r" in line), None):
        raise DataError(
            "a line has a carriage return inside", where=f"{path}, line {odd}",
            expected="lines that end in one way: by \\n, \\r\\n or \\r",
            got=f"a line of {len(lines[odd - 1]):,} characters with {lines[odd - 1].count(chr(13)):,} of them",
            remedy="if it ends a line: tr '\\r' '\\n' < OLD > NEW; else tr '\\r' ' ' < OLD > NEW",
        )  # fmt: skip
    return lines


def _read_lines(path: Path) -> Table:
    lines = lines_of(path)
    kept = [(number, line) for number, line in enumerate(lines, start=1) if line]
    refuse_table(path, [line for _, line in kept])
    return Table(path.name, {"text": [line for _, line in kept]}, [(str(path), "line", number) for number, _ in kept])


def refuse_table(path: Path, lines: list[str]) -> None:
    """Raise DataError for lines of texts of which the first may be the header of a table: it has a tab."""
    if lines and "\t" in lines[0].strip():
        raise DataError(
            "the first line of a text file has a tab, as a table has", where=str(path), expected="one text a line",
            got=shorten(lines[0]), remedy="if it is a table, call it .tsv; if not, write blanks in place of the tabs",
        )  # fmt: skip


def _read_json_lines(path: Path, named: Collection[str]) -> Table:
    records, places = [], []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=_each_once)
            if "\\ud" in line.lower():  # half of a character, as a cut emoji leaves it, can be written to no file
                whole = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
                record = json.loads(whole.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise DataError(
                "a line is not JSON", where=f"{path}, line {number}", expected="one object a line", got=str(error),
                remedy="write each key once" if str(error) == TWICE else ONE_A_LINE,
            ) from None  # fmt: skip
        if not isinstance(record, dict):
            raise DataError(
                "a line is no JSON object", where=f"{path}, line {number}", expected="{...}", got=shorten(record),
                remedy=_rows_of_pages(record) or ONE_A_LINE,
            )  # fmt: skip
        records.append(record)
        places.append((str(path), "line", number))
    alone = records[0] if len(records) == 1 else {}
    under = _rows_under(alone)
    # Web services answer with a message and a list of rows. A list beside a `text` describes that text.
    is_row = not {"text", *named}.isdisjoint(map(plain_name, alone))
    if (under and not is_row) or (alone and all(isinstance(value, (dict, list)) for value in alone.values())):
        raise DataError(
            "a file holds one object of columns or rows", where=str(path), expected="one object a line, for each row",
            got=f"the keys {', '.join(map(shorten, [*alone][:5]))}",
            remedy=f"{under}; else name the key of its text: --columns text=KEY" if under
            else "pandas: df.to_json(path, orient='records', lines=True)",
        )  # fmt: skip
    names = list(dict.fromkeys(name for record in records for name in record))
    _refuse_columns(path, len(names))
    if len(names) * len(records) > FREE_CELLS + CELLS_A_BYTE * path.stat().st_size:
        raise DataError(
            "the lines have too many different keys", where=str(path), expected="objects of the same keys",
            got=f"{len(names):,} keys in {len(records):,} lines",
            remedy="keep the keys that are used: jq -c '{text, label}' OLD > NEW.jsonl",
        )  # fmt: skip
    columns = {plain_name(name): [record.get(name) for record in records] for name in names}
    if len(columns) < len(names):
        raise DataError(
            "two keys have one name", where=str(path), expected="keys that differ in more than blanks",
            got=", ".join(map(repr, names)), remedy="write one of them in all lines",
        )  # fmt: skip
    nested = [name for name, cells in columns.items() if _are_nested(cells)]
    notes = (f"columns of lists and structs are left out: {', '.join(map(shorten, nested))}",) if nested else ()
    return Table(path.name, columns, places, notes)


def _are_nested(cells: Sequence[object]) -> bool:
    """Whether all that is not null is a list or an object. A list of one label is that label (`class_name`)."""
    filled = [cell for cell in cells if cell is not None]
    nested = bool(filled) and all(isinstance(cell, (list, dict)) for cell in filled)
    return nested and not all(
        isinstance(cell, list) and len(cell) == 1 and not isinstance(cell[0], (list, dict)) for cell in filled
    )


def _rows_of_pages(record: object) -> str:
    """How to take the rows out of a list of objects of JSON that have them under a key; "" if they have none."""
    first = record[0] if isinstance(record, list) and record else None
    under = _rows_under(first, of=".[]") if isinstance(first, dict) and "text" not in first else ""
    return f"{under}; else jq -c '.[]' OLD > NEW.jsonl" if under else ""


def _rows_under(record: Mapping[str, object], of: str = ".") -> str:
    """How to take the rows out of an object of JSON that has them under a key; "" if it has none.

    of  the object, or the objects, in the language of jq
    """
    keys = [
        key for key, value in record.items()
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    ]  # fmt: skip
    if not keys:
        return ""
    remedy = f"if {shorten(keys[0])} has the rows: jq -c {quote(f'{of}[{json.dumps(keys[0])}][]')} OLD > NEW.jsonl"
    further = "; so of each further key with rows (train.jsonl and test.jsonl in a folder are its parts)"
    return remedy + further * (len(keys) > 1)


def _refuse_columns(path: Path, columns: int) -> None:
    """Raise DataError for more columns than are read."""
    if columns > MOST_COLUMNS:
        raise DataError(
            "a file has too many columns", where=str(path), expected=f"at most {MOST_COLUMNS:,}", got=f"{columns:,}",
            remedy="keep the columns of texts, scores and labels",
        )  # fmt: skip


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises ValueError for a key that comes twice: the last one would count."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(TWICE)
    return found


def _read_delimited(path: Path) -> Table:
    """CSV or TSV with a header, without the columns that have no name, such as the row numbers that pandas writes."""
    text = read_text(path)
    if text[:4].lower() == "sep=" and len(text.split("\n", 1)[0].strip()) == 5:
        raise DataError(
            "the first line says how cells are separated, and is no header", where=f"{path}, line 1",
            expected="a header and rows", got=shorten(text[:5]), remedy="remove the line, which Excel alone reads",
        )  # fmt: skip
    delimiter = find_delimiter(text)
    if path.suffix.lower() == ".tsv":  # other cells than those of tabs only where tabs cut nothing, and these all rows
        first = list(islice(csv.reader(io.StringIO(text[:HEADER], newline=""), delimiter=delimiter), FIRST))
        widths = {len(cells) for cells in first if cells}
        if "\t" in text[:HEADER].split("\n")[0] or len(widths) != 1 or widths == {1}:
            delimiter = "\t"
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    notes = [] if delimiter in (usual, "\t") else [f"cells are separated by {delimiter!r}"]
    if delimiter == "\t":
        records, plain = _parse_tabs(path, text)
        notes += ["quotes are taken as part of the texts"] * plain
        notes += _escaped(records)
    else:
        records = _parse(path, text, delimiter, csv.QUOTE_MINIMAL)
    notes += _joined_lines(path, text, delimiter, records)
    if not records:
        raise DataError("a file is empty", where=str(path), expected="a header and rows")
    (line, header), *rows = records
    _refuse_columns(path, sum(1 for cell in header if cell.strip()))
    names = [plain_name(cell) for cell in header]
    _check_shape(f"{path}, line {line}", names, [(f"{path}, line {line}", cells) for line, cells in rows])
    if len(names) > 1:
        _refuse_second_header(path, header, rows)
    columns = {name or f"\0{place}": [cells[place] for _, cells in rows] for place, name in enumerate(names)}
    named = {name: cells for name, cells in columns.items() if not name.startswith("\0")}
    table = Table(path.name, columns, [(str(path), "line", line) for line, _ in rows], tuple(notes))
    return replace(table, columns=named, notes=(*notes, *left_out_notes(table, named)))


def plain_name(name: str) -> str:
    """The name of a column, with single blanks in the place of line breaks, as spreadsheets have them in headers.

    Letters are composed: macOS decomposes them, and nobody can type that.
    """
    return compose(" ".join(name.split()))


def find_delimiter(text: str) -> str:
    """The delimiter that cuts most of the first rows into as many cells as the header; a comma if none cuts the header.

    Of several, the one that cuts the header into most.
    """

    def fit(delimiter: str) -> tuple[int, int]:
        records = filter(any, csv.reader(io.StringIO(text[:HEADER], newline=""), delimiter=delimiter))
        header, *rows = [len(record) for record in islice(records, FIRST)] or [0]
        return rows.count(header) if header > 1 else 0, header

    return max(DELIMITERS, key=fit)


def is_number(cell: object) -> bool:
    """Whether a cell can be read as a number."""
    try:
        parse_number(str(cell))
    except ValueError:
        return False
    return True


def parse_number(cell: str) -> float:
    """The number in a cell. Raises ValueError, also for `1_0`, which Python reads as 10."""
    if "_" in cell:
        raise ValueError(f"a number with an underscore: {cell}")
    return float(cell)


def is_score(cell: str) -> bool:
    """Whether a cell can be a score: a number, or one of TRUE_WORDS."""
    return cell.strip().lower() in TRUE_WORDS or is_number(cell)


def _parse_tabs(path: Path, text: str) -> tuple[list[tuple[int, list[str]]], bool]:
    """The records of a file of tabs, and whether quotes are taken as they are.

    They are where they are not in pairs. They also are where each line then has as many cells as the header, and has
    others if pairs of quotes hold cells together: two texts that begin and end with quotes would become one.
    """
    plain = _parse(path, text, "\t", csv.QUOTE_NONE)
    if '"' not in text:
        return plain, False
    try:
        quoted = _parse(path, text, "\t", csv.QUOTE_MINIMAL)
    except DataError:
        if '\\"' in text and text.startswith('"'):  # the quotes of the header are no part of its names
            raise
        return plain, True
    widths = [len(cells) for _, cells in plain]
    whole = len(set(widths)) == 1 and widths[0] > 1
    return (plain, True) if whole and widths != [len(cells) for _, cells in quoted] else (quoted, False)


def _joined_lines(path: Path, text: str, delimiter: str, records: list[tuple[int, list[str]]]) -> list[str]:
    """A note on texts of several lines.

    Raises DataError where quotes hold lines together nearly all of which are rows without them: a program that puts no
    text into quotes writes `"I am here.` in one row and `Are you?"` in a later one. Of texts of several lines, the last
    line or the first one has as many cells as a row, but rarely both.
    """
    joined = {line for line, cells in records if any("\n" in cell or "\r" in cell for cell in cells)}
    if not joined:
        return []
    plain: list[tuple[int, list[str]]] = []
    with suppress(DataError):
        plain = _parse(path, text, delimiter, csv.QUOTE_NONE)
    begun, width = {line for line, _ in records}, len(records[0][1])
    others = [cells for line, cells in records[1:] if line not in joined and len(cells) == width]
    groups: list[list[list[str]]] = []  # the lines of each row of several lines, each line as if it were a row
    for line, cells in plain:
        if line in joined:
            groups.append([cells])
        elif line not in begun and groups:
            groups[-1].append(cells)
    held = list(chain.from_iterable(groups))
    rows = [cells for cells in held if len(cells) == width]
    both = sum(len(group[0]) == len(group[-1]) == width for group in groups)
    read = [cells for _, cells in records[1:] if len(cells) == width]
    if 2 * both > len(groups) and 5 * len(rows) > 4 * len(held) and _are_rows(rows, others, read):
        raise DataError(
            "quotes hold lines together, and nearly all of these lines are rows without them",
            where=f"{path}, line {min(joined)}", expected="rows that can be told",
            got=f"{len(held):,} lines held together as {len(joined):,} rows",
            remedy="if a quote is a part of a text, put the text into quotes and write each of its own quotes twice; "
            "if a text has several lines, write Parquet or JSON lines",
        )  # fmt: skip
    lines = f"{len(held):,} lines, held together by quotes"
    return [f"rows with texts of several lines: {len(joined):,} ({lines}); the first: line {min(joined)}"]


def _are_rows(held: Sequence[Sequence[str]], others: Sequence[Sequence[str]], read: Sequence[Sequence[str]]) -> bool:
    """Whether most lines have numbers in the columns in which all other rows have, and known values in those in which
    others have a few that come again. False where there is no such column.

    Where there are no other rows, a column of numbers is one in which most of the lines have a number. In a column
    that numbers the rows that were read, numbers of the lines count once, and only if they are new.
    read  the rows with the lines held together
    """
    told = False
    for column in range(len(held[0])):
        known, new = {cells[column] for cells in others}, [cells[column] for cells in held]
        numbers = all(map(is_number, known))
        if numbers or 2 * len(known) < len(others):
            places = [cells[column].strip() for cells in read]
            numbered = others and all(map(str.isdecimal, places)) and len(set(places)) == len(places)
            counted = set(new) - known if numbered else new
            fits = 3 * sum(is_number(cell) if numbers else cell in known for cell in counted) > 2 * len(new)
            if others and not fits:
                return False
            told |= fits
    return told


def left_out_notes(table: Table, used: Collection[str]) -> list[str]:
    """A note on columns under no name, or under one that a program made up, which are not used.

    Not on those that number the rows. A spreadsheet that opens texts with commas and without quotes, and saves them,
    writes the rest of each text there; pandas writes the names of rows there, which can be parts or texts.
    """
    made_up = [name for name in table.columns if MADE_UP.fullmatch(name)]
    leading = {*takewhile(MADE_UP.fullmatch, table.columns)}
    cut = [
        table.columns[name]
        for name in made_up
        if name not in used and not _numbers_rows(table.columns[name], first=name in leading)
    ]
    rows = [row for row, cells in enumerate(zip(*cut, strict=True)) if any(map(_is_filled, cells))]
    if not rows:
        return []
    place = " ".join(map(str, table.places[rows[0]][1:]))
    return [
        f"{len(rows):,} of {len(table):,} rows {IN_NO_COLUMN}, which are left out; the first: {place}. If a comma cut "
        "them from other texts, put these into quotes; else name the column"
    ]


def _numbers_rows(cells: Sequence[object], *, first: bool) -> bool:
    """Whether they are whole numbers, one more in each row; in the first columns, rather many ones, in any order.

    pandas numbers rows there, also those of a file that had numbers, and keeps the numbers of rows that were shuffled,
    left out, or put together of files.
    """
    texts = [str(cell).strip().removesuffix(".0") for cell in cells]
    if not texts or not all(text.isdecimal() and len(text) < 20 for text in texts):
        return False
    numbers = [int(text) for text in texts]
    following = numbers == [*range(numbers[0], numbers[0] + len(numbers))]
    return following or (first and 4 * len(set(numbers)) >= len(numbers))


def _is_filled(cell: object) -> bool:
    return cell is not None and cell == cell and bool(str(cell).strip())  # NaN is not equal to itself


def _escaped(records: list[tuple[int, list[str]]]) -> list[str]:
    """A note on line breaks and tabs that a database wrote as two characters, if no cell has a real line break."""
    marked = [line for line, cells in records if any("\\n" in cell or "\\t" in cell for cell in cells)]
    if not marked or any("\n" in cell for _, cells in records for cell in cells):
        return []
    return [
        f"{len(marked):,} rows have \\n or \\t as two characters, taken as letters; the first: line {marked[0]}. If a "
        "database wrote line breaks and tabs so, export CSV instead"
    ]


def _parse(path: Path, text: str, delimiter: str, quoting: Literal[0, 3]) -> list[tuple[int, list[str]]]:
    """The records that are not empty, each with the line where it begins."""
    before = csv.field_size_limit(LONGEST)
    first = text.partition("\n")[0]
    blanks = delimiter in first and first.count(delimiter) == first.count(f"{delimiter} ")  # "left", "right", "score"
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True, skipinitialspace=blanks
    )
    records, line = [], 1
    try:
        for cells in reader:
            if any(cells):
                records.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            "a row cannot be read",
            where=f"{path}, line {line}",
            expected=f"cells separated by {delimiter!r}, quotes in pairs, no cell above {LONGEST:,} characters",
            got=str(error),
            remedy="write a quote in a text twice, not behind a backslash: Spark has .option('escape', '\"'), R "
            "qmethod='double'"
            if '\\"' in text
            else "",
        ) from None
    finally:
        csv.field_size_limit(before)
    return records


def _check_shape(where: str, names: list[str], rows: list[tuple[str, list[str]]]) -> None:
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise DataError(
            "two columns have one name", where=where, got=", ".join(names),
            remedy="the first line must be a header that names each column once",
        )  # fmt: skip
    if rows and all(len(cells) == len(names) + 1 for _, cells in rows):
        raise DataError(
            "the header has one cell less than each row", where=where, expected=f"{len(rows[0][1])} cells",
            got=f"{len(names)} cells: {', '.join(names)}", remedy="remove a title above the header, and "
            "delimiters at the ends of rows; put a text that contains the delimiter into quotes; of a table by R, "
            "write it with row.names=FALSE",
        )  # fmt: skip
    for place, cells in rows:
        if len(cells) != len(names):
            raise DataError(
                "a row has another number of cells than the header",
                where=place,
                expected=f"{len(names)} cells: {', '.join(names)}",
                got=f"{len(cells)} cells",
                remedy="separate the header, which must be the first line, as the rows are; put a text that contains "
                "the delimiter into quotes",
            )


def _refuse_second_header(path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> None:
    """Raise DataError for a row that is the header again: of labels it would be a text and a class.

    Joined files can write it with other capitals, with blanks, and behind a mark of the order of bytes.
    """
    known = [name.strip().casefold() for name in header]
    for line, cells in rows:
        if [cell.strip("\ufeff \t").casefold() for cell in cells] == known:
            raise DataError(
                "the file has its header a second time", where=f"{path}, line {line}", expected="rows below one "
                "header", got=shorten(", ".join(cells)), remedy="remove the line, which joined files leave",
            )  # fmt: skip


# --- binary files and folders ------------------------------------------------------------------------


def read_arrow_table(path: Path) -> pa.Table:
    """A Parquet file. Raises DataError."""
    from pyarrow import parquet

    try:
        require_regular(path)
        whole = path.absolute()  # pyarrow takes names such as nomic:latest.parquet for addresses
        if (columns := parquet.read_metadata(whole).num_columns) > MOST_COLUMNS:
            raise pa.ArrowInvalid(f"{columns:,} columns; at most {MOST_COLUMNS:,} are read")
        return _checked(read_parquet(whole))
    except (OSError, ValueError, NotImplementedError, pa.ArrowException) as error:
        # ValueError: a name that is not UTF-8; NotImplementedError: a type of an extension, such as a tensor
        raise _unreadable(path, "a whole Parquet file that does not grow out of all proportion", error) from None


def decode_texts(table: pa.Table) -> pa.Table:
    """The table, with columns of bytes that are UTF-8 as texts: Impala and others write texts without saying so."""
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name, column in columns.items():
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            with suppress(pa.ArrowInvalid):
                columns[name] = column.cast(pa.large_string())
    return pa.table(columns) if columns else table


def _read_parquet(path: Path) -> Table:
    return table_of(path, read_arrow_table(path))


def _checked(table: pa.Table) -> pa.Table:
    """The table, with names of columns as CSV has them: without blanks at their ends, which no option can name.

    Raises pa.ArrowInvalid for what pyarrow would read beyond the end of, and for texts not in UTF-8.
    """
    table = table.rename_columns([plain_name(name) for name in table.column_names])
    if len(set(table.column_names)) < table.num_columns:
        raise pa.ArrowInvalid(f"two columns have one name: {', '.join(table.column_names)}")
    table.validate(full=True)
    return decode_texts(table)


def _unreadable(path: Path, expected: str, error: Exception) -> DataError:
    what = "there is too little memory to read a file" if isinstance(error, MemoryError) else "a file cannot be read"
    remedy = ""
    if "fixed_shape_tensor" in str(error):
        remedy = "write its tensors as lists: pq.write_table(pq.read_table(OLD), NEW, store_schema=False)"
    return DataError(what, where=str(path), expected=expected, got=first_line(error), remedy=remedy)


def table_of(path: Path, table: pa.Table) -> Table:
    """Its columns but those of lists, which are vectors. Raises DataError for more rows than a file of its size has."""
    row = ROW + 8 * table.num_columns  # bytes of a row in memory; in the file it may take none
    most = max(MOST_ROWS * NARROW // max(NARROW, table.num_columns), (FREE + RATIO * path.stat().st_size) // row)
    if table.num_rows > most:
        raise DataError(
            "a file has too many rows for its size", where=str(path), expected=f"at most {most:,}",
            got=f"{table.num_rows:,}", remedy="if it is your own, keep the columns that are used, or write it as CSV",
        )  # fmt: skip
    columns, nested = {}, [field.name for field in table.schema if pa.types.is_nested(field.type)]
    if nested and len(nested) == table.num_columns:
        raise DataError(
            "a file has lists alone", where=str(path), expected="a text in each row",
            got=f"columns of lists and structs, {', '.join(nested)}, in {table.num_rows} rows",
            remedy=f"of lists of texts: pandas.read_parquet(OLD).explode({nested!r}).to_parquet(NEW, index=False)",
        )  # fmt: skip
    notes = (f"columns of lists and structs are left out: {', '.join(nested)}",) if nested else ()
    lacking: list[str] = []
    for name in table.column_names:
        if name not in nested:
            try:
                columns[name] = _plain_numbers(table.column(name))
            except (ValueError, OverflowError, LookupError):  # a date, a time or a time zone that Python lacks
                lacking.append(name)
    if lacking:
        notes = (*notes, f"columns of values that Python lacks are left out: {', '.join(lacking)}")
    return Table(path.name, columns, [(str(path), "row", number) for number in range(1, table.num_rows + 1)], notes)


def _plain_numbers(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column: 3.6 that is stored in 16 or 32 bits is 3.6, and not the nearest of these numbers."""
    kinds = {pa.float16(): np.float16, pa.float32(): np.float32}
    values: list[Any] = column.to_pylist()
    kind = kinds.get(column.type)
    return values if kind is None else [value if value is None else float(str(kind(value))) for value in values]


def _read_folder(folder: Path, named: Collection[str]) -> Table:
    """The parts of a folder: train, dev, test. Raises DataError unless all have the same columns."""
    parts = sorted(_named_parts(folder), key=lambda part: PARTS.index(part[0]))
    tables = [(part, read_table(path, named)) for part, path in parts]
    first = tables[0][1].columns
    for (_, path), (_, table) in zip(parts, tables, strict=True):
        if table.columns.keys() != first.keys():
            raise DataError(
                "two files of a folder have other columns", where=str(path), expected=", ".join(first),
                got=", ".join(table.columns), remedy="give all files the same columns, or give one file alone",
            )  # fmt: skip
    columns = {name: [value for _, table in tables for value in table.columns[name]] for name in first}
    if len({part for part, _ in parts}) > 1 and "split" not in columns:
        columns["split"] = [part for part, table in tables for _ in range(len(table))]
    names = [str(path.relative_to(folder)) for _, path in parts]
    read = f"{len(names)} files: {', '.join(names if len(names) <= 8 else [names[0], '...', names[-1]])}"
    notes = dict.fromkeys([read, *(note for _, table in tables for note in table.notes)])
    return Table(folder.name, columns, [place for _, table in tables for place in table.places], tuple(notes))


def part_of(path: Path) -> tuple[str, int, int] | None:
    """The part that a file is named after, its number, and the number of all; 0 of 0 without, None for other names."""
    numbered = PART.fullmatch(path.stem)
    part = SPLITS.get((numbered[1] if numbered else path.stem).lower())
    number, count = (int(numbered[2]), int(numbered[3])) if numbered else (0, 0)
    return (part, number, count) if part else None


def _named_parts(folder: Path) -> list[tuple[str, Path]]:
    """The part and path of each table in a folder, by its name: train.csv, or test-00000-of-00002.parquet.

    Hidden files are no data, as old copies that programs keep have such names. Raises DataError for any other table,
    for a part that comes twice, lacks a file, or is in a form that is not read.
    """
    shown = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "_"))]
    is_table = any(path.suffix.lower() in TABLES and path.is_file() for path in shown)
    if {"corpus", "queries"} <= {path.name for path in shown if path.is_dir()} and not is_table:
        raise DataError(
            "queries and documents are not in BEIR's form", where=str(folder), expected="corpus.jsonl, queries.jsonl "
            "and qrels/test.tsv", got=", ".join(path.name for path in shown[:8]),
            remedy="write them from Parquet: df.to_json('corpus.jsonl', orient='records', lines=True), and "
            "df.to_csv('qrels/test.tsv', sep='\\t', index=False)",
        )  # fmt: skip
    if saved := [path.name for path in shown if path.name in SAVED]:
        raise DataError(
            "a folder that `save_to_disk` of datasets wrote is not read", where=str(folder), expected="Parquet",
            got=", ".join(saved), remedy="load it by datasets.load_from_disk, and call to_parquet of each part, as "
            "train.parquet and test.parquet in a new folder",
        )  # fmt: skip
    files: dict[str, list[tuple[Path, int, int]]] = {}  # with its number, and the number of all, or 0
    for path in shown:
        found = part_of(path)
        # JSON files with other names hold what programs note.
        if found and path.is_file() and path.suffix.lower() in (*TABLES, ".json"):
            part, number, count = found
            files.setdefault(part, []).append((path, number, count))
        elif path.suffix.lower() in TABLES and not path.is_dir():
            raise DataError(
                "a file is named after no part", where=str(path),
                expected="train.csv, dev.csv, test.csv, or numbered files as test-00000-of-00002.parquet",
                got=path.name, remedy="rename the file, move it out of the folder, or give the file itself",
            )  # fmt: skip
        elif _is_unread_part(path):
            raise DataError(
                "a part is in a form that is not read", where=str(path), expected=f"a file: {', '.join(TABLES)}",
                got=path.name, remedy="unpack it, or move its files up, as train-00000-of-00001.parquet",
            )  # fmt: skip
    if not files:
        raise DataError(
            "a folder holds no data", where=str(folder),
            expected="files named by part (train.csv, test.csv), or corpus.jsonl with queries.jsonl",
            got=", ".join(path.name for path in shown[:8]) or "an empty folder",
            remedy="give the folder or file that holds the data",
        )  # fmt: skip
    for numbered in files.values():
        numbered.sort(key=lambda file: file[1])
        _require_whole(folder, numbered)
    paths = [(part, path) for part, numbered in files.items() for path, *_ in numbered]
    if len({path.suffix.lower() for _, path in paths}) > 1:
        raise DataError(
            "the parts of a folder have two formats", where=str(folder), expected="one format",
            got=", ".join(path.name for _, path in paths[:8]), remedy="move the others out of the folder",
        )  # fmt: skip
    return paths


def _is_unread_part(path: Path) -> bool:
    """Whether what is no table has the name of a part, or is a folder with such tables."""
    if path.is_dir() and any(file.suffix.lower() in TABLES and LIKE_PART.match(file.name) for file in path.iterdir()):
        return True
    return LIKE_PART.match(path.name) is not None and path.suffix.lower() not in IDLE


def _require_whole(folder: Path, found: list[tuple[Path, int, int]]) -> None:
    """Raise DataError unless a part is one file, or all of its numbered files, in order. found: as in _named_parts"""
    if [(number, count) for _, number, count in found] not in (
        [(0, 0)], [(number, len(found)) for number in range(len(found))],
    ):  # fmt: skip
        raise DataError(
            "a part comes twice, or is not whole", where=str(folder),
            expected="one file of each part, or all of its numbered files",
            got=", ".join(path.name for path, *_ in found[:8]), remedy="move the others out of the folder",
        )  # fmt: skip
