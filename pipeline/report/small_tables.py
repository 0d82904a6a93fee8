"""Two small tables: the hyperboloid paper's three cosines, and LASE's common words in clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.artifacts import read_table
from pipeline.report.entries import printed_entry
from pipeline.report.grid import Entry, Group, Head, Line, Panel, Table
from pipeline.report.notes import no_smallest
from pipeline.report.published import select
from pipeline.report.results import Results
from pipeline.report.words import COMMON_WORDS, expected_clusters
from pipeline.suite import Suite
from pipeline.words.paths import CLUSTER_COLUMNS, clusters_path, partition_name

# The thesis's figures and its table have 4 clusters; S3E's and VLAWE's own smallest numbers stand in where not.
SIZES = (4, 10)
# Table 4.1 of the thesis: of its 4 clusters, those that hold one of the common words.
PRINTED_SPREAD = {"k-means": 3, "Gaussian mixture": 2, "spectral": 2}

SINGLE = no_smallest("these are cosines of single pairs, and nothing is resampled; they agree with the print or do not")
COUNTED = no_smallest("these are counts of one partition of the words, and nothing is resampled")


def example_table(results: Results, referees: Mapping[str, str]) -> Table | None:
    """Cosines of single pairs beside the printed ones, in each way of writing them."""
    for corpus, encoder in referees.items():
        if corpus not in results.suite.corpora or encoder not in results.suite.encoders:
            continue
        pairs = results.facts(encoder, corpus).get("pairs", [])
        variants = list(dict.fromkeys(pair["variant"] for pair in pairs))
        figures = select("hyperboloid", "1")
        heads = tuple(Head(figure.model, corpus, "cosine", "cosine") for figure in figures)
        lines = tuple(_cosine_line(corpus, encoder, variant, pairs) for variant in variants)
        printed = Line("all-MiniLM-L6-v2", "", tuple(printed_entry(figure) for figure in figures))
        groups = (Group("Measured here", False, lines), Group("Printed in Hyperboloid, table 1", True, (printed,)))
        shows = tuple(_agreement(line, printed) for line in lines)
        panel = Panel("Cosine to “That is a happy person.”", "cosine of single pairs", heads, groups, shows, (SINGLE,))
        about = "The paper motivates itself by three cosines of an encoder that can be run here."
        return Table("hyperboloid-1", "Hyperboloid 1: Three cosines", about, (panel,))
    return None


def _cosine_line(corpus: str, encoder: str, variant: str, pairs: Sequence[Mapping[str, Any]]) -> Line:
    about = f"cosine in {encoder}, pairs written {variant}, corpus {corpus}"
    cosines = [float(pair["cosine"]) for pair in pairs if pair["variant"] == variant]
    of = (f"{encoder}/{corpus}",)
    entries = tuple(Entry(f"{cosine:.3f}", cosine, about=about, of=of) for cosine in cosines)
    return Line(f"{encoder}, {variant}", "all-MiniLM-L6-v2", entries)


def _agreement(line: Line, printed: Line) -> str:
    pairs = zip(line.entries, printed.entries, strict=True)
    same = sum(ours.text == theirs.text for ours, theirs in pairs)
    return f"{line.name}: {same} of {len(line.entries)} cosines are the printed ones to the last digit."


def cluster_table(suite: Suite) -> Table:
    """LASE's table 4.1 as numbers: over how many clusters the common words are spread, and what chance would give."""
    heads = (
        Head("clusters", "", "clusters of the partition", "count"),
        Head("with a common word", "", "clusters that hold a common word", "count"),
        Head("random partition", "", "clusters expected of a random partition of these sizes", "count"),
    )
    lines = [_cluster_line(suite, clustering) for clustering in suite.makers.clusterings]
    printed = [
        Line(name, "", (_counted(4), _counted(spread), Entry(reason="not printed")))
        for name, spread in PRINTED_SPREAD.items()
    ]
    groups = (
        Group(f"Measured here, suite {suite.suite}", False, tuple(lines)),
        Group("Printed in LASE, table 4.1", True, tuple(printed)),
    )
    found = [line for line in lines if line.entries[1].value is not None]
    shows = tuple(
        f"{line.name}: common words lie in {line.entries[1].text} of {line.entries[0].text} clusters; "
        f"chance would put them in {line.entries[2].text}."
        for line in found
    )
    about = (
        f"Where the eleven words that the thesis picked ({', '.join(COMMON_WORDS)}) go. It reads fewer clusters as a "
        "common-discourse cluster; the last column is what words dealt at random into clusters of the same sizes do."
    )
    panel = Panel("Spread of common words over clusters", "counts", heads, groups, shows, (COUNTED,))
    return Table("lase-4.1", "LASE 4.1: Common words in clusters", about, (panel, *_which_words(suite)))


def _counted(number: int) -> Entry:
    return Entry(str(number), number, about="counted in table 4.1 of the thesis, which prints the words")


@dataclass(frozen=True)
class Partition:
    """The smallest partition of a clustering that the suite has: its file, its number of clusters, each word's."""

    path: Path
    size: int
    place: dict[str, int]

    @property
    def groups(self) -> list[list[str]]:
        """The common words by the cluster that holds them, the largest group first."""
        held: dict[int, list[str]] = {}
        for word in COMMON_WORDS:
            if word in self.place:
                held.setdefault(self.place[word], []).append(word)
        return sorted(held.values(), key=len, reverse=True)


def _partition(suite: Suite, clustering: str) -> Partition | None:
    for size in SIZES:
        path = clusters_path(suite.suite, clustering, partition_name(size, 0), "clusters")
        if path.exists():
            table = read_table(path, kind="clusters", columns=CLUSTER_COLUMNS).to_pydict()
            return Partition(path, size, dict(zip(table["word"], table["cluster"], strict=True)))
    return None


def _which_words(suite: Suite) -> list[Panel]:
    """Which of the common words share a cluster, as the thesis prints them; nothing without a partition."""
    lines = []
    for clustering in suite.makers.clusterings:
        found = _partition(suite, clustering)
        if found is not None:
            text = " | ".join(" ".join(group) for group in found.groups)
            lines.append(Line(clustering, "WordLlama", (Entry(text, about=f"of {found.path}"),)))
    if not lines:
        return []
    heads = (Head("common words by cluster", "", "words that share a cluster; a bar parts clusters", "words"),)
    group = Group(f"Measured here, suite {suite.suite}", False, tuple(lines))
    return [Panel("Common words that share a cluster", "words; a bar parts clusters", heads, (group,), (), (COUNTED,))]


def _cluster_line(suite: Suite, clustering: str) -> Line:
    found = _partition(suite, clustering)
    if found is not None:
        held = [found.place[word] for word in COMMON_WORDS if word in found.place]
        chance = expected_clusters(np.bincount(list(found.place.values())), len(held))
        spread = len(set(held))
        about = f"of {found.path}: {len(held)} of the {len(COMMON_WORDS)} common words are in its vocabulary"
        texts = ((str(found.size), found.size), (str(spread), spread), (f"{chance:.1f}", chance))
        entries = tuple(Entry(text, float(value), about=about) for text, value in texts)
        return Line(clustering, "WordLlama", entries)
    blank = Entry(
        reason=f"no partition into {' or '.join(map(str, SIZES))} clusters with seed 0",
        command="add the size in params.yaml, clusterings",
    )
    return Line(clustering, "WordLlama", (blank, blank, blank))
