"""Figures of a suite, as SVG and PNG with the same bytes at every drawing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Literal

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.report.results import Results

INK, MUTED, GRID = "#1f2933", "#7b8794", "#e4e7eb"
COLOURS = ("#c2410c", "#0f766e", "#6d28d9", "#a16207", "#1d4ed8", "#be185d", "#4d7c0f", "#0e7490", "#7c2d12")
# Shapes and dashes tell rows apart where colours do not: on grey paper, and to many eyes.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
STYLE: Any = {
    "svg.hashsalt": "sentfold",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": MUTED,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": MUTED,
    "ytick.color": INK,
}


def draw_differences(results: Results, corpora: Sequence[str], protocol: str, title: str, subtitle: str) -> Figure:
    """Every derived space against its encoder's cosine, one line of dots per corpus, with intervals."""
    derived = results.suite.derived_spaces
    points = [
        (corpus, space, results.difference(space, results.suite.encoder_of(space), corpus, protocol))
        for corpus in corpora
        for space in derived
    ]
    drawn = [(corpus, space, cell, cell.value) for corpus, space, cell in points if cell.value is not None]
    shown = [corpus for corpus in corpora if any(corpus == point[0] for point in drawn)]
    with style.context(["default", STYLE]):
        height = max(0.55, 0.14 * len(derived))  # inches of a corpus: its lines of dots must not meet its neighbour's
        step = min(0.22, 0.85 / max(1, len(derived)))
        figure = Figure(figsize=(8.2, 1.9 + height * len(shown)), layout="constrained")
        axes = figure.add_subplot()
        axes.axvline(0, color=INK, linewidth=1)
        offsets = {space: (len(derived) - 1) / 2 * step - step * i for i, space in enumerate(derived)}
        for i, space in enumerate(derived):
            for corpus, _, cell, value in [point for point in drawn if point[1] == space]:
                y = len(shown) - 1 - shown.index(corpus) + offsets[space]
                if cell.low is not None and cell.high is not None:
                    axes.plot(
                        [cell.low, cell.high],
                        [y, y],
                        color=COLOURS[i % len(COLOURS)],
                        linewidth=2,
                        solid_capstyle="round",
                    )
                marker, colour = MARKERS[i % len(MARKERS)], COLOURS[i % len(COLOURS)]
                axes.plot([value], [y], marker, color=colour, markersize=6, markeredgecolor="white")
            axes.plot([], [], f"{MARKERS[i % len(MARKERS)]}-", color=COLOURS[i % len(COLOURS)], label=space)
        _finish(axes, shown, title, subtitle)
    return figure


def _finish(axes: Axes, corpora: Sequence[str], title: str, subtitle: str) -> None:
    axes.set_yticks(range(len(corpora)), list(reversed(corpora)))
    axes.set_ylim(-0.6, len(corpora) - 0.4)
    axes.tick_params(length=0)
    axes.grid(axis="x", color=GRID, linewidth=1)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("points on the ×100 scale; right of the line: better than the encoder's cosine")
    axes.set_title(f"{title}\n", loc="left", fontsize=12.5, fontweight="bold")
    # In points above the axes: a share of their height would meet the title in a tall figure.
    axes.annotate(
        subtitle, (0, 1), xytext=(0, 5), xycoords="axes fraction", textcoords="offset points", color=MUTED, fontsize=9
    )
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def set_plain(axes: Axes, *, grid: Literal["both", "x", "y"] = "both") -> None:
    """Only what is needed to read a panel: a pale grid, no frame at the top and right."""
    axes.grid(axis=grid, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def set_title(axes: Axes, title: str, subtitle: str) -> None:
    """A bold title over a pale line that says what is drawn."""
    axes.set_title(f"{title}\n", loc="left", fontsize=12.5, fontweight="bold")
    axes.annotate(
        subtitle, (0, 1), xytext=(0, 5), xycoords="axes fraction", textcoords="offset points", color=MUTED, fontsize=9
    )


def head_figure(figure: Figure, title: str, subtitle: str) -> None:
    """The same over all panels of a figure."""
    figure.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    height = float(figure.get_size_inches()[1])
    figure.text(0.012, 1 - 0.37 / height, subtitle, color=MUTED, fontsize=9)


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
