"""The geometry of a space: the spread of its vectors, its hubs, and the neighbours that a manifold preserves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sentfold.files import Vectors
from sentfold.measures.base.case import Case
from sentfold.settings import Parameters

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Floating = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class GeometryFact:
    """One fact of a space's geometry as tables show it: title, description, unit, and number of decimals."""

    title: str
    about: str
    unit: str
    digits: int


FACTS = {
    "alignment": GeometryFact(
        "alignment", "mean squared distance of the two texts of a positive pair", "unit vectors", 3
    ),
    "uniformity": GeometryFact(
        "uniformity", "log of the mean of exp(−2 d²) over all pairs of a sample", "unit vectors", 3
    ),
    "mean_cosine": GeometryFact("mean cosine", "mean cosine over all pairs of a sample", "cosine", 3),
    "effective_rank": GeometryFact("effective rank", "exp of the entropy of the singular values", "count", 1),
    "hubness": GeometryFact("hubness", "skewness of how often a text is among the nearest of others", "skewness", 2),
    "trustworthiness": GeometryFact(
        "trustworthiness", "neighbours here that were neighbours in the source", "share", 3
    ),
    "continuity": GeometryFact("continuity", "neighbours in the source that are neighbours here", "share", 3),
}


class GeometrySettings(Parameters):
    """Settings of the geometry.

    geometry_sample     largest number of distinct sentences to measure on
    geometry_neighbors  number of neighbours k for hubness, trustworthiness and continuity
    seed                of the sample
    """

    geometry_sample: int = Field(default=2000, ge=10, le=20_000)
    geometry_neighbors: int = Field(default=10, ge=1, le=1000)
    seed: int = Field(default=0, ge=0, lt=2**32)


def describe_geometry(
    case: Case, settings: GeometrySettings, *, positive: tuple[str, Ints], source: Vectors | None = None
) -> dict[str, Any]:
    """The facts of a space's geometry on one corpus, rounded, as JSON.

    positive  a description of the pairs of texts that mean the same, and their (m, 2) rows
    source    (n, d) vectors of the space that a manifold was computed from; adds trustworthiness and continuity
    All distances are between unit vectors, because the scores compare directions. The sample consists of
    distinct sentences, and every pair of the sample is used.
    """
    rows = sample_rows(len(case.vectors), at_most=settings.geometry_sample, seed=settings.seed)
    k = settings.geometry_neighbors
    unit = unit_rows(case.vectors[rows])
    lengths = np.linalg.norm(case.vectors[rows].astype(np.float64), axis=1)
    squared = squared_distances(unit)
    enough, several = len(rows) > 3 * k, len(rows) > 1
    facts = {
        "effective_rank": round(effective_rank(case.vectors[rows]), 1) if several else None,
        "hubness": round(hubness(squared, k), 3) if enough else None,
        "length_mean": round(float(lengths.mean()), 4),
        "length_sd": round(float(lengths.std()), 4),
        "mean_cosine": round(mean_cosine(unit), 4) if several else None,
        "neighbors": k,
        "sampled": len(rows),
        "sentences": len(case.vectors),
        "uniformity": round(uniformity(unit), 3) if several else None,
        "uniformity_pairs": f"all {len(rows) * (len(rows) - 1) // 2} pairs of the sampled distinct sentences",
        **_describe_alignment(case, *positive),
    }
    if source is not None and enough:
        before = squared_distances(unit_rows(source[rows]))
        facts["trustworthiness"] = round(trustworthiness(before, squared, k), 4)
        facts["continuity"] = round(trustworthiness(squared, before, k), 4)
    return facts


def _describe_alignment(case: Case, kind: str, pairs: Ints) -> dict[str, Any]:
    if not len(pairs):
        reason = kind or f"none: no positive pairs in a corpus for {case.task}"
        return {"alignment": None, "alignment_pairs": reason}
    texts, places = np.unique(pairs, return_inverse=True)
    value = alignment(unit_rows(case.vectors[texts]), places.reshape(pairs.shape))
    return {"alignment": round(value, 4), "alignment_pairs": f"{len(pairs)}: {kind}"}


def sample_rows(n: int, *, at_most: int, seed: int) -> Ints:
    """Rows 0 to n - 1 in order, or an ordered random sample of `at_most` of them."""
    return np.arange(n) if n <= at_most else np.sort(np.random.default_rng(seed).choice(n, at_most, replace=False))


