"""Similarity: correlation of cosines with human scores, in every protocol that papers have used.

A protocol is named `<correlation>.<aggregation>.cosine`:
correlation  spearman (rank) or pearson
aggregation  all: one correlation over all pairs; mean: the plain mean of the subsets'
             correlations; wmean: their mean weighted by numbers of pairs
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import pearsonr, spearmanr

from pipeline.evaluate.bootstrap import Design, Ranker, draw_weights, weighted_pearson

Float64 = npt.NDArray[np.float64]


def cosines(vectors: npt.NDArray[np.floating[Any]], rows: npt.NDArray[np.integer[Any]]) -> tuple[Float64, int]:
    """Cosine of each pair of rows, in float64, and the number of pairs with a zero vector (cosine 0).

    vectors  (n, d); rows (m, 2). Identical rows have cosine exactly 1.
    """
    left, right = (vectors[rows[:, side]].astype(np.float64) for side in (0, 1))
    scale = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    undefined = scale == 0
    values = np.einsum("ij,ij->i", left, right) / np.where(undefined, 1.0, scale)
    return np.clip(np.where(rows[:, 0] == rows[:, 1], np.where(undefined, 0.0, 1.0), values), -1.0, 1.0), int(
        undefined.sum()
    )


def score_similarity(cosine: Float64, human: Float64, subsets: list[str]) -> dict[str, float | None]:
    """Every protocol's score, in [-1, 1]; None where it is undefined.

    cosine, human  (m,); subsets: (m,) names, all empty where the source gives none
    """
    parts = _parts(subsets)
    scores: dict[str, float | None] = {}
    for name, correlate in (("spearman", spearmanr), ("pearson", pearsonr)):
        scores[f"{name}.all.cosine"] = _defined(correlate(cosine, human).statistic) if _varies(cosine, human) else None
        if parts:
            each = [
                float(correlate(cosine[part], human[part]).statistic) if _varies(cosine[part], human[part]) else np.nan
                for part in parts.values()
            ]
            sizes = [len(part) for part in parts.values()]
            scores[f"{name}.mean.cosine"] = _defined(np.mean(each))
            scores[f"{name}.wmean.cosine"] = _defined(np.average(each, weights=sizes))
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
    cosine: Float64, human: Float64, subsets: list[str], design: Design, *, resamples: int, seed: int
) -> dict[str, Float64]:
    """(resamples,) replicate scores of every protocol. Cost O(resamples m)."""
    parts = _parts(subsets)
    slices = {"": np.arange(len(cosine)), **parts}
    rankers = {name: (Ranker(cosine[part]), Ranker(human[part])) for name, part in slices.items()}
    collected: dict[str, list[Float64]] = {}
    for weights in draw_weights(design, resamples=resamples, seed=seed):
        chunk: dict[str, list[Float64]] = {"spearman": [], "pearson": []}
        sizes = []
        for name, part in slices.items():
            drawn = weights[:, part]
            ranks = [ranker.ranks(drawn) for ranker in rankers[name]]
            chunk["spearman"].append(weighted_pearson(ranks[0], ranks[1], drawn))
            chunk["pearson"].append(weighted_pearson(cosine[part], human[part], drawn))
            sizes.append(drawn.sum(axis=1))
        for correlation, columns in chunk.items():
            collected.setdefault(f"{correlation}.all.cosine", []).append(columns[0])
            if parts:
                each, counts = np.array(columns[1:]), np.array(sizes[1:])
                collected.setdefault(f"{correlation}.mean.cosine", []).append(each.mean(axis=0))
                collected.setdefault(f"{correlation}.wmean.cosine", []).append(
                    (each * counts).sum(axis=0) / counts.sum(axis=0)
                )
    return {name: np.concatenate(columns) for name, columns in collected.items()}


def _parts(subsets: list[str]) -> dict[str, npt.NDArray[np.int64]]:
    """Rows of each subset by name; none where the source names no subsets, or only one."""
    names = np.array(subsets)
    distinct = sorted(set(subsets))
    return {name: np.flatnonzero(names == name) for name in distinct} if len(distinct) > 1 else {}


def _varies(x: Float64, y: Float64) -> bool:
    return len(x) > 1 and bool(np.ptp(x) > 0) and bool(np.ptp(y) > 0)


def _defined(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
