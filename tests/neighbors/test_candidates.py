"""What is never lost among candidates, the schedule of the blocks, and the bound that certifies float32."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sentfold.neighbors.candidates import Candidates, Quota, offer_tile, quota_after
from sentfold.neighbors.exact import rounding_of_scores
from sentfold.neighbors.neighbors import _slices, _tournament


def scores_of(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    if kind == "few values":
        return -rng.integers(0, 5, shape).astype(np.float32)
    if kind == "all equal":
        return np.full(shape, -0.25, dtype=np.float32)
    if kind == "above zero":  # rounding can make minus a square positive
        return (1e-7 * rng.standard_normal(shape)).astype(np.float32)
    return -rng.random(shape, dtype=np.float32)


def check_promises(held: Candidates, offered: np.ndarray, few: int) -> None:
    """Held scores are those that were offered, and every score that is not held is at most the limit."""
    for row, scores in enumerate(offered):
        ids = held.ids[row, : held.counts[row]]
        assert len(set(ids.tolist())) == len(ids) >= min(few, np.isfinite(scores).sum())
        np.testing.assert_array_equal(held.scores[row, : held.counts[row]], scores[ids])
        assert np.delete(scores, ids).max(initial=-np.inf) <= held.limits[row]


@given(
    kind=st.sampled_from(["uniform", "few values", "all equal", "above zero"]),
    width=st.integers(1, 200),
    wanted=st.integers(1, 30),
    cut=st.integers(0, 200),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=200)
def test_no_score_above_the_limit_is_lost_in_rows_or_in_columns(
    kind: str, width: int, wanted: int, cut: int, seed: int
) -> None:
    offered = scores_of(kind, (37, width), np.random.default_rng(seed))
    rows, columns = Candidates.none_yet(37, wanted), Candidates.none_yet(width, wanted)
    quota, cut = quota_after(1.0, wanted), min(cut, width)
    for part in (slice(0, cut), slice(cut, width)):
        tile = np.ascontiguousarray(offered[:, part])
        halves = (np.zeros(37, dtype=np.float32), np.zeros(tile.shape[1], dtype=np.float32))
        offer_tile(tile, halves, (0, part.start), rows, columns.part(part), quota, diagonal=False)
    check_promises(rows, offered, wanted)
    check_promises(columns, np.ascontiguousarray(offered.T), wanted)


def test_a_diagonal_tile_offers_each_pair_once_and_no_point_to_itself() -> None:
    half = np.random.default_rng(0).random((90, 90), dtype=np.float32)
    offered = -(half + half.T)
    np.fill_diagonal(offered, -np.inf)
    held, halves = Candidates.none_yet(90, 10), np.zeros(90, dtype=np.float32)
    tile = np.where(np.eye(90, dtype=bool), np.float32(0), offered)
    offer_tile(tile, (halves, halves), (0, 0), held, held, quota_after(1.0, 10), diagonal=True)
    check_promises(held, offered, 10)


def test_scores_are_products_less_both_halves_and_columns_that_want_nothing_stay_empty() -> None:
    held, unwanted = Candidates.none_yet(1, 5), Candidates.unwanted(3)
    products = np.array([[4.0, 5.0, 6.0]], dtype=np.float32)
    halves = (np.array([1.0], dtype=np.float32), np.array([8.0, 9.0, 10.0], dtype=np.float32))
    offer_tile(products, halves, (0, 70), held, unwanted, Quota(5, 6, 18), diagonal=False)
    assert held.ids[0, :3].tolist() == [70, 71, 72]
    assert held.scores[0, :3].tolist() == [-5.0, -5.0, -5.0]
    assert unwanted.counts.tolist() == [0, 0, 0]


@given(wanted=st.integers(1, 500), first=st.floats(0, 1), second=st.floats(0, 1))
def test_a_quota_grows_with_the_share_offered_up_to_all_that_are_wanted(
    wanted: int, first: float, second: float
) -> None:
    low, high = (quota_after(share, wanted) for share in sorted((first, second)))
    assert low.few <= high.few <= wanted == quota_after(1.0, wanted).few
    assert low.few <= low.many < low.full <= high.full


def test_a_quota_of_a_random_half_loses_one_of_the_best_in_less_than_one_of_ten_thousand_rows() -> None:
    # How many of the best 38 of 1000 are in a random half is hypergeometric.
    best_so_far = np.random.default_rng(0).hypergeometric(38, 962, 500, 100_000)
    assert (best_so_far > quota_after(0.5, 38).few).mean() < 1e-4


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_in_a_tournament_all_meet_once_and_nobody_is_in_two_pairs_of_a_round(n: int) -> None:
    parts = _slices(10 * n, 10)
    rounds = list(_tournament(parts))
    assert rounds[0] == [(part, part) for part in parts]
    met = [frozenset((a.start, b.start)) for pairs in rounds[1:] for a, b in pairs]
    assert sorted(map(sorted, met)) == sorted([a.start, b.start] for a, b in combinations(parts, 2))
    for pairs in rounds[1:]:
        seated = [part.start for pair in pairs for part in pair]
        assert len(set(seated)) == len(seated)


@given(n=st.integers(1, 400), block=st.integers(1, 120))
def test_slices_cover_everything_once_in_parts_of_at_most_a_block(n: int, block: int) -> None:
    parts = _slices(n, block)
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(n))
    assert max(part.stop - part.start for part in parts) <= block


@given(d=st.integers(1, 400), exponent=st.integers(-30, 0), seed=st.integers(0, 2**32 - 1))
@example(d=400, exponent=-30, seed=0)
@settings(deadline=None, max_examples=100)
def test_float32_scores_stay_within_their_bound(d: int, exponent: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((20, d)) / np.sqrt(d) * 10.0 ** (exponent * rng.random((20, 1)))
    x[10:] = x[:10] + 1e-6 * x[:10] * rng.standard_normal((10, d))  # cancellation is where float32 is worst
    single, halves = x.astype(np.float32), (np.square(x).sum(axis=1) / 2).astype(np.float32)
    scores = (single @ single.T - halves[:, None]) - halves
    exact = -np.square(x[:, None] - x[None]).sum(axis=2) / 2
    lengths = np.square(x).sum(axis=1)
    rounding = rounding_of_scores(d)
    bound = rounding.relative * (lengths[:, None] + lengths) + rounding.absolute
    assert (np.abs(scores - exact) <= bound).all()
