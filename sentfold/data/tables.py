"""Files of rows as one kind of table: CSV, TSV, JSONL, Parquet, plain text, and folders of these."""

from __future__ import annotations

import csv
import io
import json
import re
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from sentfold.errors import SentfoldError, first_line
from sentfold.files import FREE, RATIO, read_parquet, require_regular

LONGEST = 1_000_000  # characters of one cell
SAMPLE = 20  # records that the delimiter is guessed from
TRUE_WORDS = {"true": 1.0, "yes": 1.0, "match": 1.0, "duplicate": 1.0, "false": 0.0, "no": 0.0, "different": 0.0}
SPLITS = {
    "train": "train", "training": "train", "dev": "dev", "validation": "dev", "valid": "dev", "val": "dev",
    "test": "test",
}  # fmt: skip
MISSING = ("n/a", "na", "none", "null", "missing", "unknown", "not rated", "-", "--", "?", ".")  # instead of a number
DELIMITERS = (",", "\t", ";", "|")
ONE_A_LINE = "write a list as one object a line: jq -c '.[]' list.json > lines.jsonl"
# What `datasets` writes of texts, numbers and vectors: types whose values take as many bytes in the file.
PLAIN = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_primitive, pa.types.is_null, pa.types.is_list,
    pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_struct, pa.types.is_decimal,
    pa.types.is_binary, pa.types.is_large_binary,
)  # fmt: skip
SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".txt")
SHARD = re.compile(r"-\d+(-of-\d+)?(-[0-9a-f]+)?$")  # train-00000-of-00002-0123456789abcdef


class DataError(SentfoldError, ValueError):
    """A file of the user's, or an array, is not what was asked for."""


@dataclass(frozen=True)
class Table:
    """Rows of a file, or of the files of a folder one after the other.

    name     of the file or folder
    columns  name -> one value per row: texts from text files, typed values from JSON and Parquet
    places   per row, its file and its line (of text files) or row (of others; counted from 1)
    notes    what was guessed, in words
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

    named  the columns that the user named: a first line that holds all of them is a header
    A folder is one that `datasets` saved, or holds files named by their split (train.csv, test-00000.parquet); the
    split then becomes a column.
    """
    if path.is_dir():
        return _read_folder(path, named)
    readers: dict[str, Callable[[Path], Table]] = {
        ".jsonl": _read_json_lines,
        ".json": _read_json_lines,
        ".ndjson": _read_json_lines,
        ".parquet": _read_parquet,
        ".arrow": _read_arrow,
        ".txt": _read_lines,
    }
    if not path.exists():
        raise DataError("there is no such file", where=str(path), remedy="correct the path")
    read = readers.get(path.suffix.lower())
    table = read(path) if read else _read_delimited(path, named)
    if not len(table):
        raise DataError("a file has no rows", where=str(path), expected="at least one row below the header")
    return table


def refuse_value(table: Table, row: int, column: str, what: str, *, expected: str, remedy: str = "") -> DataError:
    """The error for one value of a table."""
    return DataError(
        what, where=table.place(row, column), expected=expected, got=shorten(table.columns[column][row]), remedy=remedy
    )


def shorten(value: object, most: int = 60) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


