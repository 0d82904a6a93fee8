"""The table of trained encoders: three seeds as three points, and a paired t with two degrees of freedom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from pipeline.report.results import Results
from pipeline.report.trainings import (
    TrainingRun,
    compared_trainings,
    draw_trainings,
    load_trainings,
    paired_t,
    training_table,
)
from pipeline.trainings import curve_path
from sentfold.files import write_json
from sentfold.report.table import Table
from tests.checkout import make_suite
from tests.report.made_up import make_evidence, make_results

PROTOCOL = "spearman.all.cosine"
SCORES = {"a": (80.0, 81.0, 83.0), "b": (82.0, 82.5, 86.0), "c": (79.0, 80.0, 82.0)}
LOSSES = {"a": "contrastive", "b": "lorentz-regression", "c": "cosine-regression"}
RUNS = {
    f"{name}-seed{seed}": TrainingRun(
        name,
        seed,
        LOSSES[name],
        "mean pooling",
        "9 pairs",
        curves={"loss": {1: 2.0, 2: 1.0}, "spearman": {2: 0.5}},
    )
    for name in SCORES
    for seed in range(3)
}


def make_table() -> Table:
    scores = {(space, "sts", PROTOCOL): SCORES[run.training][run.seed] for space, run in RUNS.items()}
    results = own_sources(make_results({("base", "sts", PROTOCOL): 70.0, **scores}))
    table = training_table(make_evidence(results, trainings=RUNS))
    assert table is not None
    return table


def own_sources(results: Results) -> Results:
    """The made-up results with every space as one that is made from sentences."""
    spaces = results.suite.spaces
    stages = {**results.suite.stages, "evaluate": {space: {"source": space, "maker": ""} for space in spaces}}
    return replace(results, suite=results.suite.model_copy(update={"stages": stages}))


def test_the_report_reads_the_curves_that_the_stage_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suite = make_suite(spaces=("small-cnn-max-seed1", "small-cosine-seed0", "small-mean-seed2"))
    recipe = {"loss": {"kind": "contrastive"}, "head": {"channels": 4, "kernels": [1, 3], "activation": "relu",
              "pooling": "max"}}  # fmt: skip
    curve = [{"epoch": 0.5, "step": 1, "loss": 2.0}, {"epoch": 1.0, "step": 2, "spearman": 0.25}]
    made = {"parameters": recipe, "pairs": 9, "trained_on": "learnt", "curve": curve}
    write_json(curve_path("mine", "small-cnn-max-seed1"), made)
    write_json(curve_path("mine", "small-cosine-seed0"), {"absent": "not in the mirror"})
    runs = load_trainings(suite)
    assert list(runs) == ["small-cnn-max-seed1", "small-cosine-seed0"]  # the third has not run
    one = runs["small-cnn-max-seed1"]
    assert (one.training, one.seed, one.head) == ("small-cnn-max", 1, "CNN 4 × 1/3, relu, max pooling")
    assert one.curves == {"loss": {1: 2.0}, "spearman": {2: 0.25}} and one.trained_on == "9 pairs of learnt"
    assert runs["small-cosine-seed0"].absent == "not in the mirror"


def test_every_seed_is_a_row_after_the_untrained_spaces() -> None:
    panel = make_table().panels[0]
    assert [line.name for group in panel.groups for line in group.lines] == ["base", *RUNS]
    shown = {line.name: line.entries[0] for group in panel.groups for line in group.lines}
    assert shown["b-seed2"].value == 86.0 and shown["b-seed2"].low is not None


def test_seeds_are_compared_by_a_paired_t_with_the_first_training_and_with_the_loss_on_cosines() -> None:
    panel = make_table().panels[1]
    assert [line.name for line in panel.groups[0].lines] == ["b − a", "b − c", "c − a"]
    line = panel.groups[0].lines[0]
    assert [entry.text for entry in line.entries[:4]] == ["+2.00", "+1.50", "+3.00", "+2.17"]
    independent = ttest_rel(SCORES["b"], SCORES["a"])
    low, high = independent.confidence_interval(0.95)
    mean, t, p = line.entries[3:]
    assert (mean.low, mean.high) == (pytest.approx(low), pytest.approx(high))
    assert (t.value, p.value) == (pytest.approx(independent.statistic), pytest.approx(independent.pvalue))
    # Equal differences have no t.
    assert all(entry.blank for entry in panel.groups[0].lines[2].entries[4:])
    assert "2 degrees of freedom" in panel.protocol


def test_the_interval_of_two_seeds_is_that_of_one_degree_of_freedom() -> None:
    mean, low, high, t, p = paired_t(np.array([1.0, 3.0]))
    # Student's t with one degree of freedom is Cauchy's distribution: its 97.5% point is tan(0.475 pi).
    assert (mean, high - mean, mean - low) == (2.0, pytest.approx(np.tan(0.475 * np.pi)), pytest.approx(high - mean))
    assert (t, p) == (pytest.approx(2.0), pytest.approx(1 - 2 * np.arctan(2.0) / np.pi))


def test_a_seed_that_one_side_lacks_is_a_blank_and_one_common_seed_is_no_comparison() -> None:
    runs = {space: run for space, run in RUNS.items() if space not in ("a-seed1", "a-seed2", "c-seed0")}
    scores = {(space, "sts", PROTOCOL): SCORES[run.training][run.seed] for space, run in runs.items()}
    table = training_table(make_evidence(own_sources(make_results(scores)), trainings=runs))
    assert table is not None
    (line,) = table.panels[1].groups[0].lines
    assert line.name == "b − c" and line.entries[0].blank and not line.entries[1].blank


def test_an_absent_training_is_compared_with_nothing() -> None:
    runs = {**RUNS, "d-seed0": TrainingRun("d", 0, absent="not in the mirror")}
    assert "d" not in {name for pair in compared_trainings(runs) for name in pair}


def test_a_suite_without_trainings_has_neither_table_nor_figure() -> None:
    assert training_table(make_evidence(make_results({("base", "sts", PROTOCOL): 70.0}))) is None
    assert draw_trainings({}, "title", "subtitle") is None
    assert draw_trainings(RUNS, "title", "subtitle") is not None
