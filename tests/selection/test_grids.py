"""Grids: their points, what is refused, and spaces with shared work against spaces made one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from pipeline.base.params import read_yaml
from pipeline.manifolds import load_grid
from pipeline.stages.sweep import describe_cost
from sentfold.compare.bootstrap import draw_weights, item_design
from sentfold.errors import ParameterError
from sentfold.manifold.base.grid import SUFFIX, Grid, read_grid
from sentfold.manifold.base.protocol import SolverSettings, Source, find_method, known_methods
from sentfold.measures.base.pairs import cosines
from sentfold.neighbors.neighbors import nearest_neighbors
from sentfold.selection.surface import (
    Classes,
    Draws,
    Material,
    best_place,
    fitting_spaces,
    lead_shares,
    score_classes,
    score_surface,
)

ROOT = Path(__file__).parents[2]

SOLVER = SolverSettings(tolerance=1e-8, null_tolerance=1e-10, seed=0)
BLOCKS = {
    name: block
    for name, block in read_yaml(ROOT / "params.yaml")["manifolds"].items()
    if block["method"].endswith(SUFFIX)
}
Write = Callable[..., None]


@pytest.fixture
def write_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the grid `mine` into a params.yaml of its own."""
    monkeypatch.chdir(tmp_path)

    def write(**change: Any) -> None:
        block = {"method": "pca-selected", "components": [4, 8], **change}
        Path("params.yaml").write_text(yaml.safe_dump({"manifolds": {"mine": block}}))

    return write


@pytest.mark.parametrize("name", BLOCKS)
def test_every_grid_that_is_shipped_is_the_product_of_its_lists(name: str) -> None:
    grid = load_grid(name, path=ROOT / "params.yaml")
    lists = [values for key, values in BLOCKS[name].items() if key not in ("method", "budget_seconds")]
    assert len(grid.points) == np.prod([len(values) for values in lists])
    assert len({repr(point) for point in grid.points}) == len(grid.points)
    assert {type(point) for point in grid.points} == {find_method(grid.method).Settings}
    assert grid.budget_seconds is not None


def test_every_method_that_can_be_selected_is_shipped_as_a_grid() -> None:
    assert {block["method"].removesuffix(SUFFIX) for block in BLOCKS.values()} == {
        name for name in known_methods() if hasattr(find_method(name), "fits")
    }


def test_the_first_setting_of_the_method_varies_slowest_whatever_the_order_of_the_block() -> None:
    grid = read_grid({"method": "smooth-selected", "amount": [0.1, 0.3], "neighbors": [5, 10]}, where="here")
    assert [(point.neighbors, point.amount) for point in grid.points] == [(5, 0.1), (5, 0.3), (10, 0.1), (10, 0.3)]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"components": []}, "at least one"),
        ({"components": 4}, "a list"),
        ({"components": [4, 4]}, "twice"),
        ({"components": [0]}, "greater than or equal to 1"),
        ({"colour": [1]}, "colour"),
        ({"budget_seconds": 0}, "more than 0"),
        ({"method": "npe-selected", "neighbors": [3]}, "cannot be selected"),
        ({"method": "isomap-selected"}, "no manifold method 'isomap'"),
    ],
)
def test_a_grid_with_a_bad_value_is_refused(change: dict[str, object], part: str, write_grid: Write) -> None:
    write_grid(**change)
    with pytest.raises(ParameterError) as caught:
        load_grid("mine")
    assert part in str(caught.value)
    assert "manifolds.mine" in str(caught.value)


def test_a_sweep_prints_its_cpu_time_with_its_budget_and_warns_above_it(write_grid: Write) -> None:
    write_grid()
    free = load_grid("mine")
    assert describe_cost("minilm", "mine", 5.0).endswith("and no budget")
    write_grid(budget_seconds=60)
    assert load_grid("mine").points == free.points
    assert describe_cost("minilm", "mine", 12.34) == "sweep minilm-mine: 12.3 s of CPU time of a budget of 60 s"
    over = describe_cost("minilm", "mine", 61.0)
    assert "Warning: over it by 1.0 s" in over
    assert "manifolds.mine.budget_seconds" in over