# --- text files --------------------------------------------------------------------------------------


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark. Raises DataError that names the line."""
    try:
        require_regular(path)
        content = path.read_bytes()
    except OSError as error:
        raise DataError("a file cannot be read", where=str(path), got=first_line(error)) from None
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    if encoding == "utf-8-sig" and b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise DataError(
            "a file is binary, not text", where=f"{path}, line {line}", expected=f"one of {', '.join(SUFFIXES)}"
        )
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            "a file is not UTF-8",
            where=f"{path}, line {content[: error.start].count(10) + 1}",
            expected="UTF-8, or UTF-16 with a byte order mark",
            got=f"byte {content[error.start : error.start + 1]!r}",
            remedy="save the file as UTF-8, e.g. iconv -f cp1252 -t utf-8 for one of Excel on Windows",
        ) from None


def _read_lines(path: Path) -> Table:
    lines = [line.removesuffix("\r") for line in read_text(path).split("\n")]
    kept = [(number, line) for number, line in enumerate(lines, start=1) if line]
    return Table(path.name, {"text": [line for _, line in kept]}, [(str(path), "line", number) for number, _ in kept])


def _read_json_lines(path: Path) -> Table:
    records, places = [], []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "\\ud" in line.lower():  # half of a character, as a cut emoji leaves it, can be written to no file
                whole = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
                record = json.loads(whole.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise DataError(
                "a line is not JSON", where=f"{path}, line {number}", expected="one object a line", got=str(error),
                remedy=ONE_A_LINE,
            ) from None  # fmt: skip
        if not isinstance(record, dict):
            raise DataError(
                "a line is no JSON object", where=f"{path}, line {number}", expected="{...}", got=shorten(record),
                remedy=ONE_A_LINE,
            )  # fmt: skip
        records.append(record)
        places.append((str(path), "line", number))
    names = list(dict.fromkeys(name for record in records for name in record))
    if 8 * len(names) * len(records) > FREE + RATIO * path.stat().st_size:
        raise DataError(
            "the lines have too many different keys", where=str(path), expected="objects of the same keys",
            got=f"{len(names):,} keys in {len(records):,} lines",
        )  # fmt: skip
    return Table(path.name, {name: [record.get(name) for record in records] for name in names}, places)


def _read_delimited(path: Path, named: Collection[str]) -> Table:
    """CSV or TSV, without a first column of row numbers that has no name, as pandas and R write one."""
    text = read_text(path)
    if text[:4].lower() == "sep=" and len(text.split("\n", 1)[0].strip()) == 5:
        raise DataError(
            "the first line says how cells are separated, and is no header", where=f"{path}, line 1",
            expected="a header and rows", got=shorten(text[:5]), remedy="remove the line, which Excel alone reads",
        )  # fmt: skip
    delimiter = "\t" if path.suffix.lower() == ".tsv" else guess_delimiter(text)
    notes = [] if delimiter in (",", "\t") else [f"cells are separated by {delimiter!r}"]
    if delimiter == "\t":
        records, plain = _parse_tabs(path, text)
        notes += ["quotes are taken as part of the texts"] * plain
    else:
        records = _parse(path, text, delimiter, csv.QUOTE_MINIMAL)
    if not records:
        raise DataError("a file is empty", where=str(path), expected="a header and rows")
    if all(len(cells) > 1 and not cells[-1].strip() for _, cells in records):  # as spreadsheets write an emptied column
        records = [(line, cells[:-1]) for line, cells in records]
    numbered = _has_row_numbers([cells for _, cells in records])
    is_named = bool(named) and set(named) <= {cell.strip() for cell in records[0][1]}
    header = records[0][1] if numbered or is_named or has_header([cells for _, cells in records]) else None
    header = header and [cell.strip() for cell in header]
    names = header or [str(number) for number in range(1, len(records[0][1]) + 1)]
    if header is None:
        notes.append(
            f"there is no header: line {records[0][0]} is data ({shorten(records[0][1][0], 40)}); "
            "columns are named by their numbers, and --columns with names of that line makes it a header"
        )
    _check_shape(path, names, records)
    rows = records[1:] if header else records
    if header and len(header) > 1:
        _refuse_second_header(path, header, rows)
    elif header and not is_named and " " in header[0]:  # a text of two or three words, perhaps
        notes.append(
            f"line {records[0][0]} is the header ({shorten(header[0], 40)}); if it is a text, put one above it"
        )
    kept = list(enumerate(names))[1 if numbered else 0 :]
    columns = {name: [cells[place] for _, cells in rows] for place, name in kept}
    return Table(path.name, columns, [(str(path), "line", line) for line, _ in rows], tuple(notes))


def guess_delimiter(text: str) -> str:
    """The delimiter that cuts the first records into equally many cells, more than one; a comma if none does.

    Of several the one that gives most cells: a comma may stand within each number (3,5).
    """
    head = text[:100_000].splitlines()[: SAMPLE + 1]
    even = {}
    for delimiter in DELIMITERS:
        widths = {len(cells) for cells in list(csv.reader(head, delimiter=delimiter))[:SAMPLE] if cells}
        if len(widths) == 1 and widths != {1}:
            even[delimiter] = widths.pop()
    if even:
        return max(even, key=lambda delimiter: even[delimiter])
    return max(DELIMITERS, key=head[0].count) if head else ","


def has_header(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record names the columns: no cell of it is a number, blank, or a sentence.

    A first record with sentences is a header too if one of its cells is above a column of numbers. The names
    0, 1, 2, ... of pandas are names if some column has no number below.
    """
    first, *others = records
    if len(first) > 1 and list(first) == [str(number) for number in range(len(first))] and others:
        return any(not any(is_number(cell) for cell in column) for column in zip(*others, strict=False))
    if any(is_number(cell) or not cell.strip() for cell in first):
        return False
    if all(len(cell.split()) <= 3 for cell in first):
        return True
    columns = zip(first, zip(*others, strict=False), strict=False)
    return any(cell.strip().lower() not in MISSING and all(map(is_number, below)) for cell, below in columns)


