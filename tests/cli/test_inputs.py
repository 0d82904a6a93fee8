"""Word encoders named on the command line: they are fitted on the given texts, from word vectors of any form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sentfold import SIF
from sentfold.cli.inputs import read_inputs
from sentfold.data.tables import DataError
from sentfold.errors import ParameterError

WORDS = {word: np.random.default_rng(place).normal(size=6).round(3) for place, word in enumerate("abcdefgh")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        f"{left},{right},{place}" for place, (left, right) in enumerate([("A b.", "c"), ("d e", "f g"), ("h", "a")])
    ]
    (tmp_path / "pairs.csv").write_text("left,right,score\n" + "\n".join(rows) + "\n")
    columns = {"word": list(WORDS), "vector": [vector.tolist() for vector in WORDS.values()]}
    parquet.write_table(pa.table(columns), tmp_path / "words.parquet")
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in WORDS.items()]
    (tmp_path / "words.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "words.vec").write_text("\n".join(["8 6", *lines]) + "\n")
    return tmp_path


@pytest.mark.parametrize("name", ["words.parquet", "words.txt", "words.vec"])
def test_a_method_is_fitted_on_the_texts_and_says_so(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = read_inputs(folder / "pairs.csv", None, "sif", None, str(folder / name))
    texts = list(read.data.texts)
    assert read.vectors == pytest.approx(SIF(WORDS).fit(texts).encode(texts), abs=1e-6)
    assert "sif is fitted on these 6 texts, without their labels" in capsys.readouterr().err
    assert read.hashes["encoder"] == "sif"
    assert set(read.hashes) == {"encoder", "pairs.csv", name}
    assert read.fitted is not None and read.fitted.sha256 == read.hashes[name]


def test_a_method_that_needs_clusters_says_which_command_has_them(folder: Path) -> None:
    with pytest.raises(ParameterError, match=r"sentfold encode s3e .* --clusters"):
        read_inputs(folder / "pairs.csv", None, "s3e", None, str(folder / "words.parquet"))


def test_vectors_of_an_encoder_are_checked_as_those_of_a_file_are(folder: Path) -> None:
    """Word vectors that no text has a word of give zeros, of which a verdict was made."""
    parquet.write_table(pa.table({"word": ["z", "y"], "vector": [[1.0, 2.0], [2.0, 1.0]]}), folder / "other.parquet")
    with pytest.raises(DataError, match="all vectors are equal"):
        read_inputs(folder / "pairs.csv", None, "average", None, str(folder / "other.parquet"))
