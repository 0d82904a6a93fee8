"""Measures of likeness against plain formulas, and what the Lorentzian distance can and cannot change."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import distance
from scipy.stats import rankdata

from sentfold.measures.base.pairs import BETAS, lorentz_distances, pair_similarities


def pairs_of(seed: int, n: int = 30, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    vectors = (rng.standard_normal((n, d)) * rng.uniform(0.2, 5, (n, 1))).astype(np.float32)
    return vectors, rng.integers(0, n, (50, 2))


def test_each_similarity_is_what_scipy_computes_pair_by_pair() -> None:
    vectors, rows = pairs_of(0)
    found, undefined = pair_similarities(vectors, rows)
    assert undefined == 0
    for place, (i, j) in enumerate(rows):
        x, y = vectors[i].astype(float), vectors[j].astype(float)
        cosine = 1.0 if i == j else 1 - distance.cosine(x, y)
        wanted = {
            "cosine": cosine,
            "abs-cosine": abs(cosine),
            "dot": x @ y,
            "euclidean": -distance.euclidean(x, y),
            "manhattan": -distance.cityblock(x, y),
        }
        for name, value in wanted.items():
            # Sums of 6 float64 products of numbers up to 20.
            np.testing.assert_allclose(found[name][place], value, rtol=1e-12, atol=1e-12)


def literal_lorentz(x: np.ndarray, y: np.ndarray, beta: float) -> float:
    """-2 beta - 2 <g(x), g(y)>_L with 60 digits, where nothing cancels."""
    with localcontext() as context:
        context.prec = 60
        first, second = ([Decimal(float(value)) for value in side] for side in (x, y))
        lifts = [(sum(v * v for v in side) + Decimal(beta)).sqrt() for side in (first, second)]
        product = -lifts[0] * lifts[1] + sum(a * b for a, b in zip(first, second, strict=True))
        return float(max(-2 * Decimal(beta) - 2 * product, Decimal(0)).sqrt())


@given(seed=st.integers(0, 2**32 - 1), beta=st.sampled_from(BETAS), closeness=st.floats(1e-7, 1.0))
@settings(deadline=None, max_examples=60)
def test_the_lorentzian_distance_keeps_its_digits_where_the_points_nearly_meet(
    seed: int, beta: float, closeness: float
) -> None:
    rng = np.random.default_rng(seed)
    x = 3 * rng.standard_normal((4, 5))
    y = x + closeness * rng.standard_normal((4, 5))
    found = lorentz_distances(x, y, beta)
    for row in range(4):
        # The subtraction of the squared lift loses at most the share of the distance that lies along x.
        wanted = literal_lorentz(x[row], y[row], beta)
        np.testing.assert_allclose(found[row], wanted, rtol=1e-6, atol=1e-12)
        assert 0 <= found[row] <= np.linalg.norm(x[row] - y[row]) * (1 + 1e-12)


def test_on_unit_vectors_no_curvature_changes_a_ranking() -> None:
    vectors, rows = pairs_of(1)
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    found, _ = pair_similarities(unit, rows)
    for name in ("euclidean", *(f"lorentz-{beta:g}" for beta in BETAS)):
        # d^2 = 2 - 2 cos; its root amplifies rounding near 0, so equal pairs are told by rounding first.
        np.testing.assert_allclose(found[name] ** 2, 2 - 2 * found["cosine"], atol=1e-14)
        np.testing.assert_array_equal(rankdata(found[name].round(6)), rankdata(found["cosine"].round(12)))


def test_on_vectors_of_unlike_lengths_curvature_changes_the_ranking() -> None:
    found, _ = pair_similarities(*pairs_of(2))
    ranks = {name: tuple(rankdata(found[name])) for name in ("cosine", "lorentz-0.01", "lorentz-1", "lorentz-10")}
    assert len(set(ranks.values())) == 4


def test_a_large_curvature_is_euclidean_and_a_small_one_is_length_times_angle() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((20, 4)), rng.standard_normal((20, 4))
    np.testing.assert_allclose(lorentz_distances(x, y, 1e9), np.linalg.norm(x - y, axis=1), rtol=1e-8)
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(lorentz_distances(x, y, 1e-12) ** 2, 2 * (lengths - (x * y).sum(axis=1)), rtol=1e-6)


def test_a_pair_of_one_text_is_as_alike_as_can_be_and_a_zero_vector_is_counted() -> None:
    vectors = np.array([[0, 0], [1, 2]], dtype=np.float32)
    found, undefined = pair_similarities(vectors, np.array([[1, 1], [0, 1], [0, 0]]))
    assert undefined == 2
    assert found["cosine"].tolist() == [1.0, 0.0, 0.0]
    for name in ("euclidean", "manhattan", *(f"lorentz-{beta:g}" for beta in BETAS)):
        assert found[name][0] == found[name][2] == 0.0 > found[name][1]


def test_blocks_of_pairs_do_not_change_a_value() -> None:
    vectors, _ = pairs_of(4)
    rows = np.random.default_rng(0).integers(0, 30, (2500, 2))
    whole, _ = pair_similarities(vectors, rows)
    tail, _ = pair_similarities(vectors, rows[2000:])
    for name, values in tail.items():
        np.testing.assert_allclose(whole[name][2000:], values, rtol=1e-13, atol=1e-15)
