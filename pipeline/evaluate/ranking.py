"""Ranking: mean average precision of candidates ordered by cosine, and by the search engine that found them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def average_precisions(queries: Sequence[str], order_by: Float64, relevant: Ints, tie_break: Sequence[str]) -> Float64:
    """Average precision of each query, queries in order of first appearance.

    queries    (m,) query of each candidate
    order_by   (m,) the larger, the earlier
    relevant   (m,) 1 or 0
    tie_break  (m,) names, by which candidates of one value are ordered: an order that knows nothing
    AP = (1 / R) sum over relevant candidates of precision at their rank. A query without a relevant
    candidate has an AP of 0, as in the official scorer of SemEval-2016 task 3.
    """
    members: dict[str, list[int]] = {}
    for row, query in enumerate(queries):
        members.setdefault(query, []).append(row)
    return np.array([_average_precision(rows, order_by, relevant, tie_break) for rows in members.values()])


def _average_precision(rows: list[int], order_by: Float64, relevant: Ints, tie_break: Sequence[str]) -> float:
    ordered = sorted(rows, key=lambda row: (-order_by[row], tie_break[row]))
    hits = np.array([relevant[row] for row in ordered], dtype=np.float64)
    if hits.sum() == 0:
        return 0.0
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float((precision * hits).sum() / hits.sum())
