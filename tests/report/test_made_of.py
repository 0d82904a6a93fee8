"""What a space is said to be made of: nobody may take one row of a table for another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.base.params import load_parameters, read_yaml
from pipeline.base.suite import Suite, load_suite
from pipeline.report.made_of import describe_space
from pipeline.stages.encode import WordEncoderParameters
from tests.checkout import ROOT

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
    maker = space.removeprefix(f"{suite.encoder_of(space)}-")
    block: dict[str, Any] = read_yaml(Path("params.yaml"))["manifolds"][maker]
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
