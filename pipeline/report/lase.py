"""What the LASE thesis shows of its clusters, for the clusterings and LASE spaces of a suite, with their controls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from pipeline.encoders.encode import WordEncoderParameters, load_lexicon
from pipeline.encoders.protocol import find_method
from pipeline.params import load_parameters
from pipeline.report.words import (
    ClusterView,
    draw_cluster_distributions,
    draw_embedding_values,
    draw_similarity_maps,
)
from pipeline.suite import Suite
from pipeline.words.clustering_parameters import ClusteringParameters
from pipeline.words.load import load_clusters, load_counts, load_vectors

# Those of the thesis: the first two mean the same, and the last two.
SENTENCES = ("How old are you", "What is your age", "My phone is good", "Your cellphone looks great")
# Number of clusters in the thesis's figure 4.2 and table 4.1.
FEW = 4
NAMES = {"kmeans": "k-means", "mixture": "Gaussian mixture", "spectral": "spectral", "blurred": "spectral as released"}


@dataclass(frozen=True)
class LaseSpace:
    """Vectors of SENTENCES in one LASE space of the suite, (n, d), and how its words were clustered.

    control  of the clusters, or ""
    """

    title: str
    control: str
    vectors: npt.NDArray[np.float32]


def draw_clusters(suite: Suite) -> dict[str, Figure]:
    """File name -> figure; none for a suite without the clusterings or the spaces that they show."""
    figures = {}
    views, spaces = list(cluster_views(suite)), list(lase_spaces(suite))
    if spaces:
        figures["lase-similarity"] = draw_similarity_maps(
            SENTENCES,
            {space.title: cosine_matrix(space.vectors) for space in spaces},
            "Cosines of the LASE thesis's four sentences",
            "1 and 2 mean the same, and so do 3 and 4; words are WordLlama's",
        )
        shown = [space for space in spaces if space.control != "frequency"]
        figures["lase-values"] = draw_embedding_values(
            SENTENCES[:2],
            {space.title: space.vectors for space in shown},
            "Values of two sentences of one meaning, by clustering",
            "entries of the covariance part, after the signed root",
        )
    if views:
        figures["lase-clusters"] = draw_cluster_distributions(
            views,
            f"Words in {FEW} clusters: Zipf's law inside each, and the values of its vectors",
            "clusters from the largest to the smallest; vectors are WordLlama's, levelled",
        )
    return figures


def cluster_section(suite: Suite) -> str:
    """The part of the report that shows the figures; "" where there is nothing."""
    views = list(cluster_views(suite))
    if not views:
        return ""
    parts = [
        "## Clusters of words, as the LASE thesis shows them\n",
        "Where the common words go, beside what chance would do: [table 4.1](tables/lase-4.1.md).\n",
        f"![Zipf's law and values of vectors in {FEW} clusters](figures/lase-clusters.svg)\n",
    ]
    if list(lase_encoders(suite)):
        parts += [
            "![Cosines of four sentences](figures/lase-similarity.svg)\n",
            "![Values of two sentences of one meaning](figures/lase-values.svg)\n",
        ]
    return "\n".join(parts)


def cluster_views(suite: Suite) -> Iterator[ClusterView]:
    """Each clustering of the suite that has FEW clusters, then the controls of the first one."""
    controls: list[ClusterView] = []
    for name in suite.makers.clusterings:
        parameters = load_parameters(ClusteringParameters, f"clusterings.{name}")
        if FEW not in parameters.sizes:
            continue
        title = NAMES[parameters.method]
        yield _view(suite, name, parameters, title, None)
        if not controls:
            controls = [
                _view(suite, name, parameters, f"{control}, sizes of {title}", control)
                for control in parameters.controls
            ]
    yield from controls


def _view(suite: Suite, name: str, parameters: ClusteringParameters, title: str, control: str | None) -> ClusterView:
    words, vectors = load_vectors(suite.suite, parameters.vectors, parameters.tokenizer)
    found = load_clusters(suite.suite, name, size=FEW, seed=parameters.seeds[0], control=control)
    counts = load_counts(suite.suite, parameters.tokenizer, "own").of(words)
    return ClusterView(title, words, found.labels_of(words), counts, vectors)


def lase_encoders(suite: Suite) -> Iterator[tuple[str, WordEncoderParameters]]:
    """The word encoders of the suite that follow the thesis's text; what its code learns has no part in it."""
    for name in suite.word_encoders:
        parameters = load_parameters(WordEncoderParameters, f"word_encoders.{name}")
        if parameters.method == "lase" and parameters.settings.get("variant", "published") == "published":
            yield name, parameters


def lase_spaces(suite: Suite) -> Iterator[LaseSpace]:
    """SENTENCES in every LASE space of the suite, controls last; a word that the suite lacks goes by its pieces."""
    found = []
    for name, parameters in lase_encoders(suite):
        choice = parameters.clusters
        if choice is None:
            continue
        method = load_parameters(ClusteringParameters, f"clusterings.{choice.clustering}").method
        encoder = find_method(parameters.method).build(
            load_lexicon(suite.suite, parameters), parameters.method_settings(name)
        )
        control = choice.control or ""
        title = f"{control}, sizes of {NAMES[method]}" if control else NAMES[method]
        found.append(LaseSpace(title, control, encoder.fit(SENTENCES).encode(SENTENCES).vectors))
    yield from sorted(found, key=lambda space: bool(space.control))


def cosine_matrix(vectors: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """(n, n) cosines of all pairs of rows; 0 beside a zero row."""
    x = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    unit = x / np.where(lengths > 0, lengths, 1.0)
    cosines: npt.NDArray[np.float64] = unit @ unit.T
    return cosines
