"""What a space is said to be made of: nobody may take one row of a table for another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.base.params import load_parameters, read_yaml
from pipeline.base.suite import Suite, load_suite
from pipeline.report.made_of import describe_space, find_twins
from pipeline.stages.encode import WordEncoderParameters
from pipeline.stages.pool import PoolParameters
from pipeline.trainings import load_training
from tests.checkout import ROOT, make_suite

SUITES = ("quick", *sorted(path.parent.name for path in ROOT.glob("suites/*/suite.yaml")))
MODELS = {"minilm": "all-MiniLM-L6-v2"}


def named_parameters(suite: Suite, space: str) -> dict[str, Any]:
    """What the artifacts of a space will name, by params.yaml.

    A space chosen on development data is taken to have got the last value of each list of its grid.
    """
    if space in suite.word_encoders:
        block = load_parameters(WordEncoderParameters, f"word_encoders.{space}")
        return {**block.model_dump(), "settings": block.method_settings(space).model_dump(mode="json")}
    if space in suite.encoders:
        return {}
    content = read_yaml(Path("params.yaml"))
    if space in suite.stages["pooled"]:
        item = suite.stages["pooled"][space]
        chosen = load_parameters(PoolParameters, f"poolings.{item['encoder']}").spaces[item["name"]]
        return {"encoder": content["encoders"][item["encoder"]], **chosen.record()}
    if space in suite.stages["train"]:
        item = suite.stages["train"][space]
        block = load_training(item["training"])
        trained_on = {"base": content["encoders"][item["base"]], "trained_on": item["train"], "seed": item["seed"]}
        return {**trained_on, "parameters": block.model_dump(), "pairs": block.data.pairs}
    if space in suite.stages["postprocess"]:
        return dict(content["postprocessing"][suite.stages["postprocess"][space]["change"]])
    maker = space.removeprefix(f"{suite.encoder_of(space)}-")
    block: dict[str, Any] = content["manifolds"][maker]
    if space not in suite.stages["selected"]:
        return block
    point = {name: value[-1] if isinstance(value, list) else value for name, value in block.items()}
    chosen_on = suite.stages["sweep_clusters"].get(space, {}).get("development", suite.development)
    return {**point, "method": block["method"].removesuffix("-selected"), "chosen_on": chosen_on}


@pytest.mark.parametrize("name", SUITES)
def test_no_two_spaces_of_a_suite_have_one_description(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    suite = load_suite(name)
    said = {space: describe_space(suite, space, named_parameters(suite, space), MODELS) for space in suite.spaces}
    seen: dict[str, str] = {}
    for space, text in said.items():
        assert text not in seen, f"{space} and {seen.get(text)} are both {text!r}"
        seen[text] = space


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ("minilm-abtt", "all but the top directions, 1 removed; all-MiniLM-L6-v2"),
        ("minilm-whitening", "whitened principal components, p = 128, power 1; all-MiniLM-L6-v2"),
        ("minilm-smooth", "smoothing by neighbours, k = 5, amount 0.1; all-MiniLM-L6-v2"),
        ("wl-s3e-mean", "S3E, mean part alone, K = 10 by s3e; WordLlama, variance levelled"),
        ("wl-s3e-covariance", "S3E, covariance part alone, K = 10 by s3e; WordLlama, variance levelled"),
        ("wl-gem-plain", "GEM, weights: none, no directions removed; WordLlama"),
        ("wl-gem-unit-plain", "GEM, words of length 1, weights: none, no directions removed; WordLlama"),
        ("wl-gem-novelty", "GEM, weights: novelty, SDR; WordLlama"),
        ("wl-gem-sdr", "GEM, weights: none, SDR; WordLlama"),
        ("wl-gem-sir", "GEM, three weights, SIR; WordLlama"),
        (
            "wl-gem-cqa",
            "GEM, three weights, SDR, m = 6, h = 15, directions chosen without their singular values; WordLlama",
        ),
        ("wl-sif-unit", "SIF, words of length 1; WordLlama"),
        ("wl-sif-weights", "SIF, no directions removed; WordLlama"),
        ("wl-lase-mixture", "LASE, K = 50 by lase-mixture; WordLlama, variance levelled"),
    ],
)
def test_a_description_states_what_an_ablation_or_a_control_changes(
    space: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    suite = load_suite("paper-mirror")
    assert describe_space(suite, space, named_parameters(suite, space), MODELS) == said


@pytest.mark.parametrize(
    ("suite", "space", "said"),
    [
        ("layers-mirror", "minilm-cls", "first token of the last layer; all-MiniLM-L6-v2"),
        ("layers-mirror", "minilm-sbert-wk", "SBERT-WK from layer 4; all-MiniLM-L6-v2"),
        ("layers-mirror", "minilm-last-two-flow-nli", "BERT-flow, fitted on snli; minilm-last-two"),
        (
            "train-mirror",
            "small-cnn-max-seed1",
            "CNN 256 × 1/3/5, max pooling, trained by contrastive, 1500 pairs of stsb-train, seed 1; all-MiniLM-L6-v2",
        ),
    ],
)
def test_a_description_states_the_pooling_the_change_or_the_training(
    suite: str, space: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    chosen = load_suite(suite)
    assert describe_space(chosen, space, named_parameters(chosen, space), MODELS) == said


def test_a_change_that_was_fitted_elsewhere_is_no_twin_of_one_fitted_here() -> None:
    spaces = ("minilm", "minilm-whitening", "minilm-whitening-nli", "minilm-flow")
    suite = make_suite(corpora=("lee", "snli"), spaces=spaces)
    white = {"method": "whitening", "components": 4, "power": 1.0}
    parameters: dict[str, dict[str, Any]] = {
        "minilm": {}, "minilm-whitening": white, "minilm-whitening-nli": {**white, "fitted_on": "snli"},
        "minilm-flow": {"method": "flow", "fitted_on": None},
    }  # fmt: skip
    shapes = {(space, corpus): (20, 8) for space in spaces for corpus in suite.corpora}
    assert find_twins(suite, parameters, shapes) == {}
    # The same whitening as a change that is fitted on the corpus itself is the same space.
    parameters["minilm-whitening-nli"] = {**white, "fitted_on": None}
    assert find_twins(suite, parameters, shapes)["minilm-whitening", "lee"] == (
        "minilm-whitening",
        "minilm-whitening-nli",
    )
