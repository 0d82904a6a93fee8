"""Verdicts on made-up scores whose verdict is known, and the list of claims itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.papers.claim_list import claims_content, claims_markdown, decide_all, show_claims
from pipeline.papers.claims import Claim, load_claims
from pipeline.papers.verdicts import Decided, decide
from pipeline.report.evidence import Cases
from pipeline.report.results import Results
from sentfold.compare.bootstrap import item_design
from sentfold.compare.orders import compare_orders
from sentfold.errors import ArtifactError, ParameterError
from tests.report.made_up import make_evidence, make_results

HEADLINE = "spearman.all.cosine"
MADE_OF = {"minilm-lp": "LP of all-MiniLM-L6-v2", "minilm": "all-MiniLM-L6-v2"}


def make_claim(**changes: Any) -> Claim:
    content = {
        "source": "sbert-lp", "where": "section 1", "says": "It helps.", "made_on": "SBERT-NLI", "rule": "beats",
        "ours": "minilm-lp", "than": ["minilm"], "control": "minilm-pca", "protocol": HEADLINE, "corpora": ["a", "b"],
    }  # fmt: skip
    return Claim(**(content | changes))


def gains(a: float, b: float, **settings: Any) -> Results:
    """minilm-lp lies `a` and `b` points above minilm on two corpora, and as much above PCA."""
    scores = {}
    for corpus, gain in (("a", a), ("b", b)):
        values = {"minilm": 70.0, "minilm-lp": 70.0 + gain, "minilm-pca": 70.0}
        scores |= {(space, corpus, HEADLINE): value for space, value in values.items()}
    return make_results(scores, **settings)


def verdict(results: Results, claim: Claim, **evidence: Any) -> Decided:
    return decide("made-up", claim, make_evidence(results, made_of=MADE_OF, **evidence))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (5, 5, "reproduced"),
        (-5, -5, "contradicted"),
        (5, -5, "contradicted"),  # the claim is about each of them
        (5, 0, "not testable here"),  # beyond chance on one alone
        (0, 0, "not testable here"),
    ],
)
def test_beats_follows_the_signs_that_lie_beyond_chance(a: float, b: float, expected: str) -> None:
    assert verdict(gains(a, b), make_claim()).verdict == expected


def test_a_contradicted_gain_says_where_it_is_lower_and_where_higher() -> None:
    because = verdict(gains(5, -5), make_claim()).outcome.because
    assert because.startswith("Lower: b -5.00 [") and "; higher: a +5.00 [" in because


def test_a_gain_that_one_test_would_call_is_not_called_among_ten() -> None:
    # Noise of 0.3 on each side: the paired standard error is 0.42; 1.96 of them are 0.83, 2.8 of them 1.19.
    names = [f"c{i}" for i in range(10)]
    scores = {
        (space, corpus, HEADLINE): 70.0 + (space == "minilm-lp") * 1.0
        for space in ("minilm", "minilm-lp")
        for corpus in names
    }
    one = verdict(make_results(scores), make_claim(corpora=names[:1], control=""))
    ten = verdict(make_results(scores), make_claim(corpora=names, control=""))
    assert (one.verdict, ten.verdict) == ("reproduced", "not testable here")
    assert "Too close to call" in ten.outcome.because


def test_a_verdict_names_numbers_interval_control_encoder_and_what_it_is_not_about() -> None:
    decided = verdict(gains(5, 5), make_claim())
    assert "a +5.00 [+" in decided.outcome.because
    assert decided.control.startswith("Against the control minilm-pca: a +5.00 [")
    assert decided.vectors == "LP of all-MiniLM-L6-v2"
    assert "SBERT-NLI" in decided.caveat
    text = claims_markdown([decided], "made-up")
    assert "On this encoder (LP of all-MiniLM-L6-v2): Higher: a +5.00" in text
    assert "sentfold claims made-up --suite made-up" in text


@pytest.mark.parametrize(
    ("control", "sizes", "named"),
    [
        ("minilm-pca", (256, 256), "Against the control minilm-pca: a +"),
        ("minilm-pca", (256, 384), "Against minilm-pca, of another dimension (384 beside 256): a +"),
        (
            "minilm-pca-selected",
            (256, 384),
            "Against minilm-pca-selected, principal components tuned on the same development data (a tuned control, of "
            "its own dimension, 384 beside 256): a +",
        ),
        (
            "minilm-pca-selected",
            (256, 256),
            "Against minilm-pca-selected, principal components tuned on the same development data (a tuned control, of "
            "the same dimension, 256, and so the control of that dimension too): a +",
        ),
    ],
)
def test_a_control_is_named_for_what_it_is(control: str, sizes: tuple[int, int], named: str) -> None:
    ours = "minilm-lp-selected"
    results = make_results({(s, "a", HEADLINE): v for s, v in (("minilm", 70.0), (ours, 75.0), (control, 70.0))})
    for space, size in zip((ours, control), sizes, strict=True):
        results.scores[space]["a"]["dimension"] = size
    claim = make_claim(ours=ours, control=control, corpora=["a"])
    evidence = make_evidence(results, made_of={control: "principal components, p = 9; M"})
    assert decide("made-up", claim, evidence).control.startswith(named)


def test_what_stands_beside_a_claim_is_shown_and_decides_nothing() -> None:
    # Higher than the encoder, and no higher than PCA: as what it has to beat, PCA makes the claim undecided.
    scores = {(space, "a", HEADLINE): 75.0 - 5 * (space == "minilm") for space in ("minilm", "minilm-lp", "minilm-pca")}
    results = make_results(scores)
    beside = verdict(results, make_claim(corpora=["a"], control="", beside=["minilm-pca"]))
    assert beside.verdict == "reproduced"
    assert beside.control.startswith("Beside it, against minilm-pca: a +0.00 [")
    both = make_claim(corpora=["a"], than=["minilm", "minilm-pca"], control="")
    assert verdict(results, both).verdict == "not testable here"


def test_differences_that_cannot_decide_are_shown_with_the_reason_and_the_encoder() -> None:
    decided = verdict(gains(5, -5), make_claim(rule="shown", reason="one start each"))
    assert decided.verdict == "not testable here"
    assert decided.outcome.because.startswith("Lower: b -5.00 [")
    assert decided.outcome.because.endswith("; but one start each.")
    assert "On this encoder (LP of all-MiniLM-L6-v2): Lower: b -5.00" in claims_markdown([decided], "made-up")
    with pytest.raises(ValueError, match="reason"):
        make_claim(rule="shown")


def test_what_a_command_has_to_measure_first_names_no_encoder() -> None:
    claim = make_claim(ours="wl-lase")
    decided = decide("made-up", claim, make_evidence(gains(5, 5), made_of={"wl-lase": "LASE"}))
    assert decided.outcome.command and "On this encoder" not in claims_markdown([decided], "made-up")


def test_a_claim_about_a_sweep_names_the_encoder_and_not_what_was_chosen() -> None:
    claim = make_claim(rule="best-between", ours="minilm-lp-selected", setting="components", between=[1, 2])
    made_of = {"minilm-lp-selected": "LLE, k = 100; all-MiniLM-L6-v2"}
    evidence = make_evidence(gains(0, 0), made_of=made_of)
    assert decide("made-up", claim, evidence).vectors == "all-MiniLM-L6-v2"


def test_a_remark_stands_with_its_claim() -> None:
    decided = verdict(gains(5, 5), make_claim(remark="At a setting of ours."))
    assert "\nAt a setting of ours.\n" in claims_markdown([decided], "made-up")
    assert claims_content([decided], "made-up")["claims"]["made-up"]["remark"] == "At a setting of ours."


def test_what_is_missing_is_named_with_what_would_fill_it() -> None:
    gone = verdict(gains(5, 5), make_claim(ours="wl-lase"))
    assert gone.verdict == "not testable here"
    assert "does not make this space" in gone.outcome.because and "sentfold run" in gone.outcome.command
    lost = verdict(gains(5, 5, absent={"c": "the mirror lacks c"}), make_claim(corpora=["c"]))
    assert "mirror lacks c" in lost.outcome.because and lost.caveat == ""
    partly = verdict(gains(5, 5, absent={"c": "the mirror lacks c"}), make_claim(corpora=["a", "c"]))
    assert partly.verdict == "reproduced" and "blank: c" in partly.outcome.because


def test_too_few_independent_texts_decide_nothing() -> None:
    results = gains(5, 5, effective={"a": 26.8, "b": 12.0})
    decided = verdict(results, make_claim())
    assert decided.verdict == "not testable here" and "Too few independent texts" in decided.outcome.because


@pytest.mark.parametrize(("gain", "expected"), [(0.0, "reproduced"), (9.0, "contradicted"), (2.2, "not testable here")])
def test_matches_is_within_beyond_or_too_close_to_its_margin(gain: float, expected: str) -> None:
    assert verdict(gains(gain, gain), make_claim(rule="matches", margin=2.0)).verdict == expected


def test_two_protocols_of_one_space_are_compared_as_such() -> None:
    scores = {("minilm", "a", HEADLINE): 70.0, ("minilm", "a", "spearman.all.lorentz-1"): 80.0}
    claim = make_claim(
        ours="minilm", than=["minilm"], protocol="spearman.all.lorentz-1", than_protocol=HEADLINE, corpora=["a"]
    )
    assert verdict(make_results(scores), claim).verdict == "reproduced"


def test_a_similarity_that_changes_no_ranking_contradicts_that_it_is_better() -> None:
    results = make_results({("minilm", "a", HEADLINE): 70.0, ("minilm", "a", "spearman.all.lorentz-1"): 70.0})
    columns = results.replicates["minilm", "a"]
    columns["spearman.all.lorentz-1"] = columns[HEADLINE]
    claim = make_claim(
        ours="minilm", than=["minilm"], protocol="spearman.all.lorentz-1", than_protocol=HEADLINE, corpora=["a"]
    )
    decided = verdict(results, claim)
    assert decided.verdict == "contradicted" and "No difference at all" in decided.outcome.because


@pytest.mark.parametrize(
    ("a", "b", "noise", "expected"),
    [
        (0.0, 0.01, 0.005, "contradicted"),  # as narrow as rounding: no gain that matters
        (0.05, 0.05, 0.005, "contradicted"),  # beyond chance, and still none that matters
        (-0.05, 0.0, 0.005, "contradicted"),
        (0.0, 0.12, 0.005, "not testable here"),  # one of them may be a gain
        (0.0, 0.08, 0.02, "not testable here"),  # its interval reaches beyond the margin
        (0.12, 0.12, 0.002, "reproduced"),
        (0.0, 0.0, 0.3, "not testable here"),  # wide around 0: nothing is known
    ],
)
def test_differences_that_lie_within_the_margin_with_their_intervals_are_no_gain(
    a: float, b: float, noise: float, expected: str
) -> None:
    decided = verdict(gains(a, b, noise=noise), make_claim())
    assert decided.verdict == expected
    assert ("No difference of 0.1 points or more: a " in decided.outcome.because) == (expected == "contradicted")


def test_a_null_on_too_few_texts_is_none() -> None:
    decided = verdict(gains(0.0, 0.0, noise=0.005, effective={"a": 12.0}), make_claim())
    assert decided.verdict == "not testable here"


@pytest.mark.parametrize(
    ("old", "new", "expected"), [(0.3, 3.0, "contradicted"), (3.0, 0.3, "reproduced"), (1.0, 1.0, "not testable here")]
)
def test_repairs_follows_the_net_count_of_orders(old: float, new: float, expected: str) -> None:
    rng = np.random.default_rng(4)
    human = rng.standard_normal(300)
    before, after = human + old * rng.standard_normal(300), human + new * rng.standard_normal(300)
    orders = compare_orders(human, before, after, item_design([""] * 300), resamples=200, confidence=0.95, seed=0)
    cases = Cases("a", "minilm", human, {}, {"minilm-lp": orders})
    assert verdict(gains(0, 0), make_claim(rule="repairs"), cases=cases).verdict == expected


def make_cosines(*cosines: float) -> Results:
    results = make_results({("minilm", "happy", HEADLINE): 0.0})
    pairs = [{"cosine": cosine, "published": 0.0, "variant": "as printed"} for cosine in cosines]
    results.scores["minilm"]["happy"] = {"task": "example", "n": 3, "scores": {}, "pairs": pairs}
    return results


def test_single_cosines_are_the_printed_ones_or_not() -> None:
    claim = make_claim(rule="prints", ours="minilm", corpora=["happy"])
    assert verdict(make_cosines(0.9431, 0.6649, 0.6852), claim).verdict == "reproduced"
    assert verdict(make_cosines(0.943, 0.665, 0.686), claim).verdict == "contradicted"
    close = make_claim(rule="near", ours="minilm", corpora=["happy"], margin=0.05)
    assert verdict(make_cosines(0.943, 0.665, 0.685), close).verdict == "reproduced"
    assert verdict(make_cosines(0.943, 0.665, 0.785), close).verdict == "contradicted"


@pytest.mark.parametrize(
    ("rate", "expected"), [(2000, "reproduced"), (500, "contradicted"), (1200, "not testable here")]
)
def test_speed_is_called_unless_it_is_within_a_quarter(rate: int, expected: str) -> None:
    benchmark = {"processor": "p", "rates": {"s3e": {"text in, regex": rate}, "sif": {"text in, regex": 1000}}}
    claim = make_claim(rule="faster", ours="", method="s3e", than=["sif"])
    assert verdict(gains(0, 0), claim, benchmark=benchmark).verdict == expected
    assert verdict(gains(0, 0), claim).outcome.command.startswith("python -m benchmarks.encoders")


def test_speed_is_compared_on_texts_split_alike_where_both_were_timed_so() -> None:
    rates = {"s3e": {"text in, whitespace": 1000}, "gem": {"text in, whitespace": 1500, "text in, wordpunct": 500}}
    claim = make_claim(rule="faster", ours="", method="s3e", than=["gem"])
    like = verdict(gains(0, 0), claim, benchmark={"processor": "p", "rates": rates})
    assert like.verdict == "contradicted" and "0.67 times as fast, split at blanks" in like.outcome.because
    del rates["gem"]["text in, whitespace"]
    own = verdict(gains(0, 0), claim, benchmark={"processor": "p", "rates": rates})
    assert own.verdict == "reproduced" and "2.00 times as fast, each by its own tokeniser" in own.outcome.because


def printed(table: str, model: str, than: list[str], datasets: list[str], **more: Any) -> Decided:
    source = {"1": "sbert-lp", "2": "sbert-lp", "5.1": "lase", "4": "gem"}[table]
    facts = {"table": table, "model": model, "than": than, "datasets": datasets, **more}
    rule = "whole" if "items" in facts else "printed"
    return verdict(gains(0, 0), make_claim(source=source, rule=rule, ours="", printed=facts))


def test_printed_figures_can_contradict_a_claim_but_never_reproduce_one() -> None:
    # SBERT-LP prints 78.86 against 77.03 on STSb; LASE prints .71 against .65 of SIF.
    assert "bear it out (+1.83)" in printed("1", "SBERT-base-LP", ["SBERT-base"], ["stsb"]).outcome.because
    assert printed("1", "SBERT-base-LP", ["SBERT-base"], ["stsb"]).verdict == "not testable here"
    assert printed("5.1", "LASE", ["SIF (GloVe)"], ["average"], by=10.0).verdict == "contradicted"
    assert printed("4", "GEM weights + SDR", ["Mean of L.F.P"], ["stsb-dev"], by=19.7).verdict == "not testable here"
    assert printed("4", "GEM weights + SDR", ["Mean of L.F.P"], ["stsb-dev"], by=19.8).verdict == "contradicted"


def test_printed_figures_that_the_paper_calls_alike_are_compared() -> None:
    # Table 1 prints 76.04 and 72.56 for SBERT-base-LP on STS15 and STS16, 79.09 and 74.30 for SBERT-base.
    years = printed("1", "SBERT-base-LP", ["SBERT-base"], ["sts12", "sts15", "sts16"], alike="section 4.3.1")
    assert years.verdict == "contradicted"
    assert "not above SBERT-base on sts15 (-3.05), SBERT-base on sts16 (-1.74)" in years.outcome.because
    assert "section 4.3.1" in years.outcome.because


def test_printed_figures_of_unlike_protocols_are_not_compared() -> None:
    # SBERT-LP's own rows state no aggregation, BERT-flow's are weighted means; a single set has nothing to aggregate.
    years = printed("1", "SBERT-large-LP", ["BERT-large-flow"], ["sts13", "stsb"])
    assert years.verdict == "not testable here" and "unlike protocols on sts13" in years.outcome.because
    assert "bear it out (+1.13)" in printed("1", "SBERT-large-LP", ["BERT-large-flow"], ["stsb"]).outcome.because


def test_an_accuracy_that_no_number_of_right_answers_gives_is_contradicted() -> None:
    # 415 and 416 right of 500 are 83.00 and 83.20; the table prints 83.06. 78.40 is 392 of 500.
    odd = printed("2", "SBERT-base-LP", [], ["trec"], items=500)
    assert odd.verdict == "contradicted" and "83.00" in odd.outcome.because
    assert printed("2", "Avg. GloVe embeddings", [], ["trec"], items=500).verdict == "not testable here"


# --- the list ---------------------------------------------------------------------------------------


def test_there_are_at_least_twenty_claims_of_all_five_papers_and_each_gets_one_verdict() -> None:
    claims = load_claims()
    assert len(claims) >= 20
    assert {claim.source for claim in claims.values()} == {"sbert-lp", "lase", "s3e", "gem", "hyperboloid"}
    results = gains(5, 5)
    decided = decide_all(make_evidence(results, made_of=MADE_OF))
    assert [one.name for one in decided] == list(claims)
    for one in decided:
        assert one.outcome.because
        assert one.verdict == "not testable here" or one.vectors or one.claim.rule in {"printed", "whole"}


def test_every_printed_model_that_a_claim_names_is_printed() -> None:
    results = gains(5, 5)
    evidence = make_evidence(results, made_of=MADE_OF)
    for name, claim in load_claims().items():
        if claim.rule in {"printed", "whole"}:
            because = decide(name, claim, evidence).outcome.because
            assert "No such figure" not in because, name


@pytest.mark.parametrize("missing", ["ours", "than", "protocol", "corpora"])
def test_a_claim_without_what_its_rule_needs_is_refused(missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        make_claim(**{missing: [] if missing in {"than", "corpora"} else ""})


def test_a_claim_can_be_shown_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sentfold.files import write_json

    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArtifactError, match="no verdicts"):
        show_claims("quick")
    write_json(Path("reports/quick/claims.json"), claims_content([verdict(gains(5, 5), make_claim())], "quick"))
    assert "reproduced" in show_claims("quick") and "+5.00" in show_claims("quick", "made-up")
    with pytest.raises(ParameterError, match="no claim 'nothing'"):
        show_claims("quick", "nothing")
