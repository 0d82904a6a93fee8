"""The speed of encoders: the table with the printed times, and the figure of speed against quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from pipeline.papers.plan import load_figures
from pipeline.papers.published import PAPERS, select
from pipeline.report.entries import printed_entry
from pipeline.report.evidence import Evidence
from pipeline.report.inputs import BENCHMARK, BENCHMARK_COMMAND
from pipeline.report.results import Score
from sentfold.report.drawing import STYLE, WIDTH, head_figure, look_of, set_plain
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

# Source and table of the printed times, and their unit. GEM's test set has 1,379 pairs.
PRINTED_TIMES = (
    ("s3e", "speed", "ms per sentence"), ("lase", "speed", "s per sentence"), ("gem", "5", "s for 2,758 sentences"),
)  # fmt: skip
ABOUT = (
    "Printed times are of other machines, other vectors and the authors' code. Measured times are CPU time on one "
    "thread, from text, with each method's own tokenizer, without fitting."
)


def seconds_per_sentence(benchmark: Mapping[str, Any], method: str) -> float | None:
    """CPU seconds of one sentence, text in, by the method's own tokeniser; None if not measured."""
    rate = _texts_in(benchmark, "rates", method, own_tokeniser=True)
    return 1 / rate if rate else None


def seconds_of_run(
    benchmark: Mapping[str, Any], method: str, *, own_tokeniser: bool = True
) -> tuple[float, float] | None:
    """The least and the greatest CPU seconds of a method's repeats of one run, texts in; None if not kept."""
    times = _texts_in(benchmark, "seconds", method, own_tokeniser=own_tokeniser)
    return (float(times[0]), float(times[1])) if times else None


def _texts_in(benchmark: Mapping[str, Any], what: str, method: str, *, own_tokeniser: bool) -> Any:
    """What was measured of a method from texts on: by its own tokeniser if it has one, or split at blanks."""
    found = benchmark[what].get(method, {})
    own = [one for name, one in found.items() if name.startswith("text in") and name != "text in, whitespace"]
    return own[0] if own and own_tokeniser else found.get("text in, whitespace")


def speed_table(evidence: Evidence) -> Table:
    """The speed of every method of the benchmark, then the printed times of each paper in its own unit."""
    benchmark, vectors = evidence.benchmark, load_figures().timed_vectors
    lines = tuple(
        Line(method, evidence.made_of.get(method, vectors), (_measured(seconds, method),))
        for method in benchmark["rates"]
        if (seconds := seconds_per_sentence(benchmark, method)) is not None
    )
    timed = f"CPU time, one thread, {benchmark['processor']}"
    heads, groups = (Head("µs per sentence", "", "CPU time, text in", "µs"),), (Group("Measured here", False, lines),)
    measured = [Panel("Measured", timed, heads, groups, _shows(lines))] if lines else []
    return Table("speed", "Speed of encoders", ABOUT, (*measured, *(_printed_times(*where) for where in PRINTED_TIMES)))


def _printed_times(source: str, number: str, unit: str) -> Panel:
    """The times that a paper prints, and how many times the slowest takes of the fastest."""
    figures = sorted(select(source, number), key=lambda figure: figure.value)
    lines = tuple(Line(figure.model, "", (printed_entry(figure),)) for figure in figures)
    first, last = figures[0], figures[-1]
    ratio = f"{last.value / first.value:.0f} times as long"
    shows = f"As printed, {first.model} is the fastest, and {last.model} takes {ratio}."
    return Panel(
        f"As printed in {PAPERS[source]}",
        "; ".join(dict.fromkeys(figure.protocol for figure in figures)),
        (Head(unit, "", "as printed", unit.partition(" ")[0]),),
        (Group(f"Printed in {PAPERS[source]}", True, lines),),
        (shows,) if len(figures) > 1 else (),
    )


def _measured(seconds: float, method: str) -> Entry:
    about = f"CPU time of a sentence by {method}, from {BENCHMARK}, which {BENCHMARK_COMMAND} makes"
    return Entry(f"{1e6 * seconds:.1f}", 1e6 * seconds, about=about)


def _shows(lines: Sequence[Line]) -> tuple[str, ...]:
    order = sorted(lines, key=lambda line: line.entries[0].value or 0.0)
    return (f"From fast to slow: {', '.join(line.name for line in order)}.",)


# --- the figure ---------------------------------------------------------------------------------

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
