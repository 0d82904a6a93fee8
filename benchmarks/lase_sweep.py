"""LASE's score against its number of clusters, beside words dealt at random: the thesis's sweep of 5 to 100.

    python -m benchmarks.lase_sweep [--suite paper-mirror] [--out reports/benchmarks]

Reads the clusters of a suite that was run (`lase-kmeans`, `lase-spectral`) and scores the thesis's descriptor on the
development part of STSb, never on a test set: Spearman of cosines over all pairs, ×100. Nothing in params.yaml is
chosen by it. Controls: words dealt at random into clusters of the same sizes (mean and range of the seeds), blocks of
neighbouring frequency of the same sizes, and words dealt into clusters that are all equally likely, whatever any
clusterer found. Writes lase-sweep.json and .svg, and prints the table.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything loads a BLAS

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import style
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from pipeline.base.artifacts import corpus_path, read_table
from pipeline.base.params import load_parameters
from pipeline.stages.encode import WordEncoderParameters, load_lexicon
from pipeline.words.artifacts import load_clusters
from sentfold.clusterers.base import ClusteringParameters
from sentfold.encoders.base.lexicon import Clusters, Lexicon
from sentfold.encoders.base.protocol import find_method
from sentfold.measures.base.pairs import cosines
from sentfold.measures.similarity import score_similarity
from sentfold.report.drawing import GRID, MUTED, STYLE, figure_bytes
from sentfold.words.partition import Partition, frequency_partition, random_partition

CORPUS = "stsb-dev"
CLUSTERINGS = {"lase-kmeans": "k-means", "lase-spectral": "spectral"}
SMALLEST = 5
SEEDS = range(5)
HEADLINE = "spearman.all.cosine"


@dataclass(frozen=True, eq=False)
class Task:
    """The pairs to score, and the encoder whose words and settings are swept.

    block  of params.yaml: word_encoders
    """

    suite: str
    block: str

    @cached_property
    def texts(self) -> list[str]:
        """Distinct sentences."""
        texts: list[str] = read_table(corpus_path(self.suite, CORPUS, "sentences"), kind="sentences")[
            "text"
        ].to_pylist()
        return texts

    @cached_property
    def pairs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """(m, 2) rows of the sentences, and (m,) human scores."""
        items = read_table(corpus_path(self.suite, CORPUS, "items"), kind="items.similarity")
        rows = np.stack([np.asarray(items[name], dtype=np.int64) for name in ("row1", "row2")], axis=1)
        return rows, np.asarray(items["score"], dtype=np.float64)

    @cached_property
    def parameters(self) -> WordEncoderParameters:
        """Of the encoder."""
        return load_parameters(WordEncoderParameters, f"word_encoders.{self.block}")

    @cached_property
    def lexicon(self) -> Lexicon:
        """All words of the suite, most frequent first."""
        return load_lexicon(self.suite, self.parameters.model_copy(update={"clusters": None}))

    def score(self, labels: npt.NDArray[np.int32]) -> float:
        """×100, with the words in these clusters; their centroids are means, as the thesis has them."""
        settings = self.parameters.method_settings(self.block)
        settings = settings.model_copy(update={"centroid": "mean"})
        encoder = find_method("lase").build(replace(self.lexicon, clusters=Clusters(labels)), settings)
        rows, human = self.pairs
        cosine, _ = cosines(encoder.fit(self.texts).encode(self.texts).vectors, rows)
        return 100 * float(score_similarity({"cosine": cosine}, human, [""] * len(human))[HEADLINE] or 0)


def sweep(task: Task) -> Iterator[dict[str, Any]]:
    """One row per clusterer and number of clusters; lists hold a score for each seed."""
    for clustering, name in CLUSTERINGS.items():
        parameters = load_parameters(ClusteringParameters, f"clusterings.{clustering}")
        for size in parameters.sizes:
            if size < SMALLEST:
                continue
            found = load_clusters(task.suite, clustering, size=size, seed=parameters.seeds[0])
            partition = Partition(found.labels_of(task.lexicon.words), size)
            frequency = frequency_partition(partition, np.arange(len(partition.labels)))
            yield {
                "clusterer": name,
                "clusters": size,
                "found": round(task.score(partition.labels), 2),
                "frequency": round(task.score(frequency.labels), 2),
                "largest_share": round(float(np.bincount(partition.labels).max() / len(partition.labels)), 3),
                "random": [round(task.score(random_partition(partition, seed=seed).labels), 2) for seed in SEEDS],
            }


def sweep_equal(task: Task, sizes: list[int]) -> Iterator[dict[str, Any]]:
    """Every word in any cluster with the same chance."""
    words = len(task.lexicon.words)
    for size in sizes:
        labels = [np.random.default_rng(seed).integers(0, size, words).astype(np.int32) for seed in SEEDS]
        yield {
            "clusterer": "none",
            "clusters": size,
            "random": [round(task.score(each), 2) for each in labels],
        }


def describe(row: dict[str, Any]) -> str:
    """A line of the table."""
    dealt = f"{np.mean(row['random']):6.2f} [{min(row['random']):.2f}, {max(row['random']):.2f}]"
    if "found" not in row:
        return f"{'equally likely':10} {row['clusters']:4}  random {dealt}"
    return (
        f"{row['clusterer']:10} {row['clusters']:4}  found {row['found']:6.2f}  random of its sizes {dealt}  "
        f"frequency {row['frequency']:6.2f}  largest cluster {row['largest_share']:.0%}"
    )


def draw(rows: list[dict[str, Any]]) -> Figure:
    """A panel per clusterer: its score, its controls' and that of clusters of like size, against their number."""
    equal = [row for row in rows if row["clusterer"] == "none"]
    with style.context(["default", STYLE]):
        figure = Figure(figsize=(8.6, 4.1), layout="constrained")
        panels: Any = figure.subplots(1, len(CLUSTERINGS), sharey=True, squeeze=False)[0]
        for axes, name in zip(panels, CLUSTERINGS.values(), strict=True):
            own = [row for row in rows if row["clusterer"] == name]
            _line(axes, own, "found", "o-", "#7c2d12", f"{name} clusters")
            _band(axes, own, "s--", "#0e9f8f", "dealt at random, same sizes")
            _line(axes, own, "frequency", "^-.", "#3b1d8f", "blocks of frequency, same sizes")
            _band(axes, equal, "D:", "#e0a100", "dealt at random, like sizes")
            axes.set_title(name, loc="left", fontsize=10)
            axes.set_xlabel("clusters")
            axes.grid(color=GRID, linewidth=0.8)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        panels[0].set_ylabel("Spearman, STSb dev, ×100")
        handles, labels = panels[0].get_legend_handles_labels()
        labels[0] = "clusters found"
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8.5)
        figure.suptitle("LASE against its number of clusters", x=0.01, ha="left", fontsize=12.5, fontweight="bold")
        figure.text(
            0.99, 0.985, "words are WordLlama's; bands: range of seeds", color=MUTED, fontsize=9, ha="right", va="top"
        )
    return figure


