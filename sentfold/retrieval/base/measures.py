"""Measures of a ranking, per query: nDCG@10, Recall@{1, 10, 100}, MRR@10, MAP; and their bootstrap over queries.

Where documents have equal scores, a measure is its expected value over all orders of these documents, so that
quantised scores gain nothing from the order of a file. A relevant document enters by two numbers only: how many
documents are above it, and how many are tied with it.
Source: McSherry & Najork 2008, doi:10.1007/978-3-540-78646-7_38
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import draw_weights, item_design, weighted_means
from sentfold.retrieval.base.pool import Ints, Pool
from sentfold.retrieval.base.ranking import Ranking

Float64 = npt.NDArray[np.float64]

TOP = 10
CUTS = np.array([1, 10, 100])
MEASURES = ("nDCG@10", "Recall@1", "Recall@10", "Recall@100", "MRR@10", "MAP")
DISCOUNTS = 1 / np.log2(np.arange(2, TOP + 2))


def measure_queries(ranking: Ranking, pool: Pool) -> dict[str, Float64]:
    """(m,) values of each measure, by query. Gains are linear in the grade, as in trec_eval and BEIR.

    Cost O(r + ties), with r relevant judgements.
    """
    query, grades = pool.query[pool.relevant], pool.grade[pool.relevant]
    edges = np.searchsorted(query, np.arange(len(pool.queries) + 1))
    values = np.empty((len(pool.queries), len(MEASURES)))
    for number in range(len(values)):
        part = slice(edges[number], edges[number + 1])
        values[number] = _measure_query(grades[part], ranking.above[part], ranking.tied[part])
    return dict(zip(MEASURES, values.T, strict=True))


def bootstrap_means(values: dict[str, Float64], *, resamples: int, seed: int) -> dict[str, Float64]:
    """(resamples,) means of each measure over resampled queries; two searches of one pool get the same resamples."""
    count = len(next(iter(values.values())))
    draws = draw_weights(item_design([""] * count), resamples=resamples, seed=seed)
    means = [[weighted_means(column, weights) for column in values.values()] for weights in draws]
    return dict(zip(values, np.concatenate(means, axis=1), strict=True))


def describe_pool(ranking: Ranking, pool: Pool) -> dict[str, Any]:
    """Facts that a table needs next to the scores: the sizes, and the share of the top 10 without a judgement."""
    n, m = len(pool.documents), len(pool.queries)
    found = np.isfinite(ranking.scores[:, :TOP])
    keys = (np.arange(m)[:, None] * n + ranking.top[:, :TOP])[found]
    unjudged = ~np.isin(keys, pool.query * n + pool.document)
    return {
        "documents": n,
        "judgements": len(pool.grade),
        "queries": m,
        "queries_without_relevant": pool.dropped,
        "unjudged_of_top_10": round(float(unjudged.mean()), 4),
    }


def _measure_query(grades: Float64, above: Ints, tied: Ints) -> Float64:
    """Expected values of MEASURES for one query, from its relevant documents."""
    gain, found, precision, first, before = 0.0, np.zeros(len(CUTS)), 0.0, 0.0, 0
    for a in np.unique(above):
        here = above == a
        t, r = int(tied[here][0]), int(here.sum())
        gain += float(grades[here].mean() * r / t * DISCOUNTS[a : a + t].sum())
        found += r / t * np.clip(CUTS - a, 0, t)
        if not before:
            first = _reciprocal_place(int(a), t, r)
        # At place j of the tie, given a relevant document there, (j - 1)(r - 1)/(t - 1) others precede it on average.
        others = (r - 1) / max(t - 1, 1) * np.arange(t)
        precision += r / t * float(((before + 1 + others) / (a + 1 + np.arange(t))).sum())
        before += r
    best = np.sort(grades)[::-1][:TOP]
    ndcg = gain / float(best @ DISCOUNTS[: len(best)])
    return np.array([ndcg, *(found / len(grades)), first, precision / len(grades)])


def _reciprocal_place(a: int, t: int, r: int) -> float:
    """Expected 1 / place of the first of r relevant among t tied documents below a others; 0 beyond place TOP."""
    expected, share = 0.0, r / t
    for place in range(1, min(t - r + 1, TOP - a) + 1):
        expected += share / (a + place)
        share *= (t - place - r + 1) / (t - place) if place < t else 0.0
    return expected
