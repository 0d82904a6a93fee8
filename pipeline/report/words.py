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


def draw_similarity_maps(
    sentences: Sequence[str], similarities: Mapping[str, Floats], title: str, subtitle: str
) -> Figure:
    """Cosines of all pairs of a few sentences as heat maps, each number in its cell (LASE figure 4.1).

    similarities  name of a map -> (n, n); below zero, if there is any, in a second colour
    """
    n = len(sentences)
    lowest = min(float(np.min(similarity)) for similarity in similarities.values())
    across = min(3, len(similarities))
    down = -(-len(similarities) // across)
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(max(5.2, 2.4 + 0.62 * n * across), 1.2 + down * (0.7 + 0.5 * n)), layout="constrained")
        panels: Any = figure.subplots(down, across, squeeze=False, sharey=True)
        for place, axes in enumerate(panels.flat):
            axes.set_visible(place < len(similarities))
        for axes, (name, similarity) in zip(panels.flat, similarities.items(), strict=False):
            # Drawn as cells and not as an image: the page's policy lets no image in, be it inside the page itself.
            edges = np.arange(n + 1) - 0.5
            colours = {"cmap": _COLD if lowest < 0 else _WARM, "vmin": -1 if lowest < 0 else 0, "vmax": 1}
            axes.pcolormesh(edges, edges, similarity, **colours)
            axes.set_ylim(n - 0.5, -0.5)
            for row, column in np.ndindex(n, n):
                value = float(similarity[row, column])
                colour = "white" if abs(value) > 0.7 else INK
                axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=9, color=colour)
            axes.set_xticks(range(n), [str(i + 1) for i in range(n)])
            axes.set_yticks(range(n), [f"{sentence}  {i + 1}" for i, sentence in enumerate(sentences)])
            axes.tick_params(length=0)
            for side in axes.spines.values():
                side.set_visible(False)
            axes.set_title(name, loc="left", fontsize=10)
        _set_figure_title(figure, title, subtitle)
    return figure


# --- figure 4.2 ---------------------------------------------------------------------------------


def draw_cluster_distributions(views: Sequence[ClusterView], title: str, subtitle: str) -> Figure:
    """Per clustering: Zipf's law inside each cluster, and the values of its word vectors (LASE figure 4.2).

    Above, the logarithm of a word's count against the logarithm of its rank inside its cluster; below, how
    often each value occurs in the vectors of a cluster's words. The largest clusters have colours and marks of their
    own, from large to small; the others are grey.
    """
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(max(8.0, 2.5 * len(views) + 0.6), 5.8), layout="constrained")
        panels: Any = figure.subplots(2, len(views), squeeze=False, sharey="row")
        for column, view in enumerate(views):
            looks = _looks_by_size(view.labels)
            sizes = np.bincount(view.labels)
            above, below = panels[0][column], panels[1][column]
            curves, histograms = zipf_curves(view), value_histograms(view)
            for cluster in sorted(curves, key=lambda cluster: -len(curves[cluster][0])):
                look = looks[cluster]
                ranks, counts = curves[cluster]
                above.loglog(
                    ranks,
                    counts,
                    marker=look.marker,
                    # At even distances on the logarithmic axis: thousands of marks would be a blot.
                    markevery=_even_places(len(ranks)),
                    linestyle=look.line,
                    color=look.colour,
                    markersize=5,
                    linewidth=1.3,
                    label=f"{sizes[cluster]:,} words",
                )
                if cluster in histograms:
                    edges, heights = histograms[cluster]
                    below.stairs(heights, edges, baseline=None, color=look.colour, linestyle=look.line, linewidth=1.4)
            above.set_title(view.title, loc="left", fontsize=10)
            above.set_xlabel("rank inside the cluster")
            below.set_xlabel("value in a word vector")
            if histograms:
                below.set_yscale("log")
            above.legend(frameon=False, fontsize=8, loc="upper right", handlelength=2.6, borderaxespad=0.1)
            for axes in (above, below):
                _plain(axes)
        panels[0][0].set_ylabel("occurrences of the word")
        panels[1][0].set_ylabel("number of values")
        _set_figure_title(figure, title, subtitle)
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
        figure = Figure(
            figsize=(max(6.4, 2.7 * len(embeddings) + 0.6), 1.3 + 1.6 * len(sentences)), layout="constrained"
        )
        panels: Any = figure.subplots(len(sentences), len(embeddings), squeeze=False, sharex="col", sharey=True)
        for column, (name, vectors) in enumerate(embeddings.items()):
            for row, sentence in enumerate(sentences):
                axes = panels[row][column]
                values = np.asarray(vectors)[row]
                axes.vlines(np.arange(len(values)), 0, values, color=COLOURS[0], linewidth=0.7)
                axes.axhline(0, color=MUTED, linewidth=0.6)
                if row == 0:
                    axes.set_title(name, loc="left", fontsize=10)
                if column == 0:
                    axes.set_ylabel(sentence, fontsize=9)
                _plain(axes)
            panels[-1][column].set_xlabel("dimension")
        _set_figure_title(figure, title, subtitle)
    return figure


# --- table 4.1 ----------------------------------------------------------------------------------


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


@dataclass(frozen=True)
class _Look:
    """How a cluster is drawn: told apart by mark and line where colours are not seen."""

    colour: str
    marker: str
    line: str


# Dark and light by turns, for print in greys.
_LOOKS = (
    _Look("#7c2d12", "o", "-"),
    _Look("#0e9f8f", "s", "--"),
    _Look("#3b1d8f", "^", "-."),
    _Look("#e0a100", "D", ":"),
    _Look("#1d4ed8", "v", "-"),
)
_OTHER = _Look(MUTED, "", "-")


def _looks_by_size(labels: Integers) -> dict[int, _Look]:
    """A look for each of the five largest clusters, the same grey for the others."""
    clusters, sizes = np.unique(labels, return_counts=True)
    order = clusters[np.argsort(-sizes, kind="stable")].tolist()
    return {cluster: _LOOKS[i] if i < len(_LOOKS) else _OTHER for i, cluster in enumerate(order)}


def _even_places(n: int) -> list[int]:
    """About eight of n places, even by their logarithms, the first and the last among them."""
    return sorted({round(float(place)) - 1 for place in np.geomspace(1, n, 8)})


def _plain(axes: Axes) -> None:
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _set_figure_title(figure: Figure, title: str, subtitle: str) -> None:
    figure.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    # In points below the title, whatever the figure's height.
    figure.texts[-1].set_y(1 - 0.02)
    figure.text(
        0.01, 1 - 0.02 - 17 / 72 / figure.get_figheight(), subtitle, color=MUTED, fontsize=9, va="top", ha="left"
    )
