"""Spaces from the layers of a transformer, and changes that are fitted on a corpus: plans, stages and scores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from pipeline.base.artifacts import (
    absence,
    corpus_path,
    read_record,
    read_vectors,
    scores_path,
    space_path,
    write_absence,
    write_table,
)
from pipeline.pooled import pooled_path
from pipeline.stages.evaluate import evaluate
from pipeline.stages.pool import PoolParameters, pool
from pipeline.stages.pooled import pooled
from pipeline.stages.postprocess import load_postprocess, postprocess
from sentfold.encoders.model_folder import model_digests
from sentfold.errors import EncoderError, ParameterError, SuiteError
from sentfold.poolings.hidden_states import load_layers, pool_texts
from sentfold.poolings.pooling import POOLINGS, find_pooling
from sentfold.settings import validate
from sentfold.training.flow import fit_flow
from sentfold.training.settings import FlowSettings
from tests.checkout import ROOT, make_suite
from tests.tiny_bert import HIDDEN, WORDS, write_bert

CORPORA = ("pairs", "other", "printed", "gone")
POOLED = {"cls": {"pooling": "cls"}, "wk": {"pooling": "sbert-wk", "layer_start": 3, "window": 1}}
FLOW = {"method": "flow", "levels": 2, "depth": 1, "width": 4, "batch_size": 16}
GROUPS: dict[str, dict[str, Any]] = {
    "poolings": {"tiny": {"max_length": 20, "batch_size": 4, "spaces": POOLED}},
    "postprocessing": {
        "flow": FLOW,
        "flow-other": {**FLOW, "fitted_on": "other"},
        "white-other": {"method": "whitening", "components": 5, "fitted_on": "other"},
        "white-gone": {"method": "whitening", "components": 5, "fitted_on": "gone"},
    },
}
SPACES = ("tiny-cls", "tiny-wk", "tiny-cls-flow", "tiny-cls-flow-other", "tiny-wk-white-other", "tiny-cls-white-gone")
SUITE = make_suite({"encoders": {"tiny": {}}, **GROUPS}, suite="made", corpora=CORPORA, spaces=SPACES)


def write_corpus(name: str, seed: int, *, task: str = "similarity", n: int = 20) -> list[str]:
    """Pairs of random sentences of a few words, each sentence distinct."""
    rng, words = np.random.default_rng(seed), WORDS.split()
    texts = [f"{' '.join(rng.choice(words, size=rng.integers(1, 9)))} {' a' * i}" for i in range(2 * n)]
    rows = {"row1": np.arange(n), "row2": n + np.arange(n), "score": np.arange(n) % 6.0}
    rows |= {"subset": ["all"] * n, "split": ["test"] * n}
    notes = {"corpus": name, "task": task, "resample": "items"}
    path = corpus_path("made", name, "items")
    write_table(path, pa.table(rows), kind=f"items.{task}", parameters={}, notes=notes)
    path = corpus_path("made", name, "sentences")
    write_table(path, pa.table({"text": texts}), kind="sentences", parameters={}, notes=notes)
    return texts


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def folder(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing is pooled."""
    monkeypatch.chdir(tmp_path)
    return write_inputs(tmp_path, bert)


