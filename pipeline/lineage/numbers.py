"""Every number that a suite's tables print, with the score that it must equal or the stage that computed it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pipeline.errors import first_line
from pipeline.lineage.errors import LineageError
from pipeline.lineage.stages import read_yaml
from pipeline.lineage.trees import Tree
from pipeline.suite import suite_file

Origin = Literal["score", "difference", "derived", "printed"]

# What `wide_csv` of the report writes, and in which protocol.
HEADLINE_TABLE = "sts.csv"
HEADLINE = "spearman.all.cosine"
LONG_TABLE = "scores.csv"


@dataclass(frozen=True)
class Number:
    """One printed number.

    table     its file; line counts from 1, the header's being 1
    field     value, low, high, difference, difference_low, difference_high, and the same three of the control
    origin    score: copied from a scores file. difference: of two such. derived: computed by the report from
              artifacts. printed: copied out of a paper
    space     whose score it is; other: the one it is compared to; both "" where no space is named
    """

    table: str
    line: int
    row: str
    column: str
    field: str
    text: str
    origin: Origin
    space: str = ""
    other: str = ""
    corpus: str = ""
    protocol: str = ""
    unit: str = "x100"

    @property
    def label(self) -> str:
        """How messages call it: table, row, column, and which of a cell's numbers."""
        short = self.table.rpartition("/")[2]
        return f"{short}: {self.row} × {self.column}" + ("" if self.field == "value" else f", {self.field}")


def tables_folder(suite: str) -> str:
    """Where a suite's tables lie."""
    return f"reports/{suite}/tables"


def read_numbers(tree: Tree, suite: str) -> list[Number]:
    """Every number in every table of a suite. Raises LineageError if there is no table, or one cannot be read."""
    folder = tables_folder(suite)
    names = [name for name in tree.list_files(folder) if name.endswith(".csv")]
    if not names:
        raise LineageError(
            f"suite '{suite}' has no tables in {tree.name}",
            where=folder,
            remedy=f"run `sentfold repro --suite {suite}`, or take {folder} from git",
        )
    known = known_spaces(tree, suite)
    return [number for name in names for number in read_table(tree, f"{folder}/{name}", known)]


def known_spaces(tree: Tree, suite: str) -> frozenset[str]:
    """The spaces that the suite file lists. Raises LineageError if they are no list."""
    path = suite_file(suite).as_posix()
    spaces = (read_yaml(tree, path) or {}).get("spaces", [])
    if not isinstance(spaces, list):
        raise LineageError(
            "a suite lists no spaces",
            where=f"{path} of {tree.name}: spaces",
            expected="a list of names",
            got=str(spaces),
            remedy=f"correct {path}, or take it from git again",
        )
    return frozenset(map(str, spaces))


def read_table(tree: Tree, path: str, spaces: frozenset[str]) -> list[Number]:
    """The numbers of one CSV file. spaces: the suite's, which tell a score's row from any other."""
    content = tree.read(path)
    try:
        header, *rows = list(csv.reader(io.StringIO((content or b"").decode("utf-8"), newline=""))) or [[]]
        if len(set(header)) < len(header):
            raise csv.Error("two columns have one name")
        for line, row in enumerate(rows, 2):
            # A cell too many shifts no column, so nothing else would notice it.
            if len(row) != len(header):
                raise csv.Error(f"row {line} has {len(row)} cells, the header {len(header)}")
        read = _reader_of(path.rpartition("/")[2], header)
        named = [dict(zip(header, row, strict=True)) for row in rows]
        return [number for line, row in enumerate(named, 2) for number in read(path, line, row, spaces)]
    except (csv.Error, ValueError, KeyError, AttributeError, TypeError) as error:
        raise LineageError(
            "a table cannot be read",
            where=f"{path} of {tree.name}",
            expected="a CSV file that the stage report wrote",
            got=f"{type(error).__name__}: {first_line(error)}",
            remedy="take it from git again, or run `dvc repro report`",
        ) from None


Reader = Callable[[str, int, dict[str, str], frozenset[str]], Iterator[Number]]


def _reader_of(name: str, header: Sequence[str]) -> Reader:
    if name == LONG_TABLE:
        return _long_numbers
    return _tidy_numbers if "origin" in header else _wide_numbers


def _wide_numbers(path: str, line: int, row: dict[str, str], spaces: frozenset[str]) -> Iterator[Number]:
    space, *corpora = row
    for corpus in corpora:
        if row[corpus]:
            name = row[space]
            yield Number(path, line, name, corpus, "value", row[corpus], "score", name, "", corpus, HEADLINE)


def _long_numbers(path: str, line: int, row: dict[str, str], spaces: frozenset[str]) -> Iterator[Number]:
    space, corpus, protocol = row["space"], row["corpus"], row["protocol"]
    column, other = f"{corpus} {protocol}", row["difference_to"]
    unit = "x100"
    for field in ("value", "low", "high"):
        if row[field]:
            yield Number(path, line, space, column, field, row[field], "score", space, "", corpus, protocol, unit)
    for field in ("difference", "difference_low", "difference_high"):
        if row[field]:
            origin: Origin = "difference" if field == "difference" else "derived"
            yield Number(path, line, space, column, field, row[field], origin, space, other, corpus, protocol, unit)
    # Tables of before they had these columns are read too.
    control = row.get("control", "")
    for field in ("control_difference", "control_low", "control_high"):
        if row.get(field):
            origin = "difference" if field == "control_difference" else "derived"
            yield Number(path, line, space, column, field, row[field], origin, space, control, corpus, protocol, unit)


def _tidy_numbers(path: str, line: int, row: dict[str, str], spaces: frozenset[str]) -> Iterator[Number]:
    name, corpus, protocol, unit = row["row"], row["corpus"], row["protocol"], row["unit"]
    column = " ".join(part for part in (corpus, protocol) if part)
    origin: Origin = "printed" if row["origin"] == "printed" else "derived"
    # A row that carries a space's name holds its scores, but for an average, which is a corpus of no suite.
    if origin == "derived" and name in spaces and protocol.count(".") and corpus != "average":
        origin = "score"
    for field in ("value", "low", "high"):
        if row[field]:
            yield Number(path, line, name, column, field, row[field], origin, name if name in spaces else "", "",
                         corpus, protocol, unit)  # fmt: skip
