"""Rankings of documents: scores in blocks of queries, the first documents, and the places of relevant documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError
from sentfold.kernels.arrays import row_blocks
from sentfold.retrieval.base.pool import Ints, Pool

Singles = npt.NDArray[np.float32]
Scorer = Callable[[Singles], Singles]  # (b, d) queries -> (b, n) scores of all documents, a new array
Floating = npt.NDArray[np.floating[Any]]

SCORES = 2**24  # of one block of queries: 64 MB, and as much again to sort them


@dataclass(frozen=True)
class Ranking:
    """The outcome of a search.

    top     (m, k) positions of the first documents of each query, best first; of equal scores the first position
    scores  (m, k) float32 their scores; -inf for the query's own text
    above   (r,) of each relevant judgement, in the order of the pool: how many documents have a higher score
    tied    (r,) how many documents have the same score, itself included
    """

    top: Ints
    scores: Singles
    above: Ints
    tied: Ints


def rank(
    parts: Iterable[tuple[Ints, Scorer]],
    queries: Singles,
    pool: Pool,
    *,
    depth: int = 100,
    names: Ints | None = None,
) -> Ranking:
    """Rank all documents of the pool for every query, exactly.

    parts    positions of queries and the scorer for these queries; together every query once
    queries  (m, d) vectors of the queries
    depth    documents to keep of each ranking; fewer if the pool is smaller
    names    (n,) places of the documents' names in alphabetical order: of equal scores the last name comes first,
             as in trec_eval. None leaves ties open; the measures are then expected values over all orders of ties.
    Raises ParameterError if a score is NaN. Cost O(m n log n) and that of the scorer; memory O(SCORES) and that of
    the scorer, whatever m and n are, as long as n <= SCORES.
    """
    m, n = len(queries), len(pool.documents)
    depth = min(depth, n)
    ranking = Ranking(
        top=np.empty((m, depth), dtype=np.int64),
        scores=np.empty((m, depth), dtype=np.float32),
        above=np.empty(int(pool.relevant.sum()), dtype=np.int64),
        tied=np.empty(int(pool.relevant.sum()), dtype=np.int64),
    )
    for positions, scorer in parts:
        for block in row_blocks(len(positions), max(1, min(1024, SCORES // n))):
            _rank_block(scorer(queries[positions[block]]), positions[block], pool, names, ranking)
    return ranking


def _rank_block(scores: Singles, positions: Ints, pool: Pool, names: Ints | None, ranking: Ranking) -> None:
    """Fill in the rows of `ranking` for some queries."""
    if np.isnan(scores).any():
        raise ParameterError("a search gave scores that are not numbers", where="scores", expected="finite numbers")
    own = pool.same[positions]
    scores[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
    query, document = pool.query[pool.relevant], pool.document[pool.relevant]
    for row, position in zip(scores, positions, strict=True):
        first = first_places(row, ranking.top.shape[1])
        ranking.top[position], ranking.scores[position] = first, row[first]
        part = slice(*np.searchsorted(query, [position, position + 1]))
        ordered, found = np.sort(row), row[document[part]]
        ranking.above[part] = len(row) - np.searchsorted(ordered, found, "right")
        ranking.tied[part] = np.searchsorted(ordered, found, "right") - np.searchsorted(ordered, found, "left")
        if names is not None:
            later = (row[None] == found[:, None]) & (names[None] > names[document[part], None])
            ranking.above[part] += later.sum(axis=1)
            ranking.tied[part] = 1


def first_places(similar: Floating, count: int) -> Ints:
    """The places of the largest values, descending, equal ones by place."""
    count = min(count, len(similar))
    least = np.partition(similar, len(similar) - count)[len(similar) - count]
    candidates = np.flatnonzero(similar >= least)
    return candidates[np.argsort(-similar[candidates], kind="stable")][:count]


def unit_rows(space: Floating) -> Floating:
    """Rows divided by their lengths; a zero row stays zero."""
    lengths = np.linalg.norm(space, axis=1, keepdims=True)
    return space / np.where(lengths > 0, lengths, 1)
