"""Differences to baselines and controls, and the smallest difference under each table, known by construction."""

from __future__ import annotations

import csv
import io

import pytest

from pipeline.report.comparisons import BASELINE, judge_family, smallest_difference
from pipeline.report.contents import own_plans
from pipeline.report.panels import build_table, difference_panel
from pipeline.report.results import Results
from pipeline.report.text_report import report_text
from sentfold.report.page import Notes, table_content
from sentfold.report.render import latex, markdown, tidy_csv
from sentfold.report.table import Panel, Table
from tests.report.made_up import make_evidence, make_results

TITLE = "Difference to the control"
MADE_OF = {"minilm-lp": "locally linear embedding"}
# The name of a table, the task of its corpora, and a protocol of it.
KINDS = {
    "classification": ("classification", "accuracy.logistic"),
    "paraphrase": ("paraphrase", "f1.logistic"),
    "trained-head": ("similarity", "pearson.trained-head"),
    "similarity": ("similarity", "spearman.all.cosine"),
    "clustering": ("clustering", "nmi.kmeans"),
    "ranking": ("ranking", "map.cosine"),
    "inference": ("inference", "best-f1.cosine"),
}


def scored(task: str, *protocols: str, lp: float = 70.0) -> Results:
    """minilm at 80 and minilm-pca at 75 points on two corpora, minilm-lp where it is asked to be."""
    values = {"minilm": 80.0, "minilm-lp": lp, "minilm-pca": 75.0}
    results = make_results({(s, c, p): v for s, v in values.items() for c in ("one", "two") for p in protocols})
    for space in values:
        for corpus in ("one", "two"):
            results.scores[space][corpus]["task"] = task
    return results


def built(results: Results, name: str) -> Table:
    evidence = make_evidence(results, made_of=MADE_OF)
    return build_table(evidence, name, own_plans(evidence)[name], compared=True)


def control_panels(table: Table) -> list[Panel]:
    return [panel for panel in table.panels if panel.title.startswith(TITLE)]


@pytest.mark.parametrize("name", KINDS)
def test_every_table_of_ours_prints_the_differences_to_baseline_and_control_with_their_intervals(name: str) -> None:
    task, protocol = KINDS[name]
    results = scored(task, protocol)
    table = built(results, name)
    for role, other, gain, number in (("baseline", "minilm", "-10.00", 4), ("control", "minilm-pca", "-5.00", 2)):
        panel = next(panel for panel in table.panels if panel.title.startswith(f"Difference to the {role}"))
        line = panel.groups[0].lines[0]
        assert line.name == f"minilm-lp − {other}"
        for corpus, entry in zip(("one", "two"), line.entries, strict=True):
            expected = results.difference(("minilm-lp", protocol), (other, protocol), corpus)
            assert (entry.text, entry.low, entry.high) == (gain, expected.low, expected.high)
            assert (entry.sign, entry.of) == (-1, (f"minilm-lp/{corpus}", f"{other}/{corpus}"))
        assert any(f"{number} differences to the {role} {other}, judged together" in said for said in panel.shows)
        assert f"Smallest difference to its {role}" in panel.notes[-1]
        for written in (markdown(table), latex(table), report_text(make_evidence(results), [table], [])):
            assert gain in written and line.entries[0].interval in written
        assert gain in str(table_content(table, Notes()))


def test_a_difference_is_no_score_in_the_csv() -> None:
    rows = csv.DictReader(io.StringIO(tidy_csv(built(scored("ranking", "map.cosine"), "ranking"))))
    differences = [row for row in rows if "−" in row["row"]]
    found = [
        (row["row"], row["protocol"].removeprefix("MAP of cosine, less the "), row["value"]) for row in differences
    ]
    assert found == [
        *[("minilm-lp − minilm", "baseline's", "-10.00")] * 2,
        *[("minilm-pca − minilm", "baseline's", "-5.00")] * 2,
        *[("minilm-lp − minilm-pca", "control's", "-5.00")] * 2,
    ]
    assert all(row["low"] and row["high"] for row in differences)


def test_the_baseline_of_an_encoder_over_words_is_the_mean_of_words() -> None:
    values = {"minilm": 80.0, "wl-average": 60.0, "wl-sif": 63.0}
    results = make_results({(space, "one", "spearman.all.cosine"): value for space, value in values.items()})
    assert results.baselines == {"wl-sif": "wl-average"}
    plan = own_plans(make_evidence(results))["similarity"].panels[0]
    panel = difference_panel(results, plan, list(values), {("wl-sif", "one"): "wl-average"}, BASELINE)
    assert panel is not None
    [line] = panel.groups[0].lines
    assert (line.name, line.entries[0].text) == ("wl-sif − wl-average", "+3.00")


def test_pca_of_another_dimension_is_no_control_and_a_score_that_no_space_decides_has_none() -> None:
    results = scored("ranking", "map.cosine", "map.search-engine")
    for corpus in ("one", "two"):
        for space in ("minilm-lp", "minilm-pca"):
            results.replicates[space, corpus]["map.search-engine"] = results.replicates["minilm", corpus][
                "map.search-engine"
            ]
    assert [panel.title for panel in control_panels(built(results, "ranking"))] == [f"{TITLE}: MAP of cosine"]
    results.scores["minilm-lp"]["one"]["dimension"] = 5
    [panel] = control_panels(built(results, "ranking"))
    unlike, like = panel.groups[0].lines[0].entries
    assert unlike.reason == "minilm-pca is not the control of minilm-lp on one: their dimensions differ"
    assert like.text == "-5.00"
    results.scores["minilm-lp"]["two"]["dimension"] = 5
    assert control_panels(built(results, "ranking")) == []


def test_a_difference_that_nothing_moves_has_no_smallest_one() -> None:
    assert smallest_difference((), "control") == ""
    results = scored("ranking", "map.cosine", lp=80.0)
    for corpus in ("one", "two"):
        results.replicates["minilm-lp", corpus] = results.replicates["minilm", corpus]
    family = judge_family(results, [("minilm-lp", "minilm")], [("one", "map.cosine")])
    assert smallest_difference(family) == ""


def test_mutual_information_has_its_smallest_difference_in_nats() -> None:
    results = scored("clustering", "mi.kmeans")
    family = judge_family(results, [("minilm-lp", "minilm-pca")], [("one", "mi.kmeans")])
    assert f"one {family[0].result.detectable / 100:.3f} nats" in smallest_difference(family)
