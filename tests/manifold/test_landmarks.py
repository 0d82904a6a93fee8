"""Landmarks: how they are chosen, what they map, and the road from Parquet to Parquet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pipeline.base.artifacts import read_record, read_vectors, space_path, write_vectors
from pipeline.stages.transform import transform
from sentfold.manifold.base.protocol import SolverSettings, Source
from sentfold.manifold.estimators.embedding import LocalityPreservingEmbedding
from sentfold.manifold.landmark import Settings as LandmarkSettings
from sentfold.manifold.landmark import draw_rows, embed, first_of_equals, fit_landmarks, spread_rows

ROOT = Path(__file__).parents[2]

SOLVER = SolverSettings(tolerance=1e-8, null_tolerance=1e-10, seed=0)


def asked(**changes: Any) -> LandmarkSettings:
    block = {
        "landmarks": 100,
        "selection": "random",
        "neighbors": 8,
        "regularization": 1e-3,
        "components": 4,
        "seed": 0,
    }
    return LandmarkSettings(**{**block, **changes})


def cloud(n: int = 500, d: int = 6, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


# --- choosing ---------------------------------------------------------------------------------------


def test_rows_are_drawn_once_each_in_order_from_the_seed_alone() -> None:
    rows = draw_rows(10_000, asked())
    np.testing.assert_array_equal(rows, np.unique(rows))
    assert (len(rows), rows.dtype) == (100, np.int64)
    np.testing.assert_array_equal(rows, draw_rows(10_000, asked()))
    assert not np.array_equal(rows, draw_rows(10_000, asked(seed=1)))
    np.testing.assert_array_equal(draw_rows(100, asked()), np.arange(100))


def test_every_row_is_as_likely_a_landmark() -> None:
    drawn = np.bincount(np.concatenate([draw_rows(400, asked(seed=seed)) for seed in range(400)]), minlength=400)
    # Binomial, 400 draws at 1/4: mean 100, deviation 8.7; the largest of 400 lies within 4.5 deviations.
    assert drawn.min() > 100 - 39 and drawn.max() < 100 + 39


@pytest.mark.slow
def test_the_second_row_of_kmeans_plus_plus_is_drawn_as_its_squared_distance() -> None:
    line = np.array([[0.0], [1.0], [2.0], [3.0]])
    pairs = Counter(tuple(spread_rows(line, 2, seed=seed)) for seed in range(1000))
    squared = np.square(line - line.T)
    chances = squared / squared.sum(axis=1, keepdims=True) / 4
    for (a, b), count in pairs.items():
        chance = chances[a, b] + chances[b, a]
        assert abs(count - 1000 * chance) < 5 * np.sqrt(1000 * chance * (1 - chance)), (a, b)
    assert len(pairs) == 6


@pytest.mark.parametrize("seed", range(5))
def test_kmeans_plus_plus_reaches_small_far_groups_that_chance_misses(seed: int) -> None:
    groups = np.repeat(np.arange(12), [5000, *[3] * 11])
    rows = 1e3 * np.random.default_rng(9).standard_normal((12, 6))[groups] + cloud(len(groups), seed=seed)
    assert len(np.unique(groups[spread_rows(rows, 24, seed=seed)])) == 12
    assert len(np.unique(groups[draw_rows(len(rows), asked(landmarks=24, seed=seed))])) < 12


def test_kmeans_plus_plus_draws_as_many_distinct_rows_as_are_asked() -> None:
    for x in (cloud(), np.ones((500, 3)), np.zeros((500, 3)), 1e30 * cloud()):
        chosen = spread_rows(x, 333, seed=0)
        assert len(chosen) == len(np.unique(chosen)) == 333


def test_equal_rows_are_found_whatever_the_sign_of_zero() -> None:
    x = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [2.0, -0.0]], dtype=np.float32)
    np.testing.assert_array_equal(first_of_equals(x), [0, 2, 4])


# --- mapping ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["random", "kmeans++"])
@pytest.mark.parametrize("n", [100, 80])
def test_where_all_rows_are_landmarks_it_is_locally_linear_embedding(selection: str, n: int) -> None:
    x = cloud(n)
    made = embed(Source(x, solver=SOLVER), asked(selection=selection))
    embedding, notes = made.vectors, made.notes
    np.testing.assert_array_equal(
        embedding, LocalityPreservingEmbedding(8, 4, tol=1e-8).fit_transform(x).astype(np.float32)
    )
    assert (embedding.dtype, notes["landmarks"]) == (np.float32, n)


@pytest.mark.parametrize("selection", ["random", "kmeans++"])
def test_landmarks_keep_their_coordinates_and_all_others_are_mapped_by_them(selection: str) -> None:
    x, parameters = cloud(3000), asked(selection=selection, scaling="half")
    drawn = draw_rows(len(x), parameters)
    landmarks = fit_landmarks(x[drawn], drawn, parameters, SOLVER)
    made = embed(Source(x, solver=SOLVER), parameters)
    embedding, notes = made.vectors, made.notes
    assert len(landmarks.rows) == notes["landmarks"] == 100
    np.testing.assert_array_equal(landmarks.vectors, x[landmarks.rows])
    model = LocalityPreservingEmbedding(8, 4, tol=1e-8, scaling="half").fit(x[landmarks.rows])
    np.testing.assert_array_equal(embedding[landmarks.rows], model.embedding_.astype(np.float32))
    np.testing.assert_array_equal(embedding, model.transform(x).astype(np.float32))


def test_of_equal_rows_one_is_a_landmark_and_all_get_its_coordinates() -> None:
    x = np.repeat(cloud(60), 5, axis=0)
    made = embed(Source(x, solver=SOLVER), asked(landmarks=300))
    embedding, notes = made.vectors, made.notes
    assert (notes["landmarks"], notes["equal_rows_drawn"], notes["nullity"]) == (60, 240, 1)
    np.testing.assert_array_equal(embedding, np.repeat(embedding[::5], 5, axis=0))


def test_the_stage_writes_the_space_with_the_certificate_of_its_landmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["manifolds"]["lp-landmark"] = {"method": "landmark", **asked().model_dump(), "selection": "kmeans++"}
    Path("params.yaml").write_text(yaml.safe_dump(content))
    source, target = space_path("quick", "mini", "toy"), space_path("quick", "mini-lp-landmark", "toy")
    write_vectors(source, cloud(), parameters={}, notes={"sentences": 500, "task": "similarity"})
    transform("quick", "mini", "lp-landmark", ("toy",))
    solver = SolverSettings(**content["eigensolve"])
    made = embed(Source(cloud(), solver=solver), asked(selection="kmeans++"))
    wanted, notes = made.vectors, made.notes
    np.testing.assert_array_equal(read_vectors(target), wanted)
    record = read_record(target, kind="vectors")
    assert record["parameters"] == {**content["manifolds"]["lp-landmark"], "eigensolve": content["eigensolve"]}
    assert record["notes"] == {**notes, "sentences": 500}


def test_kmeans_plus_plus_spreads_tiny_rows_as_it_spreads_others() -> None:
    groups = np.repeat(np.arange(6), [500, *[1] * 5])
    rows = 50.0 * groups[:, None] + 1e-3 * np.random.default_rng(0).standard_normal((len(groups), 2))
    for unit, kind in ((1e-41, np.float32), (2e-7, np.float16)):
        chosen = spread_rows((rows * unit).astype(kind), 6, seed=0)
        assert set(groups[chosen]) == set(range(6))
