"""A table as Markdown, plain text for a terminal, CSV, and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from sentfold.report.table import Entry, Group, Line, Panel, Table

CSV_HEADER = (
    "table", "panel", "origin", "row", "made_of", "corpus", "protocol", "unit", "value", "low", "high", "reason",
    "command", "caveats",
)  # fmt: skip


def one_line(text: str) -> str:
    """Text without line ends: a name or a reason of several lines would end its cell and begin rows of its own."""
    return " ".join(text.splitlines())


class Blanks:
    """The reasons of blank cells, each numbered once and printed under the tables."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def mark(self, reason: str) -> str:
        """The text of a blank cell: a dash and the number of its reason."""
        reason = one_line(reason)
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"– [{self.reasons.index(reason) + 1}]"

    def legend(self) -> str:
        """The numbered reasons, or ''."""
        return "".join(f"[{number}] {reason}  \n" for number, reason in enumerate(self.reasons, 1))


def _entry_text(entry: Entry, blanks: Blanks) -> str:
    if entry.blank:
        return "–" if entry.reason == "not printed" else blanks.mark(entry.blank_text)
    return f"{entry.text}{entry.marks} {entry.interval}".rstrip()


# --- Markdown -----------------------------------------------------------------------------------


def markdown(table: Table) -> str:
    """The whole table: each panel with its protocol, its rows by origin, what it shows, and its notes."""
    blanks = Blanks()
    parts = [f"# {table.title}\n", f"{table.about}\n"]
    for letter, panel in table.lettered():
        parts += _markdown_panel(letter, panel, blanks)
    legend = blanks.legend()
    return "\n".join([*parts, *([f"Blanks:\n\n{legend}"] if legend else [])])


def _markdown_panel(letter: str, panel: Panel, blanks: Blanks) -> list[str]:
    units = "" if all(head.unit in ("x100", "") for head in panel.heads) else "; units in the columns' heads"
    return [
        f"## ({letter}) {panel.title}\n",
        f"Protocol: {panel.protocol}{units}.\n",
        markdown_rows(panel, blanks),
        *(f"{sentence}\n" for sentence in panel.shows),
        *(f"*{note}*\n" for note in panel.notes),
    ]


def markdown_rows(panel: Panel, blanks: Blanks) -> str:
    """The rows of a panel by origin and what their marks stand for. blanks: takes the reasons of its blank cells."""
    made_of = any(line.made_of for group in panel.groups for line in group.lines)
    names = ["", "made of"] if made_of else [""]
    header = [*names, *(head.title for head in panel.heads)]
    lines = [header, [*["---"] * len(names), *["---:"] * len(panel.heads)]]
    for group in panel.groups:
        lines.append([f"**{group.title}**", *[""] * (len(header) - 1)])
        lines += [_markdown_line(line, group, blanks, made_of=made_of) for line in group.lines]
    rows = ["| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([*rows, *(f"\n{caveat}" for caveat in panel.caveats)]) + "\n"


def _markdown_line(line: Line, group: Group, blanks: Blanks, *, made_of: bool) -> list[str]:
    name = f"*{line.name}*" if group.printed else line.name
    return [name, *([line.made_of] if made_of else []), *(_entry_text(entry, blanks) for entry in line.entries)]


# --- a terminal ---------------------------------------------------------------------------------


def plain_rows(panel: Panel, blanks: Blanks) -> str:
    """The rows of a panel in columns aligned by blanks. blanks: takes the reasons of its blank cells."""
    lines = [["", *(head.title for head in panel.heads)]]
    for group in panel.groups:
        for line in group.lines:
            name = f"{line.name} (printed)" if group.printed else line.name
            lines.append([name, *(_entry_text(entry, blanks) for entry in line.entries)])
    lines = [[one_line(cell) for cell in line] for line in lines]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join([*(_aligned(line, widths) for line in lines), *panel.caveats]) + "\n"


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers = line
    cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=True))]
    return "  ".join(cells).rstrip()


# --- CSV ----------------------------------------------------------------------------------------


def csv_text(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV with \\n line ends."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


def tidy_csv(table: Table) -> str:
    """One line per entry, its protocol named in each, so that no reader can join unlike ones by accident."""
    rows: list[list[object]] = []
    for cell in table.cells():
        origin = "printed" if cell.group.printed else "measured"
        start = [table.name, cell.panel, origin, cell.line.name, cell.line.made_of]
        place = [cell.head.corpus, cell.protocol, cell.head.unit]
        caveats = "; ".join(caveat.text for caveat in cell.entry.caveats)
        rows.append([*start, *place, *csv_numbers(cell.entry), cell.entry.reason, cell.entry.command, caveats])
    return csv_text(CSV_HEADER, rows)


def csv_numbers(entry: Entry) -> tuple[str, str, str]:
    """The texts of value, low and high in the CSV file."""
    low, high = ("" if bound is None else f"{bound:.{max(2, entry.digits)}f}" for bound in (entry.low, entry.high))
    return entry.text, low, high


# --- LaTeX --------------------------------------------------------------------------------------

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "×": r"$\times$", "β": r"$\beta$",
    "λ": r"$\lambda$", "–": "--", "▲": r"$^{\blacktriangle}$", "▼": r"$^{\blacktriangledown}$",
    "†": r"$^{\dagger}$", "≡": r"$^{\equiv}$",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Text with everything that LaTeX takes for a command escaped."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def latex(table: Table) -> str:
    """The table for a paper with booktabs: one tabular per panel, printed rows in italics, no vertical rule."""
    lines = [f"% {table.title}. Needs \\usepackage{{amssymb,booktabs}}.", r"\begin{table}", r"\centering\footnotesize"]
    lines.append(rf"\caption{{{latex_text(table.title)}. {latex_text(table.about)}}}")
    lines.append(rf"\label{{tab:{table.name}}}")
    for letter, panel in table.lettered():
        lines += _latex_panel(letter, panel)
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _latex_panel(letter: str, panel: Panel) -> list[str]:
    width = 2 + len(panel.heads)
    lines = [
        rf"\par\medskip ({letter}) {latex_text(panel.title)}\par\smallskip",
        rf"\begin{{tabular}}{{ll{'r' * len(panel.heads)}}}",
        r"\toprule",
        " & ".join(["", "made of", *(latex_text(head.title) for head in panel.heads)]) + r" \\",
    ]
    for group in panel.groups:
        lines += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{\textit{{{latex_text(group.title)}}}}} \\"]
        for line in group.lines:
            cells = [
                f"{latex_text(entry.text + entry.marks)} {entry.interval}".strip() or "--" for entry in line.entries
            ]
            name = rf"\textit{{{latex_text(line.name)}}}" if group.printed else latex_text(line.name)
            lines.append(" & ".join([name, latex_text(line.made_of), *cells]) + r" \\")
    explained = [rf"\par\smallskip {latex_text(caveat)}" for caveat in panel.caveats]
    return [*lines, r"\bottomrule", r"\end{tabular}", *explained]
