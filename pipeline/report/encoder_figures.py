"""Figures about encoders over word vectors: LASE's choice of clusterer, and speed against quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import style
from matplotlib.figure import Figure

from pipeline.report.figures import COLOURS, MARKERS, MUTED, STYLE, set_plain, set_title
from pipeline.report.results import Cell, Results
from pipeline.report.speed_tables import METHODS, seconds_per_sentence

# LASE by its clusterers, then by partitions that know nothing of meaning.
CLUSTERERS = {
    "wl-lase-kmeans": "k-means",
    "wl-lase-mixture": "Gaussian mixture",
    "wl-lase": "spectral",
    "wl-lase-blurred": "spectral, blurred as released",
    "wl-lase-random": "control: random partition",
    "wl-lase-frequency": "control: blocks of frequency",
}


@dataclass(frozen=True)
class Dot:
    """One line of a dot chart."""

    name: str
    cell: Cell
    control: bool


def clusterer_dots(results: Results, corpus: str, protocol: str) -> list[Dot]:
    """LASE's score by each clusterer that the suite has, best first, controls among them."""
    cells = {
        space: results.cell(space, corpus, protocol)
        for space in CLUSTERERS
        if space in results.suite.spaces and corpus in results.suite.corpora
    }
    dots = [Dot(CLUSTERERS[s], cell, "control" in CLUSTERERS[s]) for s, cell in cells.items() if cell.value is not None]
    return sorted(dots, key=lambda dot: dot.cell.value or 0.0)


def draw_dots(dots: Sequence[Dot], axis: str, title: str, subtitle: str) -> Figure:
    """A line per row with its interval; controls are hollow."""
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(8.2, 1.5 + 0.42 * len(dots)), layout="constrained")
        axes = figure.add_subplot()
        for place, dot in enumerate(dots):
            colour = COLOURS[1] if dot.control else COLOURS[0]
            if dot.cell.low is not None and dot.cell.high is not None:
                axes.plot([dot.cell.low, dot.cell.high], [place, place], color=colour, linewidth=2)
            marker = MARKERS[1] if dot.control else MARKERS[0]
            face = "white" if dot.control else colour
            axes.plot([dot.cell.value or 0.0], [place], marker, color=colour, markerfacecolor=face, markersize=7)
        axes.set_yticks(range(len(dots)), [dot.name for dot in dots])
        axes.set_ylim(-0.6, len(dots) - 0.4)
        axes.set_xlabel(axis)
        set_plain(axes, grid="x")
        axes.spines["left"].set_visible(False)
        set_title(axes, title, subtitle)
    return figure


def speed_points(
    results: Results, benchmark: Mapping[str, Any] | None, corpus: str, protocol: str
) -> list[tuple[str, float, Cell]]:
    """Method, sentences per second and score, for the methods that were both timed and scored."""
    points = []
    for method in METHODS:
        seconds = seconds_per_sentence(dict(benchmark) if benchmark is not None else None, method)
        space = f"wl-{method}"
        if seconds is not None and space in results.suite.spaces and corpus in results.suite.corpora:
            cell = results.cell(space, corpus, protocol)
            if cell.value is not None:
                points.append((method, 1 / seconds, cell))
    return points


def draw_speed(points: Sequence[tuple[str, float, Cell]], axis: str, title: str, subtitle: str) -> Figure:
    """Speed across, on a logarithmic scale, quality upwards; up and right is better."""
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        axes = figure.add_subplot()
        for i, (method, rate, cell) in enumerate(points):
            value = cell.value or 0.0
            if cell.low is not None and cell.high is not None:
                axes.plot([rate, rate], [cell.low, cell.high], color=COLOURS[i % len(COLOURS)], linewidth=2)
            axes.plot([rate], [value], MARKERS[i % len(MARKERS)], color=COLOURS[i % len(COLOURS)], markersize=8)
            side = -1 if _followed(points, rate, value) else 1
            label = axes.annotate(
                method, (rate, value), xytext=(9 * side, -3), textcoords="offset points", fontsize=10,
                ha="left" if side > 0 else "right",
            )  # fmt: skip
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        axes.set_xscale("log")
        axes.set_xlabel("sentences a second, CPU time, one thread, text in")
        axes.set_ylabel(axis)
        axes.margins(x=0.2)
        set_plain(axes)
        set_title(axes, title, subtitle)
    return figure


def _followed(points: Sequence[tuple[str, float, Cell]], rate: float, value: float) -> bool:
    """Whether another mark stands where a label on the right of this one would."""
    rates = [other for _, other, _ in points]
    near = (max(rates) / min(rates)) ** 0.1
    return any(rate < other < near * rate and abs((cell.value or 0.0) - value) < 1 for _, other, cell in points)


def draw_bars(points: Sequence[tuple[str, float, Cell]], title: str, subtitle: str) -> Figure:
    """Speed alone, fastest on top, as LASE's figure 5.2."""
    ordered = sorted(points, key=lambda point: point[1])
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(8.2, 1.5 + 0.42 * len(ordered)), layout="constrained")
        axes = figure.add_subplot()
        axes.barh(range(len(ordered)), [rate for _, rate, _ in ordered], color=COLOURS[1], height=0.55)
        for place, (_, rate, _) in enumerate(ordered):
            axes.annotate(
                f"{rate:,.0f}", (rate, place), xytext=(5, -3), textcoords="offset points", fontsize=9, color=MUTED
            )
        axes.set_yticks(range(len(ordered)), [method for method, _, _ in ordered])
        axes.set_xscale("log")
        axes.set_xlabel("sentences a second, CPU time, one thread, text in")
        set_plain(axes, grid="x")
        set_title(axes, title, subtitle)
    return figure
