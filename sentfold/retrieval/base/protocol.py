"""The contents of a method's file in sentfold/retrieval, and how a method is run on a pool.

A search turns queries and documents into a ranking. A method is one file. The file defines:

TITLE     the name of the method in tables
LEARNS    what the method may see before it is asked: documents; bank (queries without judgements too); or judgements
          (queries with their relevant documents: supervised, always cross-fitted)
Settings  a model of the method's parameters, each with its range and its default
prepare   (source, settings) -> Scorer: the scores of all documents for new queries

The score of a document for a query must not depend on the other queries that are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np

from sentfold.errors import ParameterError
from sentfold.kernels.threads import one_blas_thread
from sentfold.neighbors.neighbors import Neighbors, nearest_neighbors
from sentfold.retrieval.base.pool import Ints, Pool, fold_queries
from sentfold.retrieval.base.ranking import Floating, Ranking, Scorer, Singles, rank, unit_rows
from sentfold.settings import Parameters

FOLDS = 5


@dataclass(frozen=True)
class Source:
    """What a method may learn from. All vectors have length 1, or 0.

    documents  (n, d) the pool
    bank       (b, d) other queries without judgements. Where they are the test queries, the search is transductive,
               and the caller's table has to say so.
    pairs      (t, d) queries of other folds and (t, d) one relevant document of each; for LEARNS = judgements
    workers    threads, which do not change the result
    deepest    the largest k that will be asked of `nearest`, whose first answer then serves all later ones
    """

    documents: Singles
    bank: Singles | None = None
    pairs: tuple[Singles, Singles] | None = None
    workers: int = 2
    deepest: int = 1
    _near: list[Neighbors] = field(init=False, repr=False, compare=False, default_factory=list)

    def nearest(self, k: int) -> Neighbors:
        """The k nearest other documents of each document by cosine, exactly; all of them if there are fewer.

        Cost O(n^2 d) once, and again for a k above `deepest`.
        """
        others = len(self.documents) - 1
        if not self._near or self._near[0].indices.shape[1] < min(k, others):
            found = min(max(k, self.deepest), others)
            self._near[:] = [nearest_neighbors(self.documents, found, metric="cosine", workers=self.workers)]
        near = self._near[0]
        return Neighbors(near.indices[:, :k].copy(), near.distances[:, :k].copy(), near.recomputed)

    @property
    def known_bank(self) -> Singles:
        """The bank. Raises ParameterError if there is none."""
        if self.bank is None or not len(self.bank):
            raise ParameterError(
                "the search needs a bank of queries",
                where="bank",
                expected="queries of a development set",
                got="none",
                remedy="give the queries of a development set, or leave this search out",
            )
        return self.bank


class SearchMethod(Protocol):
    """A module of sentfold/retrieval; see the docstring of this module."""

    TITLE: str
    LEARNS: Literal["documents", "bank", "judgements"]
    Settings: type[Parameters]

    def prepare(self, source: Source, settings: Any) -> Scorer:
        """The scorer of the documents."""


def known_searches() -> tuple[str, ...]:
    """The names of the files of sentfold/retrieval. The files are listed, not imported."""
    return tuple(sorted(file.stem for file in Path(__file__).parents[1].glob("*.py") if file.stem != "__init__"))


def find_search(name: str) -> SearchMethod:
    """The module sentfold/retrieval/<name>.py. Raises ParameterError if there is no such method."""
    if name not in known_searches():
        raise ParameterError(
            f"there is no search '{name}'",
            where="method",
            expected=f"one of: {', '.join(known_searches())}",
            got=name,
            remedy="correct the name, or add the file sentfold/retrieval/<method>.py",
        )
    return cast(SearchMethod, import_module(f"sentfold.retrieval.{name}"))


def search(
    method: SearchMethod,
    settings: Parameters,
    vectors: Floating,
    pool: Pool,
    *,
    bank: Floating | None = None,
    seed: int = 0,
    workers: int = 2,
) -> Ranking:
    """The ranking of a method on a pool. See search_points."""
    (ranking,) = search_points(method, [settings], vectors, pool, bank=bank, seed=seed, workers=workers)
    return ranking


def search_points(
    method: SearchMethod,
    points: Sequence[Parameters],
    vectors: Floating,
    pool: Pool,
    *,
    bank: Floating | None = None,
    seed: int = 0,
    workers: int = 2,
) -> list[Ranking]:
    """The rankings of a method on a pool with each of several settings, which share what is computed of the documents.

    vectors  (N, d) finite vectors of the texts; lengths do not count, since every vector is divided by its own
    bank     (b, d) vectors of queries of a development set, for methods that learn from a bank; without one, the
             bank of a query is the pool's other queries, those of its own fold left out
    seed     of the folds of a supervised method, and of one without a bank
    Raises ParameterError, also for a vector that is not finite or has no length 1 after the division in float32.
    Memory: two float32 copies of the documents, and what rank and the method say.
    """
    queries = _unit_singles(vectors[pool.queries], "query")
    documents = _unit_singles(vectors[pool.documents], "document")
    deepest = max(getattr(settings, "neighbors", 1) for settings in points)
    known = Source(documents, None if bank is None else _unit_singles(bank, "row of the bank"), None, workers, deepest)
    with one_blas_thread():
        return [rank(_scorers(method, settings, known, queries, pool, seed), queries, pool) for settings in points]


def _unit_singles(x: Floating, name: str) -> Singles:
    """Rows of length 1 or 0. Raises ParameterError for a row whose squares overflow or underflow float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        units = unit_rows(x.astype(np.float32, copy=False)).astype(np.float32, copy=False)
        lengths = np.sqrt(np.einsum("ij,ij->i", units, units))
    bad = np.flatnonzero(x.any(axis=1) & ~(np.abs(lengths - 1) < 1e-3))  # NaN is no length near 1 either
    if len(bad):
        raise ParameterError(
            "a vector cannot be divided by its length in float32",
            where=f"{name} {bad[0]}",
            expected="zeros, or finite numbers whose squares float32 can add, such as a length from 1e-15 to 1e15",
            got=f"{len(bad)} such vectors; the largest number of the first is {np.abs(x[bad[0]]).max()}",
            remedy="scale the vectors, or embed again",
        )
    return units


def _scorers(
    method: SearchMethod, settings: Parameters, source: Source, queries: Singles, pool: Pool, seed: int
) -> Iterator[tuple[Ints, Scorer]]:
    """One scorer for all queries; for a method that learns from queries one for each fold, learned on the others."""
    if method.LEARNS == "documents" or (method.LEARNS == "bank" and source.bank is not None):
        yield np.arange(len(queries)), method.prepare(source, settings)
        return
    query, document = pool.query[pool.relevant], pool.document[pool.relevant]
    for fold in fold_queries(pool, FOLDS, seed=seed):
        train = ~np.isin(query, fold)
        pairs = (queries[query[train]], source.documents[document[train]])
        bank = np.delete(queries, fold, axis=0)
        yield fold, method.prepare(Source(source.documents, bank, pairs, source.workers, source.deepest), settings)
