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
SHOWN = 5  # test sets drawn, in the suite's order


def draw_sweep(
    sweep: Sweep, setting: str, *, baselines: Mapping[str, float], control: Sweep | None, title: str, subtitle: str
) -> Figure:
    """The best score at each value of a setting, a panel for the development corpus and for each test set.

    baselines  corpus -> score of the encoder's own cosine, drawn as a level line
    control    the sweep of a space that sees no neighbourhood, drawn beside where it has the setting too
    """
    corpora = [sweep.corpus, *list(sweep.tests)[:SHOWN]]
    with style.context(["default", STYLE]):
        columns = min(3, len(corpora))
        rows = -(-len(corpora) // columns)
        figure = Figure(figsize=(3.1 * columns + 0.4, 2.6 * rows + 0.9), layout="constrained")
        panels: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
        cells = [axes for line in panels for axes in line]
        for axes, corpus in zip(cells, corpora, strict=False):
            curves = [(name, _curve(source, corpus, setting)) for name, source in (("LP", sweep), ("PCA", control))]
            _draw_panel(axes, corpus, corpus == sweep.corpus, curves, baselines.get(corpus))
        for axes in cells[len(corpora) :]:
            axes.set_visible(False)
        for axes in panels[-1]:
            axes.set_xlabel(WORDS.get(setting, setting))
        handles, labels = cells[0].get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, loc="outside lower left", ncols=3)
        head_figure(figure, title, subtitle)
    return figure


def _curve(source: Sweep | None, corpus: str, setting: str) -> dict[Any, float]:
    if source is None:
        return {}
    values: Sequence[float | None] = source.values if corpus == source.corpus else source.tests.get(corpus, ())
    return source.profile(setting, tuple(values)) if values else {}


def _draw_panel(
    axes: Axes, corpus: str, development: bool, curves: Sequence[tuple[str, dict[Any, float]]], baseline: float | None
) -> None:
    for i, (name, curve) in enumerate(curves):
        if curve:
            places = sorted(curve)
            look = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": DASHES[i]}
            axes.plot(places, [curve[place] for place in places], markersize=5, label=name, **look)
            axes.set_xscale("log", base=2)
            axes.set_xticks(places, [str(place) for place in places], fontsize=8)
            axes.minorticks_off()
    if baseline is not None:
        axes.axhline(baseline, color=INK, linewidth=1, linestyle=DASHES[2], label="encoder's cosine")
    axes.set_title(f"{corpus} ({'development' if development else 'test'})", loc="left", fontsize=9.5)
    set_plain(axes)
