"""The benchmark of GEM's hyper-parameters: at the published ones it scores what the stages score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from scipy.stats import pearsonr

from benchmarks import gem_sweep
from benchmarks.gem_sweep import draw, score, sweep
from pipeline.artifacts import corpus_path, read_vectors, space_path, write_table
from pipeline.encoders.encode import encode
from pipeline.words.vectors import word_vectors
from pipeline.words.vocabulary import vocabulary
from tests.checkout import ROOT
from tests.report.test_lase_sweep import SCORES, TEXTS

SETTINGS = {"window": 2, "candidates": 6, "removed": 3, "power": 3.0}
GEM: dict[str, Any] = {
    "vectors": "wordllama",
    "tokenizer": "wordpunct",
    "method": "gem",
    "counts": "own",
    "settings": SETTINGS,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve sentences with their words and one GEM space, made by the stages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gem_sweep, "BLOCKS", {"mine": ("words", "o-", "black")})
    monkeypatch.setattr(gem_sweep, "SWEEPS", {"window": [1, 2], "candidates": [6], "removed": [0, 3], "power": [3.0]})
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8")) | {"word_encoders": {"mine": GEM}}
    Path("params.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    texts = pa.table({"text": pa.array(TEXTS, pa.string())})
    write_table(
        corpus_path("mine", "stsb-dev", "sentences"),
        texts,
        kind="sentences",
        parameters={},
        notes={"task": "similarity"},
    )
    rows = pa.table({"row1": list(range(8)), "row2": list(range(1, 9)), "score": SCORES})
    write_table(corpus_path("mine", "stsb-dev", "items"), rows, kind="items.similarity", parameters={})
    vocabulary("mine", ("wordpunct",), ("stsb-dev",))
    word_vectors("mine", "wordllama", ("wordpunct",))
    encode("mine", "mine", ("stsb-dev",))


def test_the_settings_of_the_block_score_what_its_space_does() -> None:
    x = read_vectors(space_path("mine", "mine", "stsb-dev")).astype(np.float64)
    cosine = np.einsum("ij,ij->i", x[:8], x[1:9]) / np.linalg.norm(x[:8], axis=1) / np.linalg.norm(x[1:9], axis=1)
    wanted = 100 * pearsonr(cosine, SCORES).statistic
    assert score("mine", "stsb-dev", "mine", {}) == pytest.approx(wanted, abs=1e-3)
    assert score("mine", "stsb-dev", "mine", {"removed": 0}) != pytest.approx(wanted, abs=1e-3)


def test_every_value_is_a_row_and_a_point_of_the_figure() -> None:
    rows = list(sweep("mine"))
    assert [(row["parameter"], row["value"]) for row in rows] == [
        ("window", 1), ("window", 2), ("candidates", 6), ("removed", 0), ("removed", 3), ("power", 3.0),
    ]  # fmt: skip
    panels = draw(rows).axes
    drawn = {axes.get_xlabel(): list(axes.lines[0].get_xydata()[:, 1]) for axes in panels}
    for name, scores in drawn.items():
        assert scores == [row["score"] for row in rows if row["parameter"] == name]
