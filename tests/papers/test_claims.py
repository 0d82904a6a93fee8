"""What is said of made-up scores and of printed figures whose outcome is known, and the list of claims itself."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from pipeline.papers import identities
from pipeline.papers.claims import Claim, ClaimTest, PrintedAverages, PrintedComparison, load_claims
from pipeline.papers.ledger import (
    TALLY,
    claims_content,
    claims_markdown,
    count_outcomes,
    describe_counts,
    describe_scope,
    show_claims,
)
from pipeline.papers.prints import PrintVerdict, judge_print
from pipeline.papers.published import select
from pipeline.papers.verdicts import NOT_TESTABLE, OTHER_VECTORS, OWN_CONDITIONS, Decided, decide, decide_all
from pipeline.report.results import Results
from pipeline.report.sweeps import Sweep
from sentfold.errors import ArtifactError, ParameterError
from sentfold.files import write_json
from tests.report.made_up import make_evidence, make_results

HEADLINE = "spearman.all.cosine"
MADE_OF = {"minilm-lp": "LP of all-MiniLM-L6-v2", "minilm": "all-MiniLM-L6-v2"}


def make_claim(*, remark: str = "", **changes: Any) -> Claim:
    test = {"space": "minilm-lp", "against": ["minilm"], "protocol": HEADLINE, "corpora": ["a", "b"]}
    content = {
        "source": "sbert-lp",
        "where": "section 1",
        "says": "It helps.",
        "made_on": "SBERT-NLI",
        "remark": remark,
    }
    return Claim.model_validate({**content, "test": test | changes})


def gains(a: float, b: float, **settings: Any) -> Results:
    """minilm-lp scores `a` and `b` points above minilm on two corpora, and as much above PCA."""
    scores = {}
    for corpus, gain in (("a", a), ("b", b)):
        values = {"minilm": 70.0, "minilm-lp": 70.0 + gain, "minilm-pca": 70.0}
        scores |= {(space, corpus, HEADLINE): value for space, value in values.items()}
    return make_results(scores, **settings)


def judge(results: Results, claim: Claim, **evidence: Any) -> Decided:
    return decide("made-up", claim, make_evidence(results, made_of=MADE_OF, **evidence))


# --- scores -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "own", "other", "extent"),
    [
        (5, 5, "reproduced", "carries over", "on 2 of 2 corpora"),
        (-5, -5, "contradicted", "does not carry over", "on 2 of 2 corpora"),
        (5, -5, "contradicted", "does not carry over", "on 1 of 2 corpora"),
        (5, 0, "undecided", "undecided", "on 1 of 2 corpora"),  # beyond chance on one alone
        (0, 0, "undecided", "undecided", "on 2 of 2 corpora"),
    ],
)
def test_intervals_decide_and_the_conditions_choose_the_word(
    a: float, b: float, own: str, other: str, extent: str
) -> None:
    for own_conditions, outcome in ((True, own), (False, other)):
        decided = judge(gains(a, b), make_claim(own_conditions=own_conditions))
        assert decided.outcome == outcome and decided.extent.startswith(extent)
        assert decided.conditions == (OWN_CONDITIONS if own_conditions else OTHER_VECTORS)


def test_the_other_corpora_are_counted_with_what_they_show() -> None:
    decided = judge(gains(5, -5), make_claim())
    assert decided.said == "does not carry over on 1 of 2 corpora (carries over on 1)"
    assert decided.because.startswith("Lower: b -5.00 [") and "; higher: a +5.00 [" in decided.because
    assert judge(gains(5, 5), make_claim(corpora=["a"])).said == "carries over"


def test_a_gain_that_one_test_would_call_is_not_called_among_ten() -> None:
    # Noise of 0.3 on each side: the paired standard error is 0.42; 1.96 of them are 0.83, 2.8 of them 1.19.
    names = [f"c{i}" for i in range(10)]
    spaces = {"minilm": 70.0, "minilm-lp": 71.0}
    results = make_results({(space, corpus, HEADLINE): value for space, value in spaces.items() for corpus in names})
    one, ten = (judge(results, make_claim(corpora=some)) for some in (names[:1], names))
    assert (one.outcome, ten.outcome) == ("carries over", "undecided")


def test_what_is_undecided_says_which_difference_it_would_have_shown() -> None:
    # Paired standard error 0.3 * sqrt(2) = 0.424; 1.96 + 0.84 of them are 1.19 points.
    said = judge(gains(0, 0), make_claim(corpora=["a"])).because
    assert said.startswith("Not told apart: a +0.00 [")
    assert "Smallest detectable difference (80% power): 1.2 points." in said


@pytest.mark.parametrize(("gain", "expected"), [(0.05, "carries over"), (-0.05, "does not carry over")])
def test_no_difference_is_too_small_to_be_told_from_chance(gain: float, expected: str) -> None:
    assert judge(gains(gain, gain, noise=0.005), make_claim()).outcome == expected


def test_two_scores_that_are_equal_in_every_resample_are_no_gain() -> None:
    results = gains(0, 0)
    results.replicates["minilm-lp", "a"] = results.replicates["minilm", "a"]
    decided = judge(results, make_claim(corpora=["a"]))
    assert decided.outcome == "does not carry over" and "No difference: a +0.00 [" in decided.because


def test_a_claim_has_to_hold_against_each_rival() -> None:
    results = gains(5, 5)
    for corpus in ("a", "b"):
        results.scores["minilm-pca"][corpus]["scores"][HEADLINE]["value"] = 80.0
        results.replicates["minilm-pca", corpus][HEADLINE] += 0.1
    decided = judge(results, make_claim(against=["minilm", "minilm-pca"]))
    assert decided.said == "does not carry over on 2 of 2 corpora"
    assert "Lower: than minilm-pca on a -5.00 [" in decided.because
    assert "higher: than minilm on a +5.00 [" in decided.because


def test_a_difference_within_the_spread_of_random_starts_is_not_told_apart() -> None:
    assert judge(gains(3, 3), make_claim(starts=1.4)).outcome == "carries over"
    decided = judge(gains(3, 3), make_claim(starts=1.6))
    assert decided.outcome == "undecided" and "moves the score by 1.6 (standard deviation)" in decided.because


def test_a_tie_is_within_the_spread_of_random_starts() -> None:
    results = gains(0, 0)
    results.replicates["minilm-lp", "a"] = results.replicates["minilm", "a"]
    decided = judge(results, make_claim(corpora=["a"], starts=1.6))
    assert decided.outcome == "undecided" and decided.because.startswith("Not told apart: a +0.00 [")


def test_a_mean_over_a_corpus_of_too_few_texts_decides_nothing() -> None:
    assert judge(gains(5, 5, effective={"a": 12.0}), make_claim(average=True)).outcome == "undecided"


def test_too_few_independent_texts_decide_nothing() -> None:
    decided = judge(gains(5, 5, effective={"a": 26.8, "b": 12.0}), make_claim())
    assert decided.outcome == NOT_TESTABLE and "Too few independent texts" in decided.because
    assert judge(gains(5, 5, effective={"a": 12.0}), make_claim()).outcome == "undecided"


def test_corpora_that_the_source_lacks_are_named_and_not_counted() -> None:
    results = gains(5, 5, absent={"c": "the mirror lacks c"})
    gone = judge(results, make_claim(corpora=["c"]))
    assert (gone.outcome, gone.because, gone.conditions) == (NOT_TESTABLE, "The mirror lacks c.", "")
    partly = judge(results, make_claim(corpora=["a", "b", "c"]))
    assert partly.said == "carries over on 2 of 2 corpora" and "No scores on c." in partly.because


@pytest.mark.parametrize(
    ("control", "sizes", "named"),
    [
        ("minilm-pca", (256, 256), "Against the control minilm-pca: a +"),
        ("minilm-pca", (256, 384), "Against minilm-pca, of another dimension (384, not 256): a +"),
        (
            "minilm-pca-selected",
            (256, 384),
            "Against minilm-pca-selected, tuned on the same development data, of another dimension",
        ),
    ],
)
def test_a_control_is_named_for_what_it_is(control: str, sizes: tuple[int, int], named: str) -> None:
    tested = "minilm-lp-selected"
    results = make_results({(s, "a", HEADLINE): v for s, v in (("minilm", 70.0), (tested, 75.0), (control, 70.0))})
    for space, size in zip((tested, control), sizes, strict=True):
        results.scores[space]["a"]["dimension"] = size
    claim = make_claim(space=tested, control=control, corpora=["a"])
    evidence = make_evidence(results, made_of={control: "principal components, p = 9; M"})
    assert decide("made-up", claim, evidence).control.startswith(named)


def test_what_is_shown_with_a_claim_decides_nothing() -> None:
    # Higher than the encoder, and no higher than PCA: as a rival, PCA makes the claim undecided.
    scores = {(space, "a", HEADLINE): 75.0 - 5 * (space == "minilm") for space in ("minilm", "minilm-lp", "minilm-pca")}
    results = make_results(scores)
    shown = judge(results, make_claim(corpora=["a"], shown_with=["minilm-pca"]))
    assert shown.outcome == "carries over" and shown.control.startswith("Against minilm-pca: a +0.00 [")
    assert judge(results, make_claim(corpora=["a"], against=["minilm", "minilm-pca"])).outcome == "undecided"


def test_a_claim_about_an_average_is_judged_by_the_mean_over_the_corpora() -> None:
    assert judge(gains(5, -1), make_claim()).outcome == "does not carry over"
    decided = judge(gains(5, -1), make_claim(average=True))
    # Two corpora of a paired standard error of 0.424 each: 0.3 for their mean, 1.96 of them are 0.59.
    assert decided.said == "carries over"
    found = re.match(r"Mean over 2 corpora against minilm \+2\.00 \[\+(\S+), \+(\S+)\]\.", decided.because)
    assert found is not None
    assert [float(bound) for bound in found.groups()] == pytest.approx([1.41, 2.59], abs=0.06)
    assert judge(gains(0.5, -0.5), make_claim(average=True)).outcome == "undecided"


def test_a_corpus_on_which_a_rival_has_no_score_is_not_counted() -> None:
    results = gains(5, 5)
    del results.scores["minilm-pca"]["b"]["scores"][HEADLINE]
    decided = judge(results, make_claim(against=["minilm", "minilm-pca"]))
    assert decided.said == "carries over" and "No scores on b." in decided.because


def test_another_protocol_is_shown_and_decides_nothing() -> None:
    other = "spearman.all.dot"
    values = {
        ("minilm", HEADLINE): 70.0,
        ("minilm-lp", HEADLINE): 75.0,
        ("minilm", other): 70.0,
        ("minilm-lp", other): 60.0,
    }
    results = make_results({(space, "a", protocol): value for (space, protocol), value in values.items()})
    decided = judge(results, make_claim(corpora=["a"], shown_by=other))
    assert decided.outcome == "carries over" and ": a -10.00 [" in decided.control


# --- sweeps -----------------------------------------------------------------------------------------


def make_swept(leads: dict[str, dict[str, float]], **picked: int) -> dict[str, Sweep]:
    """A sweep whose best dimension, or number of neighbours, is each of some values in these shares of resamples."""
    point = {"components": 16, "neighbors": 10}
    shares = {corpus: {"components": own, "neighbors": own} for corpus, own in leads.items()}
    choices = {rule: {"neighbors": value} for rule, value in picked.items()}
    sweep = Sweep("minilm-lp", "dev", HEADLINE, (point,), (70.0,), point, {}, {}, picked=choices, leads=shares)
    return {"minilm-lp": sweep}


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ({"128": 0.5, "256": 0.5, "384": 0.0}, {"128": 0.99, "384": 0.01}, "carries over on 2 of 2 corpora"),
        ({"128": 0.0, "384": 1.0}, {"128": 1.0}, "does not carry over on 1 of 2 corpora (carries over on 1)"),
        ({"128": 0.97, "384": 0.03}, {"16": 0.5, "256": 0.5}, "undecided on 2 of 2 corpora"),
    ],
)
def test_where_the_best_setting_is_follows_the_resamples(a: dict[str, float], b: dict[str, float], said: str) -> None:
    claim = make_claim(kind="best-setting", setting="components", between=[128, 300])
    decided = judge(gains(0, 0), claim, sweeps=make_swept({"a": a, "b": b}))
    assert decided.said == said and decided.tested_on == "LP of all-MiniLM-L6-v2"
    assert judge(gains(0, 0), claim).outcome == NOT_TESTABLE


def test_sweeps_of_too_few_texts_or_without_resamples_decide_nothing() -> None:
    for leads, effective in (({"384": 1.0}, {"a": 12.0}), ({}, {})):
        swept, results = make_swept({"a": leads}), gains(0, 0, effective=effective)
        best = make_claim(kind="best-setting", setting="components", between=[128, 300], corpora=["a"])
        rules = make_claim(kind="rules", setting="components", corpora=["a"])
        assert judge(results, best, sweeps=swept).outcome == NOT_TESTABLE
        assert judge(results, rules, sweeps=swept).outcome == NOT_TESTABLE


def test_rules_without_labels_are_held_against_the_resamples_too() -> None:
    claim = make_claim(kind="rules", setting="neighbors", corpora=["dev"])
    swept = make_swept({"dev": {"10": 0.001, "30": 0.3, "100": 0.699}}, procrustes=100, residual_variance=10)
    decided = judge(gains(0, 0), claim, sweeps=swept)
    assert decided.said == "undecided on 1 of 2 rules (carries over on 1)"
    assert "The procrustes chooses 100 and the residual variance chooses 10." in decided.because
    swept = make_swept({"dev": {"10": 0.0, "100": 1.0}}, procrustes=100, residual_variance=10)
    assert judge(gains(0, 0), claim, sweeps=swept).outcome == "does not carry over"


# --- cosines, speed, mathematics --------------------------------------------------------------------


def make_cosines(*cosines: float) -> Results:
    results = make_results({("minilm", "happy", HEADLINE): 0.0})
    pairs = [{"cosine": cosine, "published": 0.0, "variant": "as printed"} for cosine in cosines]
    results.scores["minilm"]["happy"] = {"task": "example", "n": 3, "scores": {}, "pairs": pairs}
    return results


@pytest.mark.parametrize(
    ("cosines", "said"),
    [
        ((0.9431, 0.6649, 0.6852), "reproduced on 3 of 3 cosines"),
        ((0.943, 0.665, 0.686), "contradicted on 1 of 3 cosines (reproduced on 2)"),
        ((0.943, 0.695, 0.769), "contradicted on 2 of 3 cosines (reproduced on 1)"),
    ],
)
def test_single_cosines_are_the_printed_ones_or_not(cosines: tuple[float, ...], said: str) -> None:
    claim = make_claim(kind="cosines", own_conditions=True, space="minilm", corpora=["happy"])
    assert judge(make_cosines(*cosines), claim).said == said


def make_benchmark(**seconds: list[float]) -> dict[str, Any]:
    runs = {method: {"text in, whitespace": pair} for method, pair in seconds.items()}
    return {"processor": "p", "rates": {}, "seconds": runs}


@pytest.mark.parametrize(
    ("s3e", "expected"),
    [([1.0, 1.1], "carries over"), ([2.6, 2.8], "does not carry over"), ([2.1, 2.3], "undecided")],
)
def test_speed_is_a_ratio_of_one_run_that_is_called_unless_repeats_overlap(s3e: list[float], expected: str) -> None:
    results = make_results({(space, "a", HEADLINE): 70.0 for space in ("wl-s3e", "wl-sif")})
    claim = make_claim(kind="faster", space="wl-s3e", against=["wl-sif"], protocol="", corpora=[])
    decided = judge(results, claim, benchmark=make_benchmark(s3e=s3e, sif=[2.2, 2.5]))
    assert decided.outcome == expected
    if expected == "carries over":
        assert "sif takes 2.00 to 2.50 times as long" in decided.because


def test_speed_is_not_testable_where_one_of_the_methods_was_not_timed_in_that_run() -> None:
    results = make_results({(space, "a", HEADLINE): 70.0 for space in ("wl-s3e", "minilm")})
    claim = make_claim(kind="faster", space="wl-s3e", against=["minilm"], protocol="", corpora=[])
    decided = judge(results, claim, benchmark=make_benchmark(s3e=[1.0, 1.1]))
    assert decided.outcome == NOT_TESTABLE and "no committed times of minilm" in decided.because
    assert judge(results, claim).outcome == NOT_TESTABLE


def test_texts_are_split_alike_where_all_methods_were_timed_so() -> None:
    results = make_results({(space, "a", HEADLINE): 70.0 for space in ("wl-s3e", "wl-gem")})
    claim = make_claim(kind="faster", space="wl-s3e", against=["wl-gem"], protocol="", corpora=[])
    runs = make_benchmark(s3e=[1.5, 1.5], gem=[1.0, 1.0])
    runs["seconds"]["gem"]["text in, wordpunct"] = [2.0, 2.0]
    assert judge(results, claim, benchmark=runs).outcome == "does not carry over"
    del runs["seconds"]["gem"]["text in, whitespace"]
    own = judge(results, claim, benchmark=runs)
    assert own.outcome == "carries over" and "each by its own tokeniser" in own.because


@pytest.mark.parametrize("identity", list(identities.IDENTITIES))
def test_claimed_mathematics_is_reproduced_and_a_wrong_side_of_it_is_not(
    identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = make_claim(kind="identity", own_conditions=True, space="", against=[], corpora=[], identity=identity)
    assert judge(gains(0, 0), claim).said == "reproduced"
    right = identities.IDENTITIES[identity]

    def wrong(rng: np.random.Generator) -> tuple[float, float]:
        left, other = right(rng)
        return left, other * (1 + 1e-9)

    monkeypatch.setitem(identities.IDENTITIES, identity, wrong)
    assert judge(gains(0, 0), claim).said == "contradicted"


# --- the print --------------------------------------------------------------------------------------


def print_of(source: str, *comparisons: dict[str, Any]) -> PrintVerdict:
    content = {"source": source, "where": "x", "says": "y", "made_on": "z", "missing": "it", "print": list(comparisons)}
    verdict = judge_print(Claim.model_validate(content))
    assert verdict is not None
    return verdict


def lp_over_sbert(size: str, datasets: list[str], **more: Any) -> dict[str, Any]:
    return {"table": "1", "model": f"SBERT-{size}-LP", "better_than": [f"SBERT-{size}"], "datasets": datasets, **more}


def test_a_claim_that_its_own_table_breaks_is_inconsistent() -> None:
    # Table 1 prints 76.04 and 72.56 for SBERT-base-LP on STS15 and STS16, 79.09 and 74.30 for SBERT-base.
    assert print_of("sbert-lp", lp_over_sbert("base", ["stsb", "sickr"])).consistent
    broken = print_of("sbert-lp", lp_over_sbert("base", ["sts12", "sts15", "sts16"]))
    assert broken.outcome == "inconsistent as printed"
    assert "SBERT-base on sts15 -3.05, SBERT-base on sts16 -1.74" in broken.because


def test_one_broken_comparison_of_several_is_enough() -> None:
    # The large model: 72.12 against 72.27 on STS12.
    both = print_of("sbert-lp", lp_over_sbert("base", ["sts12"]), lp_over_sbert("large", ["sts12"]))
    assert not both.consistent and "-0.15" in both.because


def test_a_number_of_data_sets_is_counted() -> None:
    # Above BERT-flow on sts12, sts13, sts14, stsb and sickr, below it on sts15 and sts16.
    years = {
        "table": "1", "model": "SBERT-large-LP", "better_than": ["BERT-large-flow"],
        "datasets": ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"],
    }  # fmt: skip
    assert print_of("sbert-lp", {**years, "holds_on": 5}).consistent
    assert not print_of("sbert-lp", {**years, "holds_on": 6}).consistent
    assert not print_of("sbert-lp", {**years, "holds_on": 4}).consistent


def test_a_stated_gain_has_to_be_the_printed_one() -> None:
    gain = {"table": "4", "model": "GEM weights + SDR", "better_than": ["Mean of L.F.P"], "datasets": ["stsb-dev"]}
    assert print_of("gem", {**gain, "by": [19.7]}).consistent  # 82.1 less 62.4
    assert print_of("gem", {**gain, "by": [19.8]}).consistent  # 82.14 less 62.36 would print the same
    assert not print_of("gem", {**gain, "by": [19.9]}).consistent
    assert not print_of("gem", {**gain, "by": [10.0, 19.0]}).consistent


def test_figures_count_as_rounded() -> None:
    # LASE prints 0.74 and SBERT-WK 0.74 on STS16: either may be above. 0.71 against 0.66 is 4 to 6 points.
    tie = {"table": "5.1", "model": "SBERT-WK", "better_than": ["LASE"], "datasets": ["sts16"]}
    assert print_of("lase", tie).consistent
    assert print_of("lase", tie | {"model": "LASE", "better_than": ["SBERT-WK"]}).consistent
    five = {"table": "5.1", "model": "LASE", "better_than": ["InferSent"], "datasets": ["average"]}
    assert print_of("lase", five | {"by": [5.0]}).consistent
    assert not print_of("lase", five | {"by": [6.5]}).consistent


def test_of_two_times_the_smaller_is_better() -> None:
    speed = {"table": "speed", "model": "S3E", "better_than": ["SIF"], "datasets": ["not stated"]}
    assert print_of("s3e", speed).consistent  # 0.69 ms against 1.56
    assert not print_of("s3e", speed | {"model": "SIF", "better_than": ["S3E"]}).consistent


def test_a_printed_average_has_to_be_the_mean_of_its_row_as_far_as_rounding_tells() -> None:
    # S3E's poster: p-mean 54.0 52.0 63.0 66.0 67.0 86.0 have the mean 64.67, and 65.71 is printed.
    verdict = print_of("s3e", {"table": "similarity", "average": "average"})
    assert not verdict.consistent and "8 of 11 averages" in verdict.because
    assert "p-mean 65.71, the mean of its row 64.67" in verdict.because
    assert print_of("s3e", {"table": "classification", "average": "average"}).consistent
    # LASE's table has two digits: 0.54 52 63 66 67 have the mean 0.604, and 0.60 is printed.
    assert print_of("lase", {"table": "5.1", "average": "average"}).consistent


def test_a_print_says_nothing_of_the_claim_itself() -> None:
    content = {"source": "sbert-lp", "where": "x", "says": "y", "made_on": "z", "missing": "SBERT-NLI"}
    claim = Claim.model_validate({**content, "print": [lp_over_sbert("base", ["stsb"])]})
    decided = judge(gains(5, 5), claim)
    assert decided.print is not None and decided.print.consistent
    assert (decided.outcome, decided.because) == (NOT_TESTABLE, "Missing: SBERT-NLI.")


# --- the list ---------------------------------------------------------------------------------------


def test_every_printed_model_and_data_set_that_a_claim_names_is_printed() -> None:
    for name, claim in load_claims().items():
        for part in claim.print:
            figures = select(claim.source, part.table)
            if isinstance(part, PrintedAverages):
                assert part.average in {figure.dataset for figure in figures}, name
                continue
            assert {part.model, *part.better_than} <= {figure.model for figure in figures}, name
            own = {figure.dataset for figure in figures if figure.model == part.model}
            assert set(part.datasets) <= own, name


def test_no_rule_has_a_margin() -> None:
    def keys(model: type[BaseModel]) -> set[str]:
        return set(model.model_fields)

    assert not {"margin", "tolerance", "equal", "within"} & (
        keys(Claim) | keys(ClaimTest) | keys(PrintedComparison) | keys(PrintedAverages)
    )
    # The smallest gain beyond chance holds, and its opposite is the opposite: nothing around 0 counts as equal.
    for gain, expected in ((0.02, "carries over"), (-0.02, "does not carry over")):
        assert judge(gains(gain, gain, noise=0.001), make_claim()).outcome == expected


# What an earlier ledger called reproduced or contradicted by a margin, a stand-in or a setting that no paper states.
REPAIRED = {
    "gem-time": "missing", "lase-time": "missing", "happy-dog": "missing", "lp-trec-whole": "missing",
    "lp-dimension-sts": "test", "lp-dimension-sentiment": "test", "lp-clustering": "test",
    "gem-weights": "test", "gem-sif-unit": "test", "gem-significance": "test", "lp-sbert": "test",
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), REPAIRED.items())
def test_what_was_decided_unfairly_is_tested_fairly_or_not_at_all(name: str, kind: str) -> None:
    claim = load_claims()[name]
    assert (claim.test is None) == (kind == "missing") == bool(claim.missing)
    assert claim.test is None or not claim.test.own_conditions


def test_gems_weights_are_compared_over_words_as_they_are_and_unit_words_are_given_to_both_sides() -> None:
    claims = load_claims()
    for name, claim in claims.items():
        if claim.source == "gem" and claim.test is not None and claim.test.kind == "higher":
            unit = {"-unit" in space for space in (claim.test.space, *claim.test.against, *claim.test.shown_with)}
            assert len(unit) == 1, name
    assert claims["gem-weights"].test is not None and claims["gem-weights"].test.space == "wl-gem-weights"


def test_the_own_conditions_of_a_paper_are_its_encoder_or_mathematics() -> None:
    own = {name: claim for name, claim in load_claims().items() if claim.test and claim.test.own_conditions}
    assert {claim.made_on for claim in own.values()} == {"all-MiniLM-L6-v2", "mathematics"}


def test_a_suite_lists_what_it_can_test_and_no_task_for_its_reader() -> None:
    happy = make_cosines(0.943, 0.695, 0.769)
    small = decide_all(make_evidence(happy))
    names = {one.name for one in small}
    assert "happy-cosines" in names and {one.name for one in small if one.outcome == NOT_TESTABLE} == set()
    assert names <= {name for name, claim in load_claims().items() if claim.test is not None}
    assert f"{len(small)} of {len(load_claims())} claims" in describe_scope(small)


def test_a_suite_that_scores_claims_of_all_papers_lists_those_that_nothing_can_test() -> None:
    tests = [claim.test for claim in load_claims().values() if claim.test is not None]
    spaces = {space for test in tests for space in (test.space, *test.against) if space}
    scores = {
        (space, corpus, test.protocol or HEADLINE): 70.0
        for test in tests
        for corpus in test.corpora
        for space in spaces
    }
    decided = decide_all(make_evidence(make_results(scores)))
    assert [one.name for one in decided] == list(load_claims())
    assert {claim.source for claim in load_claims().values()} == {
        "sbert-lp",
        "lase",
        "s3e",
        "gem",
        "hyperboloid",
        "later",
    }
    assert all(one.because for one in decided)
    counts = count_outcomes(decided)
    assert sum(sum(counts[heading].values()) for heading in list(TALLY)[1:]) == len(decided)
    assert sum(counts[next(iter(TALLY))].values()) == sum(bool(one.print) for one in decided)


# --- texts ------------------------------------------------------------------------------------------


def test_the_texts_keep_print_and_claim_apart() -> None:
    claim = make_claim(remark="At a setting of its own.").model_copy(
        update={"print": [PrintedComparison.model_validate(lp_over_sbert("base", ["sts15"]))]}
    )
    decided = [judge(gains(5, 5), claim)]
    text = claims_markdown(decided, "made-up")
    assert "**Print: inconsistent as printed.** Table 1, SBERT-base-LP better than SBERT-base by -3.05" in text
    assert (
        "**The same comparison on other vectors: carries over on 2 of 2 corpora.** On LP of all-MiniLM-L6-v2:" in text
    )
    assert "\nAt a setting of its own.\n" in text and "said of SBERT-NLI" in text
    content = claims_content(decided, "made-up")
    assert content["claims"]["made-up"]["print"] == "inconsistent as printed"
    assert content["claims"]["made-up"]["outcome"] == "carries over"
    assert content["counts"][OTHER_VECTORS] == {"carries over": 1, "does not carry over": 0, "undecided": 0}
    assert f"{OWN_CONDITIONS}: 0 reproduced, 0 contradicted, 0 undecided" in describe_counts(decided)


def test_undecided_is_counted_under_its_own_conditions() -> None:
    claims = [make_claim(own_conditions=own, corpora=["a"]) for own in (True, False, False)]
    counts = count_outcomes([judge(gains(0, 0), claim) for claim in claims])
    assert Counter({heading: counts[heading]["undecided"] for heading in (OWN_CONDITIONS, OTHER_VECTORS)}) == {
        OWN_CONDITIONS: 1,
        OTHER_VECTORS: 2,
    }


@pytest.mark.parametrize("missing", ["space", "against", "protocol", "corpora"])
def test_a_test_without_what_its_kind_needs_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        make_claim(**{missing: [] if missing in {"against", "corpora"} else ""})


def test_a_claim_is_either_tested_or_says_what_is_missing() -> None:
    content = {"source": "gem", "where": "x", "says": "y", "made_on": "z"}
    with pytest.raises(ValueError, match="either a `test` or what is `missing`"):
        Claim.model_validate(content)
    with pytest.raises(ValueError, match="either a `test` or what is `missing`"):
        Claim.model_validate({**content, "missing": "it", "test": make_claim().test})


def test_a_claim_can_be_shown_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match="no ledger"):
        show_claims("quick")
    write_json(Path("reports/quick/claims.json"), {"claims": {"made-up": {"verdict": "contradicted"}}})
    with pytest.raises(ArtifactError, match="of an earlier version"):
        show_claims("quick")
    for claims in (["made-up"], {"made-up": 5}, {"made-up": {"claim": "It helps."}}):
        write_json(Path("reports/quick/claims.json"), {"claims": claims, "counts": {}})
        for name in ("", "made-up"):
            with pytest.raises(ArtifactError, match="of an earlier version"):
                show_claims("quick", name)
    write_json(Path("reports/quick/claims.json"), claims_content([judge(gains(5, 5), make_claim())], "quick"))
    assert "print not judged" in show_claims("quick") and "carries over" in show_claims("quick")
    assert "+5.00" in show_claims("quick", "made-up") and OTHER_VECTORS in show_claims("quick", "made-up")
    with pytest.raises(ParameterError, match="no claim 'nothing'"):
        show_claims("quick", "nothing")
    with pytest.raises(ParameterError, match="'quick' does not judge the claim 'lp-sbert'"):
        show_claims("quick", "lp-sbert")
