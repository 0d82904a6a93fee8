"""Figures about encoders over word vectors: LASE's choice of clusterer, and speed against quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from pipeline.papers.plan import SingleFigure
from pipeline.report.evidence import Evidence
from pipeline.report.inputs import BENCHMARK, BENCHMARK_COMMAND
from pipeline.report.results import Results, Score
from pipeline.report.special_tables import seconds_per_sentence
from sentfold.report.drawing import INK, LOOKS, STYLE, WIDTH, head_figure, look_of, set_plain

CLUSTERERS_CAPTION = (
    "If clusters of words carried roles, each filled mark would lie to the right of the hollow ones of its sizes. The "
    "thesis draws k-means, Gaussian mixture and spectral clustering for each of four concatenations: fastText + LexVec "
    "+ PSL, GloVe + fastText + LexVec, GloVe + fastText + PSL, and all four. Those vectors come with no package, so "
    "this suite has no space of them to draw; params.yaml names the concatenations (f-l-p, g-f-l, g-f-p, g-f-l-p) "
    "for whoever has the files. The thesis prints no numbers with its figure, so none of its values is shown."
)
SPEED = "sentences a second, CPU time, one thread, text in; logarithmic"


@dataclass(frozen=True)
class Dot:
    """One line of a dot chart."""

    name: str
    score: Score
    control: bool


def clusterer_dots(results: Results, wanted: SingleFigure) -> list[Dot]:
    """The scores of the rows of a figure that the suite has, lowest first, controls among them."""
    if wanted.corpus not in results.suite.corpora:
        return []
    named = {space: title for space, title in wanted.rows.items() if space in results.suite.spaces}
    scores = {space: results.score(space, wanted.corpus, wanted.protocol) for space in named}
    dots = [
        Dot(named[s], score, named[s].startswith("control")) for s, score in scores.items() if score.value is not None
    ]
    return sorted(dots, key=lambda dot: dot.score.value or 0.0)


def draw_dots(dots: Sequence[Dot], axis: str, title: str, subtitle: str) -> Figure:
    """A line per row with its interval and its value; controls are hollow."""
    with style.context(["default", STYLE]):
        figure, axes = _rows_figure([dot.name for dot in dots])
        for place, dot in enumerate(dots):
            look = replace(LOOKS[1], filled=False) if dot.control else LOOKS[0]
            if dot.score.low is not None and dot.score.high is not None:
                axes.plot([dot.score.low, dot.score.high], [place, place], color=look.colour, linewidth=2)
            value = dot.score.value or 0.0
            axes.plot([value], [place], markersize=7, **look.mark())
            axes.annotate(
                f"{value:.1f}", (value, place), xytext=(0, 6), textcoords="offset points", fontsize=9, ha="center"
            )
        axes.set_xlabel(axis)
        head_figure(figure, title, subtitle)
    return figure


def _rows_figure(names: Sequence[str]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, 1.5 + 0.42 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    set_plain(axes, grid="x")
    axes.spines["left"].set_visible(False)
    return figure, axes


def speed_points(evidence: Evidence, corpus: str, protocol: str) -> list[tuple[str, float, Score]]:
    """Method, sentences per second and score, for the methods that were both timed and scored.

    A method's score is that of the suite's first encoder over word vectors by that method.
    """
    results, points = evidence.results, []
    for method in (evidence.benchmark or {"rates": {}})["rates"]:
        seconds = seconds_per_sentence(evidence.benchmark, method)
        own = (s for s in results.suite.word_encoders if evidence.parameters.get(s, {}).get("method") == method)
        space = next(own, None)
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


def quality_caption(encoders: Sequence[str]) -> str:
    """What speed against quality shows, and why these transformers and what is made from them are absent."""
    return (
        "Up is better, right is faster. The vectors are WordLlama's 256 dimensions for every method. Absent: "
        f"{', '.join(encoders)} and every space made from it, LP among them. The benchmark, {BENCHMARK}, times "
        "encoders over word vectors alone, and no artifact keeps how long a transformer or an eigensolve took; LP "
        "moreover is solved for a whole corpus at once, so that its time for one sentence depends on the others."
    )


def rates_caption(processor: str) -> str:
    """Where the speeds are from, and which models of LASE's figure 5.2 are absent."""
    return (
        f"Measured on {processor}, by {BENCHMARK_COMMAND.partition(' --')[0]}. The thesis's figure has its own method, "
        "the mean of GloVe vectors (here: average, of WordLlama's), InferSent, USE, SBERT and SBERT-WK. Those four are "
        "absent: no weights of InferSent, USE or SBERT-WK belong to this repository, SBERT's come from the hub, and "
        "the benchmark times encoders over word vectors alone. The other such encoders are shown instead."
    )


def _set_speed_axis(axes: Axes) -> None:
    """A logarithmic axis that is numbered at 1, 2 and 5 of each decade, in plain figures."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(SPEED)


def _followed(points: Sequence[tuple[str, float, Score]], rate: float, value: float) -> bool:
    """Whether another mark is where a label on the right of this one would be."""
    rates = [other for _, other, _ in points]
    near = (max(rates) / min(rates)) ** 0.1
    return any(rate < other < near * rate and abs((score.value or 0.0) - value) < 1 for _, other, score in points)


def draw_rates(points: Sequence[tuple[str, float, Score]], title: str, subtitle: str) -> Figure:
    """Speed alone, fastest on top, as LASE's figure 5.2: dots, for a bar has no length where the axis has no zero."""
    ordered = sorted(points, key=lambda point: point[1])
    with style.context(["default", STYLE]):
        figure, axes = _rows_figure([method for method, _, _ in ordered])
        for place, (_, rate, _) in enumerate(ordered):
            axes.plot([rate], [place], markersize=8, **LOOKS[0].mark())
            axes.annotate(
                f"{rate:,.0f}", (rate, place), xytext=(8, -3), textcoords="offset points", fontsize=9, color=INK
            )
        axes.margins(x=0.12)
        _set_speed_axis(axes)
        head_figure(figure, title, subtitle)
    return figure
