"""Tables of the papers that hold no scores: three cosines, common words in clusters of words, and speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lgamma
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.papers.plan import load_figures
from pipeline.papers.published import PAPERS, select
from pipeline.report.entries import printed_entry
from pipeline.report.evidence import Evidence, Partition
from pipeline.report.inputs import BENCHMARK, BENCHMARK_COMMAND, PARTITION_SIZES
from pipeline.report.made_of import describe_vectors
from sentfold.report.table import Entry, Group, Head, Line, Panel, Table

# --- the hyperboloid paper's three cosines ------------------------------------------------------


def example_table(evidence: Evidence) -> Table | None:
    """Cosines of single pairs with the printed ones, in each way of writing them."""
    results = evidence.results
    for corpus, encoder in evidence.referees.items():
        if corpus not in results.suite.corpora or encoder not in results.suite.encoders:
            continue
        pairs = results.facts(encoder, corpus).get("pairs", [])
        variants = list(dict.fromkeys(pair["variant"] for pair in pairs))
        if not variants:
            continue
        model = evidence.made_of.get(encoder, "")
        figures = select("hyperboloid", "1")
        heads = tuple(Head(figure.model, corpus, "cosine", "cosine") for figure in figures)
        lines = tuple(_cosine_line(corpus, encoder, model, variant, pairs) for variant in variants)
        printed = Line(model, "", tuple(printed_entry(figure) for figure in figures))
        groups = (Group("Measured here", False, lines), Group("Printed in Hyperboloid, table 1", True, (printed,)))
        shows = tuple(_agreement(line, printed) for line in lines)
        panel = Panel("Cosine to “That is a happy person.”", "cosine of single pairs", heads, groups, shows)
        about = "The paper starts from three cosines of an encoder that can be run here."
        return Table("hyperboloid-1", "Hyperboloid 1: Three cosines", about, (panel,))
    return None


def _cosine_line(corpus: str, encoder: str, model: str, variant: str, pairs: Sequence[Mapping[str, Any]]) -> Line:
    about = f"cosine in {encoder}, pairs written {variant}, corpus {corpus}"
    cosines = [float(pair["cosine"]) for pair in pairs if pair["variant"] == variant]
    of = (f"{encoder}/{corpus}",)
    entries = tuple(Entry(f"{cosine:.3f}", cosine, about=about, of=of) for cosine in cosines)
    return Line(f"{encoder}, {variant}", model, entries)


def _agreement(line: Line, printed: Line) -> str:
    pairs = zip(line.entries, printed.entries, strict=True)
    same = sum(one.text == two.text for one, two in pairs)
    return f"{line.name}: {same} of {len(line.entries)} cosines are the printed ones to the last digit."


# --- LASE's common words in clusters ------------------------------------------------------------

# The words that the thesis picked for table 4.1.
COMMON_WORDS = ("the", "a", "an", "and", "or", "of", "for", "in", "on", "this", "with")
# Table 4.1 of the thesis: of its 4 clusters, those that hold one of the common words.
PRINTED_SPREAD = {"k-means": 3, "Gaussian mixture": 2, "spectral": 2}


def cluster_table(evidence: Evidence) -> Table | None:
    """LASE's table 4.1 as numbers: over how many clusters the common words are spread, and what chance would give.

    None for a suite without clusterings of words.
    """
    if not evidence.partitions:
        return None
    heads = (
        Head("clusters", "", "clusters of the partition", "count"),
        Head("with a common word", "", "clusters that hold a common word", "count"),
        Head("random partition", "", "clusters expected of a random partition of these sizes", "count"),
    )
    lines = tuple(_cluster_line(evidence, name, partition) for name, partition in evidence.partitions.items())
    printed = tuple(
        Line(name, "", (_counted(4), _counted(spread), Entry(reason="not printed")))
        for name, spread in PRINTED_SPREAD.items()
    )
    groups = (Group(evidence.measured_here, False, lines), Group("Printed in LASE, table 4.1", True, printed))
    shows = tuple(
        f"{line.name}: common words are in {line.entries[1].text} of {line.entries[0].text} clusters; "
        f"chance would put them in {line.entries[2].text}."
        for line in lines
        if line.entries[1].value is not None
    )
    about = (
        f"The clusters that hold the eleven words which the thesis picked ({', '.join(COMMON_WORDS)}). The thesis "
        "takes few clusters for a sign of common discourse. The last column is the mean number of clusters where words "
        "are dealt at random into clusters of the same sizes."
    )
    panel = Panel("Spread of common words over clusters", "counts", heads, groups, shows)
    return Table("lase-4.1", "LASE 4.1: Common words in clusters", about, (panel,))


def _counted(number: int) -> Entry:
    return Entry(str(number), number, about="counted in table 4.1 of the thesis, which prints the words")


def _cluster_line(evidence: Evidence, clustering: str, partition: Partition | None) -> Line:
    if partition is None:
        blank = Entry(
            reason=f"no partition into {' or '.join(map(str, PARTITION_SIZES))} clusters with seed 0",
            command="add the size in params.yaml, clusterings",
        )
        return Line(clustering, "", (blank, blank, blank))
    clusters = [partition.place[word] for word in COMMON_WORDS if word in partition.place]
    chance = expected_clusters(np.bincount(list(partition.place.values())), len(clusters))
    spread = len(set(clusters))
    about = f"of {partition.path}: {len(clusters)} of the {len(COMMON_WORDS)} common words are in its vocabulary"
    texts = ((str(partition.size), partition.size), (str(spread), spread), (f"{chance:.1f}", chance))
    entries = tuple(Entry(text, float(value), about=about) for text, value in texts)
    return Line(clustering, _vectors_of(partition), entries)


def _vectors_of(partition: Partition) -> str:
    return describe_vectors(partition.vectors) if partition.vectors else ""


def expected_clusters(sizes: npt.NDArray[np.integer[Any]], words: int) -> float:
    """Mean number of clusters that hold one of `words` words, if n words are dealt at random into these sizes.

    sum_k 1 - C(n - s_k, m) / C(n, m), by linearity of the mean.
    """
    n = int(sizes.sum())
    missed = [
        np.exp(_log_binomial(n - int(size), words) - _log_binomial(n, words)) if n - size >= words else 0.0
        for size in sizes
    ]
    return float(len(sizes) - sum(missed))


def _log_binomial(n: int, m: int) -> float:
    return lgamma(n + 1) - lgamma(m + 1) - lgamma(n - m + 1)


# --- speed --------------------------------------------------------------------------------------

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
