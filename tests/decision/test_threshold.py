"""The threshold of a match, on pairs whose distributions are known, and against scikit-learn and exhaustive search."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from math import ceil, floor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest, norm
from sklearn.metrics import precision_recall_curve

import sentfold
from sentfold.data.tables import DataError
from sentfold.decision.shares import Labelled, bound_share, certify_above, certify_below
from sentfold.decision.threshold import (
    best_cut,
    crossfit,
    find_threshold,
    judge_cuts,
    judge_procedure,
    matches_from,
    round_cut,
    show_cut,
)

SIMULATIONS = 200
MATCHES, OTHERS, SPREAD = 0.7, 0.4, 0.12  # cosines of matches and of other pairs: normal, with one deviation


def simulate(n: int, number: int, *, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([77, number])
    match = rng.random(n) < share
    return np.where(match, MATCHES, OTHERS) + SPREAD * rng.standard_normal(n), match


def labelled(n: int, number: int, **options: float) -> Labelled:
    cosines, match = simulate(n, number, share=options.pop("share", 0.5))
    return Labelled(cosines, match, np.arange(n), **options)


def called(cuts: np.ndarray) -> tuple[float, float]:
    """The true shares of matches and of other pairs that are called matches by cuts, one for each pair."""
    return norm.sf(cuts, MATCHES, SPREAD).mean(), norm.sf(cuts, OTHERS, SPREAD).mean()


def test_a_bound_of_a_share_is_the_one_that_scipy_gives_and_copies_in_a_group_change_nothing() -> None:
    hits = np.arange(40) < 3
    exact = binomtest(3, 40).proportion_ci(0.95, method="exact")
    assert np.allclose(bound_share(hits, np.arange(40), level=0.025), (exact.low, exact.high), rtol=1e-9)
    copied = bound_share(np.repeat(hits, 7), np.repeat(np.arange(40), 7), level=0.025)
    assert np.allclose(copied, (exact.low, exact.high), rtol=1e-9)
    assert bound_share(np.zeros(149, dtype=bool), np.arange(149), level=0.05)[1] <= 0.02  # 0.98^149 < 0.05
    assert bound_share(np.zeros(148, dtype=bool), np.arange(148), level=0.05)[1] > 0.02


def test_the_best_cut_has_the_largest_f1_that_scikit_learn_finds_with_ties_and_weights_too() -> None:
    rng = np.random.default_rng(1)
    cosines, match = np.round(rng.random(200), 2), rng.random(200) < 0.4
    weights = rng.integers(0, 4, size=(20, 200)).astype(float)
    pairs = Labelled(cosines, match, np.arange(200))
    for row, cut in zip(weights, best_cut(pairs, weights), strict=True):
        precision, recall, _ = precision_recall_curve(match, cosines, sample_weight=row)
        largest = np.nanmax(2 * precision * recall / np.maximum(precision + recall, 1e-12))
        hit, chosen = row[(cosines >= cut) & match].sum(), row[cosines >= cut].sum()
        assert 2 * hit / (chosen + row[match].sum()) == pytest.approx(largest, abs=1e-12)


@pytest.mark.parametrize("base_rate", [None, 0.1])
def test_intervals_of_precision_recall_and_f1_hold_the_values_that_the_distributions_have(
    base_rate: float | None,
) -> None:
    rate = 0.5 if base_rate is None else base_rate
    missed, widths, normal = np.zeros(3), [], []
    for number in range(SIMULATIONS):
        pairs = labelled(300, number) if base_rate is None else labelled(300, number, base_rate=base_rate)
        cuts = crossfit(pairs, seed=number)
        hit, wrong = called(cuts)
        precision = rate * hit / (rate * hit + (1 - rate) * wrong)
        truths = (precision, hit, 2 * precision * hit / (precision + hit))
        shares = judge_cuts(pairs, cuts)
        missed += [not share.low <= truth <= share.high for share, truth in zip(shares, truths, strict=True)]
        assert all(share.low <= share.value <= share.high for share in shares)
        widths.append(shares[1].high - shares[1].low)
        normal.append(2 * 1.96 * np.sqrt(hit * (1 - hit) / pairs.match.sum()))
    assert (missed <= binom.ppf(1 - 1e-4, SIMULATIONS, 0.05)).all(), missed
    assert np.mean(widths) < 1.2 * np.mean(normal)  # an exact interval is longer than a normal one, by a little


@pytest.mark.parametrize("n", [120, 2000])
def test_intervals_hold_the_values_of_the_printed_cut(n: int) -> None:
    missed, folds_alone = np.zeros(3), np.zeros(3)
    for number in range(SIMULATIONS):
        pairs = labelled(n, number)
        cut, cuts = best_cut(pairs, np.ones((1, n)))[0], crossfit(pairs, seed=number)
        hit, wrong = called(np.array([cut]))
        truths = (hit / (hit + wrong), hit, 2 * hit / (1 + hit + wrong))
        for count, shares in ((missed, judge_procedure(pairs, cuts, cut)), (folds_alone, judge_cuts(pairs, cuts))):
            count += [not share.low <= truth <= share.high for share, truth in zip(shares, truths, strict=True)]
    most = binom.ppf(1 - 1e-4, SIMULATIONS, 0.05)
    assert (missed <= most).all(), missed
    if n == 2000:
        assert (folds_alone[:2] > most).all(), folds_alone  # which is why they are joined


def test_pairs_that_are_held_out_choose_no_cut() -> None:
    """Four fifths of two classes that lie far apart have their cut in the middle, and so find all matches."""
    rng = np.random.default_rng(0)
    match = np.arange(40) % 2 == 0
    cosines = np.where(match, rng.uniform(0.8, 0.9, 40), rng.uniform(0.1, 0.2, 40))
    pairs = Labelled(cosines, match, np.arange(40))
    for seed in range(20):
        cuts = crossfit(pairs, seed=seed)
        assert ((cuts > 0.4) & (cuts < 0.6)).all()
    weights = rng.integers(0, 3, size=(50, 40)).astype(float)
    for row, cut in zip(weights, best_cut(pairs, weights), strict=True):
        drawn = row > 0
        assert best_cut(Labelled(cosines[drawn], match[drawn], np.arange(drawn.sum())), row[None, drawn])[0] == cut


@pytest.mark.parametrize("to_whole", [round, floor, ceil])
def test_a_printed_cut_has_the_digits_that_keep_pairs_on_their_side(to_whole: Callable[[float], int]) -> None:
    rng = np.random.default_rng(0)
    wide, close = rng.random(500), 0.999 + 1e-6 * rng.random(500)
    for cosines, digits in ((wide, 5), (close, 11)):
        ordered = np.sort(cosines)
        for place in (10, 250, 480):
            exact = float(ordered[place] + ordered[place + 1]) / 2
            cut = round_cut(exact, cosines, to_whole)
            assert (cosines >= cut).sum() == (cosines >= exact).sum()  # of 500 pairs none may change sides
            assert float(show_cut(cut)) == cut and len(show_cut(cut)) <= 2 + digits
    assert show_cut(0.3) == "0.300"


def test_a_cut_judged_by_the_pairs_that_chose_it_is_flattered_and_a_cross_fitted_one_is_not() -> None:
    own, crossed, truth = [], [], []
    for number in range(SIMULATIONS):
        pairs = labelled(60, number)
        cut, cuts = best_cut(pairs, np.ones((1, 60)))[0], crossfit(pairs, seed=number)
        hit, wrong = called(cuts)
        own.append(judge_cuts(pairs, cut)[2].value)
        crossed.append(judge_cuts(pairs, cuts)[2].value)
        truth.append(2 * hit / (1 + hit + wrong))
    error = 4 * np.std(np.array(crossed) - truth) / np.sqrt(SIMULATIONS)
    assert abs(np.mean(crossed) - np.mean(truth)) < error + 0.005  # a ratio of 60 pairs has a bias of this order
    assert np.mean(own) - np.mean(truth) > 0.015


def share_below(cut: float) -> float:
    return float(norm.cdf(cut, MATCHES, SPREAD) / (norm.cdf(cut, MATCHES, SPREAD) + norm.cdf(cut, OTHERS, SPREAD)))


@pytest.mark.parametrize("grouped", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_certified_band_breaks_its_promise_in_at_most_5_of_100_data_sets(grouped: bool) -> None:
    broken, found = np.zeros(2), np.zeros(2)
    for number in range(SIMULATIONS):
        pairs = labelled(2000, number)
        if grouped:  # each pair three times, as pairs of one group
            groups = np.repeat(np.arange(2000), 3)
            pairs = Labelled(np.repeat(pairs.cosines, 3), np.repeat(pairs.match, 3), groups)
        below, above = certify_below(pairs, 0.02), certify_above(pairs, 0.95)
        found += [below is not None, above is not None]
        broken += [
            below is not None and share_below(below.cut) > 0.02,
            above is not None and 1 - share_below(MATCHES + OTHERS - above.cut) < 0.95,  # the two sides are mirrored
        ]
    assert (broken <= binom.ppf(1 - 1e-4, SIMULATIONS, 0.05)).all(), broken
    assert (found >= 0.5 * SIMULATIONS).all(), found


def test_no_band_is_certified_where_cosines_tell_nothing_or_pairs_are_few() -> None:
    certified = 0
    for number in range(SIMULATIONS):
        rng = np.random.default_rng([78, number])
        match = rng.random(1000) < 0.03  # everywhere three in a hundred: no band of at most two
        certified += certify_below(Labelled(rng.random(1000), match, np.arange(1000)), 0.02) is not None
    assert certified <= binom.ppf(1 - 1e-4, SIMULATIONS, 0.05)
    assert certify_below(labelled(100, 0), 0.02) is None  # 149 pairs without a match are the fewest that can tell


@pytest.mark.slow
def test_a_band_at_a_base_rate_keeps_its_promise_at_that_rate() -> None:
    broken = found = 0
    for number in range(SIMULATIONS):
        above = certify_above(labelled(1500, number, base_rate=0.3), 0.9)
        if above is not None:
            found += 1
            hit, wrong = called(np.array([above.cut]))
            broken += 0.3 * hit / (0.3 * hit + 0.7 * wrong) < 0.9
    assert found > SIMULATIONS / 2
    assert broken <= binom.ppf(1 - 1e-4, SIMULATIONS, 0.05)


@pytest.mark.parametrize("copies", [1, 4])  # of each left text, as pairs of one group
def test_where_fewer_pairs_are_matches_than_may_be_wrong_a_band_is_found(copies: int) -> None:
    """Of all pairs 1% are matches there, so at most 2% of those below the largest cosine are: arithmetic."""
    for number in range(50):
        cosines, match = simulate(400, number, share=0.25)
        pairs = Labelled(cosines, match, np.arange(400) // copies, base_rate=0.01)
        band = certify_below(pairs, 0.02)
        assert band is not None and band.share > 0.9, number


@pytest.mark.parametrize("base_rate", [None, 0.03, 0.05, 0.3])
def test_no_cosine_is_in_both_bands(base_rate: float | None) -> None:
    """Of many other pairs, few in sum are matches also below a cosine that only matches have."""
    rng = np.random.default_rng(0)
    match = np.arange(2000) % 2 == 0
    cosines = np.where(match, rng.normal(0.75, 0.06, 2000), rng.normal(0.3, 0.08, 2000))
    found = find_threshold(cosines, match, base_rate=base_rate)
    assert found.below is not None and found.below.cut <= found.cut
    assert found.above is None or found.above.cut >= found.cut


@pytest.mark.parametrize("share", [0.0485, 0.04, 0.02])  # the highest of twenty quantiles has 5% of the pairs
def test_few_matches_that_all_others_are_far_below_have_an_upper_band(share: float) -> None:
    match = np.arange(20_000) < 20_000 * share
    cosines = np.random.default_rng(1).uniform(np.where(match, 0.8, 0.1), np.where(match, 0.95, 0.5))
    above = find_threshold(cosines, match).above
    assert above is not None and 0.5 < above.cut <= 0.81 and above.wrong.value == 0


@pytest.mark.slow
def test_bands_that_end_at_the_printed_cosine_keep_their_promise() -> None:
    """The cosine is chosen by the same labels."""
    broken = np.zeros(2)
    for number in range(SIMULATIONS):
        rng = np.random.default_rng([4, number])
        match = rng.random(1000) < 0.1
        pairs = Labelled(rng.normal(np.where(match, 0.85, 0.4), 0.12), match, np.arange(1000))
        (cut,) = best_cut(pairs, np.ones((1, 1000)))
        below, above = certify_below(pairs, 0.02, until=cut), certify_above(pairs, 0.95, until=cut)
        for place, band in enumerate((below, above)):
            if band is not None:
                sides = norm.cdf if band is below else norm.sf
                matches, others = 0.1 * sides(band.cut, 0.85, 0.12), 0.9 * sides(band.cut, 0.4, 0.12)
                true = matches / (matches + others)
                broken[place] += true > 0.02 if band is below else true < 0.95
    assert (broken <= binom.ppf(1 - 1e-4, SIMULATIONS, 0.05)).all(), broken


def test_the_upper_band_has_the_pairs_at_the_printed_cosine() -> None:
    rng = np.random.default_rng(0)
    cosines = np.r_[np.ones(150), rng.uniform(0.2, 0.99, 590), rng.uniform(0.9992, 0.9997, 10)]
    above = certify_above(Labelled(cosines, np.arange(750) < 150, np.arange(750)), 0.95, until=1.0)
    assert above is not None and above.cut == 1.0 and above.share == 150 / 750 and above.wrong.value == 0


def test_all_of_it_in_a_few_lines_and_pairs_that_share_texts_count_as_one() -> None:
    cosines, match = simulate(400, 5)
    alone = find_threshold(cosines, match)
    assert alone.low <= alone.cut <= alone.high
    assert 0.5 < alone.cut < 0.6  # the densities cross at 0.55
    assert len(alone.describe().splitlines()) <= 12
    rows = np.arange(800).reshape(-1, 2)
    chained = np.repeat(rows, 4, axis=0)
    copies = find_threshold(np.repeat(cosines, 4), np.repeat(match, 4), rows=chained)
    assert copies.groups == 400
    assert copies.cut == alone.cut
    assert copies.recall.high - copies.recall.low == pytest.approx(alone.recall.high - alone.recall.low, rel=0.1)


def test_texts_are_told_apart_by_whatever_names_they_have() -> None:
    cosines, match = simulate(100, 7)
    rows = np.random.default_rng(0).choice(2_000, size=(100, 2))
    alike = find_threshold(cosines, match, rows=rows)
    for names in (rows * 10**15 - 5, rows.tolist(), np.strings.zfill(rows.astype(str), 4)):
        assert find_threshold(cosines, match, rows=names) == alike


def test_forms_of_one_text_are_one_text_as_in_the_command() -> None:
    """Of 100 data sets of pairs in four forms each, 31 intervals of precision left out the truth."""
    cosines, match = (np.repeat(values, 4) for values in simulate(100, 7))
    forms = [str.lower, str.upper, str.title, lambda text: f"{text} !"]
    rows = [[form(f"{side} number {pair}") for side in ("left", "right")] for pair in range(100) for form in forms]
    assert find_threshold(cosines, match, rows=rows).groups == 100
    mixed = np.array(rows, dtype=object)
    mixed[:, 1] = np.arange(400)  # each number stands for another text
    assert find_threshold(cosines, match, rows=mixed).groups == 400
    for missing in (None, float("nan"), pd.NA):
        mixed[5, 1] = missing
        with pytest.raises(DataError, match="a text is missing"):
            find_threshold(cosines, match, rows=mixed)


def test_arrays_that_do_not_fit_are_refused() -> None:
    cosines, match = simulate(100, 7)
    holed = cosines.copy()
    holed[3] = np.nan
    with pytest.raises(DataError, match="a cosine is not finite") as refused:
        find_threshold(holed, match)
    assert "row 3" in refused.value.where
    for values, flags, rows in (
        (cosines[:99], match, None),
        (cosines[:, None], match, None),
        (cosines, match, np.arange(100)),
        (cosines, match, np.arange(198).reshape(-1, 2)),
    ):
        with pytest.raises(DataError, match="do not fit each other"):
            find_threshold(values, flags, rows=rows)


@pytest.mark.parametrize("missing", [np.nan, None, -1, 3, "0"])
def test_a_pair_that_nobody_judged_is_no_match(missing: object) -> None:
    cosines, match = simulate(100, 7)
    flags = match.astype(object)
    flags[3] = missing
    with pytest.raises(DataError, match=r"(?s)neither a match nor none.*row 3"):
        find_threshold(cosines, flags)
    flags[3] = match[3]
    assert find_threshold(cosines, flags) == find_threshold(cosines, match) == find_threshold(cosines, match * 1.0)


def test_matches_with_lower_cosines_than_other_pairs_are_refused() -> None:
    cosines, match = simulate(100, 8)
    with pytest.raises(DataError, match="matches have lower cosines") as refused:
        find_threshold(cosines, ~match)
    higher = np.mean(cosines[~match][:, None] > cosines[match])
    assert f"in {100 * higher:.0f}%" in refused.value.got


@pytest.mark.slow
def test_copies_of_texts_are_no_further_pairs(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    lines = [f"{2 * pair + shift},{2 * pair + 1 + shift},{pair % 2}" for shift in (0, 80) for pair in range(40)]
    (tmp_path / "pairs.csv").write_text("\n".join(["row1,row2,score", *lines]))
    x = rng.normal(size=(40, 2, 8))
    x[1::2, 1] = x[1::2, 0] + 0.5 * rng.normal(size=(20, 8))
    np.save(tmp_path / "x.npy", np.tile(x.reshape(80, 8), (2, 1)))
    code = "from sentfold.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "threshold", "pairs.csv", "--vectors", "x.npy"],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "80 pairs in 40 independent groups" in done.stdout
    assert "80 texts have the vector of an earlier one" in done.stderr


def test_bands_that_overlap_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="the bands overlap"):
        find_threshold(rng.uniform(size=100), rng.uniform(size=100) < 0.5, few=0.9, most=0.1)


def test_what_cannot_be_judged_is_refused() -> None:
    cosines, match = simulate(100, 6)
    with pytest.raises(DataError, match="one kind"):
        find_threshold(cosines, np.ones(100, dtype=bool))
    star = np.column_stack([np.zeros(100, dtype=np.int64), np.arange(1, 101)])
    with pytest.raises(DataError, match="independent"):
        find_threshold(cosines, match, rows=star)
    with pytest.raises(DataError, match="graded"):
        matches_from(np.array([0.0, 2.5, 5.0]), None)
    assert matches_from(np.array([0.0, 2.5, 5.0]), 2.5).tolist() == [False, True, True]
    assert matches_from(np.array([0.0, 1.0]), None).tolist() == [False, True]
    assert matches_from(np.array([1e9, 1e9 + 1]), None).tolist() == [False, True]
    stored = np.array([3.6, 3.8, 4.0], dtype=np.float32).astype(np.float64)  # as datasets stores the scores of STSb
    assert stored[1] < 3.8
    assert matches_from(stored, 3.8).tolist() == [False, True, True]


def test_matches_that_come_in_larger_groups_than_other_pairs_certify_no_more_than_5_percent_wrongly() -> None:
    groups = np.r_[np.repeat(np.arange(40), 8), np.arange(40, 920)]  # 40 groups of 8 pairs, and 880 pairs alone
    wrong = 0
    for run in range(SIMULATIONS):
        rng = np.random.default_rng([5, run])
        match = np.r_[np.repeat(rng.random(40) < 0.04, 8), np.zeros(880, dtype=bool)]  # in true terms 1.07%
        wrong += certify_below(Labelled(rng.random(1_200), match, groups), 0.0106) is not None
    assert wrong <= 0.05 * SIMULATIONS + 5


def test_wrong_matches_that_come_in_groups_are_in_the_intervals_of_precision_and_f1() -> None:
    """300 matches of texts of their own, and 60 texts with 20 others each; 1 of 20 of these is near all of its own."""
    groups = np.r_[np.arange(300), 300 + np.repeat(np.arange(60), 20)]
    match, missed = groups < 300, np.zeros(3)
    truths = (300 / 360, 1.0, 2 * 300 / 660)
    for run in range(SIMULATIONS):
        hot = np.repeat(np.random.default_rng([6, run]).random(60) < 0.05, 20)
        shares = judge_cuts(Labelled(np.r_[np.ones(300), hot], match, groups), 0.5)
        missed += [not share.low <= truth <= share.high for share, truth in zip(shares, truths, strict=True)]
    assert (missed <= 0.1 * SIMULATIONS).all(), missed  # half of them are data sets without a single such text


def test_masked_values_are_refused() -> None:
    """numpy hands out what is behind the mask, such as -9999 for a missing score."""
    rng = np.random.default_rng(0)
    x, cosines = rng.normal(size=(200, 8)), rng.uniform(size=100)
    hidden, rows = np.arange(100) == 7, (np.arange(100), np.arange(100, 200))
    for part in (rng.normal(size=100), rng.integers(0, 2, 100)):
        masked = np.ma.masked_array(part, hidden)
        for call in (
            lambda masked=masked: find_threshold(cosines, masked),
            lambda masked=masked: find_threshold(masked, cosines > 0.5),
            lambda masked=masked: sentfold.decide(x, pairs=(*rows, masked)),
            lambda masked=masked: sentfold.compress(x, labels=(rows[0], masked), margin=5),
        ):
            with pytest.raises(DataError, match="masked") as caught:
                call()
            assert "row 7 (from 0)" in caught.value.where
    assert find_threshold(np.ma.masked_array(cosines), cosines > 0.5).pairs == 100
