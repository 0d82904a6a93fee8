"""Tables of the papers that hold no scores: three cosines, and common words in clusters of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lgamma
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.papers.published import PRINTED_SPREAD, SPREAD, SPREAD_CLUSTERS, select
from pipeline.report.entries import printed_entry
from pipeline.report.evidence import Evidence, Partition
from pipeline.report.inputs import PARTITION_SIZES
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
        Line(name, "", (_counted(SPREAD_CLUSTERS), _counted(spread), Entry(reason="not printed")))
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
    return Table(SPREAD, "LASE 4.1: Common words in clusters", about, (panel,))


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
