"""Manifold methods are found by their files, and the blocks of `manifolds:` are read as what their method states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline.base.params import read_yaml
from pipeline.manifolds import load_grid, load_maker, load_weigher
from sentfold.errors import ParameterError
from sentfold.manifold.base.grid import SUFFIX
from sentfold.manifold.base.protocol import Source, find_method, known_methods

ROOT = Path(__file__).parents[2]

BLOCKS: dict[str, dict[str, Any]] = read_yaml(ROOT / "params.yaml")["manifolds"]
MAKERS = [name for name, block in BLOCKS.items() if not block["method"].endswith(SUFFIX)]


def write(tmp_path: Path, **block: Any) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump({"manifolds": {"mine": block}}))
    return path


@pytest.mark.parametrize("name", known_methods())
def test_the_defaults_of_a_method_embed_rows_and_fit_what_they_say_they_fit(name: str) -> None:
    method = find_method(name)
    x = np.random.default_rng(0).standard_normal((200, 150)).astype(np.float32)
    squared = np.square(x[:, None] - x[None]).sum(axis=2)
    neighbors = np.argsort(squared + np.diag(np.full(200, np.inf)), axis=1)[:, :40].astype(np.int32)
    made = method.embed(Source(x, neighbors if method.READS != "vectors" else None), method.Settings())
    assert made.vectors.dtype == np.float32
    assert made.vectors.shape[0] == 200
    assert np.isfinite(made.vectors).all()
    assert method.TITLE == method.TITLE.strip() != ""
    if hasattr(method, "fits"):
        assert method.fits(method.Settings(), x.shape, 40)
        assert not method.fits(method.Settings(), (2, 2), 1)


@pytest.mark.parametrize(
    ("name", "settings", "unlike"),
    [
        ("pca", {"components": 20}, {"components": 19}),
        ("whitening", {"components": 10, "power": 0.0}, {"components": 10, "power": 0.5}),
        ("smooth", {"neighbors": 5, "amount": 0.0}, {"neighbors": 5, "amount": 0.1}),
        ("mean_removal", {"how": "subtract"}, {"how": "project"}),
        (
            "landmark",
            {"landmarks": 90, "neighbors": 8, "components": 3},
            {"landmarks": 89, "neighbors": 8, "components": 3},
        ),
    ],
)
def test_spaces_that_are_the_same_by_construction_have_the_same_inner_products(
    name: str, settings: dict[str, Any], unlike: dict[str, Any]
) -> None:
    x = np.random.default_rng(1).standard_normal((90, 20)).astype(np.float32)
    squared = np.square(x[:, None] - x[None]).sum(axis=2)
    source = Source(x, np.argsort(squared + np.diag(np.full(90, np.inf)), axis=1)[:, :40].astype(np.int32))
    method: Any = find_method(name)
    assert method.same_as(method.Settings(**unlike), x.shape) is None
    other, own = method.same_as(method.Settings(**settings), x.shape)
    simple = find_method(other) if other else None
    expected = simple.embed(source, simple.Settings(**own)).vectors if simple else x
    made = method.embed(source, method.Settings(**settings)).vectors
    np.testing.assert_allclose(made @ made.T, expected @ expected.T, atol=1e-3 * np.square(expected).sum(axis=1).max())


def test_a_graph_gives_its_nearest_and_no_more_than_it_holds() -> None:
    source = Source(np.zeros((12, 2)), np.arange(48).reshape(12, 4) % 12)
    np.testing.assert_array_equal(source.nearest(2)[:3], [[0, 1], [4, 5], [8, 9]])
    with pytest.raises(ParameterError, match=r"<= knn_graph.neighbors = 4"):
        source.nearest(5)


@pytest.mark.parametrize("name", MAKERS)
def test_every_block_that_is_shipped_is_read_as_the_method_that_it_names(name: str) -> None:
    maker = load_maker(name, path=ROOT / "params.yaml")
    assert BLOCKS[name].items() <= {"method": maker.method, **maker.settings.model_dump()}.items()


def test_every_method_has_a_block_that_shows_it() -> None:
    awaited = {"coordinates", "int8", "mean_removal", "soft_zca", "tempering", "truncation"}  # come with retrieval
    assert {BLOCKS[name]["method"] for name in MAKERS} | awaited == set(known_methods())


@pytest.mark.parametrize(
    ("block", "parts"),
    [
        ({"components": 8}, ["manifolds.mine.method", "required"]),
        ({"method": "isomap", "components": 8}, ["manifolds.mine: method", "lle", "smooth", "isomap"]),
        ({"method": "base", "components": 8}, ["no manifold method 'base'"]),
        ({"method": "pca", "components": 8, "neighbors": 3}, ["unknown key 'neighbors'", "one of: components"]),
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
        load_maker("mine", path=write(tmp_path, **block))
    for part in parts:
        assert part in str(caught.value)


def test_a_block_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(ParameterError, match="not made from reconstruction weights"):
        load_weigher("pca")
    with pytest.raises(ParameterError, match="no grid"):
        load_grid("pca")
    with pytest.raises(ParameterError, match="no manifold method 'pca-selected'"):
        load_maker("pca-selected")


def test_a_name_without_a_block_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ParameterError, match="lp-landmark"):
        load_maker("nope", path=ROOT / "params.yaml")
