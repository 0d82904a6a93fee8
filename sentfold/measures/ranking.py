"""Ranking: mean average precision of candidates ordered by cosine, and by the search engine that found them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sentfold.compare.bootstrap import item_design, weighted_means
from sentfold.measures.base.case import Case
from sentfold.measures.base.pairs import cosines
from sentfold.measures.base.scores import CaseScores, ScoreSettings, resample
from sentfold.measures.registry import TaskPanel, TaskTable, Text

Float64 = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TITLE = "Ranking"
COLUMNS = {"query_id": str, "query": Text, "candidate_id": str, "candidate": Text, "relevance": int, "rank": int}
WORDS = {"map": "MAP", "search-engine": "the search engine's own order"}
SHORT = {"map": "MAP"}
TABLES = (
    TaskTable(
        name="ranking",
        title="Ranking of candidates in every space of the suite",
        about="Mean average precision over ten candidates for each query. A query without a relevant candidate counts "
        "as 0 for every method. The order in which the search engine gave the candidates is what a method has to beat.",
        panels=(
            TaskPanel("MAP of cosine", ("map.cosine",)),
            TaskPanel("MAP of cosine against the search engine's own order", ("map.cosine",), "map.search-engine"),
            TaskPanel("MAP of the search engine's own order, the same in every space", ("map.search-engine",)),
        ),
    ),
)


class Settings(ScoreSettings):
    """Ranking has no settings of its own."""


def score(case: Case, settings: Settings) -> CaseScores:
    """Mean average precision over the queries; the bootstrap resamples queries."""
    cosine, undefined = cosines(case.vectors, case.pairs)
    engine = -np.array(case.items["rank"], dtype=np.float64)
    relevant, queries = np.array(case.items["relevance"]), case.items["query_id"]
    precisions = {
        f"map.{name}": average_precisions(queries, order, relevant, case.items["candidate_id"])
        for name, order in (("cosine", cosine), ("search-engine", engine))
    }

    def means(weights: Float64) -> dict[str, Float64]:
        return {name: weighted_means(values, weights) for name, values in precisions.items()}

    count = len(precisions["map.cosine"])
    outcome = resample(case, settings, item_design([""] * count), means)
    return outcome.with_facts(
        candidates=len(queries),
        drawn=outcome.facts["drawn"] | {"unit": "queries"},
        n=count,
        queries_without_relevant=int((precisions["map.search-engine"] == 0).sum()),
        undefined_cosines=undefined,
    )


def positive_pairs(case: Case) -> tuple[str, Ints]:
    """Queries with their relevant candidates."""
    return "relevant candidates", case.pairs[np.array(case.items["relevance"]) == 1]


def average_precisions(queries: Sequence[str], order_by: Float64, relevant: Ints, tie_break: Sequence[str]) -> Float64:
    """Average precision of each query, queries in order of first appearance.

    queries    (m,) query of each candidate
    order_by   (m,) candidates with larger values come first
    relevant   (m,) 1 or 0
    tie_break  (m,) names that order candidates of equal value; names carry no information about relevance
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
