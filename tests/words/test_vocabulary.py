"""The vocabulary and the counts of a suite, counted by hand on six sentences."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from pipeline.base.artifacts import corpus_path, read_record, read_table, write_table
from pipeline.stages.vocabulary import count_words, vocabulary
from pipeline.stages.word_counts import read_published, word_counts
from pipeline.words.artifacts import COUNT_COLUMNS, counts_path, load_counts, vocabulary_path
from sentfold.errors import ParameterError, SourceError
from sentfold.files import sha256_of
from tests.words.conftest import CORPORA, TOKENIZERS, make_suite, write_params

pytestmark = pytest.mark.usefixtures("checkout")


def rows(tokenizer: str) -> list[tuple[str, int, int]]:
    table = read_table(vocabulary_path("mine", tokenizer), kind="vocabulary", columns=COUNT_COLUMNS)
    return list(zip(*(table.column(name).to_pylist() for name in ("word", "count", "rank")), strict=True))


def test_words_are_counted_over_distinct_sentences_the_most_frequent_first_then_by_word() -> None:
    assert [vocabulary("mine", tokenizer, CORPORA) for tokenizer in TOKENIZERS] == [14, 15]
    # The sentence that both corpora hold counts once: four "the", three "naps".
    assert rows("regex") == [
        ("the", 4, 1), ("naps", 3, 2), (",", 2, 3), (".", 2, 4), ("dog", 2, 5), ("nine", 2, 6), ("!", 1, 7),
        ("cat", 1, 8), ("falls", 1, 9), ("harbour", 1, 10), ("kettles", 1, 11), ("loaves", 1, 12), ("on", 1, 13),
        ("snow", 1, 14),
    ]  # fmt: skip
    assert rows("whitespace")[:3] == [("the", 3, 1), ("dog", 2, 2), ("naps", 2, 3)]
    notes = read_record(vocabulary_path("mine", "regex"), kind="vocabulary")["notes"]
    assert notes == {"rare": 0, "sentences": 5, "tokens": 23, "without": ["lost"]}


def test_rare_words_are_left_out_and_counted() -> None:
    write_params({"vocabulary": {"minimum_count": 2}})
    assert vocabulary("mine", "regex", CORPORA) == 6
    assert read_record(vocabulary_path("mine", "regex"), kind="vocabulary")["notes"]["rare"] == 8


def test_the_order_of_the_corpora_leaves_no_trace_in_the_words() -> None:
    vocabulary("mine", "regex", CORPORA)
    straight = rows("regex")
    vocabulary("mine", "regex", tuple(reversed(CORPORA)))
    assert rows("regex") == straight


def test_a_second_run_writes_the_same_bytes() -> None:
    digests = []
    for _ in range(2):
        vocabulary("mine", "regex", CORPORA)
        digests.append(sha256_of(vocabulary_path("mine", "regex")))
    assert digests[0] == digests[1]


def test_a_suite_without_words_is_refused() -> None:
    write_params({"vocabulary": {"minimum_count": 5}})
    with pytest.raises(ParameterError) as caught:
        vocabulary("mine", "regex", CORPORA)
    assert "14 words" in str(caught.value)
    assert not vocabulary_path("mine", "regex").exists()


def test_words_of_one_count_are_in_the_order_of_code_points() -> None:
    assert count_words([["b", "é", "a"], ["Z", "b"]])[0] == ["b", "Z", "a", "é"]


# --- counts -----------------------------------------------------------------------------------------


def test_own_counts_are_those_of_each_tokeniser() -> None:
    suite = make_suite()
    for tokenizer, words in zip(TOKENIZERS, (14, 15), strict=True):
        vocabulary("mine", tokenizer, CORPORA)
        assert word_counts(suite, tokenizer) == words
        assert (
            load_counts("mine", tokenizer).of(["the", "cat", "dog."]).tolist()
            == load_counts("mine", tokenizer, "own").of(["the", "cat", "dog."]).tolist()
        )
    assert load_counts("mine", "regex").of(["the", "cat", "pig"]).tolist() == [4, 1, 0]


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    (folder / "word_freq").mkdir(parents=True)
    monkeypatch.setenv("SENTFOLD_MIRROR", str(folder))
    return folder / "word_freq" / "enwiki.parquet"


def write_enwiki(path: Path, *, rows: int = 188_033) -> None:
    words = ["the", "of", "of", *(f"w{row}" for row in range(rows - 3))]
    pl.DataFrame({"word": words, "count": [1000, 300, 200] + [7] * (rows - 3)}).write_parquet(path)


def test_counts_of_english_wikipedia_are_read_whole_from_the_mirror(mirror: Path) -> None:
    suite = make_suite(source="mirror", counts="enwiki")
    write_enwiki(mirror)
    for tokenizer in TOKENIZERS:
        vocabulary("mine", tokenizer, CORPORA)
        assert word_counts(suite, tokenizer) == 188_032
    counts = load_counts("mine", "regex")
    # A word that stands twice is one word, counted together.
    assert counts.of(["of", "the", "dog"]).tolist() == [500, 1000, 0]
    assert counts.total == 1500 + 7 * 188_030
    record = read_record(counts_path("mine", "regex"), kind="counts")
    assert record["notes"]["files"] == {"word_freq/enwiki.parquet": sha256_of(mirror)}
    # What a suite counts itself is still there under its own name.
    assert load_counts("mine", "regex", "own").of(["the"]).tolist() == [4]


def test_a_mirror_without_counts_says_what_to_write_instead(mirror: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read_published(make_suite(source="mirror", counts="enwiki"))
    assert "word_freq/enwiki.parquet" in str(caught.value)
    assert "skip_missing" in str(caught.value) or "counts: own" in str(caught.value)


def test_counts_of_another_number_of_words_are_refused(mirror: Path) -> None:
    write_enwiki(mirror, rows=100)
    with pytest.raises(SourceError) as caught:
        read_published(make_suite(source="mirror", counts="enwiki"))
    assert "188033" in str(caught.value)


def test_a_count_below_one_is_refused(mirror: Path) -> None:
    pl.DataFrame({"word": [f"w{row}" for row in range(188_033)], "count": [0] * 188_033}).write_parquet(mirror)
    with pytest.raises(SourceError, match="less than once"):
        read_published(make_suite(source="mirror", counts="enwiki"))


def test_counts_whose_sum_float64_cannot_hold_are_refused(mirror: Path) -> None:
    words = [f"w{row}" for row in range(188_033)]
    pl.DataFrame({"word": words, "count": [2**62] * 3 + [7] * 188_030}).write_parquet(mirror)
    with pytest.raises(SourceError, match="too large"):
        read_published(make_suite(source="mirror", counts="enwiki"))


def test_a_corpus_of_another_kind_is_refused() -> None:
    path = corpus_path("mine", "harbour", "sentences")
    write_table(path, pa.table({"text": ["a"]}), kind="items.similarity", parameters={})
    with pytest.raises(Exception, match="another kind"):
        vocabulary("mine", "regex", CORPORA)
