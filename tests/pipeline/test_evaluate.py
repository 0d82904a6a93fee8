"""The stage `evaluate` on a made-up corpus of every task: every protocol scored, twice to the same bytes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from scipy.stats import spearmanr

from pipeline.base.artifacts import (
    corpus_path,
    read_table,
    read_vectors,
    resamples_path,
    scores_path,
    space_path,
    write_table,
    write_vectors,
)
from pipeline.base.cases import load_case
from pipeline.base.params import load_parameters
from pipeline.stages.evaluate import evaluate
from sentfold.errors import ArtifactError
from sentfold.measures.base import newton
from sentfold.measures.base.case import Case
from sentfold.measures.base.rating import UNCONVERGED, UNFITTED
from sentfold.measures.registry import evaluate_parameters, find_measure
from tests.checkout import ROOT, make_suite

CORPORA = ("pairs", "pool", "texts", "twins", "groups", "questions", "claims")
SPACES = ("minilm", "minilm-lp", "minilm-pca", "minilm-npe", "wl-average")
SUITE = make_suite(suite="made", corpora=CORPORA, spaces=SPACES)
WANTED = {
    "pairs": {"spearman.all.cosine", "pearson.all.cosine", "spearman.all.lorentz-1", "pearson.trained-head"},
    "pool": set[str](),
    "texts": {"accuracy.3nn-euclidean", "accuracy.3nn-training-set", "accuracy.logistic", "accuracy.perceptron"},
    "twins": {"accuracy.3nn-euclidean", "accuracy.logistic", "accuracy.perceptron", "f1.logistic"},
    "groups": {f"{name}.kmeans" for name in ("mi", "nmi", "ari", "purity", "v-measure")},
    "questions": {"map.cosine", "map.search-engine"},
    "claims": {"mean-f1.cosine", "best-f1.cosine"},
}
FITTED = {"accuracy.logistic", "f1.logistic", "pearson.trained-head", "spearman.trained-head"}


def write_corpus(name: str, task: str, items: dict[str, Any], x: np.ndarray[Any, Any], **notes: str) -> None:
    columns = {column: pa.array(values) for column, values in items.items()}
    about = {"corpus": name, "resample": "items", "sentences": len(x), "task": task, "text": "made up", **notes}
    path = corpus_path("made", name, "items")
    write_table(path, pa.table(columns), kind=f"items.{task}", parameters={}, notes=about)
    for space, turn in (("minilm", np.eye(6)), ("minilm-lp", np.diag([1, 2, 3, 1, 1, 1]))):
        made = (x @ turn).astype(np.float32)
        write_vectors(space_path("made", space, name), made, parameters={}, notes=about)


def write_corpora() -> None:
    rng = np.random.default_rng(5)
    x, labels = rng.standard_normal((200, 6)), np.repeat([0, 1], 100)
    x[labels == 1] += 1.0
    pairs = rng.permutation(200).reshape(-1, 2)
    rows = {"row1": pairs[:, 0], "row2": pairs[:, 1]}
    score = np.clip(np.round(2.5 + np.einsum("ij,ij->i", x[pairs[:, 0]], x[pairs[:, 1]]) / 2, 1), 0, 5)
    splits = np.array(["train"] * 60 + ["dev"] * 15 + ["test"] * 25)
    test = splits == "test"
    tested = {**{name: column[test] for name, column in rows.items()}, "score": score[test]}
    same = (labels[pairs[:, 0]] == labels[pairs[:, 1]]).astype(np.int64)
    write_corpus(
        "pairs", "similarity", {**tested, "subset": [""] * 25, "split": ["test"] * 25}, x, supervised="pool"
    )  # fmt: skip
    write_corpus("pool", "regression", {**rows, "score": score, "subset": [""] * 100, "split": splits}, x)
    write_corpus("texts", "classification", {"row": np.arange(200), "label": labels, "split": ["all"] * 200}, x)
    write_corpus("twins", "paraphrase", {**rows, "label": same, "split": ["train"] * 70 + ["test"] * 30}, x)
    named = {"row": np.arange(200), "label": labels, "label_name": [f"class {label}" for label in labels]}
    write_corpus("groups", "clustering", {**named, "split": ["all"] * 200}, x)
    ten = {
        "query_id": [f"q{i // 10}" for i in range(100)],
        "candidate_id": [f"q{i // 10}_{i % 10}" for i in range(100)],
    }
    ranked = {**rows, **ten, "relevance": same, "rank": np.tile(np.arange(1, 11), 10), "split": ["test"] * 100}
    write_corpus("questions", "ranking", ranked, x)
    write_corpus("claims", "inference", {**rows, "label": rng.integers(0, 3, 100), "split": ["test"] * 100}, x)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of artifacts alone: the corpora in two spaces, minilm-lp without regressions."""
    folder = tmp_path_factory.mktemp("made")
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    named = {"unfitted": ["minilm-lp"], "perceptron": ["minilm"]}
    content["evaluate"] |= {"resamples": 200, "folds": 4, "inner_folds": 3, **named}
    (folder / "params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_corpora()
        for space in ("minilm", "minilm-lp"):
            evaluate(SUITE, space)
    return folder


def written(space: str) -> dict[str, bytes]:
    files = [scores_path("made", space), *(resamples_path("made", space, corpus) for corpus in CORPORA)]
    return {str(path): path.read_bytes() for path in files}


def scores_of(space: str) -> dict[str, dict[str, Any]]:
    corpora = json.loads(scores_path("made", space).read_text(encoding="utf-8"))["corpora"]
    return {corpus: facts["scores"] for corpus, facts in corpora.items()}


@pytest.mark.slow
def test_evaluating_again_writes_the_same_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = {space: written(space) for space in ("minilm", "minilm-lp")}
    for space in before:
        evaluate(SUITE, space)
    assert {space: written(space) for space in before} == before


def test_every_task_is_scored_in_its_protocols_each_with_an_interval_around_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    scores = scores_of("minilm")
    for corpus, wanted in WANTED.items():
        assert wanted <= set(scores[corpus])
        for protocol, score in scores[corpus].items():
            # k-means may find one cut in every resample but the sample; all else is steady.
            assert score["low"] <= score["value"] <= score["high"], (corpus, protocol)
            assert -100 <= score["value"] <= 100
    items = read_table(corpus_path("made", "pairs", "items"), kind="items.similarity").to_pydict()
    x = read_vectors(space_path("made", "minilm", "pairs")).astype(np.float64)
    left, right = x[items["row1"]], x[items["row2"]]
    cosine = (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
    theirs = 100 * spearmanr(cosine, items["score"]).statistic
    assert scores["pairs"]["spearman.all.cosine"]["value"] == pytest.approx(theirs, abs=0.005)  # two digits are stored


@pytest.mark.parametrize("corpus", ["texts", "twins"])
def test_no_classifier_judges_how_long_the_vectors_of_a_space_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch, corpus: str
) -> None:
    monkeypatch.chdir(folder)
    case = load_case("made", "minilm", corpus)
    assert isinstance(case, Case)
    measure = find_measure(case.task)
    settings = load_parameters(evaluate_parameters(), "evaluate").pick(measure.settings)
    # A power of two, so that not even rounding differs.
    short = measure.score(replace(case, vectors=case.vectors / np.float32(1024)), settings)
    assert short.scores == measure.score(case, settings).scores


def test_a_space_without_regressions_has_their_places_blank_with_the_reason_and_all_else_scored(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    fitted, unfitted = scores_of("minilm"), scores_of("minilm-lp")
    for corpus in CORPORA:
        assert set(unfitted[corpus]) == {name for name in fitted[corpus] if not name.endswith(".perceptron")}
        for protocol, score in unfitted[corpus].items():
            blank = protocol in FITTED
            assert (score["value"] is None) == blank
            assert score.get("reason") == (UNFITTED if blank else None)


def test_a_regression_that_does_not_converge_leaves_blank_cells_that_say_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    scored = scores_of("minilm")
    monkeypatch.setattr(newton, "STEPS", 1)
    evaluate(SUITE, "minilm")
    for corpus, scores in scores_of("minilm").items():
        for protocol, score in scores.items():
            if protocol in FITTED:
                assert (score["value"], score["reason"]) == (None, UNCONVERGED)
            else:
                assert score == scored[corpus][protocol]


@pytest.mark.slow
def test_items_without_a_column_of_their_task_are_refused_by_its_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    items = read_table(corpus_path("made", "claims", "items"), kind="items.inference").to_pydict()
    items["verdict"] = items.pop("label")
    x = read_vectors(space_path("made", "minilm", "claims"))
    write_corpus("claims", "inference", items, x)
    with pytest.raises(ArtifactError, match="lack a column") as caught:
        evaluate(SUITE, "minilm")
    assert "corpus claims, space minilm" in str(caught.value) and "no label" in str(caught.value)


def test_a_space_is_compared_with_its_encoders_own_and_an_encoder_with_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    kept = {}
    for space in ("minilm", "minilm-lp"):
        corpora = json.loads(scores_path("made", space).read_text(encoding="utf-8"))["corpora"]
        kept[space] = {name: facts["geometry"].get("trustworthiness") for name, facts in corpora.items()}
    assert set(kept["minilm"].values()) == {None}
    assert all(0 < value < 1 for value in kept["minilm-lp"].values())
