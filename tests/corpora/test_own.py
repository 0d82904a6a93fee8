"""A suite's own corpus: described in the suite's folder, read from its CSV, by no edit of the shared catalogue."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
import yaml

from pipeline.base.artifacts import corpus_path, read_record, read_table
from pipeline.corpora.catalogue import find_corpus
from pipeline.plan import write_plan
from pipeline.stages.download import download
from sentfold.errors import SourceError
from sentfold.files import sha256_of
from tests.checkout import ROOT, make_suite

SUITE = make_suite(suite="mine", corpora=("pairs",), spaces=("minilm",))
TEXTS = ['He said "no", twice', "two\nlines", "a, b; c\td", "café", " blanks ", "0012", "null", "two\nlines"]
SCORES = [0.0, 1.5, 1e-7, 0.1]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout's suite with four pairs of its own; the path of the CSV."""
    monkeypatch.chdir(tmp_path)
    path = Path("suites/mine/pairs/all.csv")
    path.parent.mkdir(parents=True)
    frame = {"sentence1": TEXTS[:4], "sentence2": TEXTS[4:], "score": SCORES, "subset": ["", "a", "", "a"]}
    pl.DataFrame(frame).write_csv(path)
    entry = {
        "task": "similarity", "title": "t", "citation": "c", "licence": "l", "splits": {"all": 4},
        "corpora": {"pairs": ["all"]}, "folder": "suites/mine/pairs",
    }  # fmt: skip
    Path("suites/mine/catalogue.yaml").write_text(yaml.safe_dump({"pairs": entry}))
    return path


def test_the_artifact_of_an_own_corpus_has_the_texts_and_scores_of_the_file_and_its_sha256(own: Path) -> None:
    done = download("pairs", SUITE)
    assert (done.sentences, done.items) == (7, 4)
    sentences = read_table(corpus_path("mine", "pairs", "sentences"), kind="sentences").column("text").to_pylist()
    items = read_table(corpus_path("mine", "pairs", "items"), kind="items.similarity")
    assert [sentences[row] for row in items.column("row1").to_pylist()] == TEXTS[:4]
    assert [sentences[row] for row in items.column("row2").to_pylist()] == TEXTS[4:]
    assert items.column("score").to_pylist() == SCORES
    notes = read_record(corpus_path("mine", "pairs", "items"), kind="items.similarity")["notes"]
    assert (notes["source"], notes["files"]) == ("own", {str(own): sha256_of(own)})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("sentence1,sentence2,score,subset\na,b,1,\nc,d,,\ne,f,1,\ng,h,2,\n", "wrong type"),
        ("sentence1,sentence2,score,subset\na,b,1,\n", "wrong number of items"),
        ("sentence1,score,subset\na,1,\nc,1,\ne,1,\ng,2,\n", "sentence2 missing"),
        ("", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_an_own_file_that_was_spoilt_is_refused_and_nothing_is_written(
    own: Path, content: str | None, says: str
) -> None:
    own.unlink() if content is None else own.write_text(content)
    with pytest.raises(SourceError, match=says) as raised:
        download("pairs", SUITE)
    assert "suites/mine/pairs" in str(raised.value) or "pairs (all)" in str(raised.value)
    assert not Path("data").exists()


def test_a_pipe_or_a_device_in_place_of_an_own_file_is_refused_and_not_waited_for(own: Path) -> None:
    for put in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        own.unlink()
        put(own)
        with pytest.raises(SourceError, match=r"(?s)cannot be read.*not a regular file"):
            download("pairs", SUITE)


def test_an_own_corpus_is_no_other_suites(own: Path) -> None:
    assert find_corpus("pairs", "mine").catalogue == "suites/mine/catalogue.yaml"
    assert find_corpus("stsb", "mine").catalogue == "pipeline/catalogue.yaml"
    with pytest.raises(SourceError, match="no corpus 'pairs'"):
        find_corpus("pairs")


def test_the_plan_lets_a_download_depend_on_the_suites_own_block_and_files(own: Path) -> None:
    Path("params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    Path("suites/mine/suite.yaml").write_text(
        "{suite: mine, source: package, corpora: [pairs, lee], spaces: [minilm]}\n"
    )
    stages = yaml.safe_load(write_plan("mine").read_text())["stages"]["download"]
    assert stages == {
        "pairs": {"dataset": "pairs", "catalogue": "suites/mine/catalogue.yaml", "reads": "suites/mine/pairs"},
        "lee": {"dataset": "lee", "catalogue": "pipeline/catalogue.yaml", "reads": "data/mine/plan"},
    }


HEADER = b"sentence1,sentence2,score,subset\n"
ROWS = b"a,b,1,\nc,d,1,\ne,f,1,\ng,h,2,\n"


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, zlib.compress, lambda content: pa.compress(content, "zstd", asbytes=True)],
    ids=["gz", "zlib", "zstd"],
)
def test_an_own_file_that_is_packed_is_refused_and_not_unpacked(own: Path, pack: Callable[[bytes], bytes]) -> None:
    own.write_bytes(pack(HEADER + ROWS))
    with pytest.raises(SourceError):
        download("pairs", SUITE)


@pytest.mark.parametrize("row", [b"x\n", b"\n"], ids=["a cell", "nothing"])
def test_an_own_file_whose_short_rows_would_be_filled_up_to_gigabytes_is_refused(own: Path, row: bytes) -> None:
    own.write_bytes(HEADER.strip() + b",c" * 20_000 + b"\n" + row * 30_000)
    assert own.stat().st_size < 200_000
    with pytest.raises(SourceError, match="leave out most of their columns"):
        download("pairs", SUITE)


def test_an_own_file_with_a_byte_order_mark_is_read(own: Path) -> None:
    own.write_bytes(codecs.BOM_UTF8 + HEADER + ROWS)
    assert download("pairs", SUITE).items == 4
