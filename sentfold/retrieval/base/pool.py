"""A retrieval task: distinct queries, the pool of distinct documents, and relevance judgements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import group_design
from sentfold.errors import ParameterError

Ints = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """Queries, documents and judgements. A text is named by its row in the vectors of a corpus.

    queries    (m,) rows of the queries, ascending; each query has a relevant document
    documents  (n,) rows of the documents, ascending
    same       (m,) position in `documents` of the query's own text, which the query never finds; -1 if absent
    query      (j,) position of the query of each judgement, ascending
    document   (j,) position of the document of each judgement
    grade      (j,) grade of each judgement; a document is relevant if its grade is above 0
    dropped    number of queries that were left out because no document is relevant
    """

    queries: Ints
    documents: Ints
    same: Ints
    query: Ints
    document: Ints
    grade: Float64
    dropped: int

    @property
    def relevant(self) -> npt.NDArray[np.bool_]:
        """(j,) whether each judged document is relevant."""
        return self.grade > 0


def make_pool(pairs: Ints, grades: Float64, documents: Ints | None = None) -> Pool:
    """The pool of judged pairs of texts.

    pairs      (j, 2) rows: a query and a document. Equal texts have equal rows, so duplicates are merged here: the
               judgements of a query that occurs several times are united, and of several grades the highest counts.
               A judgement of a query with its own text is dropped.
    grades     (j,) finite
    documents  rows of further documents without judgements
    Raises ParameterError if no query has a relevant document. Cost O(j log j).
    """
    grades = np.asarray(grades, dtype=np.float64)
    further = np.empty(0, dtype=np.int64) if documents is None else documents
    pool = np.union1d(pairs[:, 1], further).astype(np.int64)
    other = pairs[:, 0] != pairs[:, 1]
    united, places = np.unique(pairs[other], axis=0, return_inverse=True)
    highest = np.full(len(united), -np.inf)
    np.maximum.at(highest, places.ravel(), grades[other])
    queries = np.unique(united[highest > 0, 0]).astype(np.int64)
    if not len(queries):
        raise ParameterError("no query has a relevant document", where="grades", expected="a grade above 0")
    kept = np.isin(united[:, 0], queries)
    return Pool(
        queries=queries,
        documents=pool,
        same=_positions(queries, pool),
        query=np.searchsorted(queries, united[kept, 0]),
        document=np.searchsorted(pool, united[kept, 1]),
        grade=highest[kept],
        dropped=len(np.unique(pairs[:, 0])) - len(queries),
    )


def fold_queries(pool: Pool, folds: int, *, seed: int) -> list[Ints]:
    """Positions of the queries in parts of about equal size, in random order of the groups.

    Queries that share a relevant document, directly or through other queries, are in one part, so a fit on the other
    parts has seen no relevant document of a part. A part may be empty if one group is very large.
    """
    query, document = pool.query[pool.relevant], pool.document[pool.relevant]
    design = group_design(np.column_stack([query, len(pool.queries) + document]), [""] * len(query))
    group = np.empty(len(pool.queries), dtype=np.int64)
    group[query] = design.members
    sizes = np.bincount(group)
    order = np.random.default_rng(seed).permutation(len(sizes))
    part = np.empty(len(sizes), dtype=np.int64)
    part[order] = (np.cumsum(sizes[order]) - 1) * folds // len(pool.queries)
    return [np.flatnonzero(part[group] == number) for number in range(folds)]


def _positions(rows: Ints, among: Ints) -> Ints:
    """(m,) position of each row in ascending `among`; -1 if absent."""
    places = np.minimum(np.searchsorted(among, rows), len(among) - 1)
    return np.where(among[places] == rows, places, -1)
