"""Figure: a word encoder's scores against its hyper-parameters, one at a time."""

from __future__ import annotations

from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.report.figures import INK, STYLE, WIDTH, head_figure, look_of, set_plain
from pipeline.report.sensitivity import Sensitivity

WORDS = {
    "window": "window m",
    "candidates": "candidate directions K",
    "removed": "directions removed h",
    "power": "power t",
}


def draw_sensitivity(found: Sensitivity, title: str, subtitle: str) -> Figure:
    """A row of panels for each scored corpus, a panel for each hyper-parameter; a level of scores is one row's.

    A dotted line stands at the value of the paper. Variants differ in colour, in marker and in dash.
    """
    with style.context(["default", STYLE]):
        columns, rows = len(found.published), len(found.protocols)
        figure = Figure(figsize=(WIDTH, 2.3 * rows + 1.3), layout="constrained")
        panels: Any = figure.subplots(rows, columns, squeeze=False, sharey="row", sharex="col")
        for line, (corpus, protocol) in zip(panels, found.protocols.items(), strict=True):
            for axes, parameter in zip(line, found.published, strict=True):
                _draw_panel(axes, found, corpus, parameter)
            line[0].set_ylabel(f"{corpus}\n{_axis(protocol)}", fontsize=9)
        for axes, parameter in zip(panels[-1], found.published, strict=True):
            axes.set_xlabel(WORDS.get(parameter, parameter))
        lines = {str(drawn.get_label()): drawn for axes in panels.flat for drawn in axes.get_lines()}
        figure.legend(
            lines.values(), lines.keys(), frameon=False, loc="outside lower left", ncols=len(lines), handlelength=3
        )
        head_figure(figure, title, subtitle)
    return figure


def _axis(protocol: str) -> str:
    return f"{protocol.partition('.')[0].replace('pearson', 'Pearson')}, ×100"


def _draw_panel(axes: Axes, found: Sensitivity, corpus: str, parameter: str) -> None:
    for i, variant in enumerate(found.variants):
        curve = found.curves.get((corpus, variant, parameter))
        if curve:
            look = look_of(i)
            axes.plot(
                list(curve), list(curve.values()), linestyle=look.dash, markersize=6, label=variant, **look.mark()
            )
    axes.axvline(found.published[parameter], color=INK, linewidth=1, linestyle=":", label="the paper's own value")
    set_plain(axes)
