"""`sentfold threshold` and `sentfold compress` on files: same bytes, same record; errors name the option."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_main import sentfold


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 6, 300)
    left = rng.normal(size=(300, 16))
    right = grades[:, None] / 5 * left + rng.normal(size=(300, 16))
    np.save(tmp_path / "v.npy", np.concatenate([left, right]).astype(np.float32))
    rows = [f"text {row} on the left\ttext {row} on the right\t{grade}" for row, grade in enumerate(grades)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")
    return tmp_path


def test_the_same_files_give_the_same_record_and_it_names_their_hashes(folder: Path) -> None:
    for name in ("first", "second"):
        words = ("pairs.tsv", "--vectors", "v.npy", "--to")
        done = sentfold("threshold", *words, f"{name}.json", "--match-from", "4", folder=folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("From cosine 0.")
        done = sentfold("compress", *words, name, folder=folder)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) <= 12
    assert (folder / "first.json").read_bytes() == (folder / "second.json").read_bytes()
    assert (folder / "first/verdict.json").read_bytes() == (folder / "second/verdict.json").read_bytes()
    assert set(json.loads((folder / "first/verdict.json").read_text())["inputs"]) == {"pairs.tsv", "v.npy"}


def test_graded_scores_without_a_border_are_refused_before_anything_is_encoded(folder: Path) -> None:
    done = sentfold("threshold", "pairs.tsv", "--encoder", "no-such-model", "--to", "out.json", folder=folder)
    assert done.returncode == 2
    assert "--match-from" in done.stderr
    assert not (folder / "out.json").exists()
