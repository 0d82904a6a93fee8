"""The benchmark of LASE's number of clusters: its scores are those of the spaces that the stages make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from benchmarks import lase_sweep
from benchmarks.lase_sweep import CORPUS, SEEDS, Task, describe, draw, sweep, sweep_equal
from pipeline.base.artifacts import corpus_path, read_vectors, space_path, write_table
from pipeline.stages.cluster_words import cluster_words
from pipeline.stages.encode import encode
from pipeline.stages.vocabulary import vocabulary
from pipeline.stages.word_vectors import word_vectors
from tests.checkout import ROOT

TEXTS = [
    "How old are you", "What is your age", "My phone is good", "Your cellphone looks great", "A cat sat on the mat",
    "The dog ran over that hill", "In the harbour lies a ship", "An old boat is near the pier", "You sing well",
    "Snow falls in the north", "Rain fell on every street", "He sold a car to them",
]  # fmt: skip
SCORES = [5.0, 4.5, 2.0, 3.5, 0.5, 3.0, 1.0, 1.5]
BASE: dict[str, Any] = {"vectors": "wordllama", "tokenizer": "regex"}
KMEANS = {"restarts": 1, "iterations": 50, "tolerance": 1e-4}
CLUSTERING = {
    **BASE, "kmeans": KMEANS, "sizes": [4, 6, 9], "seeds": [0], "centroids": "mean",
    "controls": ["random", "frequency"],
}  # fmt: skip
LASE = {**BASE, "method": "lase", "counts": "own", "clusters": {"clustering": "lase-kmeans", "size": 6, "seed": 0}}


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Twelve sentences with their words, clusters and one LASE space, made by the stages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lase_sweep, "CLUSTERINGS", {"lase-kmeans": "k-means"})
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    content |= {"clusterings": {"lase-kmeans": CLUSTERING}, "word_encoders": {"mine": LASE}}
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    sentences = pa.table({"text": pa.array(TEXTS, pa.string())})
    write_table(
        corpus_path("mine", CORPUS, "sentences"),
        sentences,
        kind="sentences",
        parameters={},
        notes={"task": "similarity"},
    )
    rows = {"row1": list(range(8)), "row2": list(range(1, 9)), "score": SCORES}
    write_table(corpus_path("mine", CORPUS, "items"), pa.table(rows), kind="items.similarity", parameters={})
    vocabulary("mine", "regex", (CORPUS,))
    word_vectors("mine", "wordllama", ("regex",))
    cluster_words("mine", "lase-kmeans")
    encode("mine", "mine", (CORPUS,))
    return Task("mine", "mine")


def test_the_score_at_the_size_of_a_space_is_that_spaces_own(task: Task) -> None:
    rows = list(sweep(task))
    assert [(row["clusterer"], row["clusters"]) for row in rows] == [("k-means", 6), ("k-means", 9)]  # 4 is too few
    x = read_vectors(space_path("mine", "mine", CORPUS)).astype(np.float64)
    left, right = x[0:8], x[1:9]
    cosine = (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
    assert rows[0]["found"] == round(100 * spearmanr(cosine, SCORES).statistic, 2)


def test_every_row_has_its_controls_and_is_drawn(task: Task) -> None:
    rows = [*sweep(task), *sweep_equal(task, [6, 9])]
    assert all(len(row["random"]) == len(SEEDS) for row in rows)
    # Words dealt anew by each seed: the same scores every time would be one partition five times.
    assert all(len(set(row["random"])) > 1 for row in rows)
    assert all(str(row["clusters"]) in describe(row) for row in rows)
    assert list(sweep_equal(task, [6])) == [row for row in rows if (row["clusterer"], row["clusters"]) == ("none", 6)]
    assert isinstance(draw(rows), Figure)
