"""Similarity: correlation of similarities with human scores, in every protocol that papers have used.

A protocol is named `<correlation>.<aggregation>.<similarity>`:
correlation  spearman (rank) or pearson
aggregation  all: one correlation over all pairs; mean: the plain mean of the subsets'
             correlations; wmean: their mean weighted by numbers of pairs
similarity   cosine; any other one of pair_similarities has the one protocol `spearman.all.<similarity>`
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import pearsonr, spearmanr

from pipeline.evaluate.bootstrap import Design, draw_weights, sort_once, weighted_pearson, weighted_spearman

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def score_similarity(similarities: dict[str, Float64], human: Float64, subsets: list[str]) -> dict[str, float | None]:
    """Every protocol's score, in [-1, 1]; None where it is undefined.

    similarities  {name: (m,)}, `cosine` among them; human: (m,)
    subsets       (m,) names, all empty where the source gives none
    """
    parts = _parts(subsets)
    scores: dict[str, float | None] = {}
    cosine = similarities["cosine"]
    for name, correlate in (("spearman", spearmanr), ("pearson", pearsonr)):
        scores[f"{name}.all.cosine"] = _correlation(correlate, cosine, human)
        if parts:
            each = [_correlation(correlate, cosine[part], human[part]) for part in parts.values()]
            values = np.array([np.nan if value is None else value for value in each])
            sizes = [len(part) for part in parts.values()]
            scores[f"{name}.mean.cosine"] = _defined(np.mean(values))
            scores[f"{name}.wmean.cosine"] = _defined(np.average(values, weights=sizes))
    for name, values in similarities.items():
        scores[f"spearman.all.{name}"] = _correlation(spearmanr, values, human)
    return scores


def subset_scores(cosine: Float64, human: Float64, subsets: list[str]) -> dict[str, dict[str, float | int]]:
    """Spearman, Pearson and n of each named subset."""
    return {
        name: {
            "n": len(part),
            "spearman": float(spearmanr(cosine[part], human[part]).statistic),
            "pearson": float(pearsonr(cosine[part], human[part]).statistic),
        }
        for name, part in _parts(subsets).items()
        if _varies(cosine[part], human[part])
    }


def resample_similarity(
    similarities: dict[str, Float64], human: Float64, subsets: list[str], design: Design, *, resamples: int, seed: int
) -> dict[str, Float64]:
    """(resamples,) replicate scores of every protocol. Cost O(resamples m) per protocol."""
    parts = _parts(subsets)
    cosine = similarities["cosine"]
    everything = [sort_once(values) for values in similarities.values()], sort_once(human)
    by_part = {name: ([sort_once(cosine, part)], sort_once(human, part)) for name, part in parts.items()}
    collected: dict[str, list[Float64]] = {}
    for weights in draw_weights(design, resamples=resamples, seed=seed):
        chunk = {"pearson.all.cosine": weighted_pearson(cosine, human, weights)}
        for name, values in zip(similarities, weighted_spearman(*everything, weights), strict=True):
            chunk[f"spearman.all.{name}"] = values
        if parts:
            sizes = np.array([weights[:, part].sum(axis=1) for part in parts.values()])
            each = {
                "spearman": [weighted_spearman(*ranked, weights)[0] for ranked in by_part.values()],
                "pearson": [weighted_pearson(cosine, human, weights, part) for part in parts.values()],
            }
            for name, columns in each.items():
                chunk[f"{name}.mean.cosine"] = np.mean(columns, axis=0)
                chunk[f"{name}.wmean.cosine"] = (np.array(columns) * sizes).sum(axis=0) / sizes.sum(axis=0)
        for name, values in chunk.items():
            collected.setdefault(name, []).append(values)
    return {name: np.concatenate(columns) for name, columns in collected.items()}


def _parts(subsets: list[str]) -> dict[str, Ints]:
    """Rows of each subset by name; none where the source names no subsets, or only one."""
    names = np.array(subsets)
    distinct = sorted(set(subsets))
    return {name: np.flatnonzero(names == name) for name in distinct} if len(distinct) > 1 else {}


def _correlation(correlate: Any, x: Float64, y: Float64) -> float | None:
    return _defined(correlate(x, y).statistic) if _varies(x, y) else None


def _varies(x: Float64, y: Float64) -> bool:
    return len(x) > 1 and bool(np.ptp(x) > 0) and bool(np.ptp(y) > 0)


def _defined(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
