"""Figure: two spaces of one corpus as maps, coloured by label, with the share of neighbourhoods that each keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from pipeline.artifacts import absence, corpus_path, read_table, read_vectors, space_path
from pipeline.report.figures import GRID, MUTED, STYLE, WIDTH, head_figure, look_of
from pipeline.suite import Suite

CORPORA = ("trec", "subj", "polarity", "mr")  # the first of them that the suite has is drawn
SAMPLE = 700  # sentences drawn, evenly spread over the rows: more would be a blot
# What a label stands for, by corpus, as the catalogue numbers them: an artifact keeps the numbers alone. TREC's six
# coarse classes are those of Li & Roth 2002, Learning Question Classifiers.
CLASSES = {
    "trec": (
        "ABBR (abbreviation)", "DESC (description)", "ENTY (entity)", "HUM (human)", "LOC (location)",
        "NUM (numeric value)",
    ),
    "subj": ("subjective", "objective"),
    "polarity": ("negative", "positive"),
    "mr": ("negative", "positive"),
}  # fmt: skip
NEIGHBORS = 12  # of the graph whose shortest paths the map keeps

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SpaceMap:
    """A space in the plane. places: (n, 2) in [0, 100]; labels: (n,); kept: trustworthiness of 12 neighbours."""

    space: str
    corpus: str
    places: Floats
    labels: npt.NDArray[np.int64]
    kept: float


def map_spaces(suite: Suite, spaces: tuple[str, ...]) -> list[SpaceMap]:
    """Maps of these spaces on the first corpus of CORPORA that the suite holds; [] if it holds none."""
    named = [space for space in spaces if space in suite.spaces]
    for corpus in CORPORA:
        if (
            corpus in suite.corpora
            and named
            and absence(space_path(suite.suite, named[0], corpus), kind="vectors") is None
        ):
            return [map_space(suite, space, corpus) for space in named]
    return []


def map_space(suite: Suite, space: str, corpus: str) -> SpaceMap:
    """One space by Isomap, which keeps shortest paths through neighbours.

    It is a fixed sequence of linear algebra: a small change of the vectors changes the map by little, where
    t-SNE and UMAP would draw another picture on another processor.
    """
    from sklearn.manifold import Isomap, trustworthiness

    items = read_table(corpus_path(suite.suite, corpus, "items"), kind="items.classification").to_pydict()
    rows, labels = np.array(items["row"]), np.array(items["label"], dtype=np.int64)
    _, first = np.unique(rows, return_index=True)  # a text twice would be a neighbour at no distance
    chosen = first[np.unique(np.linspace(0, len(first) - 1, SAMPLE).astype(np.int64))]
    x = read_vectors(space_path(suite.suite, space, corpus))[rows[chosen]].astype(np.float64)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    with threadpool_limits(1):
        places = Isomap(n_neighbors=NEIGHBORS, n_components=2, eigen_solver="dense").fit_transform(x)
        kept = float(trustworthiness(x, places, n_neighbors=NEIGHBORS))
    return SpaceMap(space, corpus, _canonical(places), labels[chosen], round(kept, 2))


def _canonical(places: Any) -> Floats:
    """The map in a square of 100, each axis turned so that its largest value is positive, to a tenth."""
    turned = places * np.sign(places[np.argmax(np.abs(places), axis=0), range(2)])
    centred = turned - (turned.max(axis=0) + turned.min(axis=0)) / 2
    rounded: Floats = np.round(50 + 50 * centred / np.abs(centred).max(), 1)
    return rounded


def draw_maps(maps: list[SpaceMap], title: str, subtitle: str) -> Figure:
    """The maps side by side, each label in a colour and a shape of its own."""
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(WIDTH, WIDTH / len(maps) + 1.4), layout="constrained")
        panels: Any = figure.subplots(1, len(maps), squeeze=False)
        for axes, drawn in zip(panels[0], maps, strict=True):
            for i, label in enumerate(np.unique(drawn.labels).tolist()):
                at, look = drawn.places[drawn.labels == label], look_of(i)
                axes.plot(
                    at[:, 0], at[:, 1], linestyle="none", markersize=4.5, alpha=0.75,
                    label=class_name(drawn.corpus, label), **look.mark(),
                )  # fmt: skip
            axes.set_title(f"{drawn.space}", loc="left", fontsize=10.5, fontweight="bold")
            axes.set_xlabel(f"trustworthiness {drawn.kept:.2f}", color=MUTED)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_xlim(-3, 103)
            axes.set_ylim(-3, 103)
            axes.set_aspect("equal")
            for side in axes.spines.values():
                side.set_color(GRID)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, frameon=False, loc="outside lower left", ncols=3, markerscale=1.6, handletextpad=0.2
        )
        head_figure(figure, title, subtitle)
    return figure


def class_name(corpus: str, label: int) -> str:
    """What a label of a corpus stands for, or its number where that is not known."""
    names = CLASSES.get(corpus, ())
    return names[label] if 0 <= label < len(names) else str(label)
