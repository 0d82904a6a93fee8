"""Measures of rankings equal their naive definitions, over all orders of ties; pools merge what is the same text."""

from __future__ import annotations

import json
from itertools import permutations
from math import log2
from pathlib import Path

import numpy as np
import pytest

from sentfold.errors import ParameterError
from sentfold.retrieval.base.measures import MEASURES, bootstrap_means, describe_pool, measure_queries
from sentfold.retrieval.base.pool import Pool, fold_queries, make_pool
from sentfold.retrieval.base.ranking import Ranking, Scorer, rank

RNG = np.random.default_rng(5)


def naive_measures(order: list[int], grades: dict[int, float]) -> list[float]:
    """The measures of one order of documents, written as in a textbook."""
    gains = [grades.get(document, 0.0) for document in order]
    relevant = sum(grade > 0 for grade in grades.values())
    ideal = sorted(grades.values(), reverse=True)
    dcg, best = (sum(gain / log2(place + 2) for place, gain in enumerate(some[:10])) for some in (gains, ideal))
    hits = [place for place, gain in enumerate(gains, start=1) if gain > 0]
    recalls = [sum(place <= cut for place in hits) / relevant for cut in (1, 10, 100)]
    reciprocal = 1 / hits[0] if hits[0] <= 10 else 0.0
    precision = sum(count / place for count, place in enumerate(hits, start=1)) / relevant
    return [dcg / best, *recalls, reciprocal, precision]


def fixed(scores: np.ndarray) -> list[tuple[np.ndarray, Scorer]]:
    """A search whose queries are numbers of rows of fixed scores."""
    return [(np.arange(len(scores)), lambda queries: scores[queries[:, 0].astype(int)].astype(np.float32))]


def ranked(scores: np.ndarray, pool: Pool, **options: np.ndarray) -> Ranking:
    return rank(fixed(scores), np.arange(len(scores), dtype=np.float32)[:, None], pool, **options)


def random_pool(queries: int, documents: int, judged: int) -> Pool:
    """Queries are rows from `documents` on. Grades 0 to 3, at least one of them above 0 for each query."""
    pairs = [(documents + q, d) for q in range(queries) for d in RNG.choice(documents, judged, replace=False)]
    grades = RNG.integers(0, 4, len(pairs)).astype(float)
    grades[::judged] = 2
    return make_pool(np.array(pairs), grades, np.arange(documents))


def graded(pool: Pool, query: int) -> dict[int, float]:
    here = pool.query == query
    return dict(zip(pool.document[here].tolist(), pool.grade[here].tolist(), strict=True))


def test_without_ties_every_measure_is_its_textbook_definition() -> None:
    pool = random_pool(12, 130, 9)
    scores = RNG.permuted(np.tile(np.arange(130.0), (12, 1)), axis=1)
    values = measure_queries(ranked(scores, pool), pool)
    for query in range(12):
        expected = naive_measures(np.argsort(-scores[query]).tolist(), graded(pool, query))
        np.testing.assert_allclose([values[name][query] for name in MEASURES], expected, rtol=1e-12)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_with_ties_a_measure_is_its_mean_over_all_orders_of_the_tied_documents(levels: int) -> None:
    pool = random_pool(4, 6, 3)
    scores = RNG.integers(0, levels, (4, 6)).astype(float)
    values = measure_queries(ranked(scores, pool), pool)
    for query in range(4):
        # A stable sort of every permutation gives every order of the tied documents equally often.
        orders = [sorted(order, key=lambda d: -scores[query, d]) for order in permutations(range(6))]
        expected = np.mean([naive_measures(order, graded(pool, query)) for order in orders], axis=0)
        np.testing.assert_allclose([values[name][query] for name in MEASURES], expected, rtol=1e-12)


def test_ties_that_cross_a_cut_count_by_the_share_before_the_cut() -> None:
    pool = make_pool(np.array([[200, 0], [200, 1]]), np.ones(2), np.arange(150))
    values = measure_queries(ranked(np.zeros((1, 150)), pool), pool)
    assert values["Recall@1"][0] == pytest.approx(1 / 150)
    assert values["Recall@100"][0] == pytest.approx(100 / 150)
    first = [sum(1 / min(a, b) for b in range(1, 151) if b != a and min(a, b) <= 10) for a in range(1, 151)]
    assert values["MRR@10"][0] == pytest.approx(sum(first) / (150 * 149))


def test_named_ties_are_broken_as_trec_eval_breaks_them_the_last_name_first() -> None:
    pool = random_pool(5, 40, 4)
    scores, names = RNG.integers(0, 4, (5, 40)).astype(float), RNG.permutation(40)
    values = measure_queries(ranked(scores, pool, names=names), pool)
    for query in range(5):
        expected = naive_measures(np.lexsort((-names, -scores[query])).tolist(), graded(pool, query))
        np.testing.assert_allclose([values[name][query] for name in MEASURES], expected, rtol=1e-12)


