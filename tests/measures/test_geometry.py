"""Measures of geometry against scikit-learn, closed forms and published limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn import manifold
from sklearn.neighbors import NearestNeighbors

from sentfold.measures.base.case import Case
from sentfold.measures.geometry import (
    GeometrySettings,
    alignment,
    describe_geometry,
    effective_rank,
    hubness,
    mean_cosine,
    nearest,
    sample_rows,
    squared_distances,
    trustworthiness,
    uniformity,
    unit_rows,
)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 9))
@settings(deadline=None, max_examples=25)
def test_trustworthiness_and_continuity_are_scikit_learns(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 6))
    y = x[:, :3] + 0.5 * rng.standard_normal((40, 3))
    before, after = squared_distances(x), squared_distances(y)
    wanted = manifold.trustworthiness(x, y, n_neighbors=k), manifold.trustworthiness(y, x, n_neighbors=k)
    found = trustworthiness(before, after, k), trustworthiness(after, before, k)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_space_keeps_all_of_itself_and_of_its_rotation() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 5))
    turned = x @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    assert trustworthiness(squared_distances(x), squared_distances(turned), 10) == 1.0


def test_uniformity_is_the_mean_over_pairs_and_has_the_spheres_limit() -> None:
    unit = unit_rows(np.random.default_rng(1).standard_normal((300, 200)))
    np.testing.assert_allclose(uniformity(unit), np.log(np.exp(-2 * pdist(unit) ** 2).mean()), rtol=1e-12)
    # Independent directions in high dimension are at a squared distance of about 2: -4 for t = 2.
    assert uniformity(unit) == pytest.approx(-4, abs=0.1)
    assert uniformity(np.ones((5, 1))) == 0


def test_alignment_and_mean_cosine_are_two_sides_of_one_distance() -> None:
    unit = unit_rows(np.random.default_rng(2).standard_normal((30, 8)))
    everyone = np.array(np.triu_indices(30, 1)).T
    np.testing.assert_allclose(alignment(unit, everyone), 2 - 2 * mean_cosine(unit), rtol=1e-12)
    np.testing.assert_allclose(mean_cosine(unit), 1 - pdist(unit, "cosine").mean(), atol=1e-12)


def test_the_effective_rank_counts_equal_directions_and_not_the_mean() -> None:
    block = np.vstack([np.eye(7), -np.eye(7)])
    assert effective_rank(block + 100) == pytest.approx(7)
    assert effective_rank(np.hstack([block, np.zeros((14, 50))])) == pytest.approx(7)
    assert effective_rank(np.ones((4, 3))) == 0
    rng = np.random.default_rng(3)
    assert 1 <= effective_rank(rng.standard_normal((10, 40))) <= 9


def test_neighbours_are_scikit_learns_and_a_hub_makes_the_counts_skew() -> None:
    x = np.random.default_rng(4).standard_normal((50, 4))
    theirs = NearestNeighbors(n_neighbors=5).fit(x).kneighbors(return_distance=False)
    np.testing.assert_array_equal(nearest(squared_distances(x), 5), np.sort(theirs, axis=1))
    star = np.vstack([np.zeros(30), 10 * np.eye(30)])  # the centre is nearest to all, they are equally far apart
    assert hubness(squared_distances(star), 1) > 5
    ring = np.exp(2j * np.pi * np.arange(12) / 12)
    assert abs(hubness(squared_distances(np.column_stack([ring.real, ring.imag]).round(12)), 2)) < 1e-6


def test_a_sample_is_all_rows_or_a_seeded_share_of_them() -> None:
    np.testing.assert_array_equal(sample_rows(5, at_most=5, seed=0), np.arange(5))
    rows = sample_rows(1000, at_most=50, seed=3)
    np.testing.assert_array_equal(rows, sample_rows(1000, at_most=50, seed=3))
    assert len(set(rows)) == 50 and (np.diff(rows) > 0).all()


def test_one_sentence_has_no_pairs_and_no_nan() -> None:
    case = Case("c", "classification", {}, {}, np.ones((1, 3), dtype=np.float32))
    facts = describe_geometry(case, GeometrySettings(), positive=("", np.empty((0, 2), dtype=np.int64)))
    assert [facts[name] for name in ("effective_rank", "mean_cosine", "uniformity", "hubness")] == [None] * 4
    assert facts["length_mean"] == pytest.approx(3**0.5, abs=1e-3)
