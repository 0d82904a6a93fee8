"""The packaged corpora against what was published of them, and the cutting and numbering of sentences."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.base.artifacts import corpus_path, read_record, read_table
from pipeline.corpora.catalogue import Dataset, PackageFiles, find_corpus
from pipeline.corpora.package import _locate as locate_package
from pipeline.corpora.package import read_split, split_sentences
from pipeline.corpora.sources import read_split as read_from_any
from pipeline.stages.download import Download, download, number_sentences
from sentfold.errors import SourceError
from sentfold.files import sha256_of
from sentfold.words.vectors import WordVectorParameters
from sentfold.words.wordllama import token_means
from tests.checkout import make_suite

SUITE = make_suite(suite="quick", source="package", skip_missing=False, corpora=("lee",))

# Corpus -> items and what is written of it: Lee, Pincombe & Welsh 2005 (50 texts, all pairs); Pang & Lee 2004
# (a balanced sample of 200); Hill, Reichart & Korhonen 2015 (999 pairs); Finkelstein et al. 2002 (353 pairs).
PUBLISHED = {"lee": 50 * 49 // 2, "polarity": 200, "simlex": 999, "wordsim": 353, "happy": 6}


def test_data(name: str) -> Path:
    spec = find_spec("gensim")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "test" / "test_data" / name


test_data.__test__ = False  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Download]:
    """Every packaged corpus, written to a folder that is the working directory of the module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("checkout"))
        yield {corpus: download(corpus, SUITE) for corpus in PUBLISHED}


def sentences(corpus: str) -> list[str]:
    table = read_table(corpus_path("quick", corpus, "sentences"), kind="sentences", columns={"text": pa.string()})
    return table.column("text").to_pylist()


def items(corpus: str, task: str) -> dict[str, Any]:
    return read_table(corpus_path("quick", corpus, "items"), kind=f"items.{task}").to_pydict()


@pytest.mark.parametrize("corpus", PUBLISHED)
def test_a_packaged_corpus_has_its_published_size(downloads: dict[str, Download], corpus: str) -> None:
    assert downloads[corpus].items == PUBLISHED[corpus]
    texts = sentences(corpus)
    assert downloads[corpus].sentences == len(texts) == len(set(texts))
    assert downloads[corpus].absent is None


def test_lee_is_every_pair_of_fifty_texts(downloads: dict[str, Download]) -> None:
    lee = items("lee", "similarity")
    assert sorted(zip(lee["row1"], lee["row2"], strict=True)) == [(i, j) for i in range(50) for j in range(i + 1, 50)]


def test_lee_has_the_human_ratings_of_the_published_matrix(downloads: dict[str, Download]) -> None:
    matrix = np.loadtxt(test_data("similarities0-1.txt"))
    assert matrix.shape == (50, 50)
    # The release fills the upper half only, so a pair read from the lower half would be rated 0.
    np.testing.assert_array_equal(matrix, np.triu(matrix))
    np.testing.assert_array_equal(np.diag(matrix), 1)
    lee = items("lee", "similarity")
    rated = np.zeros((50, 50))
    rated[lee["row1"], lee["row2"]] = lee["score"]
    np.testing.assert_array_equal(rated + np.eye(50), matrix)
    assert 0 < min(lee["score"]) < max(lee["score"]) <= 1


def test_the_texts_of_lee_come_first_and_the_background_behind_them(downloads: dict[str, Download]) -> None:
    texts = sentences("lee")
    documents = test_data("lee.cor").read_text(encoding="utf-8", errors="replace").splitlines()
    assert texts[:50] == [line for line in documents if line.strip()]
    background = " ".join(test_data("lee_background.cor").read_text(encoding="utf-8").split())
    rest = texts[50:]
    assert len(rest) > 300  # more sentences than texts
    assert all(" ".join(text.split()) in background for text in rest)
    # Nothing of the background is lost: every word of it is in some sentence.
    assert set(background.split()) <= {word for text in texts for word in text.split()}


def test_polarity_is_balanced(downloads: dict[str, Download]) -> None:
    polarity = items("polarity", "classification")
    assert np.bincount(polarity["label"]).tolist() == [100, 100]
    assert not any("__label__" in text for text in sentences("polarity"))


def test_word_pairs_keep_their_words_and_ratings(downloads: dict[str, Download]) -> None:
    # The first pair of each release, as printed on its home page.
    for corpus, pair in (("simlex", ("old", "new", 1.58)), ("wordsim", ("love", "sex", 6.77))):
        texts, pairs = sentences(corpus), items(corpus, "similarity")
        assert (texts[pairs["row1"][0]], texts[pairs["row2"][0]], pairs["score"][0]) == pair
        assert 0 <= min(pairs["score"]) < max(pairs["score"]) <= 10
        assert not any("\t" in text or text.startswith("#") for text in texts)


@pytest.mark.parametrize("corpus", PUBLISHED)
def test_a_corpus_records_what_it_was_read_from(downloads: dict[str, Download], corpus: str) -> None:
    notes = read_record(corpus_path("quick", corpus, "sentences"), kind="sentences")["notes"]
    assert notes["source"] == ("inline" if corpus == "happy" else "package")
    for name, digest in notes["files"].items():
        package, _, file = name.partition("/")
        assert package == "gensim"
        assert sha256_of(test_data(file)) == digest
    assert bool(notes["files"]) == (corpus != "happy")
    # lee.cor has one pound sign in Latin-1; every replacement stands where a reader can see it.
    assert notes["replaced_characters"] == sum(sentence.count("\ufffd") for sentence in sentences(corpus))
    assert (notes["replaced_characters"] == 1) == (corpus == "lee")