def _has_row_numbers(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record is a header whose first cell is blank, above whole numbers alone."""
    first, *others = records
    if len(first) < 2 or first[0].strip() or not others or not has_header([first[1:]]):
        return False
    return all(cells[0].isdecimal() for cells in others)


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


def is_score(cell: object) -> bool:
    """Whether a cell can be a score: a number, or one of TRUE_WORDS."""
    return str(cell).strip().lower() in TRUE_WORDS or is_number(cell)


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
        return plain, True
    widths = [len(cells) for _, cells in plain]
    whole = len(set(widths)) == 1 and widths[0] > 1
    return (plain, True) if whole and widths != [len(cells) for _, cells in quoted] else (quoted, False)


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
        ) from None
    finally:
        csv.field_size_limit(before)
    return records


def _check_shape(path: Path, names: list[str], records: list[tuple[int, list[str]]]) -> None:
    if len(set(names)) < len(names):
        raise DataError("two columns have one name", where=f"{path}, line {records[0][0]}", got=", ".join(names))
    for line, cells in records:
        if len(cells) != len(names):
            raise DataError(
                "a row has another number of cells than the header",
                where=f"{path}, line {line}",
                expected=f"{len(names)} cells: {', '.join(names)}",
                got=f"{len(cells)} cells",
                remedy="put a text that contains the delimiter into quotes",
            )


def _refuse_second_header(path: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> None:
    """Raise DataError for a row that is the header again: of labels it would be a text and a class."""
    for line, cells in rows:
        if cells == header:
            raise DataError(
                "the file has its header a second time", where=f"{path}, line {line}", expected="rows below one "
                "header", got=shorten(", ".join(cells)), remedy="remove the line, which joined files leave",
            )  # fmt: skip


# --- binary files and folders ------------------------------------------------------------------------


def read_arrow_table(path: Path) -> pa.Table:
    """A Parquet file. Raises DataError."""
    try:
        return _checked(read_parquet(path))
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: a name that is not UTF-8
        raise _unreadable(path, "a whole Parquet file that does not grow out of all proportion", error) from None


def _read_parquet(path: Path) -> Table:
    return _from_arrow(path, read_arrow_table(path))


def _read_arrow(path: Path) -> Table:
    try:
        require_regular(path)
        with pa.memory_map(str(path)) as stream:
            _refuse_packed(stream)
            stream.seek(0)
            table = _checked(pa.ipc.open_stream(stream).read_all())
            return _from_arrow(path, table)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _unreadable(path, "an Arrow stream, as `datasets` saves one", error) from None


def _checked(table: pa.Table) -> pa.Table:
    """The table. Raises pa.ArrowInvalid for what pyarrow would read beyond the end of, and for texts not in UTF-8."""
    if len(set(table.column_names)) < table.num_columns:
        raise pa.ArrowInvalid(f"two columns have one name: {', '.join(table.column_names)}")
    table.validate(full=True)
    return table


def _refuse_packed(stream: pa.NativeFile) -> None:
    """Raise pa.ArrowInvalid for dictionaries, views and compressed buffers: small files of them unpack to gigabytes."""
    schema = pa.ipc.read_schema(stream)
    for field in schema:
        if not any(test(field.type) for test in PLAIN):
            raise pa.ArrowInvalid(f"column {field.name} is of the type {field.type}")
    with suppress(EOFError):
        while (message := pa.ipc.read_message(stream)) is not None:
            if message.type != "record batch" or _is_compressed(message.metadata.to_pybytes()):
                raise pa.ArrowInvalid(f"a compressed {message.type}")


def _is_compressed(metadata: bytes) -> bool:
    """Whether the flatbuffer of a record batch has the field `compression` (Message.fbs of Arrow's format)."""

    def number(form: str, at: int) -> int:
        return int(struct.unpack_from(form, metadata, at)[0])

    def field(table: int, index: int) -> int:
        entries = table - number("<i", table)  # the list of places of the table's fields, behind two lengths
        known = 4 + 2 * index < number("<H", entries)
        place = number("<H", entries + 4 + 2 * index) if known else 0
        return table + place if place else 0

    try:
        header = field(number("<I", 0), 2)
        return bool(field(header + number("<I", header), 3))
    except struct.error as error:
        raise pa.ArrowInvalid(f"a message that cannot be read: {error}") from None


def _unreadable(path: Path, expected: str, error: Exception) -> DataError:
    what = "there is too little memory to read a file" if isinstance(error, MemoryError) else "a file cannot be read"
    return DataError(what, where=str(path), expected=expected, got=first_line(error))


def _from_arrow(path: Path, table: pa.Table) -> Table:
    """Its columns but those of lists, which are vectors. Raises DataError for more rows than a file of its size has."""
    most = FREE + RATIO * path.stat().st_size
    if 6 * table.num_rows > most:  # a row takes a hundred bytes of memory in Python, and none in the file if it is null
        raise DataError(
            "a file has too many rows for its size", where=str(path), expected=f"at most {most // 6:,}",
            got=f"{table.num_rows:,}",
        )  # fmt: skip
    columns = {}
    for name in table.column_names:
        if not pa.types.is_nested(table.schema.field(name).type):
            try:
                columns[name] = table.column(name).to_pylist()
            except (ValueError, OverflowError, LookupError) as error:  # a date or a time zone that Python lacks
                raise _unreadable(path, f"values of Python in the column {name}", error) from None
    return Table(path.name, columns, [(str(path), "row", number) for number in range(1, table.num_rows + 1)])


def _read_folder(folder: Path, named: Collection[str]) -> Table:
    parts = list(_split_files(folder))
    if any(path.suffix.lower() != ".txt" for _, path in parts):  # README.txt next to tables is no table
        parts = [(split, path) for split, path in parts if path.suffix.lower() != ".txt"]
    if not parts:
        raise DataError(
            "a folder holds no data",
            where=str(folder),
            expected="a saved dataset, files named by split (train.csv, test.csv), or corpus.jsonl with queries.jsonl",
            got=", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "an empty folder",
        )
    _refuse_mixed(folder, parts)
    tables = [(split, read_table(path, named)) for split, path in parts]
    names = list(dict.fromkeys(name for _, table in tables for name in table.columns))
    columns = {
        name: [value for _, table in tables for value in table.columns.get(name, [None] * len(table))] for name in names
    }
    if len({split for split, _ in tables}) > 1 and "split" not in columns:
        columns["split"] = [split for split, table in tables for _ in range(len(table))]
    notes = [note for _, table in tables for note in table.notes]
    if len(parts) > 1 and len({split for split, _ in parts}) == 1:
        notes.append(f"{len(parts)} files are read as one: {parts[0][1].name} to {parts[-1][1].name}")
    notes = list(dict.fromkeys(notes))
    return Table(folder.name, columns, [place for _, table in tables for place in table.places], tuple(notes))


def _split_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The split and path of each file, from a folder that `datasets` saved, or of files or folders named by split.

    Other programs keep old copies and results of their own under names that begin with a dot or an underscore.
    """
    for inner in (folder, *(path for path in _shown(folder) if path.is_dir())):
        saved = (inner / "dataset_info.json").is_file()
        for path in (_saved_last(inner) if saved else None) or _shown(inner):
            by_folder = inner != folder and (saved or inner.name.lower() in SPLITS)
            split = inner.name if by_folder else SHARD.sub("", path.stem)
            result = saved and path.name.startswith("cache-")  # of datasets' `map` or `filter`, and no data
            lines = path.suffix.lower() == ".json" and split.lower() in SPLITS  # others hold what programs note
            if not result and (path.suffix.lower() in ((".arrow",) if saved else SUFFIXES) or lines):
                yield split, path


def _refuse_mixed(folder: Path, parts: list[tuple[str, Path]]) -> None:
    """Raise DataError where a part comes twice, in two formats or folders, and where a name only contains a part's."""

    def kind(split: str, path: Path) -> tuple[object, ...]:
        by_folder = path.parent.name == split  # whose files can have any names
        return path.parent, path.suffix.lower(), split, by_folder or SHARD.search(path.stem) is not None

    for split, path in parts:
        part = SPLITS.get(split.lower(), split)
        other, first = next((name, one) for name, one in parts if SPLITS.get(name.lower(), name) == part)
        if kind(other, first) != kind(split, path):
            raise DataError(
                "a folder holds one part twice", where=str(folder),
                expected="one file of each part, or numbered ones, in one folder and one format",
                got=f"{first.relative_to(folder)} and {path.relative_to(folder)}",
                remedy="move one of them out of the folder, or give the file itself",
            )  # fmt: skip
        if len(parts) > 1 and part not in SPLITS and SPLITS.keys() & re.split(r"[\W_\d]+", split.lower()):
            raise DataError(
                "a file is named after no part, and its name contains one", where=str(path),
                expected="train.csv, dev.csv, test.csv, or parts of these such as test-00000-of-00002.parquet",
                got=path.name, remedy="rename the file, or move it out of the folder",
            )  # fmt: skip


def _saved_last(folder: Path) -> list[Path]:
    """The files of the last save into a folder of `datasets`, whose state.json names them; [] where it names none.

    Files of an earlier save in more parts stay in the folder.
    """
    try:
        state = json.loads((folder / "state.json").read_bytes())
        names = [Path(file["filename"]).name for file in state["_data_files"]]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return []
    return [folder / name for name in names]


def _shown(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
