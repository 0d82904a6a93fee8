"""Cells, differences, bold marks and blanks, from replicates whose answer is known by construction."""

from __future__ import annotations

import csv
import io
from xml.etree import ElementTree

import numpy as np
import pytest

from pipeline.report.families import find_controls
from pipeline.report.figures import draw_differences, figure_bytes
from pipeline.report.results import Results
from pipeline.report.tables import (
    HEADLINE,
    Blanks,
    control_rows,
    difference_rows,
    long_csv,
    published_rows,
    score_rows,
    tuned_control_rows,
)
from pipeline.suite import Suite
from tests.checkout import MAKERS
from tests.report import made_up

SUITE = Suite(
    suite="made-up",
    root=".",
    file="suite.yaml",
    source="mirror",
    skip_missing=True,
    corpora=("stsb", "lost"),
    counts="own",
    makers=MAKERS.model_copy(update={"graph_transforms": ("smooth",)}),
    spaces=("minilm", "minilm-lp", "minilm-pca", "minilm-smooth", "wl-average"),
    blanks={"sbert-base-nli": "no weights here"},
)
METHODS = {"minilm-lp": "lle", "minilm-pca": "pca", "minilm-smooth": "smooth"}


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
    return Results(SUITE, scores, replicates, confidence=0.95)


def test_a_paired_difference_has_a_far_shorter_interval_than_either_score() -> None:
    results = make_results(75.0)
    cell = results.cell("minilm", "stsb", HEADLINE)
    difference = results.difference("minilm-lp", "minilm", "stsb", HEADLINE)
    assert difference.value == -5.0
    assert cell.low is not None and cell.high is not None and difference.low is not None and difference.high is not None
    # The shared movement (0.02) cancels; what is left is sqrt(2) x 0.002, 95% of which is 2 x 1.96 of that.
    assert difference.high - difference.low == pytest.approx(100 * 2 * 1.96 * np.sqrt(2) * 0.002, rel=0.1)
    assert cell.high - cell.low > 5 * (difference.high - difference.low)


def test_bold_needs_an_interval_that_excludes_zero_against_every_other_row() -> None:
    # 80.0 against 79.9 is within noise; 90 is not.
    assert make_results(75.0).separated_best("stsb", HEADLINE) is None
    assert make_results(90.0).separated_best("stsb", HEADLINE) == "minilm-lp"
    assert score_rows(make_results(90.0), ["stsb"], HEADLINE, Blanks(), bold=True)[1][1] == "**90.00**"


def test_too_few_effective_units_call_no_winner() -> None:
    results = make_results(90.0)
    for effective, best in ((26.8, None), (30.0, "minilm-lp")):
        for space in SUITE.spaces:
            results.scores[space]["stsb"]["drawn"] = {"unit": "groups", "units": 600, "effective_units": effective}
        assert results.separated_best("stsb", HEADLINE) == best


def test_an_absent_corpus_stays_in_the_table_of_its_task() -> None:
    results = make_results(75.0)
    for space in SUITE.spaces:
        results.scores[space]["lost"]["task"] = "classification"
    assert results.corpora_of("similarity") == ["stsb"]
    assert results.corpora_of("classification") == ["lost"]


def test_a_blank_names_its_reason_and_a_blank_row_stays_in_the_table() -> None:
    blanks = Blanks()
    rows = score_rows(make_results(75.0), ["stsb", "lost"], HEADLINE, blanks, bold=False)
    assert rows[0][2] == rows[1][2] == "– [1]"
    assert rows[-1] == ["sbert-base-nli", "– [2]", "– [2]"]
    assert blanks.legend() == "[1] the mirror lacks it  \n[2] no weights here  \n"


def test_a_control_of_another_dimension_is_no_control() -> None:
    blanks = Blanks()
    rows = control_rows(make_results(75.0, dimension=4), ["stsb"], HEADLINE, blanks, METHODS)
    assert rows[0][1] == "– [1]"
    assert "dimensions 4 and 8 differ" in blanks.reasons[0]
    assert control_rows(make_results(75.0), ["stsb"], HEADLINE, Blanks(), METHODS)[0][1].startswith("-4.90 [")


def tuned_results(ours: int, theirs: int) -> Results:
    """LP and PCA tuned on one corpus, LP 4 points below, with these numbers of coordinates; and LP fixed beforehand."""
    values = {"minilm": 80.0, "minilm-lp": 70.0, "minilm-lp-selected": 74.0, "minilm-pca-selected": 78.0}
    results = made_up.make_results({(space, "stsb", HEADLINE): value for space, value in values.items()})
    for space, size in (("minilm-lp", ours), ("minilm-lp-selected", ours), ("minilm-pca-selected", theirs)):
        results.scores[space]["stsb"]["dimension"] = size
    return results


