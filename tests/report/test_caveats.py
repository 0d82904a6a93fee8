"""Scores on the corpus that chose a space's parameters, and spaces that are one by construction, are marked."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from pipeline.base.suite import Suite
from pipeline.report.cells import long_table
from pipeline.report.contents import own_plans
from pipeline.report.entries import HEADLINE, average_entry, difference_entry, measured_entry
from pipeline.report.gallery import draw_gallery
from pipeline.report.made_of import find_twins
from pipeline.report.panels import build_table
from pipeline.report.results import Results
from pipeline.report.text_report import report_text, summary_text
from sentfold.report.page import Notes, table_content
from sentfold.report.render import latex, markdown, tidy_csv
from sentfold.report.table import Caveat, Entry, Group, Head, Line, Panel, Table
from tests.report.made_up import make_evidence, make_results, make_suite

SELECTED = "minilm-lp-selected"
SENTENCE = f"The parameters of {SELECTED} were chosen on dev."


def chosen_results(corpora: tuple[str, ...] = ("dev", "test")) -> Results:
    """minilm at 80, minilm-pca at 79, and a space chosen on dev at 90 points, the best by far on every corpus."""
    values = {"minilm": 80.0, "minilm-pca": 79.0, SELECTED: 90.0}
    results = make_results({(space, c, HEADLINE): value for space, value in values.items() for c in corpora})
    return replace(results, chosen_on={SELECTED: "dev"})


def similarity_table(results: Results) -> Table:
    evidence = make_evidence(results)
    return build_table(evidence, "similarity", own_plans(evidence)["similarity"], compared=True)


def row_of(panel: Panel, name: str) -> tuple[Entry, ...]:
    return next(line.entries for group in panel.groups for line in group.lines if line.name == name)


def test_a_score_on_the_corpus_that_chose_the_parameters_is_marked_and_never_better() -> None:
    table = similarity_table(chosen_results())
    dev, test = row_of(table.panels[0], SELECTED)
    assert (dev.marks, test.marks) == ("†", "▲")
    assert not any("†" in entry.marks for name in ("minilm", "minilm-pca") for entry in row_of(table.panels[0], name))
    differences = next(panel for panel in table.panels if panel.title.startswith("Difference to the baseline"))
    assert [entry.marks for entry in row_of(differences, f"{SELECTED} − minilm")] == ["†", "▲"]


def test_every_form_of_a_table_and_the_page_explain_the_mark() -> None:
    results = chosen_results()
    table, evidence = similarity_table(results), make_evidence(results)
    page = table_content(table, Notes())["panels"][0]
    for written in (markdown(table), report_text(evidence, [table], []), summary_text(evidence, [table])):
        assert "90.00† [" in written
        assert SENTENCE in written
    assert r"90.00$^{\dagger}$" in latex(table) and "chosen on dev" in latex(table)
    cell = next(cells[0] for group in page["groups"] for name, _, cells in group["lines"] if name == SELECTED)
    assert (cell[1], cell[4]) == ("90.00", [f"† parameters of {SELECTED} chosen on dev"])
    assert any(SENTENCE in text for text in page["caveats"])
    for text in (tidy_csv(table), long_table(evidence)[0]):
        rows = list(csv.DictReader(io.StringIO(text), strict=True))
        marked = [row for row in rows if row["caveats"]]
        assert {row["corpus"] for row in marked} == {"dev"}
        assert {row["caveats"] for row in marked} == {f"parameters of {SELECTED} chosen on dev"}
        assert any(row["value"] == "90.00" for row in marked)


def test_the_caption_of_the_figure_of_differences_explains_the_mark() -> None:
    captions = {picture.name: picture.caption for picture in draw_gallery(make_evidence(chosen_results()))}
    assert SENTENCE in captions["differences"]


def test_a_difference_to_a_chosen_space_and_a_mean_over_its_corpus_are_marked_too() -> None:
    results = chosen_results()
    caveat = Caveat("†", (SELECTED,), "dev")
    difference = difference_entry(results, ("minilm-pca", SELECTED), "dev", HEADLINE, role="control")
    assert difference.caveats == (caveat,)
    columns = [("dev", HEADLINE), ("test", HEADLINE)]
    entries = [measured_entry(results, SELECTED, *column) for column in columns]
    assert average_entry(results, SELECTED, columns, entries).caveats == (caveat,)


@pytest.mark.parametrize(("corpora", "warned"), [(("dev",), True), (("dev", "test"), False)])
def test_a_suite_without_another_corpus_than_the_one_that_chose_is_warned_under_its_table(
    corpora: tuple[str, ...], warned: bool
) -> None:
    notes = similarity_table(chosen_results(corpora)).panels[0].notes
    assert any(note.startswith("Warning: dev chose the parameters of minilm-lp-selected") for note in notes) == warned


# --- one space by construction --------------------------------------------------------------------


def twins_of(shape: tuple[int, int], **blocks: dict[str, Any]) -> dict[tuple[str, str], tuple[str, str]]:
    """Twins among minilm and spaces made from it, each by the block of its name, on one corpus of that shape."""
    own = {f"minilm-{name}": block for name, block in blocks.items()}
    suite: Suite = make_suite(("minilm", *own), ("one",))
    return find_twins(suite, {"minilm": {}, **own}, {(space, "one"): shape for space in suite.spaces})


LLE = {"method": "lle", "neighbors": 30, "regularization": 0.001, "components": 8, "scaling": "unit"}
LANDMARK = {**LLE, "method": "landmark", "landmarks": 100, "selection": "random", "seed": 0}


def test_a_fold_of_landmarks_is_the_fold_itself_where_every_sentence_is_one() -> None:
    pair = ("minilm-lp", "minilm-mark")
    assert twins_of((100, 20), lp=LLE, mark=LANDMARK) == dict.fromkeys([(space, "one") for space in pair], pair)
    assert twins_of((101, 20), lp=LLE, mark=LANDMARK) == {}
    assert twins_of((100, 20), lp={**LLE, "neighbors": 29}, mark=LANDMARK) == {}


def test_a_chosen_point_that_changes_nothing_is_the_encoder_and_one_that_equals_a_fixed_point_is_its_space() -> None:
    idle = {"method": "smooth", "neighbors": 5, "amount": 0.0, "chosen_on": "dev"}
    assert set(twins_of((50, 20), idle=idle).values()) == {("minilm", "minilm-idle")}
    assert set(twins_of((50, 20), lp=LLE, again={**LLE, "chosen_on": "dev"}).values()) == {
        ("minilm-lp", "minilm-again")
    }


def test_all_components_and_no_removed_direction_are_one_space_up_to_a_rotation() -> None:
    whole, centred = {"method": "pca", "components": 20}, {"method": "abtt", "removed": 0}
    plain = {"method": "whitening", "components": 20, "power": 0.0}
    assert set(twins_of((50, 20), whole=whole, centred=centred).values()) == {("minilm-whole", "minilm-centred")}
    assert len(twins_of((50, 20), whole=whole, centred=centred, plain=plain)) == 3
    assert twins_of((50, 21), whole=whole, centred=centred) == {}


def test_twins_are_marked_where_they_score_alike_and_their_difference_is() -> None:
    scores = {("minilm", HEADLINE): 80.0, ("minilm-lp", HEADLINE): 70.0, ("minilm-mark", HEADLINE): 70.02}
    scores |= {("minilm-lp", "pearson.all.cosine"): 60.0, ("minilm-mark", "pearson.all.cosine"): 61.0}
    results = make_results({(space, "one", protocol): value for (space, protocol), value in scores.items()})
    pair = ("minilm-lp", "minilm-mark")
    results = replace(results, twins=dict.fromkeys([(space, "one") for space in pair], pair))
    caveat = Caveat("≡", pair, "one")
    assert measured_entry(results, "minilm-mark", "one", HEADLINE).caveats == (caveat,)
    assert measured_entry(results, "minilm-mark", "one", "pearson.all.cosine").caveats == ()
    assert difference_entry(results, pair, "one", HEADLINE, role="control").caveats == (caveat,)
    assert difference_entry(results, ("minilm-lp", "minilm"), "one", HEADLINE, role="baseline").caveats == ()


def test_each_two_spaces_that_are_one_have_a_sentence_that_names_their_corpora() -> None:
    pair = ("a", "b")
    entries = tuple(Entry("1", 1.0, caveats=(Caveat("≡", pair, corpus),)) for corpus in ("one", "two", "one"))
    heads = tuple(Head("", corpus, "p") for corpus in ("one", "two", "one"))
    panel = Panel("", "p", heads, (Group("", False, (Line("a", "", entries),)),))
    assert panel.caveats == ("≡ a and b are one space by construction, up to a rotation, on one, two.",)