def packaged(**changes: Any) -> Dataset:
    place = {"package": "gensim", "folder": "test/test_data", "files": ("simlex999.txt",), "reader": "word_pairs"}
    whole = {"task": "similarity", "title": "Pairs", "citation": "none", "licence": "none", "splits": {"all": 999}}
    return Dataset.model_validate({**whole, "corpora": {"pairs": ("all",)}, "package": {**place, **changes}})


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"package": "no_such_package"}, "'no_such_package' is not installed"),
        ({"files": ("no-such-file.txt",)}, "lacks 'no-such-file.txt'"),
        ({"reader": "guess"}, "no reader called 'guess'"),
    ],
)
def test_what_no_package_holds_is_refused_by_its_name(changes: dict[str, Any], what: str) -> None:
    assert len(read_split("pairs", packaged(), "all").frame) == 999
    with pytest.raises(SourceError, match=what):
        read_split("pairs", packaged(**changes), "all")


def test_bytes_that_are_no_text_are_replaced_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A package of this test's own, found the way every installed package is.
    package = tmp_path / "sentfold_test_words"
    package.mkdir()
    (package / "__init__.py").touch()
    # Latin-1 for café, and a Windows dash: neither is valid UTF-8. The é of the second line is.
    (package / "pairs.txt").write_bytes(b"caf\xe9\ttea \x96 black\t1.5\n" + "thé\ttea\t9.0\n".encode())
    monkeypatch.syspath_prepend(tmp_path)
    dataset = packaged(package="sentfold_test_words", folder=".", files=("pairs.txt",))
    reading = read_split("pairs", dataset, "all")
    assert reading.frame["sentence1"].to_list() == ["caf\ufffd", "thé"]
    assert reading.frame["sentence2"].to_list() == ["tea \ufffd black", "tea"]
    assert reading.replaced == 2


@pytest.mark.parametrize("source", ["package", "mirror", "hub"])
def test_a_packaged_corpus_needs_no_network_whatever_the_suite_says(source: str) -> None:
    happy = find_corpus("happy")
    assert read_from_any("happy", happy.dataset, "all", source=source).source == "inline"


# --- sentences --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("The kettle boils. Tea is ready.", ["The kettle boils.", "Tea is ready."]),
        ("Is it late? It is! Go home.", ["Is it late?", "It is!", "Go home."]),
        ("It cost 3.50 dollars at 9.15 a.m. on Monday.", ["It cost 3.50 dollars at 9.15 a.m. on Monday."]),
        ("No end here", ["No end here"]),
        ("He waits...  She leaves.", ["He waits...", "She leaves."]),
        ("One line.\nAnother line.", ["One line.", "Another line."]),
        ('They met. "Good," she said.', ["They met.", '"Good," she said.']),
        ("  Padded.  ", ["Padded."]),
        ("", []),
        (" \t ", []),
    ],
)
def test_a_paragraph_is_cut_where_a_reader_would_cut_it(text: str, cut: list[str]) -> None:
    assert split_sentences(text) == cut


def test_a_closing_quote_stays_with_its_sentence() -> None:
    assert split_sentences('He said "Stop." Then he left.') == ['He said "Stop."', "Then he left."]


@given(st.text(st.sampled_from("Ab c.?!\"')(\n1"), max_size=60))
def test_cutting_loses_only_blanks_and_leaves_no_blank_sentence(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece == piece.strip() != "" for piece in pieces)


# --- numbering --------------------------------------------------------------------------------------

TEXT = st.text(st.sampled_from("ab é"), max_size=3)
COLUMNS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[TEXT] * width), max_size=20).map(
        lambda rows: [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]
    )
)


@given(columns=COLUMNS, further=st.lists(TEXT, max_size=10))
def test_every_row_points_back_at_its_text(columns: list[list[str]], further: list[str]) -> None:
    texts, rows = number_sentences(columns, further)
    assert [[texts[row] for row in numbers] for numbers in rows] == columns
    assert all(numbers.dtype == np.int32 for numbers in rows)


@given(columns=COLUMNS, further=st.lists(TEXT, max_size=10))
def test_each_text_stands_once_in_the_order_of_its_first_appearance(
    columns: list[list[str]], further: list[str]
) -> None:
    texts, _ = number_sentences(columns, further)
    seen = [text for item in zip(*columns, strict=True) for text in item] + further
    assert len(texts) == len(set(texts))
    assert set(texts) == set(seen)
    places = [seen.index(text) for text in texts]
    assert places == sorted(places)


@pytest.mark.parametrize("block", ["catalogue", "word vectors"])
def test_a_package_that_is_named_with_dots_is_refused_and_its_code_never_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    code = tmp_path / "stranger"
    code.mkdir()
    (code / "__init__.py").write_text("raise SystemExit('the code of a stranger runs')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValidationError, match="pattern"):
        if block == "catalogue":
            files = {"package": "stranger.data", "folder": ".", "files": ("a",), "reader": "word_pairs"}
            locate_package(PackageFiles.model_validate(files))
        else:
            place = WordVectorParameters.model_validate({"package": "stranger.data"})
            token_means(["a"], package=str(place.package), sha256=None)
