"""Landmarks: how they are chosen, what they map, and the road from Parquet to Parquet."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pipeline.artifacts import fixed_lists, read_record, read_vectors, space_path, write_vectors
from pipeline.errors import ArtifactError, ParameterError, SentfoldError
from pipeline.manifold.embedding import LocalityPreservingEmbedding
from pipeline.manifold.landmarks import draw_rows, first_of_equals, fit_landmarks, landmark_embedding, spread_rows
from pipeline.manifold.landmarks_io import embed_large, map_parquet
from pipeline.manifold.manifolds import LandmarkParameters
from pipeline.manifold.solver_parameters import SolverParameters
from pipeline.manifold.transform import transform
from tests.checkout import ROOT, environment

SOLVER = SolverParameters(tolerance=1e-8, null_tolerance=1e-10, seed=0)


def asked(**changes: Any) -> LandmarkParameters:
    block = {
        "landmarks": 100,
        "selection": "random",
        "neighbors": 8,
        "regularization": 1e-3,
        "components": 4,
        "seed": 0,
    }
    return LandmarkParameters(**{"method": "lle-landmark", **block, **changes})


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
    embedding, notes = landmark_embedding(x, asked(selection=selection), SOLVER)
    np.testing.assert_array_equal(
        embedding, LocalityPreservingEmbedding(8, 4, tol=1e-8).fit_transform(x).astype(np.float32)
    )
    assert (embedding.dtype, notes["landmarks"]) == (np.float32, n)


@pytest.mark.parametrize("selection", ["random", "kmeans++"])
def test_landmarks_keep_their_coordinates_and_all_others_are_mapped_by_them(selection: str) -> None:
    x, parameters = cloud(3000), asked(selection=selection, scaling="half")
    drawn = draw_rows(len(x), parameters)
    landmarks = fit_landmarks(x[drawn], drawn, parameters, SOLVER)
    embedding, notes = landmark_embedding(x, parameters, SOLVER)
    assert len(landmarks.rows) == notes["landmarks"] == 100
    np.testing.assert_array_equal(landmarks.vectors, x[landmarks.rows])
    model = LocalityPreservingEmbedding(8, 4, tol=1e-8, scaling="half").fit(x[landmarks.rows])
    np.testing.assert_array_equal(embedding[landmarks.rows], model.embedding_.astype(np.float32))
    np.testing.assert_array_equal(embedding, model.transform(x).astype(np.float32))


def test_of_equal_rows_one_is_a_landmark_and_all_get_its_coordinates() -> None:
    x = np.repeat(cloud(60), 5, axis=0)
    embedding, notes = landmark_embedding(x, asked(landmarks=300), SOLVER)
    assert (notes["landmarks"], notes["equal_rows_drawn"], notes["nullity"]) == (60, 240, 1)
    np.testing.assert_array_equal(embedding, np.repeat(embedding[::5], 5, axis=0))


def test_the_stage_writes_the_space_with_the_certificate_of_its_landmarks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    content["manifolds"]["lp-landmark"] = {**asked().model_dump(), "selection": "kmeans++"}
    Path("params.yaml").write_text(yaml.safe_dump(content))
    source, target = space_path("quick", "mini", "toy"), space_path("quick", "mini-lp-landmark", "toy")
    write_vectors(source, cloud(), parameters={}, notes={"sentences": 500, "task": "similarity"})
    transform("quick", "mini", "lp-landmark", ("toy",))
    solver = SolverParameters(**content["eigensolve"])
    wanted, notes = landmark_embedding(cloud(), asked(selection="kmeans++"), solver)
    np.testing.assert_array_equal(read_vectors(target), wanted)
    record = read_record(target, kind="vectors")
    assert record["parameters"] == {**content["manifolds"]["lp-landmark"], "eigensolve": content["eigensolve"]}
    assert record["notes"] == {**notes, "sentences": 500}


# --- from Parquet to Parquet ------------------------------------------------------------------------


def write_parquet(path: Path, x: np.ndarray, *, rows: int = 700) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": pa.array(range(len(x))), "vector": fixed_lists(x)})
    pq.write_table(table, path, row_group_size=rows)
    return path


def read_parquet(path: Path) -> np.ndarray:
    column = pq.read_table(path).column("vector").combine_chunks()
    return np.asarray(column.flatten()).reshape(len(column), -1)


@pytest.mark.parametrize("selection", ["random", "kmeans++"])
def test_files_are_mapped_as_arrays_are(tmp_path: Path, selection: str) -> None:
    x, parameters = cloud(2000), asked(selection=selection)
    source, target = write_parquet(tmp_path / "x.parquet", x), tmp_path / "new" / "y.parquet"
    record = map_parquet(source, target, parameters, SOLVER)
    wanted, notes = landmark_embedding(x, parameters, SOLVER)
    np.testing.assert_array_equal(read_parquet(target), wanted)
    assert pq.read_schema(target).field("vector").type == pa.list_(pa.float32(), 4)
    kept = json.loads(pq.read_metadata(target).metadata[b"sentfold-landmarks"])
    assert kept == record
    assert (kept["notes"], kept["rows"], kept["parameters"]) == (notes, 2000, parameters.model_dump())


def test_blocks_threads_row_groups_and_parts_change_no_byte(tmp_path: Path) -> None:
    # More rows than one row group of the target holds.
    x = cloud(40_000, 4)
    whole = write_parquet(tmp_path / "x.parquet", x, rows=40_000)
    for name, start, stop in (("b", 10_000, 40_000), ("a", 0, 10_000)):
        write_parquet(tmp_path / "parts" / f"{name}.parquet", x[start:stop], rows=999)
    outputs = []
    for number, (source, block, workers) in enumerate(
        [(whole, 8192, 1), (whole, 777, 2), (tmp_path / "parts", 8192, 2), (tmp_path / "parts", 40_000, 1)]
    ):
        target = tmp_path / f"{number}.parquet"
        map_parquet(source, target, asked(components=2), SOLVER, block=block, workers=workers)
        outputs.append(target.read_bytes())
    assert outputs[1:] == outputs[:1] * 3


MEMORY = """
import resource
from pathlib import Path
import pyarrow
from pipeline.manifold.landmarks_io import embed_large
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
settings = dict(landmarks=200, neighbors=5, components=4, verbose=False)
embed_large(Path("small.parquet"), Path("a.parquet"), **settings)
before = peak()
embed_large(Path("large.parquet"), Path("b.parquet"), **settings)
print(peak() - before, pyarrow.default_memory_pool().max_memory() / 2**20)
"""


def test_memory_does_not_grow_with_the_rows_even_of_one_row_group(tmp_path: Path) -> None:
    x = cloud(200_000, 128)
    write_parquet(tmp_path / "small.parquet", x[:20_000], rows=20_000)
    write_parquet(tmp_path / "large.parquet", x, rows=200_000)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=True,
    )
    grown, arrow = map(float, done.stdout.split())
    # Tenfold the rows, 92 MB more of them; a few allocator arenas come and go.
    assert grown < 30
    # Arrow alone, which would hold a row group and its copies: 200 MB.
    assert arrow < 100


# --- what goes wrong --------------------------------------------------------------------------------


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def lists_of(x: np.ndarray, kind: pa.DataType) -> pa.Table:
    return pa.table({"vector": pa.array(x.tolist(), type=kind)})


def holed(x: np.ndarray) -> np.ndarray:
    x[451, 3] = np.nan
    return x


BAD: dict[str, tuple[Any, str]] = {
    "missing": (lambda path: None, "no such file"),
    "an empty folder": (lambda path: path.mkdir(), "parquet"),
    "no Parquet": (lambda path: path.write_text("vector"), "a whole Parquet file"),
    "no column": (lambda path: pq.write_table(pa.table({"vectors": [1.0]}), path), "column `vector`"),
    "lists of any length": (
        lambda path: pq.write_table(lists_of(cloud(50), pa.list_(pa.float32())), path),
        "fixed_size_list<float32>",
    ),
    "doubles": (
        lambda path: pq.write_table(lists_of(cloud(50), pa.list_(pa.float64(), 6)), path),
        "fixed_size_list<float32>",
    ),
    "a null": (
        lambda path: pq.write_table(
            pa.table({"vector": pa.array([None, *cloud(500).tolist()], type=pa.list_(pa.float32(), 6))}), path
        ),
        "a null in rows 0 to 500",
    ),
    "not finite": (lambda path: write_parquet(path, holed(cloud())), "row 451"),
    "too few rows": (lambda path: write_parquet(path, cloud(8)), "k < n = 8"),
    "parts of two widths": (
        lambda path: (write_parquet(path / "a.parquet", cloud()), write_parquet(path / "b.parquet", cloud(50, 7))),
        "width 6",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_source_is_refused_by_name_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    source, target = tmp_path / "x.parquet", tmp_path / "y.parquet"
    make, said = BAD[name]
    make(source)
    target.write_text("what stood there")
    with pytest.raises(SentfoldError) as caught:
        map_parquet(source, target, asked(), SOLVER)
    assert said in str(caught.value)
    assert target.read_text() == "what stood there"
    assert {path.name for path in tmp_path.iterdir()} <= {"x.parquet", "y.parquet"}


def test_a_damaged_page_is_noticed(tmp_path: Path) -> None:
    source, target = tmp_path / "x.parquet", tmp_path / "y.parquet"
    table = pa.table({"vector": fixed_lists(cloud(5000))})
    pq.write_table(table, source, compression="none", use_dictionary=False, write_page_checksum=True)
    spoil(source)
    with pytest.raises(ArtifactError, match="cannot be used"):
        map_parquet(source, target, asked(), SOLVER)
    assert not target.exists()


def test_a_target_that_is_a_source_or_a_folder_is_refused(tmp_path: Path) -> None:
    source = write_parquet(tmp_path / "x.parquet", cloud())
    before = source.read_bytes()
    with pytest.raises(ParameterError, match="none of the sources"):
        map_parquet(source, tmp_path / "." / "x.parquet", asked(), SOLVER)
    with pytest.raises(ParameterError, match="a folder"):
        map_parquet(source, tmp_path, asked(), SOLVER)
    assert source.read_bytes() == before


FULL = """
import resource, signal
from pathlib import Path
from pipeline.errors import ArtifactError
from pipeline.manifold.landmarks_io import embed_large
settings = dict(landmarks=50, neighbors=5, components=4, verbose=False)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    embed_large(Path("x.parquet"), Path("y.parquet"), **settings)
except ArtifactError as error:
    print(error)
