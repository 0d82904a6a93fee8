"""Scores, differences, controls and blanks, from replicates whose answer is known by construction."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from pipeline.report.cells import long_table
from pipeline.report.comparisons import (
    TUNED_CONTROL,
    control_pairs,
    dimensions,
    find_controls,
    find_tuned_controls,
    judge_family,
    partition_pairs,
)
from pipeline.report.entries import HEADLINE, difference_entry, measured_entry
from pipeline.report.evidence import Evidence
from pipeline.report.results import Results, find_baselines
from tests.report import made_up

SUITE = made_up.make_suite(
    ("minilm", "minilm-lp", "minilm-pca", "minilm-smooth", "wl-average"), ("stsb", "lost"),
    blanks={"sbert-base-nli": "no weights here"},
)  # fmt: skip


def make_results(lp: float, *, dimension: int = 8, noise: float = 0.002) -> Results:
    """minilm and its smoothing score 80, minilm-lp `lp`, minilm-pca 79.9, wl-average 60; replicates move together."""
    rng = np.random.default_rng(0)
    shared = 0.02 * rng.standard_normal(1000)
    values = {"minilm": 80.0, "minilm-lp": lp, "minilm-pca": 79.9, "minilm-smooth": 80.0, "wl-average": 60.0}
    replicates, scores = {}, {}
    for space, value in values.items():
        column = value / 100 + shared + noise * rng.standard_normal(1000)
        replicates[space, "stsb"] = {HEADLINE: column}
        low, high = np.quantile(100 * column, [0.025, 0.975])
        score = {"value": value, "low": round(low, 2), "high": round(high, 2)}
        facts = {"task": "similarity", "n": 10, "dimension": dimension if space == "minilm-lp" else 8}
        scores[space] = {"stsb": {**facts, "scores": {HEADLINE: score}}, "lost": {"absent": "the mirror lacks it"}}
    return Results(SUITE, scores, replicates, 0.95, find_baselines(SUITE, ["wl-average"]))


def test_a_paired_difference_has_a_far_shorter_interval_than_either_score() -> None:
    results = make_results(75.0)
    score = results.score("minilm", "stsb", HEADLINE)
    difference = results.difference(("minilm-lp", HEADLINE), ("minilm", HEADLINE), "stsb")
    assert difference.value == -5.0
    assert (
        score.low is not None and score.high is not None and difference.low is not None and difference.high is not None
    )
    # The shared movement (0.02) cancels; what is left is sqrt(2) x 0.002, 95% of which is 2 x 1.96 of that.
    assert difference.high - difference.low == pytest.approx(100 * 2 * 1.96 * np.sqrt(2) * 0.002, rel=0.1)
    assert score.high - score.low > 5 * (difference.high - difference.low)


def test_an_absent_corpus_stays_in_the_table_of_its_task() -> None:
    results = make_results(75.0)
    for space in SUITE.spaces:
        results.scores[space]["lost"]["task"] = "classification"
    assert results.corpora_of("similarity") == ["stsb"]
    assert results.corpora_of("classification") == ["lost"]


def test_a_blank_names_its_reason_and_a_row_that_the_suite_cannot_make_the_suites_own() -> None:
    results = make_results(75.0)
    assert measured_entry(results, "minilm", "lost", HEADLINE).reason == "the mirror lacks it"
    assert measured_entry(results, "sbert-base-nli", "stsb", HEADLINE).reason == "no weights here"


def test_a_control_of_another_dimension_is_no_control() -> None:
    parameters = {space: made_up.parameters_of(space) for space in SUITE.spaces}
    assert find_controls(make_results(75.0), parameters) == {("minilm-lp", "stsb"): "minilm-pca"}
    unlike = make_results(75.0, dimension=4)
    assert dimensions(unlike, "minilm-lp", "minilm-pca", "stsb") == (4, 8)
    assert find_controls(unlike, parameters) == {}


@pytest.mark.parametrize("sizes", [(256, 384), (256, 256)])
def test_a_tuned_control_may_have_a_dimension_of_its_own(sizes: tuple[int, int]) -> None:
    values = {"minilm": 80.0, "minilm-lp": 70.0, "minilm-lp-selected": 74.0, "minilm-pca-selected": 78.0}
    results = made_up.make_results({(space, "stsb", HEADLINE): value for space, value in values.items()})
    for space, size in zip(("minilm-lp-selected", "minilm-pca-selected"), sizes, strict=True):
        results.scores[space]["stsb"]["dimension"] = size
    results.scores["minilm-lp"]["stsb"]["dimension"] = sizes[0]
    parameters = {space: made_up.parameters_of(space) for space in values}
    assert find_tuned_controls(results, parameters) == {("minilm-lp-selected", "stsb"): "minilm-pca-selected"}
    elsewhere = {**parameters, "minilm-pca-selected": {**parameters["minilm-pca-selected"], "chosen_on": "newsgroups"}}
    assert find_tuned_controls(results, elsewhere) == {}  # tuned on other data: the difference may come from the data
    pair = ("minilm-lp-selected", "minilm-pca-selected")
    assert difference_entry(results, pair, "stsb", HEADLINE, role=TUNED_CONTROL).text == "-4.00"
    same = {("minilm-lp", "stsb"), ("minilm-lp-selected", "stsb")} if sizes[0] == sizes[1] else set()
    assert set(find_controls(results, parameters)) == same


def test_only_what_reduces_dimension_by_neighbourhoods_has_a_control_of_its_dimension() -> None:
    parameters = {space: made_up.parameters_of(space) for space in SUITE.spaces}
    assert list(control_pairs(SUITE, parameters)) == [("minilm-lp", "minilm-pca")]
    folded = {**parameters, "minilm-smooth": made_up.FOLD}
    assert list(control_pairs(SUITE, folded)) == [("minilm-lp", "minilm-pca"), ("minilm-smooth", "minilm-pca")]
    whitened = {**parameters, "minilm-pca": made_up.MADE_BY["whitening"]}
    assert list(control_pairs(SUITE, whitened)) == []


def test_a_partition_by_chance_is_the_control_of_the_encoder_that_differs_in_nothing_else() -> None:
    spaces = ("wl-lase", "wl-lase-random", "wl-lase-other", "wl-average")
    clusters = {"clustering": "spectral", "size": 50, "seed": 0, "control": None}
    lase = {"method": "lase", "vectors": "wordllama", "clusters": clusters}
    parameters = {
        "wl-lase": lase,
        "wl-lase-random": {**lase, "clusters": {**clusters, "control": "random"}},
        "wl-lase-other": {**lase, "clusters": {**clusters, "size": 40}},
        "wl-average": {"method": "average", "vectors": "wordllama", "clusters": None},
    }
    suite = made_up.make_suite(spaces, ("stsb",))
    assert list(partition_pairs(suite, parameters)) == [("wl-lase", "wl-lase-random")]
    results = made_up.make_results({(space, "stsb", HEADLINE): 60.0 for space in spaces})
    assert find_controls(results, parameters) == {("wl-lase", "stsb"): "wl-lase-random"}


def test_the_baseline_is_the_own_encoder_or_the_mean_of_words_or_what_the_suite_names() -> None:
    assert find_baselines(SUITE, ["wl-average"]) == {
        "minilm-lp": "minilm", "minilm-pca": "minilm", "minilm-smooth": "minilm",
    }  # fmt: skip
    chosen = SUITE.model_copy(update={"baseline": "minilm-pca"})
    others = [space for space in SUITE.spaces if space != "minilm-pca"]
    assert find_baselines(chosen, ["wl-average"]) == dict.fromkeys(others, "minilm-pca")


def read_long(evidence: Evidence) -> dict[tuple[str, str], dict[str, str]]:
    rows = csv.DictReader(io.StringIO(long_table(evidence)[0]), strict=True)
    return {(row["space"], row["corpus"]): row for row in rows}


def test_the_long_table_holds_every_space_and_corpus_and_the_reason_of_each_blank() -> None:
    lines = long_table(Evidence(make_results(75.0)))[0].splitlines()
    assert len(lines) == 1 + 5 * 2
    assert all(line.count(",") == lines[0].count(",") for line in lines)
    assert sum("the mirror lacks it" in line for line in lines) == 5


def test_the_long_table_holds_the_paired_difference_to_the_control_of_the_same_dimension() -> None:
    for dimension, control in ((8, "minilm-pca"), (4, "")):
        results = make_results(75.0, dimension=dimension)
        rows = read_long(made_up.make_evidence(results))
        row = rows["minilm-lp", "stsb"]
        beside = results.difference(("minilm-lp", HEADLINE), ("minilm-pca", HEADLINE), "stsb")
        numbers = [f"{number:.2f}" for number in (beside.value, beside.low, beside.high) if number is not None]
        assert row["control"] == control
        found = [row[name] for name in ("control_difference", "control_low", "control_high")]
        assert found == (numbers if control else ["", "", ""])
        assert (row["difference_to"], row["difference"]) == ("minilm", "-5.00")
        for other in ("minilm", "minilm-pca", "minilm-smooth", "wl-average"):
            assert rows[other, "stsb"]["control"] == "", other
        for baseline in ("minilm", "wl-average"):
            assert (rows[baseline, "stsb"]["difference_to"], rows[baseline, "stsb"]["difference"]) == ("", "")
        lost = rows["minilm-lp", "lost"]
        assert (lost["control"], lost["reason"]) == ("", "the mirror lacks it")


def test_the_long_table_holds_an_encoder_over_words_against_the_mean_of_words() -> None:
    values = {"minilm": 80.0, "wl-average": 60.0, "wl-sif": 63.0}
    results = made_up.make_results({(space, "stsb", HEADLINE): value for space, value in values.items()})
    rows = {space: row for (space, _), row in read_long(Evidence(results)).items()}
    beside = results.difference(("wl-sif", HEADLINE), ("wl-average", HEADLINE), "stsb")
    assert (rows["wl-sif"]["difference_to"], rows["wl-sif"]["difference"]) == ("wl-average", "3.00")
    assert rows["wl-sif"]["difference_low"] == f"{beside.low:.2f}"
    assert rows["wl-average"]["difference_to"] == rows["minilm"]["difference_to"] == ""


def make_skewed(shift: float) -> Results:
    """minilm-lp less minilm has log-normal replicates, whose percentiles are not symmetric about the difference."""
    results = made_up.make_results({("minilm", "stsb", HEADLINE): 80.0, ("minilm-lp", "stsb", HEADLINE): 80.0 + shift})
    skewed = np.random.default_rng(5).lognormal(size=len(results.replicates["minilm", "stsb"][HEADLINE]))
    plain = results.replicates["minilm", "stsb"][HEADLINE]
    results.replicates["minilm-lp", "stsb"][HEADLINE] = plain + (skewed - np.median(skewed) + shift) / 100
    return results


def test_a_difference_has_one_interval_wherever_it_is_printed() -> None:
    results = make_skewed(1.5)
    entry = difference_entry(results, ("minilm-lp", "minilm"), "stsb", HEADLINE, role="baseline")
    [judged] = judge_family(results, [("minilm-lp", "minilm")], [("stsb", HEADLINE)])
    rows = read_long(Evidence(results))
    printed = [rows["minilm-lp", "stsb"][name] for name in ("difference", "difference_low", "difference_high")]
    drawn = np.random.default_rng(5).lognormal(size=made_up.DRAWS)
    low, high = np.quantile(drawn - np.median(drawn) + 1.5, [0.025, 0.975])
    assert (entry.low, entry.high) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))
    assert printed == [f"{number:.2f}" for number in (entry.value, entry.low, entry.high) if number is not None]
    assert judged.text == f"{entry.value:+.2f} [{entry.low:+.2f}, {entry.high:+.2f}]"


@pytest.mark.parametrize("shift", [0.3, 0.6, 1.0, 1.5, 3.0])
def test_a_difference_alone_is_called_exactly_where_its_printed_interval_leaves_out_zero(shift: float) -> None:
    [judged] = judge_family(make_skewed(shift), [("minilm-lp", "minilm")], [("stsb", HEADLINE)])
    assert judged.difference.low is not None
    assert judged.sign == int(judged.difference.low > 0)


def test_a_difference_on_the_corpus_that_chose_the_parameters_is_not_judged() -> None:
    values = {"minilm": 80.0, "minilm-lp-selected": 90.0}
    results = made_up.make_results({(s, c, HEADLINE): value for s, value in values.items() for c in ("dev", "test")})
    chosen = replace(results, chosen_on={"minilm-lp-selected": "dev"})
    pairs, columns = [("minilm-lp-selected", "minilm")], [("dev", HEADLINE), ("test", HEADLINE)]
    assert [judged.corpus for judged in judge_family(results, pairs, columns)] == ["dev", "test"]
    assert [judged.corpus for judged in judge_family(chosen, pairs, columns)] == ["test"]