@pytest.fixture(scope="module")
def finished(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all spaces of the suite."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("finished"))
        write_inputs(Path.cwd(), bert)
        make_spaces()
        yield Path.cwd()


def write_inputs(tmp_path: Path, bert: Path) -> Path:
    """Parameters, and three corpora, one of them of examples, and a fourth that its source lacks."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    content |= {**GROUPS, "encoders": {"tiny": {"folder": str(bert), "sha256": model_digests(bert)}}}
    content["evaluate"] |= {"resamples": 100}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    for seed, name in enumerate(CORPORA[:3]):
        write_corpus(name, seed, task="example" if name == "printed" else "similarity")
    for part in ("sentences", "items"):
        kind = part if part == "sentences" else "items.similarity"
        write_absence(corpus_path("made", "gone", part), "not in the mirror", kind=kind)
    return tmp_path


def make_spaces() -> None:
    """Run the stages of the suite, as dvc.yaml runs them."""
    for item in SUITE.stages["pool"].values():
        pool("made", item["corpus"], item["encoder"], item["spaces"])
    for space, item in SUITE.stages["pooled"].items():
        pooled("made", space, item["encoder"], item["name"], CORPORA)
    for item in SUITE.stages["postprocess"].values():
        postprocess("made", item["source"], item["change"], CORPORA)


# --- plans ------------------------------------------------------------------------------------------


def test_one_instance_per_corpus_and_encoder_pools_all_spaces_of_the_suite() -> None:
    stages = make_suite(corpora=("lee", "simlex"), spaces=("minilm-cls", "minilm-sbert-wk", "minilm-cls-pca")).stages
    assert stages["pool"] == {
        f"{corpus}-minilm": {"corpus": corpus, "encoder": "minilm", "spaces": ("cls", "sbert-wk")}
        for corpus in ("lee", "simlex")
    }
    assert set(stages["pooled"]) == {"minilm-cls", "minilm-sbert-wk"}
    assert set(stages["transform"]) == {"minilm-cls-pca"} and not stages["embed"]


def test_a_pooled_space_is_an_encoders_own_and_every_change_applies_to_it() -> None:
    spaces = ("minilm-first-last", "minilm-first-last-whitening", "minilm-first-last-lp", "minilm-first-last-flow")
    suite = make_suite(spaces=spaces, baseline="minilm-first-last")
    assert suite.maker_of(spaces[0]) is None
    assert {suite.encoder_of(space) for space in spaces} == {"minilm-first-last"}
    assert suite.made_from(spaces[3]) == ("minilm-first-last", "flow")
    assert set(suite.stages["knn_graph"]) == {"minilm-first-last"}
    assert suite.stages["postprocess"] == {spaces[3]: {"source": "minilm-first-last", "change": "flow"}}


@pytest.mark.parametrize(
    ("names", "params"),
    [
        ("minilm-pca", {"poolings": {"minilm": {"spaces": {"pca": {"pooling": "cls"}}}}}),
        ("minilm-own", {"poolings": {"minilm": {"spaces": {"own": {}}}}, "encoders": {"minilm-own": {}}}),
    ],
)
def test_a_pooled_space_cannot_have_the_name_of_another(names: str, params: dict[str, Any]) -> None:
    with pytest.raises(SuiteError, match="the name of two spaces"):
        make_suite(params, spaces=(names,))


def test_a_corpus_to_fit_on_has_to_be_in_the_suite() -> None:
    with pytest.raises(SuiteError, match="fitted on a corpus that the suite lacks") as caught:
        make_suite(spaces=("minilm-flow-nli",))
    assert "snli" in caught.value.expected
    made = make_suite(corpora=("lee", "snli"), spaces=("minilm-flow-nli", "wl-sif-whitening-nli"))
    assert set(made.stages["postprocess"]) == {"minilm-flow-nli", "wl-sif-whitening-nli"}


def test_the_pooling_of_an_unknown_encoder_is_refused() -> None:
    with pytest.raises(SuiteError, match=r"no block encoders\.bert"):
        make_suite({"poolings": {"bert": {"spaces": {"cls": {"pooling": "cls"}}}}}, spaces=("bert-cls",))


# --- stages -----------------------------------------------------------------------------------------


def test_the_spaces_are_the_poolings_of_the_library_from_one_file_per_corpus(finished: Path, bert: Path) -> None:
    texts = write_corpus("pairs", 0)
    wanted = {"cls": POOLINGS["cls"], "wk": find_pooling("sbert-wk", layer_start=3, window=1)}
    made = pool_texts(load_layers("tiny", bert, max_length=20), texts, wanted, batch_size=4)
    for name, encoded in made.items():
        np.testing.assert_array_equal(read_vectors(space_path("made", f"tiny-{name}", "pairs")), encoded.vectors)
    record = read_record(space_path("made", "tiny-wk", "pairs"), kind="vectors")
    assert record["parameters"]["pooling"] == "sbert-wk" and record["parameters"]["layer_start"] == 3
    assert record["notes"]["model"] == model_digests(bert) and record["notes"]["dimension"] == HIDDEN
    assert "layer_start" not in read_record(space_path("made", "tiny-cls", "pairs"), kind="vectors")["parameters"]


def test_every_space_is_scored_like_any_other(finished: Path) -> None:
    for space in SPACES:
        evaluate(SUITE, space)
        corpora = json.loads(scores_path("made", space).read_text())["corpora"]
        assert corpora["gone"]["absent"].endswith("not in the mirror")
        if space != "tiny-cls-white-gone":
            assert corpora["pairs"]["scores"]["spearman.all.cosine"]["value"] is not None
    assert "absent" in json.loads(scores_path("made", "tiny-cls-flow").read_text())["corpora"]["printed"]


def test_a_change_fitted_on_another_corpus_is_the_change_of_that_corpus(finished: Path) -> None:
    own, other = (read_vectors(space_path("made", "tiny-cls", corpus)) for corpus in ("pairs", "other"))
    settings = FlowSettings(**{key: value for key, value in FLOW.items() if key != "method"})
    got = {name: read_vectors(space_path("made", f"tiny-cls-{name}", "pairs")) for name in ("flow", "flow-other")}
    np.testing.assert_array_equal(got["flow"], fit_flow(own, settings).transform(own))
    np.testing.assert_array_equal(got["flow-other"], fit_flow(other, settings).transform(own))
    inputs = read_record(space_path("made", "tiny-cls-flow-other", "pairs"), kind="vectors")["inputs"]
    assert [Path(path).stem for path in inputs] == ["other", "pairs"]
    # An independent whitening of the other corpus: its components have the covariance I there.
    white = read_vectors(space_path("made", "tiny-wk-white-other", "other"))
    np.testing.assert_allclose(np.cov(white.T), np.eye(5), atol=1e-4)  # float32 vectors
    assert read_vectors(space_path("made", "tiny-wk-white-other", "pairs")).shape == (40, 5)


def test_examples_and_absent_corpora_fit_nothing(finished: Path) -> None:
    reasons = {
        (space, corpus): absence(space_path("made", space, corpus), kind="vectors")
        for space, corpus in [
            ("tiny-cls-flow", "printed"), ("tiny-cls-flow-other", "printed"), ("tiny-cls-white-gone", "pairs"),
        ]
    }  # fmt: skip
    assert list(reasons.values()) == ["40 example sentences have no neighbourhoods", None, "not in the mirror"]


def test_the_same_inputs_give_the_same_bytes(finished: Path) -> None:
    before = {path: path.read_bytes() for path in finished.rglob("data/**/*.parquet")}
    make_spaces()
    assert len(before) > 20 and {path: path.read_bytes() for path in before} == before


def test_a_changed_model_is_refused_and_a_missing_one_too(folder: Path, bert: Path) -> None:
    params = folder / "params.yaml"
    content = yaml.safe_load(params.read_text())
    content["encoders"]["tiny"]["sha256"]["config.json"] = "0" * 64
    params.write_text(yaml.safe_dump(content))
    with pytest.raises(EncoderError, match="not the pinned model"):
        pool("made", "pairs", "tiny", ("cls",))
    content["encoders"]["tiny"]["folder"] = str(folder / "nowhere")
    params.write_text(yaml.safe_dump(content))
    with pytest.raises(EncoderError, match=r"config\.json"):
        pool("made", "pairs", "tiny", ("cls",))
    assert not pooled_path("made", "tiny", "pairs").exists()


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"method": "rotation"}, "flow, whitening"),
        ({"method": "flow", "levels": 0}, "levels"),
        ({"method": "whitening", "level": 2}, "level"),
    ],
)
def test_a_wrong_change_is_one_clear_error(folder: Path, block: dict[str, Any], said: str) -> None:
    content = yaml.safe_load((folder / "params.yaml").read_text())
    content["postprocessing"]["flow"] = block
    (folder / "params.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ParameterError) as caught:
        load_postprocess("flow")
    assert said in str(caught.value) and "postprocessing.flow" in str(caught.value)


def test_an_unknown_pooling_is_refused_with_those_there_are() -> None:
    block = {"max_length": 20, "batch_size": 4, "spaces": {"max": {"pooling": "max"}}}
    with pytest.raises(ParameterError) as caught:
        validate(PoolParameters, block, where="poolings.tiny")
    assert "mean-without-sep" in str(caught.value) and "spaces.max.pooling" in str(caught.value)
