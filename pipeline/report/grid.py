"""A table as the report knows it: panels of lines of entries, before it is Markdown, CSV, LaTeX or a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One place of a table.

    text     what is printed; "" for a blank, whose reason and command then say why it is one and what would fill it
    link     where its lineage stands: "score/<space>/<corpus>/<protocol>", "printed/<number>", or ""
    about    for a number that no single score gave: what it was computed from, and how
    of       for such a number: the vectors that it was computed from, each as "<space>/<corpus>"
    sign     1 above its row's baseline beyond chance, -1 below, 0 not to be told from it or not compared
    digits   of its interval
    """

    text: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    command: str = ""
    link: str = ""
    about: str = ""
    of: tuple[str, ...] = ()
    sign: int = 0
    digits: int = 1

    @property
    def mark(self) -> str:
        """The sign as readers see it."""
        return {1: "▲", -1: "▼"}.get(self.sign, "")

    @property
    def blank(self) -> bool:
        """Whether nothing is printed here."""
        return not self.text

    @property
    def interval(self) -> str:
        """The interval in brackets, or ''."""
        if self.low is None or self.high is None:
            return ""
        return f"[{_bound(self.low, self.digits)}, {_bound(self.high, self.digits)}]"


def _bound(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # plus 0: what rounds to -0.0 is 0


@dataclass(frozen=True)
class Head:
    """A column: what it is called, what was measured on, and in which protocol and unit."""

    title: str
    corpus: str
    protocol: str
    unit: str = "x100"


@dataclass(frozen=True)
class Line:
    """A row: its name, what it was made of (encoder or word vectors), and one entry per column."""

    name: str
    made_of: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Group:
    """Rows of one origin: measured here, or printed in a paper."""

    title: str
    printed: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Panel:
    """Columns of one protocol each, and the rows that were scored in it.

    protocol  of its columns, in words; of printed rows alone, what their paper says of it
    shows     what the numbers say, in plain sentences made from them
    notes     how differences were judged together, and the smallest that could be found
    """

    title: str
    protocol: str
    heads: tuple[Head, ...]
    groups: tuple[Group, ...]
    shows: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """One table of the report, printed in some paper or our own."""

    name: str
    title: str
    about: str
    panels: tuple[Panel, ...]

    @property
    def entries(self) -> list[Entry]:
        """Every entry, panel by panel, row by row."""
        return [
            entry for panel in self.panels for group in panel.groups for line in group.lines for entry in line.entries
        ]

    @property
    def measured(self) -> bool:
        """Whether any number in it was measured here."""
        return any(
            not entry.blank
            for panel in self.panels
            for group in panel.groups
            if not group.printed
            for line in group.lines
            for entry in line.entries
        )
