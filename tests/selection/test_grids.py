"""Grids: their points, what is refused, and spaces with shared work against spaces made one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import spearmanr

from pipeline.errors import ParameterError
from pipeline.manifold.locally_linear import embed_locally
from pipeline.manifold.manifolds import METHODS
from pipeline.manifold.neighbors import nearest_neighbors
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.params import read_yaml
from pipeline.selection.grids import GRIDS, MODELS, LleGrid, load_grid
from pipeline.selection.spaces import fits, spaces_of
from pipeline.selection.surface import Material, best_place, score_surface
from tests.checkout import ROOT

SOLVER = SolverParameters(tolerance=1e-8, null_tolerance=1e-10, seed=0)
BLOCKS = {
    name: block for name, block in read_yaml(ROOT / "params.yaml")["manifolds"].items() if block["method"] in GRIDS
}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_grid_that_is_shipped_is_the_product_of_its_lists(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    points = list(load_grid(name).points())
    lists = [values for key, values in BLOCKS[name].items() if key not in ("method", "budget_seconds")]
    assert len(points) == np.prod([len(values) for values in lists])
    assert len({repr(point) for point in points}) == len(points)
    assert {type(point) for point in points} == {METHODS[BLOCKS[name]["method"].removesuffix("-selected")]}


def test_every_kind_of_grid_is_shipped_and_has_the_model_of_its_method() -> None:
    assert {block["method"] for block in BLOCKS.values()} == set(GRIDS)
    assert {f"{method}-selected": model for method, model in MODELS.items()}.keys() == GRIDS.keys()
    assert all(METHODS[method] is model for method, model in MODELS.items())


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"components": []}, "at least one"),
        ({"components": [4, 4]}, "twice"),
        ({"components": [0]}, "greater than or equal to 1"),
        ({"colour": [1]}, "colour"),
    ],
)
def test_a_grid_with_a_bad_value_is_refused(
    change: dict[str, object], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = {"method": "pca-selected", "components": [4, 8], **change}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({"manifolds": {"mine": block}}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError) as caught:
        load_grid("mine")
    assert part in str(caught.value)


def material(n: int = 160, d: int = 20) -> Material:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((n, 6)) @ rng.standard_normal((6, d)) + 0.3 * rng.standard_normal((n, d))).astype(
        np.float32
    )
    pairs = rng.integers(0, n, (200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    human = np.einsum("ij,ij->i", x[pairs[:, 0]], x[pairs[:, 1]]) + rng.standard_normal(len(pairs))
    return Material(x, nearest_neighbors(x, 12).indices, pairs, human.astype(float))


def test_nested_solves_give_the_scores_of_solves_made_one_by_one() -> None:
    given = material()
    grid = LleGrid(
        method="lle-selected",
        neighbors=(6, 12),
        regularization=(1e-3, 0.1),
        components=(3, 9),
        scaling=("unit", "half"),
    )
    points = list(grid.points())
    surface = score_surface(given, points, SOLVER, rules=True)
    assert len(points) == 16
    for place, point in enumerate(points):
        near = np.ascontiguousarray(given.neighbors[:, : point.neighbors])
        alone = embed_locally(
            given.x, near, point.components, regularization=point.regularization, scaling=point.scaling,
            workers=1, **SOLVER.model_dump(),
        ).coordinates  # fmt: skip
        unit = alone / np.linalg.norm(alone, axis=1, keepdims=True)
        cosine = np.einsum("ij,ij->i", unit[given.pairs[:, 0]], unit[given.pairs[:, 1]])
        # Rounding to float32 may swap two nearly equal cosines among 200.
        assert surface.values[place] == pytest.approx(100 * spearmanr(cosine, given.human).statistic, abs=0.01)
        assert 0 <= surface.residual_variance[place] <= 1
        assert 0 <= surface.procrustes[place] <= 1


@pytest.mark.parametrize("name", BLOCKS)
def test_a_point_that_does_not_fit_is_left_out_and_every_other_has_its_shape(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    given = material(n=40)
    points = list(load_grid(name).points())
    made = dict(spaces_of(given.x, given.neighbors, points, SOLVER))
    assert set(made) == {place for place, point in enumerate(points) if fits(point, given.x.shape, 12)}
    for place, space in made.items():
        width = getattr(points[place], "components", given.x.shape[1])
        assert space.shape == (40, width)
        assert np.isfinite(space).all()


def test_the_best_place_is_the_first_of_the_highest_and_blanks_do_not_count() -> None:
    assert best_place([None, 3.0, 5.0, 5.0]) == 2
    with pytest.raises(ParameterError, match="no point"):
        best_place([None, None])
