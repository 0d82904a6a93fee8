"""Drawing with matplotlib: one style for all figures, forest plots, SVG and PNG of the same bytes at every drawing."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, Literal

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentfold.report.table import Entry

INK, MUTED, GRID = "#1f2933", "#7b8794", "#e4e7eb"
COLOURS = ("#c2410c", "#0f766e", "#6d28d9", "#a16207", "#1d4ed8", "#be185d", "#4d7c0f", "#0e7490", "#7c2d12")
# Colours of a file -> colours of a page: black on white in the file becomes the ink and paper of a light or dark page.
PAGE_COLOURS = {colour: f"var(--series-{i})" for i, colour in enumerate(COLOURS)} | {
    INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)", "#ffffff": "var(--card)", "#000000": "var(--ink)",
}  # fmt: skip
# Shapes and dashes tell rows apart where colours do not: on grey paper, and for the colour-blind. No two of these
# shapes look alike at the size of a dot, as a circle, a hexagon and a pentagon do.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
FONT = "DejaVu Sans"
WIDTH = 8.2  # inches of a figure: a page's text is 7 wide, and letters of 10 points then keep 8 of them
STYLE: Any = {
    "svg.hashsalt": "sentfold",
    "font.family": FONT,
    "font.size": 10,
    "axes.edgecolor": MUTED,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": MUTED,
    "ytick.color": INK,
}


_TITLE, _SUBTITLE = 12.5, 9.0  # points
_EDGE = 0.012  # share of a figure's width that is left free on each side of its heading


@dataclass(frozen=True)
class Look:
    """How one of several series is drawn. Any two of LOOKS differ in shape or in filling, neighbours in dash too."""

    colour: str
    marker: str
    filled: bool
    dash: Any

    def mark(self) -> dict[str, Any]:
        """Its marks, for `Axes.plot`; the pale rim of a filled one parts it from what it touches."""
        face, rim, width = (self.colour, "white", 0.6) if self.filled else ("white", self.colour, 1.3)
        return {
            "marker": self.marker, "color": self.colour, "markerfacecolor": face, "markeredgecolor": rim,
            "markeredgewidth": width,
        }  # fmt: skip


# Each shape filled, then each hollow and in another colour.
LOOKS = tuple(
    Look(COLOURS[(place + shift) % len(COLOURS)], marker, filled, DASHES[(place + shift) % len(DASHES)])
    for filled, shift in ((True, 0), (False, 4))
    for place, marker in enumerate(MARKERS)
)


def look_of(place: int) -> Look:
    """The look of the series at a place of its figure; beyond the last of LOOKS they are used again."""
    return LOOKS[place % len(LOOKS)]


def draw_forest(
    names: Sequence[str],
    panels: Mapping[str, Sequence[Entry]],
    axis: str,
    title: str,
    subtitle: str,
    *,
    limit: float,
) -> Figure:
    """Differences with their intervals: a panel per corpus, a line per name, the first name on top.

    panels  title of a panel -> one entry per name; blank ones leave their line empty
    limit   largest difference that is drawn to scale; a larger one is an arrow at the edge, with its number
    All panels have one scale: the largest number in them, or the limit.
    """
    numbers = [n for row in panels.values() for e in row for n in (e.value, e.low, e.high) if n is not None]
    reach = min(limit, max(map(abs, numbers), default=limit) or limit)
    with style.context(["default", STYLE]):
        rows, columns = arrange_panels(len(panels), across=4)
        figure = Figure(figsize=(WIDTH, (0.55 + 0.17 * len(names)) * rows + 1.1), layout="constrained")
        drawn: Any = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        drawn[0][0].set_xlim(-1.12 * reach, 1.12 * reach)
        for axes, (corpus, entries) in zip(drawn.flat, panels.items(), strict=False):
            _draw_lines(axes, entries, reach)
            axes.set_title(corpus, loc="left", fontsize=10)
        drawn[0][0].set_yticks(range(len(names)), list(reversed(names)))
        drawn[0][0].set_ylim(-0.6, len(names) - 0.4)
        for axes in drawn.flat[len(panels) :]:
            axes.set_visible(False)
        figure.supxlabel(axis, fontsize=10)
        head_figure(figure, title, subtitle)
    return figure


def _draw_lines(axes: Axes, entries: Sequence[Entry], reach: float) -> None:
    axes.axvline(0, color=INK, linewidth=1)
    for place, entry in enumerate(entries):
        look, y = look_of(place), len(entries) - 1 - place
        if entry.value is None:
            continue
        if entry.low is not None and entry.high is not None:
            ends = [min(max(bound, -reach), reach) for bound in (entry.low, entry.high)]
            axes.plot(ends, [y, y], color=look.colour, linewidth=2, solid_capstyle="round")
        if abs(entry.value) <= reach:
            axes.plot([entry.value], [y], markersize=6.5, **look.mark())
        else:
            _draw_arrow(axes, entry.value, y, reach, look.colour)
    set_plain(axes)
    axes.spines["left"].set_visible(False)


def _draw_arrow(axes: Axes, value: float, y: float, reach: float, colour: str) -> None:
    """An arrow at the edge of a panel, with the number that is too large for the panel printed next to it."""
    left = value < 0
    edge = -reach if left else reach
    axes.plot([edge], [y], marker="<" if left else ">", color=colour, markersize=6, markeredgecolor="white")
    axes.annotate(
        f"{value:+.1f}", (edge, y), xytext=(6 if left else -6, 0), textcoords="offset points", fontsize=7.5,
        color=INK, va="center", ha="left" if left else "right",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
    )  # fmt: skip


def arrange_panels(number: int, *, across: int) -> tuple[int, int]:
    """Rows and columns of so many panels, at most `across` in a row, the last row as full as can be."""
    rows = max(1, -(-number // across))
    return rows, max(1, -(-number // rows))


def set_plain(axes: Axes, *, grid: Literal["both", "x", "y"] = "both") -> None:
    """Only what is needed to read a panel: a pale grid, no frame at the top and right."""
    axes.grid(axis=grid, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


@dataclass(frozen=True)
class CurvePanel:
    """A panel of curves over one setting.

    axis    the setting, in words
    curves  name -> value of the setting -> height
    levels  name -> height of a level line; rules: name -> value of an upright line; stars: name -> a single point
    """

    title: str
    axis: str
    curves: Mapping[str, Mapping[Any, float]]
    levels: Mapping[str, float] = field(default_factory=dict)
    rules: Mapping[str, float] = field(default_factory=dict)
    stars: Mapping[str, tuple[Any, float]] = field(default_factory=dict)


def draw_curves(
    panels: Sequence[CurvePanel], title: str, subtitle: str, *, across: int, doubling: bool, level: bool
) -> Figure:
    """Panels of curves, at most `across` in a row, each column over one setting, a series in one look everywhere.

    doubling  whether the setting is drawn on a scale of powers of 2, with its own values for ticks
    level     whether the panels of a row share their scale of heights
    """
    with style.context(["default", STYLE]):
        rows, columns = arrange_panels(len(panels), across=across)
        figure = Figure(figsize=(WIDTH, 2.4 * rows + 1.3), layout="constrained")
        drawn: Any = figure.subplots(rows, columns, squeeze=False, sharex="col", sharey="row" if level else False)
        names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
        for place, axes in enumerate(drawn.flat):
            axes.set_visible(place < len(panels))
            if place < len(panels):
                _draw_curves(axes, panels[place], names, doubling=doubling)
            if place < len(panels) <= place + columns:  # the lowest of its column
                axes.tick_params(labelbottom=True)
                axes.set_xlabel(panels[place].axis)
        lines = {str(line.get_label()): line for axes in drawn.flat for line in axes.get_lines()}
        figure.legend(lines.values(), lines, frameon=False, loc="outside lower left", ncols=5, handlelength=3)
        head_figure(figure, title, subtitle)
    return figure


def _draw_curves(axes: Axes, panel: CurvePanel, names: Sequence[str], *, doubling: bool) -> None:
    for name, curve in panel.curves.items():
        look, places = look_of(names.index(name)), sorted(curve)
        heights = [curve[place] for place in places]
        axes.plot(places, heights, markersize=6, label=name, linestyle=look.dash, **look.mark())
        if doubling:
            axes.set_xscale("log", base=2)
            axes.set_xticks(places, [str(place) for place in places], fontsize=8)
            axes.minorticks_off()
    for (name, height), dash in zip(panel.levels.items(), DASHES[2:], strict=False):
        axes.axhline(height, color=INK, linewidth=1, linestyle=dash, label=name)
    for name, place in panel.rules.items():
        axes.axvline(place, color=INK, linewidth=1, linestyle=":", label=name)
    for name, (place, height) in panel.stars.items():
        axes.plot([place], [height], marker="*", color=INK, markersize=11, linestyle="none", label=name)
    axes.set_title(panel.title, loc="left", fontsize=9.5)
    set_plain(axes)


def head_figure(figure: Figure, title: str, subtitle: str) -> None:
    """A bold title over all panels, and beneath it a pale text, both in lines that a figure of WIDTH has room for."""
    height = float(figure.get_size_inches()[1])
    heads = wrap(title, 62, break_on_hyphens=False)
    lines = wrap(subtitle, 98, break_on_hyphens=False)
    # Blank lines under the title hold the room for what is beneath it, which the layout does not know of.
    figure.suptitle("\n".join([*heads, *("" for _ in lines)]), x=_EDGE, ha="left", fontsize=_TITLE, fontweight="bold")
    top = 1 - (0.02 + 1.3 * _TITLE * len(heads) / 72 + 0.02) / height
    figure.text(_EDGE, top, "\n".join(lines), color=MUTED, fontsize=_SUBTITLE, va="top", linespacing=1.25)


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as "svg" or "png", without a date or a version inside."""
    stream = io.BytesIO()
    with style.context(["default", STYLE]):
        figure.savefig(
            stream,
            format=kind,
            dpi=160,
            facecolor="white",
            metadata={"Date": None} if kind == "svg" else {"Software": None},
        )
    return stream.getvalue()
