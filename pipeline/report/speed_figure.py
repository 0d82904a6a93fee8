"""The figure of speed against quality."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from pipeline.report.evidence import Evidence
from pipeline.report.inputs import BENCHMARK
from pipeline.report.results import Score
from pipeline.report.special_tables import seconds_per_sentence
from sentfold.report.drawing import STYLE, WIDTH, head_figure, look_of, set_plain

SPEED_CAPTION = (
    f"Up is better, right is faster. Word vectors are WordLlama's, of 256 dimensions; {BENCHMARK} holds the times. "
    "Absent: spaces made from an encoder's. LP, for one, is solved for a whole corpus at once, so a sentence has no "
    "time of its own."
)
SPEED = "sentences a second, CPU time, one thread, text in; logarithmic"


def speed_points(evidence: Evidence, corpus: str, protocol: str) -> list[tuple[str, float, Score]]:
    """Method, sentences per second and score, for the methods that were both timed and scored.

    A method's score is that of the suite's first encoder over word vectors by that method; a transformer's its own.
    """
    results, points = evidence.results, []
    for method in evidence.benchmark["rates"]:
        seconds = seconds_per_sentence(evidence.benchmark, method)
        words = (s for s in results.suite.word_encoders if evidence.parameters.get(s, {}).get("method") == method)
        space = method if method in results.suite.encoders else next(words, None)
        if seconds is not None and space is not None and corpus in results.suite.corpora:
            score = results.score(space, corpus, protocol)
            if score.value is not None:
                points.append((method, 1 / seconds, score))
    return points


def draw_speed(points: Sequence[tuple[str, float, Score]], axis: str, title: str, subtitle: str) -> Figure:
    """Speed across, on a logarithmic scale, quality upwards; up and right is better."""
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(WIDTH, 4.8), layout="constrained")
        axes = figure.add_subplot()
        for i, (method, rate, score) in enumerate(points):
            value, look = score.value or 0.0, look_of(i)
            if score.low is not None and score.high is not None:
                axes.plot([rate, rate], [score.low, score.high], color=look.colour, linewidth=2)
            axes.plot([rate], [value], markersize=8, **look.mark())
            side = -1 if _followed(points, rate, value) else 1
            label = axes.annotate(
                method, (rate, value), xytext=(9 * side, -3), textcoords="offset points", fontsize=10,
                ha="left" if side > 0 else "right",
            )  # fmt: skip
            label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
        axes.set_ylabel(axis)
        axes.margins(x=0.2)
        set_plain(axes)
        _set_speed_axis(axes)
        head_figure(figure, title, subtitle)
    return figure


def _set_speed_axis(axes: Axes) -> None:
    """A logarithmic axis with plain figures, at 1, 2 and 5 of each decade where there is room for them."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(SPEED)


def _followed(points: Sequence[tuple[str, float, Score]], rate: float, value: float) -> bool:
    """Whether another mark is where a label on the right of this one would be."""
    rates = [other for _, other, _ in points]
    near = (max(rates) / min(rates)) ** 0.1
    return any(rate < other < near * rate and abs((score.value or 0.0) - value) < 1 for _, other, score in points)