def test_a_tuned_control_is_one_of_its_own_dimension_and_of_the_same_where_both_are_alike() -> None:
    methods = {"minilm-lp": "lle", "minilm-lp-selected": "lle", "minilm-pca-selected": "pca"}
    unlike, alike = tuned_results(256, 384), tuned_results(256, 256)
    for results in (unlike, alike):
        rows = tuned_control_rows(results, ["stsb"], HEADLINE, Blanks(), methods)
        assert [row[0] for row in rows] == ["minilm-lp-selected − minilm-pca-selected"]
        assert rows[0][1].startswith("-4.00 [")
    blanks = Blanks()
    fixed, tuned = control_rows(unlike, ["stsb"], HEADLINE, blanks, methods)
    assert (fixed[1], tuned[1]) == ("– [1]", "– [2]")
    assert "tuned" not in blanks.reasons[0] and "its tuned control" in blanks.reasons[1]
    fixed, tuned = control_rows(alike, ["stsb"], HEADLINE, Blanks(), methods)
    assert fixed[1].startswith("-8.00 [") and tuned[1].startswith("-4.00 [")


def test_only_what_reduces_dimension_by_neighbourhoods_has_a_control_of_its_dimension() -> None:
    results = make_results(75.0)
    titles = [row[0] for row in control_rows(results, ["stsb"], HEADLINE, Blanks(), METHODS)]
    assert titles == ["minilm-lp − minilm-pca"]
    others = {"minilm-lp": "npe", "minilm-pca": "pca", "minilm-smooth": "lle-landmark"}
    titles = [row[0] for row in control_rows(results, ["stsb"], HEADLINE, Blanks(), others)]
    assert titles == ["minilm-lp − minilm-pca", "minilm-smooth − minilm-pca"]
    assert control_rows(results, ["stsb"], HEADLINE, Blanks(), {**METHODS, "minilm-pca": "whitening"}) == []


def test_a_printed_figure_stands_only_beside_its_own_protocol() -> None:
    published = {"minilm": ("mteb", "all-MiniLM-L6-v2")}
    results = make_results(75.0)
    row = published_rows(results, ["stsb", "lost"], HEADLINE, published)
    assert row == [["*minilm, as published (mteb)*", "82.03", ""]]
    for other in ("spearman.mean.cosine", "spearman.wmean.cosine", "pearson.wmean.cosine"):
        assert published_rows(results, ["stsb"], other, published) == []


def test_differences_are_to_the_own_encoder_and_only_for_derived_spaces() -> None:
    rows = difference_rows(make_results(75.0), ["stsb"], HEADLINE, Blanks())
    assert [row[0] for row in rows] == ["minilm-lp", "minilm-pca", "minilm-smooth"]


def test_the_long_table_holds_every_space_and_corpus_and_the_reason_of_each_blank() -> None:
    lines = long_csv(make_results(75.0), {}).splitlines()
    assert len(lines) == 1 + 5 * 2
    assert all(line.count(",") == lines[0].count(",") for line in lines)
    assert sum("the mirror lacks it" in line for line in lines) == 5


def test_the_long_table_holds_the_paired_difference_to_the_control_of_the_same_dimension() -> None:
    for dimension, control in ((8, "minilm-pca"), (4, "")):
        results = make_results(75.0, dimension=dimension)
        controls = find_controls(results, METHODS)
        rows = {
            (row["space"], row["corpus"]): row
            for row in csv.DictReader(io.StringIO(long_csv(results, controls)), strict=True)
        }
        row = rows["minilm-lp", "stsb"]
        beside = results.difference("minilm-lp", "minilm-pca", "stsb", HEADLINE)
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
    rows = {row["space"]: row for row in csv.DictReader(io.StringIO(long_csv(results, {})))}
    beside = results.difference("wl-sif", "wl-average", "stsb", HEADLINE)
    assert (rows["wl-sif"]["difference_to"], rows["wl-sif"]["difference"]) == ("wl-average", "3.00")
    assert rows["wl-sif"]["difference_low"] == f"{beside.low:.2f}"
    assert rows["wl-average"]["difference_to"] == rows["minilm"]["difference_to"] == ""


def test_a_partition_by_chance_is_the_control_of_its_encoder() -> None:
    results = make_results(75.0)
    assert find_controls(results, {}, [("wl-average", "minilm"), ("wl-average", "minilm-pca")]) == {
        ("wl-average", "stsb"): "minilm"
    }


def test_a_figure_has_the_same_bytes_at_every_drawing_and_is_well_formed() -> None:
    results = make_results(75.0)
    for kind in ("svg", "png"):
        first, second = (
            figure_bytes(draw_differences(results, ["stsb", "lost"], HEADLINE, "A title", "beneath it"), kind)
            for _ in range(2)
        )
        assert first == second
    svg = figure_bytes(draw_differences(results, ["stsb"], HEADLINE, "A title", "beneath it"), "svg")
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    # A picture that loads anything from elsewhere is blank offline.
    links = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith("href")]
    assert all(link.startswith("#") for link in links)


def test_the_encoder_of_a_space_is_the_longest_that_fits() -> None:
    makers = MAKERS.model_copy(update={"encoders": ("mini", "mini-large")})
    names = ("mini", "mini-lp", "mini-pca", "mini-large", "mini-large-lp", "mini-large-pca")
    suite = SUITE.model_copy(update={"makers": makers, "spaces": names})
    assert suite.encoder_of("mini-large-lp") == "mini-large"
    assert suite.encoder_of("mini-lp") == "mini"
