"""Clustering: agreement of k-means on the vectors of a space with given classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.compare.bootstrap import item_design
from sentfold.errors import ParameterError
from sentfold.measures.base.case import Case, within_range
from sentfold.measures.base.scores import CaseScores, ScoreSettings, resample, seed_of
from sentfold.measures.registry import TaskPanel, TaskTable, Text

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BLOCK_CELLS = 2**22  # 32 MB
MEASURES = ("mi", "nmi", "ari", "purity", "v-measure")

TITLE = "Clustering"
COLUMNS = {"text": Text, "label": int, "label_name": str}
WORDS = {
    "mi": "mutual information",
    "nmi": "normalised mutual information",
    "ari": "adjusted Rand index",
    "purity": "purity",
    "v-measure": "V-measure",
    "kmeans": "k-means",
}
SHORT = {"mi": "MI", "nmi": "NMI", "ari": "ARI"}
UNITS = {"mi.kmeans": "nats"}
TABLES = (
    TaskTable(
        name="clustering",
        title="Clustering in every space of the suite",
        about="k-means with as many clusters as classes, the mean over starts, on the vectors as they are, not "
        "scaled to unit length. V-measure is the same number as NMI by the arithmetic mean; it is shown because papers "
        "print it.",
        panels=(TaskPanel("Agreement with the classes", tuple(f"{name}.kmeans" for name in MEASURES)),),
    ),
)


class Settings(ScoreSettings):
    """kmeans_seeds: number of k-means starts; the score is the mean over starts; one fact is the spread."""

    kmeans_seeds: int = Field(default=10, ge=2, le=1000)


def score(case: Case, settings: Settings) -> CaseScores:
    """The mean agreement over starts; the replicates resample both the items and the starts."""
    labels, rows, starts = case.labels, np.array(case.items["row"]), settings.kmeans_seeds
    clusters = len(set(labels))
    partitions = cluster(case.vectors, clusters=clusters, seeds=starts, first_seed=settings.seed)[:, rows]

    def measures(weights: Float64) -> dict[str, Float64]:
        each = [agreement_of(labels, partition, weights) for partition in partitions]
        return {f"{name} {start}": values[name] for start, values in enumerate(each) for name in values}

    each = resample(case, settings, item_design([""] * len(labels)), measures)
    outcome, spread = CaseScores(), {}
    for name in MEASURES:
        scores = np.array([each.scores[f"{name} {start}"] for start in range(starts)], dtype=np.float64)
        replicates = np.array([each.replicates[f"{name} {start}"] for start in range(starts)])
        outcome.scores[f"{name}.kmeans"] = float(scores.mean())
        outcome.replicates[f"{name}.kmeans"] = mean_over_starts(scores, replicates, seed=seed_of(case, settings))
        spread[f"{name}.kmeans"] = round(100 * float(np.std(scores, ddof=1)), 2)
    return outcome.with_facts(
        clusters=clusters,
        drawn=each.facts["drawn"] | {"unit": "items and starts"},
        n=len(labels),
        seeds=starts,
        spread_over_seeds=spread,
        text=case.notes["text"],
        units={"mi.kmeans": "nats x 100"},
    )


def cluster(x: npt.NDArray[np.floating[Any]], *, clusters: int, seeds: int, first_seed: int) -> Ints:
    """(seeds, n) clusters of (n, d) rows by Lloyd's k-means from one k-means++ start per seed.

    Raises ParameterError for fewer rows than clusters.
    Cost O(seeds iterations n d clusters) time, O(n d) memory: one float32 copy.
    """
    if clusters > len(x):
        raise ParameterError(
            "a corpus has more classes than distinct texts",
            where="label",
            expected=f"at most {len(x)} classes",
            got=str(clusters),
            remedy="correct the labels: texts that are equal have different ones",
        )
    from sklearn.cluster import KMeans  # slow to import, and a check of parameters does not need it

    rows = within_range(np.asarray(x, dtype=np.float32))
    return np.array(
        [
            KMeans(clusters, init="k-means++", n_init=1, max_iter=300, tol=1e-4, random_state=first_seed + seed)
            .fit(rows)
            .labels_.astype(np.int64)
            for seed in range(seeds)
        ]
    )


def agreement_of(labels: Ints, partition: Ints, weights: Float64, *, cells: int = BLOCK_CELLS) -> dict[str, Float64]:
    """`agreement` of the `contingency` tables, a few rows of the weights at a time; the results do not depend on it.

    cells  at most so many cells of tables are in memory, or one table
    """
    step = max(1, cells // ((int(labels.max()) + 1) * (int(partition.max()) + 1)))
    blocks = [
        agreement(contingency(labels, partition, weights[start : start + step]))
        for start in range(0, len(weights), step)
    ]
    return {name: np.concatenate([block[name] for block in blocks]) for name in MEASURES}


def contingency(labels: Ints, partition: Ints, weights: Float64) -> Float64:
    """(b, classes, clusters) weighted numbers of items; labels, partition: (n,) from 0, weights: (b, n)."""
    classes, clusters = int(labels.max()) + 1, int(partition.max()) + 1
    cells = labels * clusters + partition
    counts = np.empty((len(weights), classes * clusters))
    for row, weight in enumerate(weights):
        counts[row] = np.bincount(cells, weights=weight, minlength=classes * clusters)
    return counts.reshape(len(weights), classes, clusters)


def mean_over_starts(scores: Float64, replicates: Float64, *, seed: int) -> Float64:
    """(r,) replicates of the mean over starts; each replicate also draws the starts with replacement.

    scores      (s,) of each start on the items themselves
    replicates  (s, r) of each start on every resample of the items
    seed        of the draws; the same for all spaces, so that start s of one space is paired with start s of another
    An item that is drawn twice looks like agreement, which raises these measures (Miller 1955: by about
    (a - 1)(b - 1) / 2n nats for a x b cells). So the replicates of each start are shifted so that their mean
    equals the score of the start.
    """
    starts, resamples = replicates.shape
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(starts, np.full(starts, 1 / starts), size=resamples).T / starts
    centred = replicates - replicates.mean(axis=1, keepdims=True) + scores[:, None]
    return np.asarray((drawn * centred).sum(axis=0))


def agreement(counts: Float64) -> dict[str, Float64]:
    """Every measure of agreement of (b, classes, clusters) contingency tables, each (b,).

    mi         mutual information in nats
    nmi        mutual information divided by the arithmetic mean of both entropies; 0 where both are 0
    ari        adjusted Rand index: agreement of pairs, corrected for chance
    purity     share of items that belong to the most frequent class of their cluster
    v-measure  harmonic mean of homogeneity and completeness; equal to nmi (Becker 2011), but computed separately
    Source: Vinh, Epps & Bailey 2010 (arithmetic mean); Hubert & Arabie 1985; Rosenberg & Hirschberg 2007
    """
    total = counts.sum(axis=(1, 2))
    by_class, by_cluster = counts.sum(axis=2), counts.sum(axis=1)
    cells = counts.reshape(len(counts), -1)
    of_class, of_cluster, joint = (_entropy(part, total) for part in (by_class, by_cluster, cells))
    mi = np.maximum(of_class + of_cluster - joint, 0.0)
    middle = (of_class + of_cluster) / 2
    homogeneity = _over(mi, of_class, 1.0)
    completeness = _over(mi, of_cluster, 1.0)
    return {
        "mi": mi,
        "nmi": _over(mi, middle, 0.0),
        "ari": _adjusted_rand(counts, by_class, by_cluster, total),
        "purity": counts.max(axis=1).sum(axis=1) / total,
        "v-measure": _over(2 * homogeneity * completeness, homogeneity + completeness, 0.0),
    }


def _entropy(parts: Float64, total: Float64) -> Float64:
    shares = parts / total[:, None]
    logs = np.log(np.where(shares > 0, shares, 1.0))
    entropy: Float64 = -(shares * logs).sum(axis=1)
    return entropy


def _over(value: Float64, by: Float64, otherwise: float) -> Float64:
    return np.where(by > 0, value / np.where(by > 0, by, 1.0), otherwise)


def _adjusted_rand(counts: Float64, by_class: Float64, by_cluster: Float64, total: Float64) -> Float64:
    together = _pairs(counts).sum(axis=(1, 2))
    in_class, in_cluster, everyone = _pairs(by_class).sum(axis=1), _pairs(by_cluster).sum(axis=1), _pairs(total)
    chance = in_class * in_cluster / everyone
    return _over(together - chance, (in_class + in_cluster) / 2 - chance, 1.0)


def _pairs(numbers: Float64) -> Float64:
    return numbers * (numbers - 1) / 2
