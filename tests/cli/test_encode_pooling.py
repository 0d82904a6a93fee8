"""`sentfold encode` by a transformer: --pooling reads a folder without modules.json, --bfloat16 computes in 16 bits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sentfold.cli import encode
from sentfold.cli.encode import name_inputs
from sentfold.decision.encoders import encode_by_name
from sentfold.errors import ParameterError
from sentfold.poolings.by_name import encode_by_pooling
from tests.tiny_bert import write_bert

LINES = ["the dog naps", "", "a cat sat on the quiet harbour", "  ", "snow falls"]


@pytest.mark.slow
def test_the_command_writes_one_vector_per_line_blank_lines_included(tmp_path: Path) -> None:
    folder, texts, out = write_bert(tmp_path / "bert"), tmp_path / "texts.txt", tmp_path / "out.parquet"
    texts.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    code = "from sentfold.cli.main import main; main()"
    options = ["--pooling", "sbert-wk", "--layer-start", "3", "--window", "1", "--max-length", "9"]
    words = ["encode", str(texts), "--encoder", str(folder), *options, "--out", str(out)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "blank: 2" in done.stdout
    table = pq.read_table(out)
    got = np.array(table.column("vector").to_pylist(), dtype=np.float32)
    wanted = encode_by_pooling(
        LINES, encoder=str(folder), pooling="sbert-wk", max_length=9, layer_start=3, window=1
    ).vectors
    assert table.column("text").to_pylist() == LINES and len(got) == len(LINES)
    np.testing.assert_allclose(got, wanted, atol=1e-6)  # the same computation in another process
    record = json.loads(table.schema.metadata[b"sentfold encode"])
    assert record["pooling"] == "sbert-wk" and (record["layer_start"], record["window"], record["max_length"]) == (
        3,
        1,
        9,
    )


def test_encoder_source_and_target_are_named_in_one_of_two_ways() -> None:
    wanted = ("sif", Path("s.txt"), Path("o.parquet"))
    assert name_inputs("sif", Path("s.txt"), Path("o.parquet"), None, None) == wanted
    assert name_inputs("s.txt", None, None, "sif", Path("o.parquet")) == wanted


@pytest.mark.parametrize(
    ("source", "target", "by", "out"),
    [(None, None, None, None), ("s", None, None, None), ("s", "t", "sif", None), (None, None, "sif", None),
     (None, None, None, "o"), ("s", None, "sif", "o")],
)  # fmt: skip
def test_any_other_way_to_name_them_is_refused(
    source: str | None, target: str | None, by: str | None, out: str | None
) -> None:
    paths = [None if word is None else Path(word) for word in (source, target, out)]
    with pytest.raises(ParameterError, match="--encoder NAME --out FILE"):
        name_inputs("x", paths[0], paths[1], by, paths[2])


def test_vectors_in_bfloat16_are_those_of_float32_but_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "processor_flags", lambda: encode.BFLOAT16)  # others compute it too, more slowly
    encode.check_bfloat16(whole_model=True)
    texts = [line for line in LINES if line.strip()]
    plain = encode_by_name("all-MiniLM-L6-v2", texts).vectors
    with encode.in_bfloat16():
        rounded = encode_by_name("all-MiniLM-L6-v2", texts).vectors
    assert rounded.dtype == np.float32 and (rounded != plain).any()
    np.testing.assert_allclose((rounded * plain).sum(axis=1), np.linalg.norm(rounded, axis=1), rtol=1e-3)


@pytest.mark.parametrize(("flags", "whole", "says"), [((), True, "slower"), (encode.BFLOAT16, False, "transformer")])
def test_bfloat16_is_refused_where_it_cannot_help(
    flags: tuple[str, ...], whole: bool, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "processor_flags", lambda: frozenset(flags))
    with pytest.raises(ParameterError, match=says):
        encode.check_bfloat16(whole_model=whole)


@pytest.mark.parametrize(
    ("encoder", "options", "named"),
    [
        ("all-MiniLM-L6-v2", {"max_length": 512}, "--max-length"), ("all-MiniLM-L6-v2", {"settings": ["a=1"]}, "--set"),
        ("all-MiniLM-L6-v2", {"fit_on": Path("none.txt"), "counts": Path("none.parquet")}, "--fit-on, --counts"),
        ("sif", {"layer_start": 9}, "--layer-start"), ("bert", {"pooling": "mean", "words": "w.parquet"}, "--words"),
    ],
)  # fmt: skip
def test_options_that_have_no_effect_are_refused(
    encoder: str, options: dict[str, Any], named: str, tmp_path: Path
) -> None:
    (tmp_path / "s.txt").write_text("the dog naps\n")
    with pytest.raises(ParameterError, match="has no effect") as refused:
        encode.command(encoder, tmp_path / "s.txt", tmp_path / "v.parquet", **options)
    assert refused.value.where == named
    assert not (tmp_path / "v.parquet").exists()
