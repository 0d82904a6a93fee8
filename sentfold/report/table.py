"""The type of every table: panels of rows of entries. Markdown, CSV, LaTeX, text and HTML are made from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Origin = Literal["score", "difference", "derived", "printed"]


@dataclass(frozen=True)
class Caveat:
    """What a reader has to know of a number before believing it.

    mark    † parameters of the space were chosen on the corpus; ≡ two spaces are one by construction
    spaces  the space, or both of them
    """

    mark: Literal["†", "≡"]
    spaces: tuple[str, ...]
    corpus: str

    @property
    def text(self) -> str:
        """The caveat in a few words, for a program's table."""
        if self.mark == "†":
            return f"parameters of {self.spaces[0]} chosen on {self.corpus}"
        return f"{' and '.join(self.spaces)} are one space on {self.corpus}"


def explain_caveats(caveats: Iterable[Caveat]) -> tuple[str, ...]:
    """A sentence for each corpus that chose parameters, and for each two spaces that are one."""
    chosen: dict[str, list[str]] = {}
    equal: dict[tuple[str, ...], list[str]] = {}
    for caveat in dict.fromkeys(caveats):
        if caveat.mark == "†":
            chosen.setdefault(caveat.corpus, []).append(caveat.spaces[0])
        else:
            equal.setdefault(caveat.spaces, []).append(caveat.corpus)
    sentences = [
        f"† The parameters of {', '.join(spaces)} were chosen on {corpus}. Their scores on it are no evidence for "
        "them, and are never called better."
        for corpus, spaces in chosen.items()
    ]
    sentences += [
        f"≡ {' and '.join(spaces)} are one space by construction, up to a rotation, on {', '.join(corpora)}."
        for spaces, corpora in equal.items()
    ]
    return tuple(sentences)


@dataclass(frozen=True)
class Entry:
    """One cell of a table.

    text     what is printed; "" for a blank, whose reason and command then say why it is one and what would fill it
    link     where the number comes from: "score/<space>/<corpus>/<protocol>", "printed/<number>",
             "difference/<space>/<other>/<corpus>/<protocol>", or "" for a number that was computed
    about    for a difference and a computed number: what it was computed from, and how
    of       for such a number: the vectors that it was computed from, each as "<space>/<corpus>"
    sign     1 above its row's baseline beyond chance, -1 below, 0 where no difference is called
    digits   of its interval
    caveats  what to know of the number
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
    caveats: tuple[Caveat, ...] = ()

    @property
    def mark(self) -> str:
        """The sign as readers see it."""
        return {1: "▲", -1: "▼"}.get(self.sign, "")

    @property
    def marks(self) -> str:
        """The sign and the marks of the caveats: "▲", "†", "≡"."""
        return self.mark + "".join(dict.fromkeys(caveat.mark for caveat in self.caveats))

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

    @property
    def blank_text(self) -> str:
        """Why the cell is blank, and what would fill it."""
        return f"{self.reason}; to fill it: {self.command}" if self.command else self.reason

    @property
    def key(self) -> tuple[str, ...]:
        """The parts of the link without its kind; for a computed number the vectors that it was computed from."""
        return tuple(self.link.split("/")[1:]) if self.link else self.of


def _bound(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:.{digits}f}"  # plus 0: what rounds to -0.0 is 0


@dataclass(frozen=True)
class Head:
    """A column: its title, the corpus that was measured on, the protocol and the unit."""

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

    @property
    def entries(self) -> list[Entry]:
        """Every entry, row by row."""
        return [entry for group in self.groups for line in group.lines for entry in line.entries]

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the marks † and ≡ in this panel stand for."""
        return explain_caveats(caveat for entry in self.entries for caveat in entry.caveats)


@dataclass(frozen=True)
class Cell:
    """One entry with its place: the letter of its panel, its group, its row and its column."""

    panel: str
    group: Group
    line: Line
    head: Head
    entry: Entry
    protocol: str

    @property
    def origin(self) -> Origin:
        """Whether the number is a score, the difference of two scores, copied from a paper, or computed."""
        if self.group.printed:
            return "printed"
        kinds: dict[str, Origin] = {"score": "score", "difference": "difference", "printed": "printed"}
        return kinds.get(self.entry.link.partition("/")[0], "derived")


@dataclass(frozen=True)
class Table:
    """One table of the report, printed in a paper or the suite's own."""

    name: str
    title: str
    about: str
    panels: tuple[Panel, ...]

    @property
    def entries(self) -> list[Entry]:
        """Every entry, panel by panel, row by row."""
        return [entry for panel in self.panels for entry in panel.entries]

    def lettered(self) -> Iterator[tuple[str, Panel]]:
        """The panels with the letters that name them: a, b, ..., z, aa, ab, ..."""
        for place, panel in enumerate(self.panels):
            before = chr(ord("a") + place // 26 - 1) if place >= 26 else ""
            yield before + chr(ord("a") + place % 26), panel

    def cells(self) -> Iterator[Cell]:
        """Every entry with its place, in the order of the CSV file.

        The protocol of a printed number is the title of its panel, in words; a measured number's protocol has a name.
        """
        for letter, panel in self.lettered():
            for group in panel.groups:
                for line in group.lines:
                    for head, entry in zip(panel.heads, line.entries, strict=True):
                        yield Cell(letter, group, line, head, entry, panel.title if group.printed else head.protocol)