def material(n: int = 160, d: int = 20) -> Material:
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((n, 6)) @ rng.standard_normal((6, d)) + 0.3 * rng.standard_normal((n, d))).astype(
        np.float32
    )
    pairs = rng.integers(0, n, (200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    human = np.einsum("ij,ij->i", x[pairs[:, 0]], x[pairs[:, 1]]) + rng.standard_normal(len(pairs))
    return Material(Source(x, nearest_neighbors(x, 12).indices, SOLVER), pairs, human.astype(float))


def test_nested_solves_give_the_scores_of_solves_made_one_by_one() -> None:
    given = material()
    lists = {"neighbors": [6, 12], "regularization": [1e-3, 0.1], "components": [3, 9], "scaling": ["unit", "half"]}
    grid = read_grid({"method": "lle-selected", **lists}, where="here")
    surface = score_surface(grid, given, rules=True)
    assert len(grid.points) == 16
    for number, point in enumerate(grid.points):
        alone = grid.module.embed(given.source, point).vectors.astype(np.float64)
        unit = alone / np.linalg.norm(alone, axis=1, keepdims=True)
        cosine = np.einsum("ij,ij->i", unit[given.pairs[:, 0]], unit[given.pairs[:, 1]])
        # Rounding to float32 may swap two nearly equal cosines among 200.
        assert surface.values[number] == pytest.approx(100 * spearmanr(cosine, given.human).statistic, abs=0.01)
        assert 0 <= surface.residual_variance[number] <= 1
        assert 0 <= surface.procrustes[number] <= 1


def test_the_best_point_of_each_resample_is_that_of_the_resample_written_out() -> None:
    given = replace(material(), design=item_design([""] * len(material().pairs)))
    grid = read_grid({"method": "lle-selected", "neighbors": [6, 12], "regularization": [0.1],
                      "components": [3, 4, 5, 90], "scaling": ["unit"]}, where="here")  # fmt: skip
    surface = score_surface(grid, given, rules=False, draws=Draws(40, 7))
    spaces = dict(fitting_spaces(grid, given.source))
    similar = {number: cosines(space.astype(np.float32), given.pairs)[0] for number, space in spaces.items()}
    [weights] = draw_weights(given.design, resamples=40, seed=7)
    for drawn, leader in zip(weights.astype(int), surface.leaders, strict=True):
        items = np.repeat(np.arange(len(drawn)), drawn)
        scores = {number: spearmanr(one[items], given.human[items]).statistic for number, one in similar.items()}
        assert scores[leader] == pytest.approx(max(scores.values()), abs=1e-12)
    shares = lead_shares(grid.points, surface.leaders)
    assert set(shares) == {"neighbors", "components"}
    assert shares["components"]["90"] == 0 and sum(shares["components"].values()) == pytest.approx(1)
    assert shares["neighbors"]["6"] == np.mean([grid.points[leader].neighbors == 6 for leader in surface.leaders])


@pytest.mark.parametrize("name", BLOCKS)
def test_a_point_that_does_not_fit_is_left_out_and_every_other_has_its_shape(name: str) -> None:
    source, grid = material(n=40).source, load_grid(name, path=ROOT / "params.yaml")
    made = dict(fitting_spaces(grid, source))
    assert made
    for number, point in enumerate(grid.points):
        if number not in made:
            with pytest.raises(ParameterError):
                grid.module.embed(source, point)
            continue
        width = getattr(point, "components", source.vectors.shape[1])
        assert made[number].shape == (40, width)
        assert np.isfinite(made[number]).all()


def test_the_accuracy_of_every_point_is_scikit_learns_and_a_point_too_large_is_blank() -> None:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 3, 240)
    x = rng.standard_normal((240, 12)) + 1.2 * rng.standard_normal((3, 12))[labels]
    rows = rng.permutation(240)  # items are not in the order of their sentences
    splits = np.array(["train"] * 160 + ["test"] * 80)
    classes = Classes(Source(x.astype(np.float32)), rows, labels[rows], splits.tolist())
    grid = Grid("pca", tuple(find_method("pca").Settings(components=p) for p in (2, 6, 99)))
    surface = score_classes(grid, classes, k=3, folds=5, seed=0, draws=Draws(200, 1))
    found = surface.values
    for p, value in zip((2, 6), found, strict=False):
        space = PCA(p, svd_solver="full").fit_transform(x)[rows]
        model = KNeighborsClassifier(3).fit(space[:160], labels[rows[:160]])
        assert value == 100 * model.score(space[160:], labels[rows[160:]])
    assert found[2] is None
    # 6 components are right so much oftener that no resample says otherwise, or 2 are as good in some.
    assert set(surface.leaders) <= {0, 1} and len(surface.leaders) == 200
    assert (Counter(surface.leaders)[1] > 100) == (found[1] > found[0])


def test_the_best_place_is_the_first_of_the_highest_and_blanks_do_not_count() -> None:
    assert best_place([None, 3.0, 5.0, 5.0]) == 2
    with pytest.raises(ParameterError, match="no point"):
        best_place([None, None])
