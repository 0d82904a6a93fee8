"""Figures and the table about clusters of words: what they show, from partitions made by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from pipeline.report.figures import figure_bytes
from pipeline.report.words import (
    ClusterView,
    draw_cluster_distributions,
    draw_embedding_values,
    draw_similarity_maps,
    expected_clusters,
    value_histograms,
    zipf_curves,
)

WORDS = ("the", "a", "of", "dog", "cat", "snow", "bread")
COUNTS = np.array([40, 20, 30, 3, 2, 5, 1])
RNG = np.random.default_rng(0)
VECTORS = RNG.standard_normal((7, 10))


def view(labels: list[int], title: str = "by hand") -> ClusterView:
    return ClusterView(title, WORDS, np.array(labels), COUNTS, VECTORS)


def check_drawing(draw: Callable[[], Figure]) -> Figure:
    """Two drawings have the same bytes, and an SVG is well formed and all lines; returns a figure."""
    for kind in ("svg", "png"):
        first, second = (figure_bytes(draw(), kind) for _ in range(2))
        assert first == second
    drawing = figure_bytes(draw(), "svg")
    ElementTree.fromstring(drawing)
    assert b"<image" not in drawing  # the page's policy would block it
    return draw()


def test_inside_a_cluster_words_are_ranked_by_their_counts() -> None:
    curves = zipf_curves(view([0, 0, 1, 0, 1, 3, 3]))
    assert {cluster: counts.tolist() for cluster, (_, counts) in curves.items()} == {
        0: [40, 20, 3],
        1: [30, 2],
        3: [5, 1],
    }
    assert curves[0][0].tolist() == [1, 2, 3]


def test_values_of_a_cluster_are_those_of_its_words_in_bins_shared_by_all() -> None:
    histograms = value_histograms(view([0, 0, 0, 0, 0, 0, 2]), bins=10)
    assert set(histograms) == {0, 2}
    edges, counts = histograms[2]
    np.testing.assert_array_equal(edges, histograms[0][0])
    np.testing.assert_array_equal(counts, np.histogram(VECTORS[6], edges)[0])
    # Of 70 values only the two outermost may fall outside.
    assert 68 <= counts.sum() + histograms[0][1].sum() <= 70
    assert value_histograms(ClusterView("none", WORDS, np.zeros(7, dtype=int), COUNTS)) == {}


@pytest.mark.parametrize(("sizes", "words"), [([3, 2, 2], 3), ([5, 1, 1], 2), ([7], 4), ([4, 3], 7), ([2, 5, 0], 0)])
def test_the_expected_number_of_clusters_is_the_mean_over_all_choices(sizes: list[int], words: int) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    drawn = [len(set(labels[list(choice)].tolist())) for choice in combinations(range(7), words)]
    assert expected_clusters(np.array(sizes), words) == pytest.approx(np.mean(drawn), abs=1e-9)


def test_similarity_maps_show_every_number_and_sentence() -> None:
    sentences = ["How old are you", "What is your age", "My phone is good"]
    one = np.array([[1, 0.81, -0.12], [0.81, 1, 0.07], [-0.12, 0.07, 1]])
    maps = {"one": one, "two": np.eye(3), "three": np.eye(3), "four": np.eye(3)}
    figure = check_drawing(lambda: draw_similarity_maps(sentences, maps, "A title", "beneath it"))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == list(maps)
    texts = [text.get_text() for text in shown[0].texts]
    assert texts.count("0.81") == 2 and texts.count("-0.12") == 2 and texts.count("1.00") == 3
    labels = [label.get_text() for label in shown[0].get_yticklabels()]
    assert all(sentence in label for sentence, label in zip(sentences, labels, strict=True))
    assert {text.get_text().strip() for text in figure.texts} == {"A title", "beneath it"}


def test_distributions_have_a_curve_and_a_histogram_for_every_cluster_of_every_clustering() -> None:
    views = [view([0, 0, 1, 0, 1, 2, 2], "one"), view([0, 1, 2, 3, 4, 5, 6], "two")]
    figure = check_drawing(lambda: draw_cluster_distributions(views, "A title", "beneath it"))
    upper, lower = figure.axes[:2], figure.axes[2:]
    assert [len(axes.lines) for axes in upper] == [3, 7]
    assert [len(axes.patches) for axes in lower] == [3, 7]
    assert [axes.get_title(loc="left") for axes in upper] == ["one", "two"]
    assert all(axes.get_xscale() == axes.get_yscale() == "log" for axes in upper)
    # Five looks, told apart by mark and line where colours are not seen, and one for all further clusters.
    assert len({line.get_color() for line in upper[1].lines}) == 6
    assert len({(line.get_marker(), line.get_linestyle()) for line in upper[1].lines}) == 6
    # The legend says how large each cluster is, the largest first.
    legend = upper[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["3 words", "2 words", "2 words"]


def test_values_of_embeddings_stand_in_one_panel_per_sentence_and_encoder() -> None:
    embeddings = {"kmeans": RNG.standard_normal((2, 30)), "mixture": RNG.standard_normal((2, 12))}
    sentences = ["What is your age", "How old are you"]
    figure = check_drawing(lambda: draw_embedding_values(sentences, embeddings, "A title", "beneath it"))
    panels = np.array(figure.axes, dtype=object).reshape(2, 2)
    for row, column in np.ndindex(2, 2):
        name = list(embeddings)[column]
        (drawn,) = panels[row, column].collections
        np.testing.assert_allclose([segment[1][1] for segment in drawn.get_segments()], embeddings[name][row])
    assert [axes.get_ylabel() for axes in panels[:, 0]] == sentences
