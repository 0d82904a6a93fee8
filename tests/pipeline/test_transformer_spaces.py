"""A suite of the quick suite's corpora with a pooled space, a flow and a trained encoder, run by DVC."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from pipeline.base.artifacts import read_record, read_table, read_vectors
from tests.checkout import make_checkout, repro, write_plans

pytest.importorskip("accelerate", reason="the trainer needs requirements-train.lock")
pytestmark = pytest.mark.slow

SPACES = ["minilm-mean-last", "minilm-mean-last-flow", "tiny-seed0"]
SUITE = {
    "suite": "quick",
    "source": "package",
    "corpora": ["lee"],
    "baseline": "minilm-mean-last",
    "spaces": SPACES,
}
TINY = {
    "base": "minilm",
    "seeds": [0],
    "data": {"train": "simlex", "dev": "wordsim", "pairs": 64, "scale": 10.0},
    "head": {"channels": 8, "kernels": [1, 3], "pooling": "max"},
    "loss": {"kind": "cosine-regression"},
    "trainer": {"epochs": 1, "evaluate_every": 2, "max_length": 32},
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_checkout(tmp_path_factory.mktemp("spaces") / "checkout")
    write_tiny(folder, TINY)
    (folder / "suite.yaml").write_text(yaml.safe_dump(SUITE), encoding="utf-8")
    write_plans(folder)
    ran = repro(folder)
    assert {"pool@lee-minilm", "postprocess@minilm-mean-last-flow", "train@tiny-seed0", "report"} <= ran
    assert {"download@simlex", "download@wordsim"} <= ran
    return folder


def write_tiny(folder: Path, block: dict[str, object]) -> None:
    content = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    content["trainings"] = {"tiny": block}
    (folder / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def test_a_trained_encoder_is_a_space_and_a_folder_that_plain_sentence_transformers_loads(checkout: Path) -> None:
    from sentence_transformers import SentenceTransformer

    path = checkout / "data/quick/spaces/tiny-seed0/lee.parquet"
    record, vectors = read_record(path, kind="vectors"), read_vectors(path)
    texts = read_table(checkout / "data/quick/corpora/lee/sentences.parquet", kind="sentences").column("text")
    plain = SentenceTransformer(str(checkout / "data/quick/models/tiny-seed0"), device="cpu")
    got = np.stack([plain.encode(text) for text in texts.to_pylist()[:5]])
    assert vectors.shape[1] == 16
    np.testing.assert_allclose(got, vectors[:5], atol=1e-5)  # other batches and threads
    assert record["parameters"]["trained_on"] == "simlex" and record["parameters"]["pairs"] == 64
    assert not list((checkout / ".sentfold/training").iterdir())


def test_the_report_has_the_rows_of_these_spaces(checkout: Path) -> None:
    similarity = (checkout / "reports/quick/tables/similarity.csv").read_text()
    assert all(space in similarity for space in SPACES)
    assert "tiny-seed0" in (checkout / "reports/quick/tables/trainings.csv").read_text()
    assert (checkout / "reports/quick/figures/trainings.svg").is_file()
    curve = json.loads((checkout / "reports/quick/sweeps/tiny-seed0-training/curve.json").read_text())
    assert [entry["step"] for entry in curve["curve"] if "spearman" in entry] == [2, 4]
    bits = read_record(checkout / "data/quick/spaces/minilm-mean-last-flow/lee.parquet", kind="vectors")["notes"]
    assert set(bits["bits_per_dimension"]) == {"first", "last"}


def test_an_edit_of_a_training_reruns_what_comes_from_it_and_nothing_else(checkout: Path) -> None:
    assert repro(checkout) == set()
    write_tiny(checkout, {**TINY, "loss": {"kind": "contrastive"}})
    write_plans(checkout)
    wanted = {"plan", "train@tiny-seed0", "embed_trained@lee-tiny-seed0", "evaluate@tiny-seed0", "report"}
    assert repro(checkout) == wanted