def unit_rows(x: Floating) -> Float64:
    """(n, d) float64 rows of length 1; a zero row stays zero."""
    rows = np.asarray(x, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Float64 = rows / np.where(lengths > 0, lengths, 1.0)
    return unit


def alignment(unit: Float64, pairs: npt.NDArray[np.integer[Any]]) -> float:
    """Mean squared distance of the two unit vectors of each positive pair; pairs (m, 2), m >= 1.

    Source: Wang & Isola 2020, with alpha = 2
    """
    return float(np.square(unit[pairs[:, 0]] - unit[pairs[:, 1]]).sum(axis=1).mean())


def uniformity(unit: Float64) -> float:
    """log of the mean of exp(-2 |f_i - f_j|^2) over all pairs i < j of n >= 2 unit vectors; between -8 and 0.

    Cost O(n^2 d) time, O(n^2) memory. Source: Wang & Isola 2020, with t = 2
    """
    upper = np.triu_indices(len(unit), 1)
    squared = np.maximum(squared_distances(unit)[upper], 0.0)
    return float(np.log(np.exp(-2.0 * squared).mean()))


def mean_cosine(unit: Float64) -> float:
    """Mean cosine over all pairs i < j: about 0 if directions cancel out, near 1 in a narrow cone."""
    n, total = len(unit), unit.sum(axis=0)
    return float((total @ total - np.square(unit).sum()) / (n * (n - 1)))


def effective_rank(x: Floating) -> float:
    """exp of the entropy of the normalised singular values of the centred rows; between 1 and min(n - 1, d).

    x  (n, d), n >= 2; 0 where all rows are equal. Source: Roy & Vetterli 2007
    """
    rows = np.asarray(x, dtype=np.float64)
    centred = rows - rows.mean(axis=0)
    gram = centred.T @ centred if centred.shape[1] <= len(centred) else centred @ centred.T
    values = np.linalg.eigvalsh(gram)
    # Smaller eigenvalues are rounding errors of the largest; their square roots must not count as directions.
    singular = np.sqrt(values[values > len(gram) * np.finfo(np.float64).eps * max(values[-1], 0.0)])
    if not len(singular):
        return 0.0
    shares = singular / singular.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def hubness(squared: Float64, k: int) -> float:
    """Skewness of how often each row is among the k nearest neighbours of other rows; about 0 where there are no hubs.

    squared  (n, n) squared distances, n > k. Source: Radovanović, Nanopoulos & Ivanović 2010
    """
    from scipy.stats import skew  # slow to import, and a check of parameters does not need it

    counts = np.bincount(nearest(squared, k).ravel(), minlength=len(squared))
    return float(skew(counts)) if np.ptp(counts) else 0.0


def trustworthiness(before: Float64, after: Float64, k: int) -> float:
    """1 minus a penalty for each neighbour in `after` that is not a neighbour in `before`.

    before, after  (n, n) squared distances of the same rows, 2 k < n
    The penalty of a neighbour grows with its rank in `before`. Continuity is trustworthiness(after,
    before). Cost O(n^2 k). Source: Venna & Kaski 2001
    """
    n = len(before)
    neighbors, old = nearest(after, k), before.copy()
    np.fill_diagonal(old, np.inf)
    penalty = 0.0
    for place in range(k):
        of_neighbor = old[np.arange(n), neighbors[:, place]]
        ranks = (old < of_neighbor[:, None]).sum(axis=1) + 1
        penalty += float(np.maximum(ranks - k, 0).sum())
    return 1.0 - penalty * 2.0 / (n * k * (2.0 * n - 3.0 * k - 1.0))


def squared_distances(x: Float64) -> Float64:
    """(n, n) squared Euclidean distances of (n, d) rows, exactly symmetric and zero on the diagonal."""
    lengths = np.square(x).sum(axis=1)
    squared = np.maximum(lengths[:, None] + lengths[None, :] - 2.0 * (x @ x.T), 0.0)
    symmetric: Float64 = (squared + squared.T) / 2
    np.fill_diagonal(symmetric, 0.0)
    return symmetric


def nearest(squared: Float64, k: int) -> Ints:
    """(n, k) the k nearest other rows of each row, not ordered by distance; ties go to the lower row."""
    others = squared.copy()
    np.fill_diagonal(others, np.inf)
    cut = np.partition(others, k - 1, axis=1)[:, k - 1 : k]
    below, level = others < cut, others == cut
    wanted = k - below.sum(axis=1, keepdims=True)
    chosen = below | (level & (np.cumsum(level, axis=1) <= wanted))
    return np.nonzero(chosen)[1].reshape(len(squared), k)
