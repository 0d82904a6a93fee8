"""The sensitivity of GEM: at the settings of an encoder it scores what that encoder's space does, and no test data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from scipy.stats import pearsonr

from pipeline.base.artifacts import corpus_path, read_vectors, sensitivity_path, space_path, write_table
from pipeline.base.cases import load_case
from pipeline.base.suite import load_suite
from pipeline.check import check_everything
from pipeline.report.sensitivity import draw_sensitivity, load_sensitivities
from pipeline.stages.encode import encode
from pipeline.stages.sensitivity import sensitivity
from pipeline.stages.vocabulary import vocabulary
from pipeline.stages.word_vectors import word_vectors
from sentfold.errors import ArtifactError, ParameterError, SuiteError
from sentfold.measures.base.classifiers import LogisticSettings, predict_by_logistic
from tests.checkout import ROOT, make_suite
from tests.report.test_lase_sweep import SCORES, TEXTS

CORPORA = ("dev", "other", "classes", "split")
PUBLISHED = {"window": 2, "candidates": 6, "removed": 3, "power": 3.0}
GEM: dict[str, Any] = {"vectors": "wordllama", "tokenizer": "wordpunct", "method": "gem", "counts": "own"}
BLOCK: dict[str, Any] = {
    "corpora": ["dev", "classes", "mpqa"],
    "values": {"window": [1, 2], "candidates": [6], "removed": [0, 3], "power": [2.0, 3.0]},
    "published": PUBLISHED,
    "variants": {"plain": {}, "unit": {"unit_words": True}},
    "fitted": ["unit"],
}
SUITE = make_suite(
    {"word_encoders": {"mine": {"method": "gem", "vectors": "wordllama", "tokenizer": "whitespace"}}},
    corpora=CORPORA,
    spaces=("minilm", "mine"),
    sensitivities=("mine",),
    development="dev",
)


def write_parameters(**changes: Any) -> None:
    """params.yaml with the encoder `mine`, one of its settings changed, and what is varied of it."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    moved = {**PUBLISHED, "removed": 0, "unit_words": True}
    content["word_encoders"] = {
        "mine": {**GEM, "settings": PUBLISHED},
        "moved": {**GEM, "settings": moved},
        "unit": {**GEM, "settings": {**PUBLISHED, "unit_words": True}},
    }
    content["sensitivity"] = {"mine": {**BLOCK, **changes}}
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def write_items(corpus: str, task: str, items: dict[str, Any]) -> None:
    texts, notes = pa.table({"text": pa.array(TEXTS, pa.string())}), {"task": task}
    write_table(corpus_path("mine", corpus, "sentences"), texts, kind="sentences", parameters={}, notes=notes)
    write_table(corpus_path("mine", corpus, "items"), pa.table(items), kind=f"items.{task}", parameters={})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A development corpus, another one, and classes with and without a test split, over a dozen sentences."""
    monkeypatch.chdir(tmp_path)
    write_parameters()
    pairs = {"row1": list(range(8)), "row2": list(range(1, 9)), "score": SCORES}
    # Every sentence three times, so that each fold of each fold has both classes.
    rows = [row for row in range(len(TEXTS)) for _ in range(3)]
    labels = ["a" if row % 2 else "b" for row in rows]
    write_items("dev", "similarity", pairs)
    write_items("other", "similarity", pairs)
    write_items("classes", "classification", {"row": rows, "label": labels, "split": ["all"] * len(rows)})
    halves = ["train" if place % 2 else "test" for place in range(len(rows))]
    write_items("split", "classification", {"row": rows, "label": labels, "split": halves})
    vocabulary("mine", "wordpunct", CORPORA)
    word_vectors("mine", "wordllama", ("wordpunct",))
    return tmp_path


def scores(found: dict[str, Any], corpus: str, variant: str) -> dict[tuple[str, float], float]:
    own = [row for row in found["rows"] if (row["corpus"], row["variant"]) == (corpus, variant)]
    return {(row["parameter"], row["value"]): row["score"] for row in own}


def pearson_of(space: str) -> float:
    x = read_vectors(space_path("mine", space, "dev")).astype(np.float64)
    cosine = np.einsum("ij,ij->i", x[:8], x[1:9]) / np.linalg.norm(x[:8], axis=1) / np.linalg.norm(x[1:9], axis=1)
    return float(100 * pearsonr(cosine, SCORES).statistic)


def test_a_point_scores_what_the_space_of_an_encoder_with_its_settings_does() -> None:
    for name in ("mine", "moved", "unit"):
        encode("mine", name, ("dev", "classes"))
    found = sensitivity(SUITE, "mine")
    # Rounded to the third decimal.
    for parameter, value in PUBLISHED.items():
        assert scores(found, "dev", "plain")[parameter, value] == pytest.approx(pearson_of("mine"), abs=6e-4)
    assert scores(found, "dev", "unit")["removed", 0] == pytest.approx(pearson_of("moved"), abs=6e-4)
    assert pearson_of("moved") != pytest.approx(pearson_of("unit"), abs=1e-2)
    case = load_case("mine", "unit", "classes")
    assert not isinstance(case, str)
    rules = yaml.safe_load(Path("params.yaml").read_text())["evaluate"]
    settings = LogisticSettings(**{name: rules[name] for name in LogisticSettings.model_fields})
    guess = predict_by_logistic(case.scaled[case.items["row"]], case.labels, case.items["split"], settings)
    accuracy = 100 * float(np.mean(guess.predicted == case.labels))
    assert scores(found, "classes", "unit")["window", 2] == pytest.approx(accuracy, abs=6e-4)


def test_every_value_is_scored_the_absent_corpus_is_named_and_regressions_are_fitted_where_asked() -> None:
    found = sensitivity(SUITE, "mine")
    tried = {(name, value) for name, values in BLOCK["values"].items() for value in values}
    assert set(scores(found, "dev", "plain")) == set(scores(found, "dev", "unit")) == tried
    assert set(scores(found, "classes", "unit")) == tried
    assert scores(found, "classes", "plain") == {}
    assert found["corpora"]["mpqa"] == {"absent": "the suite does not list it"}
    assert json.loads(sensitivity_path("mine", "mine").read_text()) == found


@pytest.mark.parametrize("corpus", ["other", "split"])
def test_test_data_is_refused_before_anything_is_scored(corpus: str) -> None:
    write_parameters(corpora=["dev", corpus])
    with pytest.raises(SuiteError, match="neither development data nor scored by cross-validation") as caught:
        sensitivity(SUITE, "mine")
    assert f"'{corpus}'" in str(caught.value) and "sensitivity" in str(caught.value)
    assert not sensitivity_path("mine", "mine").exists()


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"values": {**BLOCK["values"], "power": [0.0, 3.0]}}, ["sensitivity.mine.values.power", "0.0"]),
        ({"values": {**BLOCK["values"], "window": [2, 1]}}, ["'window' have to ascend"]),
        ({"values": {**BLOCK["values"], "removed": [0, 5]}}, ["published removed, 3"]),
        ({"published": {"window": 2}}, ["same hyper-parameters"]),
        ({"values": {"width": [1]}, "published": {"width": 1}}, ["width"]),
        ({"fitted": ["bare"]}, ["'bare'"]),
        ({"colour": 1}, ["colour"]),
    ],
)
def test_a_bad_parameter_is_refused_by_name(changes: dict[str, Any], parts: list[str]) -> None:
    write_parameters(**changes)
    with pytest.raises(ParameterError) as caught:
        sensitivity(SUITE, "mine")
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert not sensitivity_path("mine", "mine").exists()


@pytest.mark.parametrize("suite", ["paper", "paper-mirror"])
def test_the_papers_own_settings_are_those_of_the_shipped_encoder(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert load_suite(suite).sensitivities == ("wl-gem",)
    assert check_everything("quick").sensitivities == ()
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    # Yang, Zhu & Chen 2019, section 4: m = 7, K = 45, h = 17, t = 3.
    published = {"window": 7, "candidates": 45, "removed": 17, "power": 3}
    assert content["sensitivity"]["wl-gem"]["published"] == published
    assert content["word_encoders"]["wl-gem"]["settings"] == published


def test_the_figure_draws_every_score_and_knows_what_is_absent() -> None:
    assert load_sensitivities(SUITE.model_copy(update={"sensitivities": ()})) == {}
    written = sensitivity(SUITE, "mine")
    found = load_sensitivities(SUITE)["mine"]
    figure = draw_sensitivity(found, "T", "t")
    places = dict.fromkeys((row["corpus"], row["parameter"]) for row in written["rows"])
    for axes, (corpus, parameter) in zip(figure.axes, places, strict=True):
        lines = {str(line.get_label()): line for line in axes.get_lines()}
        assert np.asarray(lines["the paper's own value"].get_xdata()).tolist() == [PUBLISHED[parameter]] * 2
        for variant in {"plain", "unit"} & set(lines):
            wanted = {v: score for (name, v), score in scores(written, corpus, variant).items() if name == parameter}
            assert dict(np.asarray(lines[variant].get_xydata()).tolist()) == wanted
        assert ("plain" in lines) == (corpus == "dev")
    # matplotlib has no public word for the dashes of a line.
    looks = {f"{line.get_marker()} {line._dash_pattern}" for line in figure.axes[0].get_lines()}  # type: ignore[attr-defined]
    assert len(looks) == 3  # told apart without colour
    assert found.absent == {"mpqa": "the suite does not list it"}


def test_a_surface_that_is_none_is_refused() -> None:
    sensitivity_path("mine", "mine").parent.mkdir(parents=True)
    sensitivity_path("mine", "mine").write_text('{"rows": 3}')
    with pytest.raises(ArtifactError, match="a sensitivity cannot be read"):
        load_sensitivities(SUITE)


@pytest.mark.parametrize("far", [-1, len(TEXTS)])
def test_items_that_name_no_sentence_are_refused(far: int) -> None:
    write_items("dev", "similarity", {"row1": [far, *range(7)], "row2": list(range(1, 9)), "score": SCORES})
    with pytest.raises(ArtifactError, match="no sentence"):
        sensitivity(SUITE, "mine")
    assert not sensitivity_path("mine", "mine").exists()
