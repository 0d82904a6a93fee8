"""The blocks of `manifolds:` and the methods that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml

from pipeline.errors import ParameterError
from pipeline.manifold.manifolds import (
    METHODS,
    AbttParameters,
    LleParameters,
    PcaParameters,
    WhiteningParameters,
    _Method,
    load_manifold,
    nearest_of,
)
from pipeline.params import read_yaml
from tests.checkout import ROOT

# A method `...-selected` is a grid to choose from, which tests/selection reads.
BLOCKS: dict[str, dict[str, Any]] = {
    name: block
    for name, block in read_yaml(ROOT / "params.yaml")["manifolds"].items()
    if not block["method"].endswith("-selected")
}


def write(tmp_path: Path, **block: Any) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump({"manifolds": {"mine": block}}))
    return path


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_that_is_shipped_is_read_as_the_method_that_it_names(name: str) -> None:
    parameters = load_manifold(name, *METHODS.values(), path=ROOT / "params.yaml")
    assert type(parameters) is METHODS[BLOCKS[name]["method"]]
    assert BLOCKS[name].items() <= parameters.model_dump().items()


def test_every_method_has_a_block_that_shows_it() -> None:
    assert {block["method"] for block in BLOCKS.values()} == set(METHODS)


def test_every_method_has_one_model_that_answers_to_its_name() -> None:
    assert get_args(_Method.model_fields["method"].annotation) == tuple(METHODS)
    for method, model in METHODS.items():
        assert get_args(model.model_fields["method"].annotation) == (method,)


def test_a_block_of_another_stage_is_refused_with_the_methods_of_this_one() -> None:
    with pytest.raises(ParameterError) as caught:
        load_manifold("npe", PcaParameters, WhiteningParameters, AbttParameters, path=ROOT / "params.yaml")
    for part in ("'npe' is made by another stage", "manifolds.npe.method", "pca, whitening, abtt", "suite file"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("block", "parts"),
    [
        ({"components": 8}, ["manifolds.mine.method", "required"]),
        ({"method": "isomap", "components": 8}, ["manifolds.mine.method", "'lle'", "'smooth'", "isomap"]),
        ({"method": "pca"}, ["manifolds.mine.components", "required"]),
        ({"method": "pca", "components": 8, "neighbors": 3}, ["unknown key 'neighbors'", "method, components"]),
        ({"method": "whitening", "components": 8, "power": 1.5}, ["mine.power", "less than or equal to 1", "1.5"]),
        ({"method": "abtt", "removed": -1}, ["mine.removed", "-1"]),
        ({"method": "smooth", "neighbors": 5, "amount": 1.5}, ["mine.amount", "1.5"]),
        ({"method": "lpp", "neighbors": 5, "heat": 0.0, "components": 2}, ["mine.heat", "greater than 0"]),
        (
            {"method": "lle", "neighbors": 5, "regularization": 0.1, "components": 2, "scaling": "third"},
            ["mine.scaling", "'unit', 'quarter' or 'half'", "third"],
        ),
    ],
)
def test_a_bad_block_is_refused_with_its_key_its_value_and_what_is_allowed(
    tmp_path: Path, block: dict[str, Any], parts: list[str]
) -> None:
    with pytest.raises(ParameterError) as caught:
        load_manifold("mine", *METHODS.values(), path=write(tmp_path, **block))
    for part in parts:
        assert part in str(caught.value)


def test_a_name_without_a_block_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ParameterError, match="lp-landmark"):
        load_manifold("nope", LleParameters, path=ROOT / "params.yaml")


def test_a_graph_gives_its_nearest_and_no_more_than_it_holds() -> None:
    graph = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(nearest_of(graph, 2, "lp"), [[0, 1], [4, 5], [8, 9]])
    with pytest.raises(ParameterError, match=r"manifolds\.lp\.neighbors") as caught:
        nearest_of(graph, 5, "lp")
    assert "<= knn_graph.neighbors = 4" in str(caught.value)
