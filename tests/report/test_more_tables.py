"""Tables of choices, of similarities beside cosine and of geometry, on numbers that are known by construction."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from pipeline.report.contents import own_plans
from pipeline.report.entries import measured_entry
from pipeline.report.evidence import Evidence
from pipeline.report.fact_tables import geometry_table
from pipeline.report.panels import build_table
from pipeline.report.results import Results
from pipeline.report.selection_table import selection_table
from pipeline.report.sweeps import Sweep
from pipeline.report.text_report import report_text
from sentfold.measures.registry import describe_protocol
from sentfold.report.page import Notes, table_content
from sentfold.report.render import markdown, tidy_csv
from sentfold.report.table import Entry, Panel, Table
from tests.report.made_up import make_evidence, make_results

COSINE = "spearman.all.cosine"
MADE_OF = {"minilm": "all-MiniLM-L6-v2"}
POINTS = ({"neighbors": 10, "components": 16}, {"neighbors": 30, "components": 16})


def built(results: Results, name: str) -> Table:
    evidence = Evidence(results, made_of=MADE_OF)
    return build_table(evidence, name, own_plans(evidence)[name])


def texts(panel: Panel, row: int) -> list[str]:
    return [entry.text for entry in panel.groups[0].lines[row].entries]


def chosen() -> Results:
    values = {"minilm": 80.0, "minilm-lp": 70.0, "minilm-lp-selected": 75.0}
    return make_results({(space, corpus, COSINE): v for space, v in values.items() for corpus in ("dev", "stsb")})


def make_sweep(**changes: Any) -> Sweep:
    content = {
        "space": "minilm-lp-selected", "corpus": "dev", "protocol": COSINE, "points": POINTS, "values": (76.0, 75.5),
        "chosen": POINTS[0], "tests": {"stsb": (75.0, 77.25)}, "rules": {"procrustes": 75.5},
    }  # fmt: skip
    return Sweep(**(content | changes))


def test_the_choice_stands_beside_what_it_was_chosen_from_and_beside_the_rules() -> None:
    table = selection_table(make_evidence(chosen(), sweeps={"minilm-lp-selected": make_sweep()}))
    assert table is not None
    choice, selected, oracle = table.panels
    # points, best of the grid, fixed beforehand, encoder, residual variance (not run), Procrustes
    assert texts(choice, 0) == ["2", "76.00", "70.00", "80.00", "", "75.50"]
    assert "k = 10, p = 16" in choice.groups[0].lines[0].name
    assert "Procrustes statistic loses 0.50 points" in choice.shows[0]
    assert [texts(panel, 0) for panel in (selected, oracle)] == [["75.00"], ["77.25"]]
    # An oracle is never a row of its own space's name, so that no reader takes it for a score.
    assert "oracle" in oracle.groups[0].lines[0].name
    assert "oracle" in oracle.title.lower()
    assert "2.25 to 2.25 points" in oracle.shows[0]


def test_the_oracle_of_a_classification_stands_beside_what_was_selected_in_panels_of_its_own() -> None:
    accuracy = "accuracy.3nn-euclidean"
    values = {"minilm": 66.0, "minilm-lp": 60.0, "minilm-lp-selected": 58.0}
    results = make_results(
        {(space, "trec", accuracy): value for space, value in values.items()}
        | {(space, corpus, COSINE): value for space, value in values.items() for corpus in ("dev", "stsb")}
    )
    sweep = make_sweep(tests={"stsb": (58.0, 58.0)}, classes={"trec": (58.0, 63.5)})
    table = selection_table(make_evidence(results, sweeps={"minilm-lp-selected": sweep}))
    assert table is not None
    _, *of_pairs, selected, oracle = table.panels
    assert [texts(panel, 0) for panel in of_pairs] == [["58.00"], ["58.00"]]
    assert [texts(panel, 0) for panel in (selected, oracle)] == [["58.00"], ["63.50"]]
    assert all("accuracy of Euclidean 3-NN" in panel.title for panel in (selected, oracle))
    # No reader of the CSV may take an oracle for a score: it stands in a protocol of its own.
    rows = list(csv.DictReader(io.StringIO(tidy_csv(table))))
    assert [row["value"] for row in rows if row["protocol"] == accuracy] == ["58.00"]
    assert [row["value"] for row in rows if "oracle, chosen on trec itself" in row["protocol"]] == ["63.50"]
    assert "k = 30" in oracle.groups[0].lines[0].entries[0].about
    assert "5.50 to 5.50 points" in oracle.shows[0]


def test_choices_on_two_corpora_are_panels_of_their_own_and_no_rule_is_shown_where_none_was_run() -> None:
    nmi = "nmi.kmeans"
    values = {"minilm": 40.0, "minilm-lp": 30.0, "minilm-lp-selected": 35.0, "minilm-lp-clustered": 42.0}
    results = make_results(
        {(space, corpus, nmi): value for space, value in values.items() for corpus in ("news", "news-test")}
        | {(space, corpus, COSINE): value for space, value in values.items() for corpus in ("dev", "stsb")}
    )
    clustered = make_sweep(
        space="minilm-lp-clustered", corpus="news", protocol=nmi, values=(42.5, 41.0), rules={},
        tests={"news-test": (42.0, 43.0)},
    )  # fmt: skip
    sweeps = {"minilm-lp-selected": make_sweep(), "minilm-lp-clustered": clustered}
    evidence = make_evidence(results, sweeps=sweeps)
    table = selection_table(evidence)
    assert table is not None
    titles = [panel.title for panel in table.panels]
    assert len(set(titles)) == len(titles) == 6
    assert [title for title in titles if "development" in title] == [
        "Choice on the development corpus dev", "Choice on the development corpus news"
    ]  # fmt: skip
    choice, selected, oracle = table.panels[3:]
    assert [head.title for head in choice.heads] == [head.title for head in table.panels[0].heads][:4]
    assert [texts(panel, 0) for panel in (selected, oracle)] == [["42.00"], ["43.00"]]
    for panel, space in ((table.panels[0], "minilm-lp-selected"), (choice, "minilm-lp-clustered")):
        assert [line.name.partition(":")[0] for line in panel.groups[0].lines] == [space]
    said = report_text(evidence, [table], [])
    assert "minilm-lp-selected, whose hyper-parameters were chosen on `dev` alone" in said
    assert "minilm-lp-clustered, whose hyper-parameters were chosen on `news` alone" in said


def test_a_choice_that_does_not_fit_a_test_set_has_no_inflation_there() -> None:
    sweep = make_sweep(tests={"stsb": (None, 77.0)})
    table = selection_table(make_evidence(chosen(), sweeps={"minilm-lp-selected": sweep}))
    assert table is not None
    assert table.panels[2].shows == ("minilm-lp-selected: the chosen parameters fit none of the test sets.",)
    assert selection_table(make_evidence(chosen())) is None


def other_similarities() -> Table:
    scores = {
        ("minilm", "stsb", COSINE): 80.0,
        ("minilm", "stsb", "spearman.all.dot"): 80.0,
        ("minilm", "stsb", "spearman.all.manhattan"): 75.0,
        ("minilm", "stsb", "spearman.all.abs-cosine"): 85.0,
    }
    return built(make_results(scores, noise=0.1), "measures")


def test_a_similarity_is_marked_against_the_cosine_of_the_same_vectors() -> None:
    [panel] = other_similarities().panels
    entries = dict(zip([head.protocol for head in panel.heads], panel.groups[0].lines[0].entries, strict=True))
    assert {name.removeprefix("spearman.all."): entry.sign for name, entry in entries.items() if not entry.blank} == {
        "cosine": 0, "dot": 0, "manhattan": -1, "abs-cosine": 1,
    }  # fmt: skip
    titles = [head.title for head in panel.heads]
    assert len(set(titles)) == len(titles) and titles[:2] == ["stsb cosine", "stsb inner product"]
    assert entries["spearman.all.lorentz-1"].reason == "stsb is not scored by spearman.all.lorentz-1"
    assert any("Of 3 differences to Spearman of cosine, all pairs, judged together, 1 are" in s for s in panel.shows)
    assert any("score by Spearman of cosine" in note for note in panel.notes)


def geometric() -> Results:
    results = chosen()
    facts = {
        "alignment": 0.2, "alignment_pairs": "5: paraphrases", "uniformity": -2.5, "uniformity_pairs": "all 3 pairs",
        "mean_cosine": 0.1, "effective_rank": 30.5, "hubness": 1.25, "neighbors": 10, "sampled": 3, "sentences": 4,
    }  # fmt: skip
    results.scores["minilm"]["stsb"]["geometry"] = facts
    results.scores["minilm-lp"]["stsb"]["geometry"] = facts | {"trustworthiness": 0.9, "continuity": 0.8, "hubness": 3}
    results.scores["minilm-lp-selected"]["stsb"]["geometry"] = facts | {"trustworthiness": 0.95, "continuity": 0.97}
    return results


def test_geometry_names_its_sample_and_leaves_blank_what_an_encoder_cannot_have() -> None:
    table = geometry_table(Evidence(geometric()))
    assert table is not None
    [panel] = table.panels
    assert texts(panel, 0) == ["8", "0.200", "-2.500", "0.100", "30.5", "1.25", "", ""]
    assert texts(panel, 1)[-2:] == ["0.900", "0.800"]
    assert "on 3 of 4 distinct sentences" in panel.protocol
    assert "all 3 pairs" in panel.protocol
    assert geometry_table(Evidence(chosen())) is None


def test_every_task_has_a_table_of_its_own_and_training_set_scoring_a_panel_of_its_own() -> None:
    protocols = {
        "mr": ("accuracy.3nn-euclidean", "accuracy.logistic", "accuracy.3nn-training-set"),
        "mrpc": ("accuracy.3nn-euclidean", "accuracy.logistic", "f1.logistic", "f1.3nn-euclidean"),
        "20news": tuple(f"{name}.kmeans" for name in ("mi", "nmi", "ari", "purity", "v-measure")),
        "cqa-b-dev": ("map.cosine", "map.search-engine"),
        "snli": ("mean-f1.cosine", "best-f1.cosine"),
        "stsb": (COSINE, "pearson.all.cosine", "pearson.trained-head", "spearman.trained-head"),
    }
    tasks = {"mr": "classification", "mrpc": "paraphrase", "20news": "clustering", "cqa-b-dev": "ranking",
             "snli": "inference", "stsb": "similarity"}  # fmt: skip
    results = make_results({("minilm", corpus, p): 50.0 for corpus, names in protocols.items() for p in names})
    for corpus, task in tasks.items():
        results.scores["minilm"][corpus]["task"] = task
    plans = own_plans(Evidence(results))
    assert set(plans) == {
        "similarity",
        "classification",
        "paraphrase",
        "trained-head",
        "clustering",
        "ranking",
        "inference",
    }
    for name, plan in plans.items():
        for panel in plan.panels:
            kinds = {column.protocol.endswith("training-set") for column in panel.columns}
            assert len(kinds) == 1, panel.title
            assert kinds == {"raining-set" in panel.title}, panel.title
        table = built(results, name)
        assert all(entry.text for panel in table.panels for entry in panel.groups[0].lines[0].entries), name
    shown = {column.protocol for plan in plans.values() for panel in plan.panels for column in panel.columns}
    assert {p for names in protocols.values() for p in names} <= shown


def test_cosine_is_held_against_the_search_engines_order_on_the_same_queries() -> None:
    scores = {("minilm", "cqa-b-dev", "map.cosine"): 75.0, ("minilm", "cqa-b-dev", "map.search-engine"): 71.35}
    scores |= {("wl-average", "cqa-b-dev", "map.cosine"): 60.0, ("wl-average", "cqa-b-dev", "map.search-engine"): 71.35}
    results = make_results(scores, noise=0.2)
    for space in ("minilm", "wl-average"):
        results.scores[space]["cqa-b-dev"]["task"] = "ranking"
    panel = built(results, "ranking").panels[1]
    assert [line.entries[0].sign for line in panel.groups[0].lines] == [1, -1]
    assert any("Of 2 differences to MAP of the search engine's own order" in sentence for sentence in panel.shows)


def test_queries_that_no_order_can_answer_are_counted_under_the_ranking() -> None:
    protocols = ("map.cosine", "map.search-engine")
    corpora = {"cqa-b-dev": (50, 7), "cqa-b": (70, 8)}
    results = make_results({("minilm", corpus, p): 70.0 for corpus in corpora for p in protocols})
    for corpus, (queries, lost) in corpora.items():
        results.scores["minilm"][corpus] |= {"task": "ranking", "n": queries, "queries_without_relevant": lost}
    table = built(results, "ranking")
    said = (
        "Queries without a relevant candidate score 0 in every space: 7 of 50 queries of cqa-b-dev (no order can score "
        "above 86.00 there) and 8 of 70 queries of cqa-b (no order can score above 88.57 there)."
    )
    assert [said in panel.shows for panel in table.panels] == [True, False, False]  # once
    assert said in report_text(Evidence(results), [table], [])  # of report.md
    assert said in markdown(table)
    assert "above 86.00" in str(table_content(table, Notes()))  # of the page


def test_the_spread_over_starts_of_k_means_is_said_under_the_clustering() -> None:
    names = {"nmi.kmeans": 7.5, "mi.kmeans": 19.0}
    results = make_results({(s, "20news", p): 31.0 for s in ("minilm", "minilm-lp", "wl-average") for p in names})
    for space, times in (("minilm", 1), ("minilm-lp", 2)):
        spread = {name: times * value for name, value in names.items()}
        results.scores[space]["20news"] |= {"task": "clustering", "seeds": 10, "spread_over_seeds": spread}
    results.scores["wl-average"]["20news"] = {"absent": "its words are left out", "task": "clustering"}
    [panel] = built(results, "clustering").panels
    said = next(sentence for sentence in panel.shows if "starts of k-means" in sentence)
    assert "20news (mi) 0.190 nats to 0.380 nats" in said and "20news (nmi) 7.5 to 15.0" in said
    assert "mean of 10 starts" in said
    for space in ("minilm", "minilm-lp"):
        del results.scores[space]["20news"]["spread_over_seeds"]
    assert not any("starts of k-means" in sentence for sentence in built(results, "clustering").panels[0].shows)


def test_an_interval_in_nats_keeps_the_digits_that_tell_its_ends_apart() -> None:
    results = make_results({("minilm", "20news", "mi.kmeans"): 176.05}, noise=0.3)
    nats = measured_entry(results, "minilm", "20news", "mi.kmeans", unit="nats")
    assert nats.text == "1.7605"
    assert re.fullmatch(r"\[1\.\d{3}, 1\.\d{3}\]", nats.interval)
    assert Entry("0.0", 0.0, -0.01, 0.04).interval == "[0.0, 0.0]"


def test_a_protocol_whose_name_holds_a_point_is_said_in_full() -> None:
    assert describe_protocol("spearman.all.lorentz-0.01") == "Spearman of Lorentzian similarity, β = 0.01, all pairs"
    assert describe_protocol("accuracy.3nn-euclidean") == "accuracy of Euclidean 3-NN"


def test_a_panel_of_a_score_that_few_spaces_are_asked_for_has_their_rows_alone() -> None:
    scores = {("wl-average", "mr", "accuracy.perceptron"): 75.0}
    scores |= {(space, "mr", "accuracy.logistic"): 70.0 for space in ("wl-average", "wl-sif")}
    panels = built(make_results(scores), "classification").panels
    rows = {panel.title: [line.name for group in panel.groups for line in group.lines] for panel in panels}
    assert rows["Accuracy of logistic regression"] == ["wl-average", "wl-sif"]
    assert rows["Accuracy of a perceptron with one hidden layer"] == ["wl-average"]
