"""Figures: what a sweep scores by number of neighbours and by dimension, on development and on test data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.report.sweeps import Sweep
from sentfold.report.drawing import (
    DASHES,
    INK,
    STYLE,
    WIDTH,
    arrange_panels,
    head_figure,
    label_lowest,
    look_of,
    set_plain,
)

WORDS = {"neighbors": "neighbours k", "components": "dimension p"}
COLUMNS = 3  # of panels, at most


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
    """The best score at each value of a setting, a panel for each corpus; a star marks the choice.

    The best over the other settings is taken on the panel's own corpus: on a test set it is an oracle, no result.

    corpora    those of the sweep that are drawn, the development corpus among them or not
    baselines  corpus -> score of the encoder's own vectors, drawn as a level line
    control    the sweep of a space that sees no neighbourhood: a curve where it has the setting too, else the level
               of its best point
    """
    with style.context(["default", STYLE]):
        rows, columns = arrange_panels(len(corpora), across=COLUMNS)
        figure = Figure(figsize=(WIDTH, 2.4 * rows + 1.3), layout="constrained")
        panels: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
        for axes, corpus in zip(panels.flat, corpora, strict=False):
            levels = {"encoder": baselines.get(corpus)}
            if control is not None:
                levels[f"best of {control.space}"] = _level(control, corpus, setting)
            curves = [(one.space, _curve(one, corpus, setting)) for one in (sweep, control) if one is not None]
            _draw_panel(axes, f"{corpus} ({_role(sweep, corpus)})", curves, levels)
            chosen = sweep.values_on(corpus)[sweep.points.index(sweep.chosen)]
            if chosen is not None:
                look = {"marker": "*", "color": INK, "markersize": 11, "linestyle": "none"}
                axes.plot([sweep.chosen[setting]], [chosen], label="as selected", **look)
        label_lowest(panels, len(corpora), WORDS.get(setting, setting))
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, loc="outside lower left", ncols=5, handlelength=3)
        head_figure(figure, title, subtitle)
    return figure


def describe_oracles(sweep: Sweep, control: Sweep | None, setting: str, over: str, *, classes: bool) -> str:
    """What a sweep's figure takes from the very sets that it is drawn on, the caption of either kind.

    over     what the curve is the maximum over: "p"
    classes  whether the drawn sets are of classification, where regularisation and scaling are not varied
    """
    level = control is not None and not any(setting in point for point in control.points)
    pca = f", and the level of {control.space} the maximum over its grid" if level and control is not None else ""
    taken = f"At each value the curve of {sweep.space} is the maximum over {over} on the drawn set itself{pca}"
    if classes:
        return (
            f"Oracles, no results. {taken}, that is, chosen by the labels that it is scored on. Regularisation and "
            f"scaling are those chosen on {sweep.corpus}, a similarity corpus. The star is the choice of all settings "
            f"on {sweep.corpus}, made without these labels."
        )
    return (
        f"The star was chosen on {sweep.corpus} alone. {taken}: on a test set this is an oracle, no result. Its height "
        "above the star is what choosing on that test set would have added."
    )


def _role(sweep: Sweep, corpus: str) -> str:
    if corpus == sweep.corpus:
        return "development"
    return "test" if corpus in sweep.tests else "3-NN accuracy"


def _curve(source: Sweep, corpus: str, setting: str) -> dict[Any, float]:
    return source.profile(setting, source.values_on(corpus))


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
            look = look_of(i)
            values = [curve[place] for place in places]
            axes.plot(places, values, markersize=6, label=name, linestyle=look.dash, **look.mark())
            axes.set_xscale("log", base=2)
            axes.set_xticks(places, [str(place) for place in places], fontsize=8)
            axes.minorticks_off()
    for (name, level), dash in zip(levels.items(), DASHES[2:], strict=False):
        if level is not None:
            axes.axhline(level, color=INK, linewidth=1, linestyle=dash, label=name)
    axes.set_title(title, loc="left", fontsize=9.5)
    set_plain(axes)
