"""Figures: the same bytes at every drawing, shapes beside colours, and what they are drawn from."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pipeline.base.params import load_parameters
from pipeline.report.evidence import Evidence
from pipeline.report.gallery import draw_gallery, label_searches, swept_panels
from pipeline.report.inputs import load_benchmark
from pipeline.report.results import Score, find_baselines
from pipeline.report.sensitivity import Sensitivity, draw_sensitivity
from pipeline.report.speed import draw_speed, seconds_per_sentence, speed_points, speed_table
from pipeline.report.sweeps import Sweep, draw_sweep, load_sweeps
from pipeline.stages.sensitivity import SensitivityParameters
from sentfold.errors import ArtifactError
from sentfold.files import write_json
from sentfold.report.drawing import LOOKS, draw_forest, figure_bytes, look_of
from sentfold.report.table import Entry
from tests.checkout import ROOT
from tests.report.made_up import make_evidence, make_results, make_suite

POINTS = [{"neighbors": k, "components": p} for k in (10, 30) for p in (16, 128, 256)]


def make_sweep(values: list[float | None], rules: dict[str, float] | None = None) -> Sweep:
    return Sweep(
        "minilm-lp-selected", "dev", "spearman.all.cosine", tuple(POINTS), tuple(values), POINTS[0],
        {"stsb": tuple(values)}, rules or {},
    )  # fmt: skip


LONG = "a subtitle that no figure of a page's width has room for in a single line, as they are with us; " * 2
DERIVED = [f"minilm-{letter}-selected-among-many" for letter in "abcdefghijklm"]


def make_sensitivity() -> Sensitivity:
    curves = {("dev", "as they are", "window"): {1: 70.0, 7: 71.0}, ("dev", "of length 1", "window"): {1: 72.0}}
    curves["subj", "of length 1", "window"] = {1: 80.0, 7: 81.0}
    protocols = {"dev": "pearson.all.cosine", "subj": "accuracy.logistic"}
    return Sensitivity("wl-gem", "wordllama", {"window": 7}, protocols, {}, curves)


def draw_anew(subtitle: str = "beneath") -> dict[str, Figure]:
    cell = Score(70.0, 68.0, 72.0)
    points = [("sif", 1000.0, cell), ("gem", 10.0, cell)]
    sweep = make_sweep([70.0, 75.0, 74.0, 71.0, 76.0, 75.0])
    entries = [Entry("+1.00", 1.0, 0.5, 1.5) for _ in DERIVED]
    return {
        "differences": draw_forest(
            DERIVED, dict.fromkeys(("a", "b", "c"), entries), "axis", "Title", subtitle, limit=5.0
        ),
        "speed": draw_speed(points, "axis", "Title", subtitle),
        "sensitivity": draw_sensitivity(make_sensitivity(), "Title", subtitle),
        "sweep": draw_sweep(
            sweep, "components", corpora=["dev", "stsb"], baselines={"dev": 80.0},
            control=replace(sweep, space="control"), title="T",
            subtitle=subtitle,
        ),
    }  # fmt: skip


draw_all = cache(draw_anew)


@pytest.mark.slow
def test_every_figure_has_the_same_bytes_at_every_drawing_and_loads_nothing() -> None:
    first, second = draw_all(), draw_anew()
    for name, figure in first.items():
        drawn = figure_bytes(figure, "svg")
        assert drawn == figure_bytes(second[name], "svg"), name
        root = ElementTree.fromstring(drawn)
        links = [value for node in root.iter() for key, value in node.attrib.items() if key.endswith("href")]
        assert all(link.startswith("#") for link in links), name


def test_names_of_methods_of_like_speed_do_not_cover_each_other() -> None:
    cell = Score(70.0, 68.0, 72.0)
    names = [("sif", 1000.0, cell), ("average", 1100.0, cell), ("gem", 10.0, cell)]
    figure = draw_speed(names, "axis", "Title", "beneath")
    FigureCanvasAgg(figure).draw()
    texts = [text for text in figure.axes[0].texts if text.get_text() in dict.fromkeys(name for name, *_ in names)]
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) == 3
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_no_text_of_a_figure_is_cut_off_and_a_long_subtitle_stays_clear_of_the_panels() -> None:
    for name, figure in draw_all(LONG).items():
        FigureCanvasAgg(figure).draw()
        beneath = next(text for text in figure.texts if text.get_text().startswith(LONG[:20]))
        assert beneath.get_text().split() == LONG.split()
        drawn = [beneath.get_window_extent(), *(legend.get_window_extent() for legend in figure.legends)]
        panels = [axes.get_tightbbox() for axes in figure.axes if axes.get_visible()]  # with names, numbers and titles
        for box in [*drawn, *panels]:
            assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, name
            assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, name
        assert not any(drawn[0].overlaps(panel) for panel in panels), name


def test_differences_have_one_scale_and_an_arrow_with_its_number_for_what_lies_beyond() -> None:
    panels = {
        "a": [Entry("-35.2", -35.2, -38.0, -31.0), Entry("+1.0", 1.0, 0.5, 7.0)],
        "b": [Entry("+0.1", 0.1), Entry()],
    }
    figure = draw_forest(["lp", "pca"], panels, "axis", "Title", "beneath", limit=5.0)
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim() == pytest.approx((-5.6, 5.6))
    assert [text.get_text() for text in first.texts] == ["-35.2"]
    drawn = [x for line in first.lines[1:] for x in line.get_xdata()]
    assert min(drawn) == -5.0 and max(drawn) == 5.0
    small = draw_forest(["pca"], {"a": [Entry("+1.0", 1.0, 0.5, 1.5)]}, "axis", "Title", "beneath", limit=5.0)
    assert small.axes[0].get_xlim() == pytest.approx((-1.68, 1.68))


def test_looks_differ_in_shape_or_filling_and_neighbours_in_dash_too() -> None:
    assert len({(look.marker, look.filled) for look in LOOKS}) == len(LOOKS)
    assert all(str(one.dash) != str(other.dash) for one, other in pairwise(LOOKS))
    curves = draw_all()["sweep"].axes[0].get_lines()
    assert len({line.get_marker() for line in curves}) == 4  # two curves, the encoder's level, the choice


def test_no_figure_of_any_suite_here_uses_a_look_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    # In a figure of differences each row is labelled with its name, so two rows may look alike.
    series = {"timed encoders": len(load_benchmark()["rates"])}
    gem = load_parameters(SensitivityParameters, "sensitivity.wl-gem")
    series["variants of GEM"] = len(gem.variants)
    looks = {(look.marker, look.filled, str(look.dash)) for look in map(look_of, range(len(LOOKS)))}
    assert not {kind: number for kind, number in series.items() if number > len(looks)}


def test_every_space_s_dots_differ_in_shape_or_filling_in_a_drawn_figure() -> None:
    axes = draw_all()["differences"].axes[0]
    dots = [line for line in axes.get_lines() if line.get_marker() not in ("None", None, "")]
    assert len(dots) == len(DERIVED)
    assert len({(dot.get_marker(), dot.get_markerfacecolor() == "white") for dot in dots}) == len(DERIVED)


def test_a_column_s_lowest_panel_names_its_axis_though_a_row_below_has_others() -> None:
    sweep = make_sweep([70.0, 75.0, 74.0, 71.0, 76.0, 75.0])
    tests = {f"t{i}": sweep.values for i in range(5)}
    figure = draw_sweep(
        replace(sweep, tests=tests), "components", corpora=list(tests), baselines={}, control=None, title="T",
        subtitle="t",
    )  # fmt: skip
    FigureCanvasAgg(figure).draw()
    ticked = {
        axes.get_title(loc="left").partition(" ")[0]: [t.get_text() for t in axes.get_xticklabels() if t.get_visible()]
        for axes in figure.axes
        if axes.get_visible()
    }
    named = [axes.get_title(loc="left").partition(" ")[0] for axes in figure.axes if axes.get_xlabel()]
    assert [corpus for corpus in named if corpus] == ["t2", "t3", "t4"]  # of three columns and two rows
    assert ticked["t2"] == ["16", "128", "256"]


# --- speed ------------------------------------------------------------------------------------------


def test_a_speed_is_the_methods_own_tokenisers_and_only_what_was_timed_has_one(tmp_path: Path) -> None:
    path = tmp_path / "encoders.json"
    with pytest.raises(ArtifactError, match="benchmark"):
        load_benchmark(path)
    rates = {"ids in": 9000, "text in, whitespace": 4000, "text in, treebank": 1000}
    write_json(path, {"methods": [{"method": "usif", "per_second": rates}], "processor": "a processor"})
    benchmark = load_benchmark(path)
    assert seconds_per_sentence(benchmark, "usif") == 0.001
    assert seconds_per_sentence(benchmark, "gem") is None
    results = make_results({("wl-usif", "stsb", "pearson.all.cosine"): 74.0})
    [line] = speed_table(make_evidence(results, benchmark=benchmark)).panels[0].groups[0].lines
    assert (line.name, line.entries[0].text) == ("usif", "1000.0")  # microseconds of a sentence, at 1,000 a second
    points = speed_points(make_evidence(results, benchmark=benchmark), "stsb", "pearson.all.cosine")
    assert [point[:2] for point in points] == [("usif", 1000.0)]
    path.write_text("{}")
    with pytest.raises(ArtifactError, match="benchmark"):
        load_benchmark(path)


# --- sweeps -----------------------------------------------------------------------------------------


def test_a_profile_is_the_best_over_the_other_settings() -> None:
    sweep = make_sweep([70.0, 75.0, None, 71.0, 74.0, 60.0])
    assert sweep.profile("components", sweep.values) == {16: 71.0, 128: 75.0, 256: 60.0}
    assert sweep.profile("neighbors", sweep.values) == {10: 75.0, 30: 74.0}
    assert sweep.best == 1


def test_a_sweep_is_read_as_its_stage_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suite = make_suite(("minilm", "minilm-lp-selected"), ("dev", "stsb"))
    assert load_sweeps(suite) == {}
    folder = tmp_path / "reports/made-up/sweeps/minilm-lp-selected"
    points = [{"parameters": point, "value": 70.0 + i} for i, point in enumerate(POINTS)]
    rules = {"procrustes": {"parameters": POINTS[0], "procrustes": 0.1, "value": 70.0}}
    write_json(
        folder / "surface.json", {"corpus": "dev", "points": points, "protocol": "spearman.all.cosine", "rules": rules}
    )
    write_json(folder / "selected.json", {"parameters": POINTS[5], "corpus": "dev", "value": 75.0})
    tests = {
        "stsb": {"surface": [1.0] * 6, "protocol": "spearman.all.cosine"},
        "mr": {"surface": [2.0] * 6, "protocol": "accuracy.3nn-euclidean"},
    }
    write_json(folder / "oracle.json", {"corpora": tests, "points": POINTS})
    sweep = load_sweeps(suite)["minilm-lp-selected"]
    assert (sweep.classes, sweep.values_on("mr"), sweep.values_on("sickr")) == (
        {"mr": (2.0,) * 6},
        (2.0,) * 6,
        (None,) * 6,
    )
    assert (sweep.values[5], sweep.chosen, sweep.tests, sweep.rules) == (
        75.0,
        POINTS[5],
        {"stsb": (1.0,) * 6},
        {"procrustes": 70.0},
    )
    (folder / "selected.json").write_text(json.dumps([]))
    with pytest.raises(ArtifactError, match="a sweep cannot be read"):
        load_sweeps(suite)


def test_an_oracle_is_the_first_best_of_a_test_set_and_its_inflation_what_it_gains_on_the_choice() -> None:
    sweep = replace(
        make_sweep([70.0, 75.0, 74.0, 71.0, 74.0, 60.0]), tests={"stsb": (60.0, 61.5, None, 63.0, 63.0, 5.0)}
    )
    assert sweep.best_on("stsb") == 3
    assert sweep.inflation("stsb") == 3.0  # POINTS[0] was chosen
    assert replace(sweep, tests={"stsb": (None, 1.0, 2.0, 3.0, 4.0, 5.0)}).inflation("stsb") is None
    assert replace(sweep, tests={"stsb": (None,) * 6}).best_on("stsb") is None


def test_a_control_without_the_setting_is_drawn_as_the_level_of_its_best_point() -> None:
    sweep = make_sweep([70.0, 75.0, 74.0, 71.0, 76.0, 75.0])
    points = ({"components": 16}, {"components": 128})
    control = replace(sweep, points=points, values=(71.0, 73.0), tests={"stsb": (72.0, 70.0)})
    looks = {"baselines": {"dev": 80.0, "stsb": 81.0}, "control": control, "title": "T", "subtitle": "t"}
    figure = draw_sweep(sweep, "neighbors", corpora=["dev", "stsb"], **looks)
    levels = [
        {line.get_ydata()[0] for line in axes.get_lines() if len(set(line.get_ydata())) == 1} for axes in figure.axes
    ]
    assert levels == [{80.0, 73.0, 70.0}, {81.0, 72.0, 70.0}]  # 70 is the star of the choice


@pytest.mark.slow
def test_a_sweep_draws_its_corpora_in_the_suites_order_and_stsb_whatever_else_there_is() -> None:
    assert swept_panels(["b", "stsb", "a", "c"], ["a", "b", "c", "stsb"], 3) == ["b", "stsb", "a"]
    assert swept_panels(["b", "a", "c", "stsb"], ["a", "b", "c", "stsb"], 3) == ["b", "a", "stsb"]
    assert swept_panels(["b", "a", "c", "stsb"], ["a", "c"], 3) == ["a", "c"]
    order = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "dev", "sickr", "mpqa", "cr")
    corpora = dict.fromkeys(sorted(order), (70.0,) * 6)  # as oracle.json has them
    classes = {corpus: corpora.pop(corpus) for corpus in ("cr", "mpqa")}
    del corpora["dev"]
    results = make_results(
        {(s, c, "spearman.all.cosine"): 70.0 for s in ("minilm", "minilm-lp-selected") for c in order}
    )
    sweep = replace(make_sweep([70.0] * 6), tests=corpora, classes=classes)
    evidence = make_evidence(results, sweeps={sweep.space: sweep})
    title = re.compile(r"<!-- (\w+) \((?:development|test|3-NN accuracy)\) -->")  # above the paths of its letters
    drawn = draw_gallery(evidence)
    assert all("oracle" in picture.caption for picture in drawn if picture.name.startswith("sweep"))
    panels = {picture.name: title.findall(picture.svg.decode()) for picture in drawn}
    assert panels["sweep-neighbors"] == ["dev", "sts12", "sts13", "sts14", "sts15", "stsb"]
    assert panels["sweep-components-classes"] == ["mpqa", "cr"]


# --- retrieval --------------------------------------------------------------------------------------


def search_evidence() -> Evidence:
    """Searches in two encoders and in one derived space, each compared with cosine, on one pool."""
    named = ("minilm-cosine", "minilm-binary", "minilm-binary-rescored", "minilm-csls", "minilm-pca-cosine",
             "wl-sif-cosine", "wl-sif-csls")  # fmt: skip
    results = make_results({(key, "mrpc", "nDCG@10"): 70.0 + place for place, key in enumerate(named)})
    searches, made = {}, {}
    for key in named:
        encoder = "wl-sif" if key.startswith("wl-sif") else "minilm"
        space = "minilm-pca" if "pca" in key else encoder
        search = key.removeprefix(f"{space}-")
        searches[key] = {
            "space": space, "search": search, "method": search.partition("-")[0], "against": f"{encoder}-cosine",
        }  # fmt: skip
        made[key] = {"source": f"{encoder}-cosine", "maker": search}
    stages = {**results.suite.stages, "evaluate": made, "encode": {}, "embed": {}, "search": searches}
    suite = results.suite.model_copy(update={"stages": stages})
    results = replace(results, suite=suite, baselines=find_baselines(suite, []))
    made_of = {
        "minilm": "all-MiniLM-L6-v2", "minilm-pca": "principal components, p = 128; all-MiniLM-L6-v2",
        "wl-sif": "SIF; WordLlama",
    }  # fmt: skip
    return make_evidence(make_results({("minilm", "stsb", "accuracy.x"): 70.0}), searches=results, made_of=made_of)


def test_a_figure_of_retrieval_is_about_one_encoder_and_calls_its_rows_by_words() -> None:
    evidence = search_evidence()
    assert label_searches(evidence) == {
        "minilm-binary": "binary documents",
        "minilm-binary-rescored": "binary documents, rescored",
        "minilm-csls": "CSLS",
        "minilm-pca-cosine": "principal components",
        "wl-sif-csls": "CSLS",
    }
    drawn = {picture.name: picture for picture in draw_gallery(evidence)}
    assert set(drawn) == {"retrieval", "retrieval-wl-sif"}
    assert drawn["retrieval"].title == "Does a cheap change help all-MiniLM-L6-v2 to find documents?"
    assert "higher than the cosine of the unchanged vectors" in drawn["retrieval"].caption
    names = re.findall(r"<!-- (.+?) -->", drawn["retrieval"].svg.decode())
    assert {"CSLS", "principal components", "mrpc"} <= set(names)
    assert (
        "CSLS" in drawn["retrieval-wl-sif"].svg.decode() and "principal" not in drawn["retrieval-wl-sif"].svg.decode()
    )
