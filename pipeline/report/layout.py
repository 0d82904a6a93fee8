"""A table as Markdown, CSV and LaTeX."""

from __future__ import annotations

from string import ascii_lowercase

from pipeline.report.grid import Entry, Group, Line, Panel, Table
from pipeline.report.tables import Blanks, csv_table

CSV_HEADER = (
    "table", "panel", "origin", "row", "made_of", "corpus", "protocol", "unit", "value", "low", "high", "reason",
    "command",
)  # fmt: skip


# --- Markdown -----------------------------------------------------------------------------------


def markdown(table: Table) -> str:
    """The whole table: each panel with its protocol, its rows by origin, what it shows, and its notes."""
    blanks = Blanks()
    parts = [f"# {table.title}\n", f"{table.about}\n"]
    for letter, panel in zip(ascii_lowercase, table.panels, strict=False):
        parts += _markdown_panel(letter, panel, blanks)
    legend = blanks.legend()
    return "\n".join([*parts, *([f"Blanks:\n\n{legend}"] if legend else [])])


def _markdown_panel(letter: str, panel: Panel, blanks: Blanks) -> list[str]:
    units = "" if all(head.unit == "x100" for head in panel.heads) else "; units in the columns' heads"
    return [
        f"## ({letter}) {panel.title}\n",
        f"Protocol: {panel.protocol}{units}.\n",
        markdown_rows(panel, blanks),
        *(f"{sentence}\n" for sentence in panel.shows),
        *(f"*{note}*\n" for note in panel.notes),
    ]


def markdown_rows(panel: Panel, blanks: Blanks) -> str:
    """The rows of a panel by origin, and nothing around them. blanks: takes the reasons of its blank places."""
    header = ["", "made of", *(head.title for head in panel.heads)]
    lines = [header, ["---", "---", *["---:"] * len(panel.heads)]]
    for group in panel.groups:
        lines.append([f"**{group.title}**", *[""] * (len(header) - 1)])
        lines += [_markdown_line(line, group, blanks) for line in group.lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _markdown_line(line: Line, group: Group, blanks: Blanks) -> list[str]:
    name = f"*{line.name}*" if group.printed else line.name
    return [name, line.made_of, *(_markdown_entry(entry, blanks) for entry in line.entries)]


def _markdown_entry(entry: Entry, blanks: Blanks) -> str:
    if entry.blank:
        return "–" if entry.reason == "not printed" else blanks.mark(blank_text(entry))
    return f"{entry.text}{entry.mark} {entry.interval}".rstrip()


def blank_text(entry: Entry) -> str:
    """Why a place is blank, and what would fill it."""
    return f"{entry.reason}; to fill it: {entry.command}" if entry.command else entry.reason


# --- CSV ----------------------------------------------------------------------------------------


def tidy_csv(table: Table) -> str:
    """One line per entry, its protocol named in each, so that no reader can join unlike ones by accident."""
    rows: list[list[object]] = []
    for letter, panel in zip(ascii_lowercase, table.panels, strict=False):
        for group in panel.groups:
            origin = "printed" if group.printed else "measured"
            for line in group.lines:
                for head, entry in zip(panel.heads, line.entries, strict=True):
                    # A printed figure's protocol is the panel's, in words: ours has a name.
                    protocol = panel.title if group.printed else head.protocol
                    start = [table.name, letter, origin, line.name, line.made_of, head.corpus, protocol, head.unit]
                    bounds = ["" if b is None else f"{b:.{max(2, entry.digits)}f}" for b in (entry.low, entry.high)]
                    rows.append([*start, entry.text, *bounds, entry.reason, entry.command])
    return csv_table(CSV_HEADER, rows)


# --- LaTeX --------------------------------------------------------------------------------------

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "×": r"$\times$", "β": r"$\beta$",
    "λ": r"$\lambda$", "–": "--", "▲": r"$^{\blacktriangle}$", "▼": r"$^{\blacktriangledown}$",
}  # fmt: skip


def latex_text(text: str) -> str:
    """Text with everything that LaTeX takes for a command escaped."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def latex(table: Table) -> str:
    """The table for a paper with booktabs: one tabular per panel, printed rows in italics, no vertical rule."""
    lines = [f"% {table.title}. Needs \\usepackage{{amssymb,booktabs}}.", r"\begin{table}", r"\centering\footnotesize"]
    lines.append(rf"\caption{{{latex_text(table.title)}. {latex_text(table.about)}}}")
    lines.append(rf"\label{{tab:{table.name}}}")
    for letter, panel in zip(ascii_lowercase, table.panels, strict=False):
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
                f"{latex_text(entry.text + entry.mark)} {entry.interval}".strip() or "--" for entry in line.entries
            ]
            name = rf"\textit{{{latex_text(line.name)}}}" if group.printed else latex_text(line.name)
            lines.append(" & ".join([name, latex_text(line.made_of), *cells]) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]
