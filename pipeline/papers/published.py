"""Figures that papers printed, with their protocol: the project's own data, checked when it is read."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path

from sentfold.errors import ArtifactError

PUBLISHED_FILE = Path(__file__).with_name("published.csv")
COLUMNS = ("source", "table", "model", "dataset", "metric", "value", "protocol", "note")
# Source -> what it is called.
PAPERS = {
    "sbert-lp": "SBERT-LP",
    "lase": "LASE",
    "s3e": "S3E",
    "gem": "GEM",
    "hyperboloid": "Hyperboloid",
    "later": "Later papers",
    "mteb": "MTEB",
}

# Each metric of the file: what it measures, the unit we show it in, and the places that the point moves to get
# there. Shares and correlations come to the x100 scale; times, nats and cosines keep the unit they were printed in.
METRICS = {
    "spearman_x100": ("spearman", "x100", 0),
    "spearman": ("spearman", "x100", 2),
    "pearson_x100": ("pearson", "x100", 0),
    "pearson": ("pearson", "x100", 2),
    "accuracy_x100": ("accuracy", "x100", 0),
    "score_x100": ("score", "x100", 0),
    "map_x100": ("map", "x100", 0),
    "nmi": ("nmi", "x100", 2),
    "ari": ("ari", "x100", 2),
    "purity": ("purity", "x100", 2),
    "mutual_information_nats": ("mi", "nats", 0),
    "cosine": ("cosine", "cosine", 0),
    "seconds": ("seconds", "s", 0),
    "seconds_per_sentence": ("seconds per sentence", "s", 0),
    "milliseconds_per_sentence": ("milliseconds per sentence", "ms", 0),
}
# A correlation lies in [-1, 1], so on the x100 scale in [-100, 100]; all else that is printed is not negative.
LONGEST = 20  # characters of a printed figure
LIMITS = {"x100": (Decimal(-100), Decimal(100)), "cosine": (Decimal(-1), Decimal(1))}

# Table 4.1 of LASE prints words and no figures. Counted there: of its 4 clusters, those that hold one of the common
# words that the thesis picked.
SPREAD = "lase-4.1"
SPREAD_CLUSTERS = 4
PRINTED_SPREAD = {"k-means": 3, "Gaussian mixture": 2, "spectral": 2}


@dataclass(frozen=True)
class Figure:
    """One printed figure.

    number    its place in the file, from 0
    metric    what it measures; value is in `unit`: x100, nats, cosine, s or ms
    shown     the value with the digits that were printed, at most two on the x100 scale
    printed   the characters in the paper
    protocol  what the paper says of the protocol; `note` is what we know besides
    """

    number: int
    source: str
    table: str
    model: str
    dataset: str
    metric: str
    unit: str
    value: float
    shown: str
    printed: str
    statement: str
    note: str

    @property
    def protocol(self) -> str:
        """Statement and note together."""
        return "; ".join(part for part in (self.statement, self.note) if part)


@cache
def load_published(path: Path = PUBLISHED_FILE) -> tuple[Figure, ...]:
    """Every printed figure, in the order of the file.

    Raises ArtifactError, with the line, on a wrong column, an unknown source or metric, a value that is no
    number or out of its unit's range, an empty field, or two lines for one figure.
    """
    return parse_published(path.read_text(encoding="utf-8"), path)


def parse_published(text: str, path: Path) -> tuple[Figure, ...]:
    """The same of the text of such a file; path: its name in messages."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise _wrong(path, 1, "columns", ", ".join(COLUMNS), ", ".join(reader.fieldnames or ()))
    figures = tuple(_read_row(path, number, row) for number, row in enumerate(reader))
    seen: dict[tuple[str, ...], int] = {}
    for figure in figures:
        key = (figure.source, figure.table, figure.model, figure.dataset, figure.metric, figure.statement)
        if key in seen:
            raise _wrong(path, figure.number + 2, "figure", "one line for each", f"also in line {seen[key] + 2}")
        seen[key] = figure.number
    return figures


def _read_row(path: Path, number: int, row: dict[str, str]) -> Figure:
    line = number + 2
    for column in COLUMNS[:-1]:
        if not row[column]:
            raise _wrong(path, line, column, "a text", "nothing")
    if row["source"] not in PAPERS:
        raise _wrong(path, line, "source", ", ".join(PAPERS), row["source"])
    if row["metric"] not in METRICS:
        raise _wrong(path, line, "metric", ", ".join(METRICS), row["metric"])
    metric, unit, places = METRICS[row["metric"]]
    try:
        if len(row["value"]) > LONGEST or "e" in row["value"].lower():  # an exponent can stand for gigabytes of zeros
            raise InvalidOperation
        value = Decimal(row["value"]).scaleb(places)  # keeps the digits that were printed
    except InvalidOperation:
        raise _wrong(path, line, "value", "a number", row["value"]) from None
    low, high = LIMITS.get(unit, (Decimal(0), Decimal("Infinity")))
    if not low <= value <= high:
        raise _wrong(path, line, "value", f"{low} to {high} ({unit})", str(value))
    shown = f"{value:.2f}" if unit == "x100" and _digits(value) > 2 else f"{value:f}"
    return Figure(
        number, row["source"], row["table"], row["model"], row["dataset"], metric, unit, float(value), shown,
        row["value"], row["protocol"], row["note"],
    )  # fmt: skip


def _digits(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _wrong(path: Path, line: int, what: str, expected: str, got: str) -> ArtifactError:
    return ArtifactError(
        f"the published figures have a wrong {what}",
        where=f"{path}, line {line}",
        expected=expected,
        got=got,
        remedy="correct that line against the paper; take no figure from memory",
    )


def select(
    source: str, table: str, *, keep: Callable[[Figure], bool] = lambda figure: True, path: Path = PUBLISHED_FILE
) -> tuple[Figure, ...]:
    """The figures of one printed table, those that `keep` wants, in the order of print."""
    return tuple(
        figure for figure in load_published(path) if (figure.source, figure.table) == (source, table) and keep(figure)
    )