def _line(axes: Any, rows: list[dict[str, Any]], key: str, look: str, colour: str, label: str) -> None:
    axes.plot(
        [row["clusters"] for row in rows],
        [row[key] for row in rows],
        look,
        color=colour,
        markersize=4.5,
        linewidth=1.4,
        label=label,
    )


def _band(axes: Any, rows: list[dict[str, Any]], look: str, colour: str, label: str) -> None:
    places, scores = [row["clusters"] for row in rows], np.array([row["random"] for row in rows])
    axes.fill_between(places, scores.min(axis=1), scores.max(axis=1), color=colour, alpha=0.18, linewidth=0)
    axes.plot(places, scores.mean(axis=1), look, color=colour, markersize=4, linewidth=1.4, label=label)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="paper-mirror")
    parser.add_argument("--encoder", default="wl-lase", help="a block of word_encoders whose method is lase")
    parser.add_argument("--out", type=Path, default=Path("reports/benchmarks"))
    arguments = parser.parse_args()
    task, rows = Task(arguments.suite, arguments.encoder), []
    with threadpool_limits(1):
        for row in sweep(task):
            rows.append(row)
            print(describe(row), flush=True)
        for row in sweep_equal(task, sorted({row["clusters"] for row in rows})):
            rows.append(row)
            print(describe(row), flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    content = {"corpus": CORPUS, "protocol": HEADLINE, "rows": rows, "seeds": list(SEEDS), "suite": arguments.suite}
    (arguments.out / "lase-sweep.json").write_text(
        json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    (arguments.out / "lase-sweep.svg").write_bytes(figure_bytes(draw(rows), "svg"))


if __name__ == "__main__":
    main()
