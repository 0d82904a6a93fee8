"""Search methods against their definitions, and controls: rotations change nothing, shuffled graphs gain nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

from sentfold.errors import ParameterError
from sentfold.retrieval import binary, diffusion, querybank, shortest_path
from sentfold.retrieval.base.measures import measure_queries
from sentfold.retrieval.base.pool import Pool, fold_queries, make_pool
from sentfold.retrieval.base.protocol import FOLDS, Source, find_search, known_searches, search, search_points
from sentfold.retrieval.base.ranking import Ranking, unit_rows

DOCUMENTS, QUERIES, D = 120, 40, 16


def clusters(seed: int = 0) -> tuple[np.ndarray, Pool]:
    """Documents in 12 groups of 10; each query is near one document, and the whole group is relevant."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((12, D))
    documents = np.repeat(centres, 10, axis=0) + 0.75 * rng.standard_normal((DOCUMENTS, D))
    near = rng.integers(0, DOCUMENTS, QUERIES)
    queries = documents[near] + 0.75 * rng.standard_normal((QUERIES, D))
    pairs = [(DOCUMENTS + q, 10 * (near[q] // 10) + i) for q in range(QUERIES) for i in range(10)]
    return np.vstack([documents, queries]).astype(np.float32), make_pool(np.array(pairs), np.ones(len(pairs)))


X, POOL = clusters()
BANK = np.random.default_rng(9).standard_normal((50, D)).astype(np.float32) + X[:50]
UNIT = unit_rows(X)
SOURCE = Source(UNIT[:DOCUMENTS], unit_rows(BANK), (UNIT[DOCUMENTS:], UNIT[:QUERIES]))


def found(name: str, x: np.ndarray = X, bank: np.ndarray = BANK, **settings: Any) -> Ranking:
    method = find_search(name)
    return search(method, method.Settings(**settings), x, POOL, bank=bank)


def score(name: str, **settings: Any) -> np.ndarray:
    method = find_search(name)
    return method.prepare(SOURCE, method.Settings(**settings))(UNIT[DOCUMENTS:])


def mean_map(ranking: Ranking) -> float:
    return float(measure_queries(ranking, POOL)["MAP"].mean())


COSINES = UNIT[DOCUMENTS:] @ UNIT[:DOCUMENTS].T


@pytest.mark.parametrize("name", known_searches())
def test_a_search_gives_every_query_the_scores_that_it_would_get_alone(name: str) -> None:
    method = find_search(name)
    assert method.LEARNS in ("documents", "bank", "judgements")
    assert method.TITLE
    scorer = method.prepare(SOURCE, method.Settings())
    together = scorer(UNIT[DOCUMENTS:])
    assert together.shape == (QUERIES, DOCUMENTS)
    assert together.dtype == np.float32
    alone = np.vstack([scorer(UNIT[DOCUMENTS + q : DOCUMENTS + q + 1]) for q in range(QUERIES)])
    np.testing.assert_allclose(together, alone, atol=2e-6)


@pytest.mark.parametrize("name", sorted({*known_searches()} - {"binary"}))
def test_a_rotation_of_all_vectors_leaves_every_measure_as_it_is(name: str) -> None:
    skew = np.random.default_rng(3).standard_normal((D, D))
    rotation = expm(skew - skew.T)
    plain, turned = (found(name, (X @ r).astype(np.float32), BANK @ r) for r in (np.eye(D), rotation))
    for measure, values in measure_queries(plain, POOL).items():
        assert measure_queries(turned, POOL)[measure].mean() == pytest.approx(values.mean(), abs=1e-6), measure


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("query_pca", {"components": D}),
        ("nnn", {"weight": 0.0}),
        ("feedback", {"weight": 0.0}),
        ("diffusion", {"weight": 0.0}),
        ("shortest_path", {"weight": 0.0}),
        ("adapter", {"ridge": 1e6}),
    ],
)
def test_a_search_with_nothing_to_do_is_the_cosine(name: str, settings: dict[str, float]) -> None:
    np.testing.assert_allclose(score(name, **settings), COSINES, atol=2e-6 if name != "adapter" else 1e-4)


def test_query_pca_moves_each_query_to_its_nearest_point_of_the_principal_plane() -> None:
    documents, queries = UNIT[:DOCUMENTS].astype(np.float64), UNIT[DOCUMENTS:].astype(np.float64)
    mean = documents.mean(axis=0)
    axes = np.linalg.svd(documents - mean)[2][:3]
    expected = (mean + (queries - mean) @ axes.T @ axes) @ documents.T
    np.testing.assert_allclose(score("query_pca", components=3), expected, atol=2e-6)


def test_csls_is_its_formula_and_orders_as_normalisation_by_half_the_mean() -> None:
    among = UNIT[:DOCUMENTS] @ UNIT[:DOCUMENTS].T - 9 * np.eye(DOCUMENTS)
    r = np.sort(among, axis=1)[:, -4:].mean(axis=1)
    np.testing.assert_allclose(score("csls", neighbors=4), COSINES - r / 2, atol=2e-6)
    bank = np.sort(UNIT[:DOCUMENTS] @ SOURCE.known_bank.T, axis=1)[:, -4:].mean(axis=1)
    np.testing.assert_allclose(score("nnn", neighbors=4, weight=0.5), COSINES - bank / 2, atol=2e-6)


def test_a_querybank_orders_by_the_inverted_softmax_where_the_first_document_is_active() -> None:
    scores = querybank.prepare(SOURCE, querybank.Settings(sharpness=7.0))(UNIT[DOCUMENTS:])
    bank = SOURCE.known_bank @ UNIT[:DOCUMENTS].T
    softmax = np.exp(7 * COSINES) / np.exp(7 * bank).sum(axis=0)
    active = np.isin(COSINES.argmax(axis=1), bank.argmax(axis=1))
    assert 0 < active.sum() < QUERIES
    np.testing.assert_allclose(scores[active], np.log(softmax[active]) / 7, atol=2e-6)
    np.testing.assert_array_equal(scores[~active], COSINES[~active])


def test_feedback_asks_with_the_mean_of_the_query_and_its_first_documents() -> None:
    expected = np.empty_like(COSINES)
    for q, row in enumerate(COSINES):
        first = UNIT[np.argsort(-row)[:2]].mean(axis=0)
        expected[q] = UNIT[:DOCUMENTS] @ (0.7 * UNIT[DOCUMENTS + q] + 0.3 * first)
    np.testing.assert_allclose(score("feedback", found=2, weight=0.3), expected, atol=2e-6)


def test_binary_codes_order_by_hamming_distance_and_rescored_documents_by_the_whole_query() -> None:
    bits = X > 0
    hamming = (bits[DOCUMENTS:, None] != bits[None, :DOCUMENTS]).sum(axis=2)
    np.testing.assert_array_equal(score("binary", rescored=0), D - 2 * hamming)
    scores = score("binary", rescored=5)
    for q in range(QUERIES):
        candidates = np.lexsort((np.arange(DOCUMENTS), hamming[q]))[:5]
        whole = np.where(bits[candidates], 1, -1) @ UNIT[DOCUMENTS + q] / np.sqrt(D)
        np.testing.assert_allclose(scores[q, candidates], whole, atol=2e-6)  # from -1 to 1
        rest = np.setdiff1d(np.arange(DOCUMENTS), candidates)
        np.testing.assert_array_equal(scores[q, rest], -2 * D - 2 * hamming[q, rest])  # below -1
    assert set(np.unique(binary.signs(np.array([-1.0, 0.0, 2.0])))) == {-1, 1}


def test_diffusion_converges_to_the_solution_of_its_linear_system() -> None:
    settings = diffusion.Settings(neighbors=6, steps=200, weight=1.0, damping=0.8, found=5, power=2.0)
    graph = diffusion.mutual_graph(SOURCE, settings).toarray().astype(np.float64)
    np.testing.assert_allclose(graph, graph.T, atol=1e-7)
    assert np.abs(np.linalg.eigvalsh(graph)).max() <= 1 + 1e-6
    start = np.where(np.sort(COSINES, axis=1)[:, -5:-4] <= COSINES, np.maximum(COSINES, 0) ** 2, 0)
    solution = 0.2 * np.linalg.solve(np.eye(DOCUMENTS) - 0.8 * graph, start.T).T
    scores = diffusion.prepare(SOURCE, settings)(UNIT[DOCUMENTS:])
    np.testing.assert_allclose(scores, solution / solution.max(axis=1, keepdims=True), atol=1e-5)


def test_the_paths_are_those_that_relaxing_every_edge_again_and_again_finds() -> None:
    settings = shortest_path.Settings(neighbors=3)
    edges = np.full((DOCUMENTS, DOCUMENTS), np.inf)
    chords = np.sqrt(np.maximum(2 - 2 * UNIT[:DOCUMENTS].astype(np.float64) @ UNIT[:DOCUMENTS].T, 0))
    np.fill_diagonal(chords, np.inf)
    for row, near in enumerate(np.argsort(chords, axis=1)[:, :3]):
        edges[row, near] = edges[near, row] = chords[row, near]
    direct = np.sqrt(2 - 2 * COSINES.astype(np.float64))
    paths = np.where(direct <= np.sort(direct, axis=1)[:, 2:3], direct, np.inf)
    for _ in range(DOCUMENTS):  # Bellman and Ford
        paths = np.minimum(paths, (paths[:, :, None] + edges).min(axis=1))
    got = np.sqrt(2 - 2 * shortest_path.prepare(SOURCE, settings)(UNIT[DOCUMENTS:]).astype(np.float64))
    reached = np.isfinite(paths)
    np.testing.assert_allclose(got[reached], paths[reached], atol=1e-5)
    assert (paths[reached] >= direct[reached] - 1e-9).all(), "no path is shorter than the straight line"
    longest = np.where(reached, paths, 0).max(axis=1, keepdims=True)
    assert (got >= longest - 1e-5)[~reached].all(), "what no path reaches comes last"


def test_paths_gain_on_clusters_and_over_a_shuffled_graph_they_do_not() -> None:
    plain = mean_map(found("cosine"))
    assert mean_map(found("shortest_path", neighbors=5, weight=0.5)) > plain
    for seed in range(3):
        assert mean_map(found("shortest_path", neighbors=5, weight=0.5, shuffled=seed)) <= plain


def test_diffusion_gains_on_clusters_and_a_shuffled_graph_does_not() -> None:
    plain = mean_map(found("cosine"))
    assert mean_map(found("diffusion")) > plain + 0.03
    for seed in range(5):
        assert mean_map(found("diffusion", shuffled=seed)) <= plain + 0.005


def test_an_adapter_is_ridge_regression_towards_the_identity() -> None:
    asked, relevant = (side.astype(np.float64) for side in SOURCE.pairs or ())
    ridge = 0.1 * np.trace(asked.T @ asked) / D
    # The same minimum as least squares on pairs and, below them, rows that say W = I.
    rows = np.vstack([asked, np.sqrt(ridge) * np.eye(D)])
    matrix = np.linalg.lstsq(rows, np.vstack([relevant, np.sqrt(ridge) * np.eye(D)]))[0]
    expected = UNIT[DOCUMENTS:] @ matrix @ UNIT[:DOCUMENTS].T
    np.testing.assert_allclose(score("adapter", ridge=0.1), expected, atol=1e-5)


def test_an_adapter_learns_a_rotation_of_the_queries_from_other_folds_and_nothing_from_noise() -> None:
    rng = np.random.default_rng(4)
    documents = rng.standard_normal((300, D)).astype(np.float32)
    skew = rng.standard_normal((D, D)) / 4
    turn = expm(skew - skew.T)
    pool = make_pool(np.column_stack([300 + np.arange(300), np.arange(300)]), np.ones(300))
    adapter, cosine = find_search("adapter"), find_search("cosine")

    def scores(x: np.ndarray) -> list[float]:
        x = x.astype(np.float32)
        return [
            measure_queries(search(method, settings, x, pool), pool)["MRR@10"].mean()
            for method, settings in ((cosine, cosine.Settings()), (adapter, adapter.Settings(ridge=0.1)))
        ]

    before, after = scores(np.vstack([documents, documents @ turn]))
    assert after > before + 0.2
    before, after = scores(np.vstack([documents, rng.standard_normal((300, D))]))
    assert after < before + 0.03  # a fit that had seen its own fold would find some of its documents


def test_a_search_that_needs_a_bank_says_so() -> None:
    for name in ("nnn", "querybank"):
        method = find_search(name)
        with pytest.raises(ParameterError, match="needs a bank of queries"):
            method.prepare(Source(SOURCE.documents), method.Settings())


def test_without_a_bank_a_query_is_searched_by_the_queries_of_other_folds() -> None:
    method = find_search("nnn")
    settings = method.Settings(neighbors=3, weight=0.5)
    ranking = search(method, settings, X, POOL, seed=5)
    for fold in fold_queries(POOL, FOLDS, seed=5):
        others = np.delete(X[POOL.queries], fold, axis=0)
        alone = search(method, settings, X, POOL, bank=others)
        np.testing.assert_array_equal(ranking.top[fold], alone.top[fold])


def test_points_that_are_searched_together_rank_as_each_does_alone() -> None:
    """The neighbours of the largest k serve all points: those of a smaller k are the first of them, bit for bit."""
    for name in ("csls", "diffusion"):
        method = find_search(name)
        points = [method.Settings(neighbors=k) for k in (2, 7, 4)]
        together = search_points(method, points, X, POOL)
        for point, ranking in zip(points, together, strict=True):
            alone = search(method, point, X, POOL)
            assert np.array_equal(ranking.top, alone.top) and np.array_equal(ranking.scores, alone.scores)


@pytest.mark.parametrize(
    ("factor", "dtype"), [(1e-100, np.float64), (1e100, np.float64), (1e30, np.float32), (1e-43, np.float32)]
)
def test_vectors_that_float32_cannot_divide_by_their_length_are_refused(factor: float, dtype: type) -> None:
    for row, name in ((3, "document 3"), (DOCUMENTS + 2, "query 2")):
        x: np.ndarray = X.astype(dtype)
        x[row] *= dtype(factor)
        with pytest.raises(ParameterError) as caught:
            found("cosine", x)
        assert caught.value.where == name
    with pytest.raises(ParameterError) as caught:
        found("nnn", bank=BANK.astype(dtype) * dtype(factor))
    assert caught.value.where == "row of the bank 0"


def test_zero_vectors_and_vectors_of_other_lengths_are_searched() -> None:
    x = X * 1e12
    x[5] = 0
    np.testing.assert_array_equal(found("cosine", x).top == 5, found("cosine", x * np.float32(2**-70)).top == 5)
