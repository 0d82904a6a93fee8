"""Figures and a table about clusters of words: figures 4.1, 4.2 and 4.5 and table 4.1 of the LASE thesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lgamma
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from pipeline.report.figures import COLOURS, GRID, INK, MUTED, STYLE

Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.integer[Any]]

# The words that the thesis picked for table 4.1.
COMMON_WORDS = ("the", "a", "an", "and", "or", "of", "for", "in", "on", "this", "with")

_WARM = LinearSegmentedColormap.from_list("sentfold", ["#ffffff", COLOURS[0]])
_COLD = LinearSegmentedColormap.from_list("sentfold-diverging", [COLOURS[1], "#ffffff", COLOURS[0]])


@dataclass(frozen=True)
class ClusterView:
    """One clustering of a vocabulary, as a panel or a column shows it.

    title    what it is called
    words    distinct
    labels   (v,) cluster of each word
    counts   (v,) occurrences of each word in the suite, positive
    vectors  (v, d), or None where no figure needs them
    """

    title: str
    words: tuple[str, ...]
    labels: Integers
    counts: Integers
    vectors: Floats | None = None


# --- figure 4.1 ---------------------------------------------------------------------------------


def draw_similarity_map(sentences: Sequence[str], similarity: Floats, title: str, subtitle: str) -> Figure:
    """Cosines of all pairs of a few sentences as a heat map, each number in its cell (LASE figure 4.1).

    similarity  (n, n); below zero, if there is any, in a second colour
    """
    n = len(sentences)
    lowest = float(np.min(similarity))
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(4.2 + 0.75 * n, 1.7 + 0.55 * n), layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(
            similarity, cmap=_COLD if lowest < 0 else _WARM, vmin=-1 if lowest < 0 else 0, vmax=1, aspect="auto"
        )
        for row in range(n):
            for column in range(n):
                value = float(similarity[row, column])
                colour = "white" if abs(value) > 0.7 else INK
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=9, color=colour)
        axes.set_xticks(range(n), [str(i + 1) for i in range(n)])
        axes.set_yticks(range(n), [f"{sentence}  {i + 1}" for i, sentence in enumerate(sentences)])
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        _set_title(axes, title, subtitle)
    return figure


# --- figure 4.2 ---------------------------------------------------------------------------------


def draw_cluster_distributions(views: Sequence[ClusterView], title: str) -> Figure:
    """Per clustering: Zipf's law inside each cluster, and the values of its word vectors (LASE figure 4.2).

    Above, the logarithm of a word's count against the logarithm of its rank inside its cluster; below, how
    often each value occurs in the vectors of a cluster's words. The five largest clusters have colours.
    """
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(3.3 * len(views) + 0.6, 5.6), layout="constrained")
        panels: Any = figure.subplots(2, len(views), squeeze=False, sharey="row")
        for column, view in enumerate(views):
            colours = _colours_by_size(view.labels)
            above, below = panels[0][column], panels[1][column]
            for cluster, (ranks, counts) in zipf_curves(view).items():
                above.loglog(
                    ranks, counts, "o-", markersize=2.5, linewidth=1, color=colours[cluster], label=f"{cluster}"
                )
            for cluster, (edges, counts) in value_histograms(view).items():
                below.stairs(counts, edges, color=colours[cluster], linewidth=1.4)
            above.set_title(view.title, loc="left", fontsize=10.5, fontweight="bold")
            above.set_xlabel("rank inside the cluster")
            below.set_xlabel("value in a word vector")
            for axes in (above, below):
                _plain(axes)
        panels[0][0].set_ylabel("occurrences of the word")
        panels[1][0].set_ylabel("number of values")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    return figure


def zipf_curves(view: ClusterView) -> dict[int, tuple[Integers, Integers]]:
    """cluster -> ranks 1.. and the counts of its words, most frequent first; empty clusters have none."""
    curves: dict[int, tuple[Integers, Integers]] = {}
    for cluster in np.unique(view.labels).tolist():
        counts = np.sort(view.counts[view.labels == cluster])[::-1]
        curves[cluster] = (np.arange(1, len(counts) + 1), counts)
    return curves


def value_histograms(view: ClusterView, *, bins: int = 80) -> dict[int, tuple[Floats, Integers]]:
    """cluster -> bin edges, the same for all clusters, and how many values of its word vectors fall into each."""
    if view.vectors is None:
        return {}
    # The outermost values are few and would leave the others no room.
    low, high = np.quantile(view.vectors, [0.0005, 0.9995])
    edges = np.linspace(low, high if high > low else low + 1, bins + 1)
    return {
        cluster: (edges, np.histogram(view.vectors[view.labels == cluster], edges)[0])
        for cluster in np.unique(view.labels).tolist()
    }


# --- figure 4.5 ---------------------------------------------------------------------------------


def draw_embedding_values(
    sentences: Sequence[str], embeddings: Mapping[str, Floats], title: str, subtitle: str
) -> Figure:
    """The values of each sentence's vectors by several encoders, side by side (LASE figure 4.5).

    embeddings  encoder -> (n, d) vectors of these sentences, d its own
    """
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(8.2, 1.1 + 1.7 * len(sentences)), layout="constrained")
        panels: Any = figure.subplots(len(sentences), 1, squeeze=False, sharex=True, sharey=True)
        for row, sentence in enumerate(sentences):
            axes = panels[row][0]
            start = 0
            for i, (name, vectors) in enumerate(embeddings.items()):
                values = np.asarray(vectors)[row]
                places = np.arange(start, start + len(values))
                axes.vlines(places, 0, values, color=COLOURS[i % len(COLOURS)], linewidth=0.6, label=name)
                start += len(values)
            axes.set_ylabel("value")
            axes.text(0.995, 0.96, sentence, transform=axes.transAxes, ha="right", va="top", fontsize=9.5)
            _plain(axes)
        panels[-1][0].set_xlabel("dimension, the encoders one after the other")
        panels[0][0].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        _set_title(panels[0][0], title, subtitle)
    return figure


# --- table 4.1 ----------------------------------------------------------------------------------


def common_word_table(
    views: Sequence[ClusterView], words: Sequence[str] = COMMON_WORDS
) -> tuple[list[str], list[list[str]]]:
    """Which cluster each common word is in, per clustering (LASE table 4.1), and how far they spread.

    Returns column titles and rows: one per cluster that holds a common word in any clustering, "/" where it holds
    none; then the number of clusters that hold one, and the number expected if words were dealt at random
    into clusters of these sizes, which is what that number has to be compared with.
    """
    held = [_clusters_of(view, words) for view in views]
    clusters = sorted({cluster for places in held for cluster in places})
    rows = [
        [f"cluster {cluster}", *(", ".join(places.get(cluster, [])) or "/" for places in held)] for cluster in clusters
    ]
    found = [sum(len(members) for members in places.values()) for places in held]
    expected = [
        f"{expected_clusters(np.bincount(view.labels), number):.1f}" for view, number in zip(views, found, strict=True)
    ]
    rows.append(["clusters with a common word", *(str(len(places)) for places in held)])
    rows.append(["expected of a random partition", *expected])
    return ["", *(view.title for view in views)], rows


def _clusters_of(view: ClusterView, words: Sequence[str]) -> dict[int, list[str]]:
    place = {word: int(label) for word, label in zip(view.words, view.labels, strict=True)}
    held: dict[int, list[str]] = {}
    for word in words:
        if word in place:
            held.setdefault(place[word], []).append(word)
    return held


def expected_clusters(sizes: Integers, words: int) -> float:
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


# --- style --------------------------------------------------------------------------------------


def _colours_by_size(labels: Integers) -> dict[int, str]:
    """A colour for each of the five largest clusters, the same grey for the others."""
    clusters, sizes = np.unique(labels, return_counts=True)
    order = clusters[np.argsort(-sizes, kind="stable")].tolist()
    return {cluster: COLOURS[i] if i < len(COLOURS) else MUTED for i, cluster in enumerate(order)}


def _plain(axes: Axes) -> None:
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _set_title(axes: Axes, title: str, subtitle: str) -> None:
    axes.set_title(f"{title}\n", loc="left", fontsize=12.5, fontweight="bold")
    axes.text(0, 1.02, subtitle, transform=axes.transAxes, color=MUTED, fontsize=9, va="bottom")