"""


def test_a_full_disk_is_an_error_that_leaves_what_stood_there(tmp_path: Path) -> None:
    write_parquet(tmp_path / "x.parquet", cloud(3000))
    (tmp_path / "y.parquet").write_text("what stood there")
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cannot write" in done.stdout and "y.parquet" in done.stdout, done.stderr
    assert (tmp_path / "y.parquet").read_text() == "what stood there"
    assert {path.name for path in tmp_path.iterdir()} == {"x.parquet", "y.parquet"}


def test_what_a_killed_run_left_is_swept_by_the_next(tmp_path: Path) -> None:
    source, target = write_parquet(tmp_path / "x.parquet", cloud()), tmp_path / "y.parquet"
    (tmp_path / ".y.parquet.99999999.tmp").write_text("half of it")
    (tmp_path / ".y.parquet.1.tmp").write_text("of a process that lives")
    map_parquet(source, target, asked(), SOLVER)
    assert {path.name for path in tmp_path.iterdir()} == {"x.parquet", "y.parquet", ".y.parquet.1.tmp"}


def test_who_reads_the_target_while_it_is_replaced_reads_the_old_one_to_its_end(tmp_path: Path) -> None:
    source, target = write_parquet(tmp_path / "x.parquet", cloud()), tmp_path / "y.parquet"
    target.write_text("what stood there")
    with target.open() as reader:
        map_parquet(source, target, asked(), SOLVER)
        assert reader.read() == "what stood there"
    assert len(read_parquet(target)) == 500


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"landmarks": 2}, "landmarks"),
        ({"selection": "first"}, "kmeans++"),
        ({"scaling": "third"}, "quarter"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"components": 99}, "n - 2 = 98"),
        ({"neighbors": 100}, "n = 100"),
    ],
    ids=repr,
)
def test_a_parameter_that_does_not_fit_is_refused_by_name(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    source = write_parquet(tmp_path / "x.parquet", cloud())
    settings = {"landmarks": 100, "neighbors": 8, "components": 4, **change}
    with pytest.raises(ParameterError) as caught:
        embed_large(source, tmp_path / "y.parquet", **settings, verbose=False)
    assert said in str(caught.value)
    assert not (tmp_path / "y.parquet").exists()


def test_the_command_maps_a_file_and_says_how_many_rows(tmp_path: Path) -> None:
    write_parquet(tmp_path / "x.parquet", cloud())
    command = [sys.executable, "-m", "pipeline", "map-landmarks", "x.parquet", "y.parquet"]
    options = ["--landmarks", "100", "--neighbors", "8", "--components", "4", "--selection", "kmeans++"]
    done = subprocess.run(
        [*command, *options],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "y.parquet: 500 rows by 100 landmarks\n"
    wanted, _ = landmark_embedding(
        cloud(), asked(selection="kmeans++"), SolverParameters(tolerance=1e-3, null_tolerance=1e-10, seed=0)
    )
    np.testing.assert_array_equal(read_parquet(tmp_path / "y.parquet"), wanted)
