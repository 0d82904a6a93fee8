"""Figures: the same bytes at every drawing, shapes beside colours, and what they are drawn from."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pipeline.artifacts import corpus_path, space_path, write_json, write_table, write_vectors
from pipeline.errors import ArtifactError
from pipeline.report.claims import Claim
from pipeline.report.encoder_figures import Dot, clusterer_dots, draw_bars, draw_dots, draw_speed, speed_points
from pipeline.report.figures import figure_bytes
from pipeline.report.gallery import draw_gallery, swept_panels
from pipeline.report.map_figure import draw_maps, map_spaces
from pipeline.report.results import Cell
from pipeline.report.small_tables import cluster_table
from pipeline.report.spectrum_figure import Spectrum, draw_spectra, largest_step, power_above, read_spectra
from pipeline.report.speed_tables import load_benchmark, seconds_per_sentence, speed_tables
from pipeline.report.sweep_figure import draw_sweep
from pipeline.report.sweep_verdicts import best_between, misleads
from pipeline.report.sweeps import Sweep, load_sweeps
from pipeline.report.verdicts import Evidence
from tests.checkout import ROOT
from tests.report.made_up import make_results, make_suite

POINTS = [{"neighbors": k, "components": p} for k in (10, 30) for p in (16, 128, 256)]


def make_sweep(values: list[float | None], rules: dict[str, float] | None = None) -> Sweep:
    return Sweep(
        "minilm-lp-selected", "dev", "spearman.all.cosine", tuple(POINTS), tuple(values), POINTS[0],
        {"stsb": tuple(values)}, rules or {},
    )  # fmt: skip


def draw_all() -> dict[str, Figure]:
    spectra = [Spectrum(f"c{i}", tuple(0.001 * (i + 1) * rank for rank in range(1, 30)), 1e-9) for i in range(7)]
    cell = Cell(70.0, 68.0, 72.0)
    points = [("sif", 1000.0, cell), ("gem", 10.0, cell)]
    sweep = make_sweep([70.0, 75.0, 74.0, 71.0, 76.0, 75.0])
    return {
        "spectrum": draw_spectra(spectra, "Title", "beneath"),
        "dots": draw_dots([Dot("k-means", cell, False), Dot("control", cell, True)], "axis", "Title", "beneath"),
        "speed": draw_speed(points, "axis", "Title", "beneath"),
        "bars": draw_bars(points, "Title", "beneath"),
        "sweep": draw_sweep(
            sweep,
            "components",
            corpora=["dev", "stsb"],
            baselines={"dev": 80.0},
            control=sweep,
            title="T",
            subtitle="t",
        ),
    }


def test_every_figure_has_the_same_bytes_at_every_drawing_and_loads_nothing() -> None:
    first, second = draw_all(), draw_all()
    for name, figure in first.items():
        for kind in ("svg", "png"):
            assert figure_bytes(figure, kind) == figure_bytes(second[name], kind), (name, kind)
        root = ElementTree.fromstring(figure_bytes(figure, "svg"))
        links = [value for node in root.iter() for key, value in node.attrib.items() if key.endswith("href")]
        assert all(link.startswith("#") for link in links), name


def test_names_of_methods_of_like_speed_do_not_cover_each_other() -> None:
    cell = Cell(70.0, 68.0, 72.0)
    names = [("sif", 1000.0, cell), ("average", 1100.0, cell), ("gem", 10.0, cell)]
    figure = draw_speed(names, "axis", "Title", "beneath")
    FigureCanvasAgg(figure).draw()
    texts = [text for text in figure.axes[0].texts if text.get_text() in dict.fromkeys(name for name, *_ in names)]
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) == 3
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_lines_of_a_figure_differ_in_more_than_colour() -> None:
    spectra = [Spectrum(f"c{i}", (0.1, 0.2), 1e-9) for i in range(5)]
    lines = draw_spectra(spectra, "T", "t").axes[0].get_lines()[:5]
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in lines}) == 5  # type: ignore[attr-defined]
    curves = draw_all()["sweep"].axes[0].get_lines()
    assert len({line.get_marker() for line in curves}) == 4  # LP, PCA, the encoder's level, the choice


# --- what they are drawn from -----------------------------------------------------------------------


@pytest.mark.parametrize(("value", "bound"), [(3e-10, 1e-9), (1e-9, 1e-9), (0.0, 1e-16), (0.02, 0.1)])
def test_a_residual_is_shown_as_the_power_of_ten_above_it(value: float, bound: float) -> None:
    assert power_above(value) == pytest.approx(bound, rel=1e-12)


def test_a_gap_in_a_spectrum_is_found_where_it_is() -> None:
    flat, gap = (0.1,) * 30, (0.1,) * 20 + (0.5,) * 10
    spectra = [Spectrum("flat", flat, 1e-9), Spectrum("gap", gap, 1e-9)]
    assert largest_step(spectra, after=10) == ("gap", 20, 5.0)


def test_the_spectra_are_those_of_the_artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suite = make_suite(("minilm", "minilm-lp"), ("stsb",))
    notes = {"eigenvalues": [0.00123456, 0.5], "residuals": [2e-11, 4e-12]}
    write_vectors(
        space_path("made-up", "minilm-lp", "stsb"), np.ones((3, 2), dtype=np.float32), parameters={}, notes=notes
    )
    assert read_spectra(suite, "minilm-lp") == [Spectrum("stsb", (0.00123, 0.5), 1e-10)]
    assert read_spectra(suite, "minilm-nothing") == []


def test_a_map_keeps_two_far_clusters_apart_and_moves_little_when_the_space_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 60)
    # A curved band: the angle orders it, and isomap unrolls it.
    angle = np.concatenate([rng.uniform(0, 1.5, 60), rng.uniform(1.5, 3.0, 60)])
    x = np.stack([np.cos(angle), np.sin(angle), 0.02 * rng.standard_normal(120)], axis=1).astype(np.float32)
    items = {"row": pa.array(range(120), pa.int32()), "label": labels, "split": ["all"] * 120}
    write_table(corpus_path("made-up", "trec", "items"), pa.table(items), kind="items.classification", parameters={})
    suite = make_suite(("minilm", "minilm-lp"), ("trec",))
    for space, moved in (("minilm", x), ("minilm-lp", x + 1e-6 * rng.standard_normal(x.shape).astype(np.float32))):
        write_vectors(space_path("made-up", space, "trec"), moved, parameters={})
    one, other = map_spaces(suite, ("minilm", "minilm-lp"))
    centres = [one.places[one.labels == label].mean(axis=0) for label in (0, 1)]
    assert np.linalg.norm(centres[0] - centres[1]) > 30
    assert one.kept > 0.95
    assert np.abs(one.places - other.places).max() <= 0.1 + 1e-9  # one step of the rounding
    assert figure_bytes(draw_maps([one], "T", "t"), "svg") == figure_bytes(draw_maps([one], "T", "t"), "svg")


def test_a_suite_without_labels_has_no_map() -> None:
    assert map_spaces(make_suite(("minilm", "minilm-lp"), ("stsb",)), ("minilm",)) == []


def test_clusterers_are_shown_best_last_with_their_controls() -> None:
    scores = {
        (s, "sts13", "pearson.mean.cosine"): v
        for s, v in (("wl-lase", 60.0), ("wl-lase-random", 65.0), ("minilm", 80.0))
    }
    dots = clusterer_dots(make_results(scores), "sts13", "pearson.mean.cosine")
    assert [(dot.name, dot.control) for dot in dots] == [("spectral", False), ("control: random partition", True)]


# --- speed ------------------------------------------------------------------------------------------


def test_a_speed_is_the_methods_own_tokenisers_and_a_missing_one_is_blank(tmp_path: Path) -> None:
    path = tmp_path / "encoders.json"
    assert load_benchmark(path) is None
    rates = {"ids in": 9000, "text in, whitespace": 4000, "text in, treebank": 1000}
    write_json(path, {"methods": [{"method": "usif", "per_second": rates}], "processor": "a processor"})
    benchmark = load_benchmark(path)
    assert seconds_per_sentence(benchmark, "usif") == 0.001
    assert seconds_per_sentence(benchmark, "gem") is None
    tables = {table.name: table for table in speed_tables(benchmark)}
    lines = {line.name: line.entries[0] for line in tables["gem-5"].panels[0].groups[0].lines}
    assert lines["usif"].text == "2.76"  # 2,758 sentences at 1,000 a second
    assert lines["gem"].blank and "benchmarks.encoders" in lines["gem"].command
    results = make_results({("wl-usif", "stsb", "pearson.all.cosine"): 74.0})
    assert [point[:2] for point in speed_points(results, benchmark, "stsb", "pearson.all.cosine")] == [("usif", 1000.0)]
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


def test_a_sweep_draws_its_corpora_in_the_suites_order_and_stsb_whatever_else_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert swept_panels(["b", "stsb", "a", "c"], ["a", "b", "c", "stsb"], 3) == ["b", "stsb", "a"]
    assert swept_panels(["b", "a", "c", "stsb"], ["a", "b", "c", "stsb"], 3) == ["b", "a", "stsb"]
    assert swept_panels(["b", "a", "c", "stsb"], ["a", "c"], 3) == ["a", "c"]
    shutil.copy(ROOT / "params.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)  # no artifacts: nothing but sweeps and differences can be drawn
    order = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "dev", "sickr", "mpqa", "cr")
    corpora = dict.fromkeys(sorted(order), (70.0,) * 6)  # as oracle.json has them
    classes = {corpus: corpora.pop(corpus) for corpus in ("cr", "mpqa")}
    del corpora["dev"]
    results = make_results(
        {(s, c, "spearman.all.cosine"): 70.0 for s in ("minilm", "minilm-lp-selected") for c in order}
    )
    sweep = replace(make_sweep([70.0] * 6), tests=corpora, classes=classes)
    evidence = Evidence(results, {}, None, None, cluster_table(results.suite), {sweep.space: sweep})
    panels = {
        picture.name: [axes.get_title(loc="left").partition(" ")[0] for axes in figure.axes if axes.get_visible()]
        for picture, figure in draw_gallery(evidence)
    }
    assert panels["sweep-neighbors"] == ["dev", "sts12", "sts13", "sts14", "sts15", "stsb"]
    assert panels["sweep-components-classes"] == ["mpqa", "cr"]


CLAIM = Claim(
    source="sbert-lp", where="x", says="y", made_on="z", rule="best-between", ours="minilm-lp-selected",
    setting="components", between=[128, 300], margin=0.5,
)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([70.0, 75.0, 74.8, 71.0, 74.0, 60.0], "reproduced"),  # 128 and 256 lead
        ([78.0, 75.0, 74.8, 71.0, 74.0, 60.0], "contradicted"),  # 16 leads
        ([75.0, 75.2, 74.8, 71.0, 74.0, 60.0], "not testable here"),  # 16 is as good
    ],
)
def test_where_the_best_setting_lies_is_called_unless_it_is_flat(values: list[float | None], expected: str) -> None:
    assert best_between(CLAIM, {"minilm-lp-selected": make_sweep(values)}).verdict == expected
    assert best_between(CLAIM, {}).verdict == "not testable here"


def test_a_claim_about_some_corpora_needs_all_of_them_to_agree() -> None:
    lead, trail = (70.0, 75.0, 74.8, 71.0, 74.0, 60.0), (78.0, 75.0, 74.8, 71.0, 74.0, 60.0)
    claim = CLAIM.model_copy(update={"corpora": ["mr", "cr", "absent"]})
    for surfaces, expected in (
        ({"mr": lead, "cr": lead}, "reproduced"),
        ({"mr": lead, "cr": trail}, "not testable here"),
        ({"mr": trail, "cr": trail}, "contradicted"),
        ({}, "not testable here"),
    ):
        sweep = replace(make_sweep(list(lead)), classes=surfaces)
        assert best_between(claim, {"minilm-lp-selected": sweep}).verdict == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"procrustes": 70.0, "residual_variance": 72.0}, "reproduced"),
        ({"procrustes": 75.0, "residual_variance": 74.9}, "contradicted"),
        ({"procrustes": 75.0, "residual_variance": 70.0}, "not testable here"),
    ],
)
def test_rules_without_labels_mislead_by_more_than_the_margin_or_not(rules: dict[str, float], expected: str) -> None:
    sweep = make_sweep([70.0, 75.0, 74.8, 71.0, 74.0, 60.0], rules)
    assert misleads(CLAIM, {"minilm-lp-selected": sweep}).verdict == expected
