"""Figures: what a sweep scores by number of neighbours and by dimension, on development and on test data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.report.figures import COLOURS, DASHES, INK, MARKERS, STYLE, head_figure, set_plain
from pipeline.report.sweeps import Sweep

WORDS = {"neighbors": "neighbours k", "components": "dimension p"}


def draw_sweep(
    sweep: Sweep,
    setting: str,
    *,
    corpora: Sequence[str],
    baselines: Mapping[str, float],
    control: Sweep | None,
    title: str,
    subtitle: str,
) -> Figure:
    """The best score at each value of a setting, a panel for each corpus; a star where the choice came out.

    corpora    those of the sweep that are drawn, the development corpus among them or not
    baselines  corpus -> score of the encoder's own vectors, drawn as a level line
    control    the sweep of a space that sees no neighbourhood: a curve where it has the setting too, else the level
               of its best point
    """
    with style.context(["default", STYLE]):
        columns = min(3, len(corpora))
        rows = -(-len(corpora) // columns)
        width = max(5.8, 3.1 * columns + 0.4)  # room for the title
        figure = Figure(figsize=(width, 2.6 * rows + 0.9), layout="constrained")
        panels: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
        cells = [axes for line in panels for axes in line]
        for axes, corpus in zip(cells, corpora, strict=False):
            levels = {"encoder": baselines.get(corpus), "PCA, best p": _level(control, corpus, setting)}
            curves = [(name, _curve(source, corpus, setting)) for name, source in (("LP", sweep), ("PCA", control))]
            _draw_panel(axes, f"{corpus} ({_role(sweep, corpus)})", curves, levels)
            chosen = sweep.values_on(corpus)[sweep.points.index(sweep.chosen)]
            if chosen is not None:
                look = {"marker": "*", "color": INK, "markersize": 11, "linestyle": "none"}
                axes.plot([sweep.chosen[setting]], [chosen], label="LP as selected", **look)
        for axes in cells[len(corpora) :]:
            axes.set_visible(False)
        for axes in panels[-1]:
            axes.set_xlabel(WORDS.get(setting, setting))
        handles, labels = cells[0].get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, loc="outside lower left", ncols=5)
        head_figure(figure, title, subtitle)
    return figure


def _role(sweep: Sweep, corpus: str) -> str:
    if corpus == sweep.corpus:
        return "development"
    return "test" if corpus in sweep.tests else "3-NN accuracy"


def _curve(source: Sweep | None, corpus: str, setting: str) -> dict[Any, float]:
    return {} if source is None else source.profile(setting, source.values_on(corpus))


def _level(control: Sweep | None, corpus: str, setting: str) -> float | None:
    """The best score of a control that does not have the setting."""
    if control is None or any(setting in point for point in control.points):
        return None
    return max((value for value in control.values_on(corpus) if value is not None), default=None)


def _draw_panel(
    axes: Axes, title: str, curves: Sequence[tuple[str, dict[Any, float]]], levels: Mapping[str, float | None]
) -> None:
    for i, (name, curve) in enumerate(curves):
        if curve:
            places = sorted(curve)
            look = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": DASHES[i]}
            axes.plot(places, [curve[place] for place in places], markersize=5, label=name, **look)
            axes.set_xscale("log", base=2)
            axes.set_xticks(places, [str(place) for place in places], fontsize=8)
            axes.minorticks_off()
    for (name, level), dash in zip(levels.items(), DASHES[2:], strict=False):
        if level is not None:
            axes.axhline(level, color=INK, linewidth=1, linestyle=dash, label=name)
    axes.set_title(title, loc="left", fontsize=9.5)
    set_plain(axes)
