"""Figure: the eigenvalues that certify a locality-preserving space, corpus by corpus, above their residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from pipeline.artifacts import read_record, space_path
from pipeline.report.figures import (
    COLOURS,
    GRID,
    INK,
    STYLE,
    WIDTH,
    arrange_panels,
    head_figure,
    label_lowest,
    set_plain,
)
from pipeline.suite import Suite

# Last digits of an eigenvalue, and all of a residual, are the processor's: a committed picture shows neither.
DIGITS = 3
COLUMNS = 5  # of panels


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of one corpus, ascending, and a power of ten that no residual of theirs exceeds."""

    corpus: str
    eigenvalues: tuple[float, ...]
    residual_bound: float


def read_spectra(suite: Suite, space: str) -> list[Spectrum]:
    """The spectra of a space's corpora, as its artifacts certify them; [] if the space has none."""
    if space not in suite.spaces:
        return []
    found = []
    for corpus in suite.corpora:
        notes = read_record(space_path(suite.suite, space, corpus), kind="vectors")["notes"]
        if "residuals" in notes:
            values = tuple(float(f"{value:.{DIGITS}g}") for value in notes["eigenvalues"])
            found.append(Spectrum(corpus, values, power_above(max(notes["residuals"]))))
    return found


def largest_step(spectra: list[Spectrum], *, after: int) -> tuple[str, int, float]:
    """Corpus, rank and factor of the largest step from one eigenvalue to the next beyond rank `after`."""
    steps = [
        (spectrum.corpus, rank, values[rank] / values[rank - 1])
        for spectrum in spectra
        for values in [spectrum.eigenvalues]
        for rank in range(after, len(values))
    ]
    return max(steps, key=lambda step: step[2])


def power_above(value: float) -> float:
    """The least power of ten that is not below a positive value, but a thousandth of the smallest float for 0."""
    return float(10.0 ** ceil(log10(max(value, 1e-16))))


def draw_spectra(spectra: Sequence[Spectrum], title: str, subtitle: str) -> Figure:
    """A panel for each corpus: its eigenvalues by rank, over the bound of its own residuals.

    All panels share their axes, and behind each curve lies the range of all of them.
    """
    with style.context(["default", STYLE]):
        rows, columns = arrange_panels(len(spectra), across=COLUMNS)
        figure = Figure(figsize=(WIDTH, 1.6 * rows + 1.5), layout="constrained")
        panels: Any = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        range_of_all = _range(spectra)
        for axes, spectrum in zip(panels.flat, spectra, strict=False):
            _draw_panel(axes, spectrum, range_of_all)
        label_lowest(panels, len(spectra), "rank")
        panels[0][0].set_yscale("log")
        panels[0][0].yaxis.set_major_locator(LogLocator(numticks=5))
        panels[0][0].yaxis.set_minor_locator(NullLocator())
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, frameon=False, loc="outside lower left", ncols=3, fontsize=9)
        head_figure(figure, title, subtitle)
    return figure


def _range(spectra: Sequence[Spectrum]) -> tuple[list[float], list[float]]:
    """The least and the largest eigenvalue of each rank, of the corpora that have it."""
    longest = max(len(spectrum.eigenvalues) for spectrum in spectra)
    found = [[s.eigenvalues[rank] for s in spectra if rank < len(s.eigenvalues)] for rank in range(longest)]
    return [min(values) for values in found], [max(values) for values in found]


def _draw_panel(axes: Axes, spectrum: Spectrum, range_of_all: tuple[list[float], list[float]]) -> None:
    least, largest = range_of_all
    axes.fill_between(range(1, len(least) + 1), least, largest, color=GRID, linewidth=0, label="range of all corpora")
    values, bound = spectrum.eigenvalues, spectrum.residual_bound
    axes.plot(range(1, len(values) + 1), values, color=COLOURS[0], linewidth=1.6, label="eigenvalues of M")
    axes.axhline(bound, color=INK, linewidth=1.2, linestyle=(0, (2, 2)), label="no residual of this corpus lies above")
    axes.annotate(
        f"$10^{{{round(log10(bound))}}}$", (1, bound), xycoords=("axes fraction", "data"), xytext=(0, 3),
        textcoords="offset points", fontsize=8, ha="right",
    )  # fmt: skip
    axes.set_title(spectrum.corpus, loc="left", fontsize=9)
    axes.tick_params(labelsize=8)
    set_plain(axes)
