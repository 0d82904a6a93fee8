"""Forged artifacts: their numbers are checked before a library takes them for rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from pipeline.base.artifacts import (
    corpus_path,
    fixed_lists,
    graph_path,
    space_path,
    weights_path,
    write_table,
    write_vectors,
)
from pipeline.base.cases import load_case
from pipeline.manifolds import read_source
from pipeline.searches import Part, PoolBlock, load_search, read_pairs
from pipeline.stages.eigensolve import eigensolve
from pipeline.stages.embed_trained import embed_trained
from pipeline.trainings import RECORD, model_path
from sentfold.errors import ArtifactError, ParameterError
from sentfold.manifold import lpp, npe, smooth
from sentfold.manifold.base.grid import read_grid
from sentfold.manifold.base.protocol import Source
from sentfold.manifold.solver.eigensolver import weight_matrix
from tests.checkout import ROOT

N, K = 60, 5
NEAR = ((np.arange(N)[:, None] + np.arange(1, K + 1)) % N).astype(np.int32)
BAD = (-1, N, N + 10, 2_000_000_000)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    content["manifolds"] = {"lp": {"method": "lle", "neighbors": K, "components": 3}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return tmp_path


def with_row(number: int) -> np.ndarray:
    """Neighbours of which one has another number."""
    rows = NEAR.copy()
    rows[3, 0] = number
    return rows


def write_weights(neighbors: np.ndarray, weights: np.ndarray) -> None:
    table = pa.table({"neighbor": fixed_lists(neighbors), "weight": fixed_lists(weights)})
    write_table(weights_path("s", "e-lp", "c"), table, kind="weights", parameters={})


@pytest.mark.parametrize("number", BAD)
def test_a_neighbour_that_is_no_row_ends_the_stage_eigensolve_with_an_error(folder: Path, number: int) -> None:
    write_weights(with_row(number), np.full((N, K), 1 / K))
    with pytest.raises(ArtifactError, match="no rows"):
        eigensolve("s", "e", "lp", ("c",))
    assert not space_path("s", "e-lp", "c").exists()


@pytest.mark.parametrize("weights", [np.full((N, K - 1), 0.25), np.full((N, K), np.nan), np.ones((N, K), np.int64)])
def test_weights_that_are_not_finite_or_too_few_are_refused(folder: Path, weights: np.ndarray) -> None:
    write_weights(NEAR, weights)
    with pytest.raises(ArtifactError, match="wrong numbers in 'weight'"):
        eigensolve("s", "e", "lp", ("c",))


@pytest.mark.parametrize("graph", [*map(with_row, BAD), NEAR[:-1]], ids=[*map(str, BAD), "too few rows"])
def test_a_graph_of_other_rows_is_refused(folder: Path, graph: np.ndarray) -> None:
    vectors = np.random.default_rng(0).standard_normal((N, 8), dtype=np.float32)
    inputs = [graph_path("s", "e", "c"), space_path("s", "e", "c")]
    write_vectors(inputs[1], vectors, parameters={})
    write_table(inputs[0], pa.table({"neighbor": fixed_lists(graph)}), kind="graph", parameters={})
    with pytest.raises(ArtifactError, match="no rows") as caught:
        read_source(inputs)
    assert str(inputs[0]) in caught.value.where


@pytest.mark.parametrize("number", BAD)
def test_the_library_refuses_such_a_graph_too(number: int) -> None:
    x, rows = np.random.default_rng(0).standard_normal((N, 8)), with_row(number)
    calls: list[Callable[[], Any]] = [
        lambda: weight_matrix(rows, np.full((N, K), 1 / K)),
        lambda: lpp.locality_preserving_map(x, rows, 3, heat=None),
        lambda: npe.neighborhood_preserving_map(x, rows, np.full((N, K), 1 / K), 3),
        lambda: smooth.embed(Source(x, rows), smooth.Settings()),
    ]
    for call in calls:
        with pytest.raises(ParameterError, match="do not fit the vectors"):
            call()


def write_corpus(rows: list[Any], *, documents: Any = None, texts: int = 3) -> None:
    items = {"row1": rows, "row2": [1] * len(rows), "split": ["test"] * len(rows), "relevance": [1] * len(rows)}
    notes = {} if documents is None else {"documents": documents}
    write_table(corpus_path("s", "c", "items"), pa.table(items), kind="items.similarity", parameters={}, notes=notes)
    sentences = pa.table({"text": [f"text {i}" for i in range(texts)]})
    write_table(corpus_path("s", "c", "sentences"), sentences, kind="sentences", parameters={}, notes={})
    write_vectors(space_path("s", "e", "c"), np.eye(texts, dtype=np.float32), parameters={})


@pytest.mark.parametrize("row", [-1, 3, None, 0.5, "0"])
def test_items_that_name_no_sentence_are_refused(folder: Path, row: Any) -> None:
    write_corpus([row, row])
    with pytest.raises(ArtifactError, match="items name what is no sentence"):
        load_case("s", "e", "c")
    with pytest.raises(ArtifactError, match="items name what is no sentence"):
        read_pairs("s", "c", PoolBlock(column="relevance", development=Part(corpus="c")))


@pytest.mark.parametrize("documents", [10**10, -1, "3", 4])
def test_more_documents_than_sentences_are_refused(folder: Path, documents: Any) -> None:
    block = PoolBlock(column="relevance", development=Part(corpus="c"))
    write_corpus([0, 0], documents=documents)
    with pytest.raises(ArtifactError, match="fewer sentences than documents"):
        read_pairs("s", "c", block)
    write_corpus([0, 0], documents=3)
    assert not isinstance(read_pairs("s", "c", block), str)


def test_a_line_of_lists_that_stands_for_a_million_settings_is_refused(folder: Path) -> None:
    content = yaml.safe_load(Path("params.yaml").read_text(encoding="utf-8"))
    content["searches"] = {"wide": {"method": "nnn", "neighbors": [*range(1, 1001)], "weight": [0.5] * 1000}}
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(ParameterError, match="a grid is too large"):
        load_search("wide")
    block = {"method": "lle-selected", "neighbors": [*range(1, 1001)], "components": [*range(1, 1001)]}
    with pytest.raises(ParameterError, match="a grid is too large"):
        read_grid(block, where="params.yaml")


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "{}", '{"base": {}, "pairs": "1"}'])
def test_a_record_of_a_training_that_no_stage_writes_is_refused(folder: Path, text: str) -> None:
    path = model_path("s", "t-seed0") / RECORD
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    write_corpus([0, 0])
    with pytest.raises(ArtifactError, match="the record of a training cannot be read"):
        embed_trained("s", "c", "t-seed0")
