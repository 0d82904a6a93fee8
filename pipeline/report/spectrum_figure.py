"""Figure: the eigenvalues that certify a locality-preserving space, above the residuals of their solve."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log10

from matplotlib import style
from matplotlib.figure import Figure

from pipeline.artifacts import read_record, space_path
from pipeline.report.figures import COLOURS, DASHES, INK, STYLE, set_plain, set_title
from pipeline.suite import Suite

# Last digits of an eigenvalue, and all of a residual, are the processor's: a committed picture shows neither.
DIGITS = 3


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


def draw_spectra(spectra: list[Spectrum], title: str, subtitle: str) -> Figure:
    """One line per corpus over the rank of the eigenvalue, and the worst residual as a bound under them all."""
    ordered = sorted(spectra, key=lambda spectrum: -spectrum.eigenvalues[-1])
    bound = max(spectrum.residual_bound for spectrum in spectra)
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(8.2, 5.2), layout="constrained")
        axes = figure.add_subplot()
        for i, spectrum in enumerate(ordered):
            ranks = range(1, len(spectrum.eigenvalues) + 1)
            look = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}
            axes.plot(ranks, spectrum.eigenvalues, linewidth=1.6, label=spectrum.corpus, **look)
        axes.axhline(bound, color=INK, linewidth=1.2, linestyle=(0, (2, 2)))
        axes.annotate(
            f"every residual lies below $10^{{{round(log10(bound))}}}$",
            (1, bound), xytext=(0, 4), textcoords="offset points", fontsize=9,
        )  # fmt: skip
        axes.set_yscale("log")
        axes.set_xlabel("rank of the eigenvalue, the null space left out")
        axes.set_ylabel("eigenvalue of M")
        set_plain(axes)
        set_title(axes, title, subtitle)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.2)
    return figure