def test_a_pool_merges_texts_unites_judgements_and_drops_what_says_nothing() -> None:
    pairs = np.array([[7, 2], [7, 3], [7, 2], [9, 9], [9, 3], [8, 3], [2, 7], [7, 7]])
    pool = make_pool(pairs, np.array([1.0, 0, 3, 1, 2, 0, 1, 1]), np.array([1, 2, 2]))
    assert pool.queries.tolist() == [2, 7, 9]
    assert pool.documents.tolist() == [1, 2, 3, 7, 9]
    assert pool.same.tolist() == [1, 3, 4]
    judged = zip(pool.queries[pool.query], pool.documents[pool.document], pool.grade, strict=True)
    assert list(judged) == [(2, 7, 1), (7, 2, 3), (7, 3, 0), (9, 3, 2)]
    assert pool.dropped == 1
    with pytest.raises(ParameterError, match="no query has a relevant document"):
        make_pool(pairs, np.zeros(8))


def test_a_query_never_finds_its_own_text() -> None:
    pool = make_pool(np.array([[1, 0]]), np.ones(1), np.arange(3))
    ranking = ranked(np.array([[0.5, 1.0, 0.1]]), pool)
    assert ranking.top.tolist() == [[0, 2, 1]]
    assert measure_queries(ranking, pool)["Recall@1"] == [1.0]
    facts = describe_pool(ranking, pool)
    assert facts["unjudged_of_top_10"] == 0.5  # of the two documents that can be found
    assert (facts["documents"], facts["queries"], facts["judgements"]) == (3, 1, 1)


def test_the_size_of_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = random_pool(9, 30, 3)
    scores = RNG.integers(0, 9, (9, 30)).astype(float)
    whole = ranked(scores, pool)
    monkeypatch.setattr("sentfold.retrieval.base.ranking.SCORES", 60)
    parted = ranked(scores, pool)
    for name in ("top", "scores", "above", "tied"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parted, name))


def test_scores_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ParameterError, match="not numbers"):
        ranked(np.full((1, 3), np.nan), make_pool(np.array([[5, 0]]), np.ones(1), np.arange(3)))


def test_the_bootstrap_draws_queries() -> None:
    values = {"MAP": np.array([0.0, 1.0, 1.0]), "MRR@10": np.array([0.5, 0.5, 0.5])}
    means = bootstrap_means(values, resamples=2000, seed=0)
    assert set(np.round(3 * means["MAP"]).astype(int)) == {0, 1, 2, 3}
    assert means["MAP"].mean() == pytest.approx(2 / 3, abs=4 * np.sqrt(2 / 27 / 2000))
    assert (means["MRR@10"] == 0.5).all()


def test_folds_hold_every_query_once_and_no_relevant_document_twice() -> None:
    pairs = np.column_stack([np.arange(100, 200), RNG.integers(0, 60, 100)])
    pool = make_pool(pairs, np.ones(100))
    folds = fold_queries(pool, 5, seed=0)
    assert sorted(np.concatenate(folds).tolist()) == list(range(100))
    documents = [set(pool.document[np.isin(pool.query, fold)].tolist()) for fold in folds]
    assert sum(len(some) for some in documents) == len(set().union(*documents))
    assert min(len(fold) for fold in folds) >= 12


def test_the_measures_are_those_of_trec_eval_with_its_rule_for_ties() -> None:
    """trec_eval.json was written by make_trec_eval.py; of equal scores trec_eval puts the last name first."""
    content = json.loads(Path(__file__).with_name("trec_eval.json").read_text(encoding="utf-8"))
    queries = sorted(content["judged"])
    documents = sorted(content["run"][queries[0]])
    place = {name: row for row, name in enumerate(documents)}
    judged = [
        (len(documents) + q, place[d], g) for q, name in enumerate(queries) for d, g in content["judged"][name].items()
    ]
    rows, grades = np.array([pair[:2] for pair in judged]), np.array([pair[2] for pair in judged], dtype=float)
    pool = make_pool(rows, grades, np.arange(len(documents)))
    assert len(pool.queries) == len(queries) and not pool.dropped
    scores = np.array([[content["run"][query][name] for name in documents] for query in queries])
    values = measure_queries(ranked(scores, pool, names=np.arange(len(documents))), pool)
    theirs = {"nDCG@10": "ndcg_cut_10", "MAP": "map", "Recall@1": "recall_1", "Recall@10": "recall_10",
              "Recall@100": "recall_100"}  # fmt: skip
    for ours, name in theirs.items():
        expected = [content["trec_eval"][query][name] for query in queries]
        np.testing.assert_allclose(values[ours], expected, atol=1e-6, err_msg=ours)
    whole = np.array([content["trec_eval"][query]["recip_rank"] for query in queries])
    np.testing.assert_allclose(values["MRR@10"], np.where(whole >= 0.1, whole, 0.0), atol=1e-6)
