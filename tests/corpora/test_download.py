"""The download stage against a mirror folder: what is right is written, anything else leaves nothing."""

from __future__ import annotations

import os
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from pipeline.base.artifacts import absence, corpus_path, read_record, read_table
from pipeline.corpora.catalogue import Corpus, Dataset
from pipeline.corpora.mirror import pin_files
from pipeline.corpora.mirror import read_split as read_mirror
from pipeline.corpora.reading import MissingError, Reading, check_columns, frame_of_parquet
from pipeline.corpora.sources import read_checked
from pipeline.stages.download import Download, download, write_corpus
from sentfold.errors import ArtifactError, SentfoldError, SourceError
from sentfold.files import sha256_of
from tests.checkout import make_suite

SUITE = make_suite(suite="mine", source="mirror", skip_missing=False, corpora=("stsb",))

TEXTS = ["The kettle boils.", "Water is boiling.", "A dog naps on the porch.", "The café opens at nine.", "Snow fell."]


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty mirror folder; the working directory is an empty checkout beside it."""
    folder, checkout = tmp_path / "mirror", tmp_path / "checkout"
    folder.mkdir()
    checkout.mkdir()
    monkeypatch.setenv("SENTFOLD_MIRROR", str(folder))
    monkeypatch.chdir(checkout)
    return folder


def pairs(count: int, **columns: Any) -> pl.DataFrame:
    """`count` rated pairs over five texts."""
    numbers = range(count)
    frame = {
        "sentence1": [TEXTS[i % 5] for i in numbers],
        "sentence2": [TEXTS[(i * i + 1) % 5] for i in numbers],
        "score": [i % 6 * 1.0 for i in numbers],
        "subset": ["news" if i % 2 else "forum" for i in numbers],
    }
    return pl.DataFrame(frame | columns)


def put(mirror: Path, name: str, frame: pl.DataFrame) -> Path:
    path = mirror / name
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path)
    return path


def corpus_of(task: str = "similarity", *, splits: dict[str, int], **changes: Any) -> Corpus:
    dataset = Dataset.model_validate(
        {
            "task": task,
            "title": "Pairs",
            "citation": "made for this test",
            "licence": "none needed",
            "splits": splits,
            "corpora": {"pairs": tuple(splits)},
            **changes,
        }
    )
    return Corpus(slug="pairs", dataset_name="pairs", dataset=dataset, splits=tuple(splits))


def fetch(corpus: Corpus) -> Download:
    return write_corpus(
        "mine", corpus, {split: read_checked(corpus, split, source="mirror") for split in corpus.splits}
    )


def nothing_was_written() -> bool:
    return list(Path().iterdir()) == []


# --- what is right ----------------------------------------------------------------------------------


def test_the_documents_of_a_collection_are_its_first_sentences_and_each_text_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query of the second judgement is a document too, and both splits bring the whole collection."""
    monkeypatch.chdir(tmp_path)
    collection = ("a", "b", "a", "c")
    rows = {
        "test": {"query": ["q", "c"], "document": ["b", "a"], "relevance": [1, 2]},
        "dev": {"query": ["p"], "document": ["c"], "relevance": [1]},
    }
    readings = {}
    for split, columns in rows.items():
        ids = {"query_id": columns["query"], "document_id": columns["document"]}
        frame = pl.DataFrame({**ids, **columns}).with_columns(split=pl.lit(split))
        readings[split] = Reading(frame, "hub", further=collection)
    write_corpus("mine", corpus_of("retrieval", splits={"test": 2, "dev": 1}), readings)
    sentences = read_table(corpus_path("mine", "pairs", "sentences"), kind="sentences").column("text").to_pylist()
    assert sentences == ["a", "b", "c", "q", "p"]
    items = read_table(corpus_path("mine", "pairs", "items"), kind="items.retrieval").to_pydict()
    assert (items["row1"], items["row2"]) == ([3, 2, 4], [1, 0, 2])
    assert read_record(corpus_path("mine", "pairs", "items"), kind="items.retrieval")["notes"]["documents"] == 3


def test_a_corpus_of_the_catalogue_is_read_from_its_file(mirror: Path) -> None:
    source = put(mirror, "stsb/test.parquet", pairs(1379))
    assert download("stsb", SUITE) == Download("stsb", sentences=5, items=1379)
    items_path = corpus_path("mine", "stsb", "items")
    items = read_table(items_path, kind="items.similarity").to_pydict()
    texts = read_table(corpus_path("mine", "stsb", "sentences"), kind="sentences").column("text").to_pylist()
    assert sorted(texts) == sorted(TEXTS)
    frame = pairs(1379)
    assert [texts[row] for row in items["row1"]] == frame["sentence1"].to_list()
    assert [texts[row] for row in items["row2"]] == frame["sentence2"].to_list()
    assert items["score"] == frame["score"].to_list()
    assert items["subset"] == frame["subset"].to_list()
    assert set(items["split"]) == {"test"}
    notes = read_record(items_path, kind="items.similarity")["notes"]
    assert notes["files"] == {"stsb/test.parquet": sha256_of(source)}
    assert (notes["source"], notes["splits"]) == ("mirror", {"test": 1379})
    assert str(mirror) not in items_path.read_bytes().decode("latin-1")


def test_the_same_mirror_gives_the_same_bytes(mirror: Path) -> None:
    put(mirror, "stsb/test.parquet", pairs(1379))
    digests = []
    for _ in range(2):
        download("stsb", SUITE)
        digests.append([sha256_of(corpus_path("mine", "stsb", part)) for part in ("sentences", "items")])
    assert digests[0] == digests[1]


def test_splits_of_one_corpus_share_its_sentences(mirror: Path) -> None:
    put(mirror, "pairs/train.parquet", pairs(4))
    put(mirror, "pairs/test.parquet", pairs(3))
    assert fetch(corpus_of(splits={"train": 4, "test": 3})).items == 7
    items = read_table(corpus_path("mine", "pairs", "items"), kind="items.similarity").to_pydict()
    assert items["split"] == ["train"] * 4 + ["test"] * 3
    assert items["row1"][:3] == items["row1"][4:]


def test_a_new_task_takes_the_columns_of_a_known_one(mirror: Path) -> None:
    put(mirror, "pairs/test.parquet", pairs(4))
    fetch(corpus_of("agreement", splits={"test": 4}, items_of="similarity"))
    items = read_table(corpus_path("mine", "pairs", "items"), kind="items.agreement").to_pydict()
    assert list(items) == ["row1", "row2", "score", "subset", "split"]
    with pytest.raises(SourceError, match="'agreement'") as caught:
        read_checked(corpus_of("agreement", splits={"test": 4}), "test", source="mirror")
    assert "items_of" in str(caught.value) and "similarity" in str(caught.value)


def test_a_split_of_several_files_is_read_in_their_order(mirror: Path) -> None:
    put(mirror, "pairs/b.parquet", pairs(2))
    put(mirror, "pairs/a.parquet", pairs(3))
    corpus = corpus_of(splits={"test": 5}, mirror={"test": ("pairs/b.parquet", "pairs/a.parquet")})
    frame = read_checked(corpus, "test", source="mirror").frame
    assert frame["sentence1"].to_list() == [*pairs(2)["sentence1"], *pairs(3)["sentence1"]]


def test_other_columns_are_dropped_and_whole_numbers_become_scores(mirror: Path) -> None:
    put(mirror, "pairs/test.parquet", pairs(4, score=[0, 1, 2, 3], extra=[1, 2, 3, 4]))
    frame = read_checked(corpus_of(splits={"test": 4}), "test", source="mirror").frame
    assert frame.columns == ["sentence1", "sentence2", "score", "subset", "split"]
    assert frame["score"].to_list() == [0.0, 1.0, 2.0, 3.0]


def test_classification_has_one_row_per_text(mirror: Path) -> None:
    frame = pl.DataFrame({"text": [TEXTS[0], TEXTS[1], TEXTS[0]], "label": [1, 0, 1]})
    put(mirror, "pairs/test.parquet", frame)
    assert fetch(corpus_of("classification", splits={"test": 3})) == Download("pairs", sentences=2, items=3)
    items = read_table(corpus_path("mine", "pairs", "items"), kind="items.classification").to_pydict()
    assert items == {"row": [0, 1, 0], "label": [1, 0, 1], "split": ["test"] * 3}


def test_the_mirrors_own_names_of_columns_and_labels_become_the_canonical_ones(mirror: Path) -> None:
    names = ["ENTAILMENT", "NEUTRAL", "CONTRADICTION"]
    put(mirror, "pairs/train.parquet", pairs(3, verdict=names).drop("score"))
    own = {"mirror_columns": {"label": "verdict"}, "mirror_labels": {"CONTRADICTION": 0, "NEUTRAL": 1, "ENTAILMENT": 2}}
    corpus = corpus_of("paraphrase", splits={"train": 3}, **own)
    fetch(corpus)
    items = read_table(corpus_path("mine", "pairs", "items"), kind="items.paraphrase")
    assert items.column("label").to_pylist() == [2, 1, 0]


def test_a_column_or_a_label_of_the_mirror_that_the_catalogue_does_not_know_is_refused(mirror: Path) -> None:
    put(mirror, "pairs/train.parquet", pairs(2, verdict=["YES", "MAYBE"]).drop("score"))
    wanted = {"splits": {"train": 2}, "mirror_labels": {"YES": 1, "NO": 0}}
    refuse(corpus_of("paraphrase", **wanted, mirror_columns={"label": "other"}), "column other missing")
    refuse(
        corpus_of("paraphrase", **wanted, mirror_columns={"label": "verdict"}), "label is not in the catalogue", "MAYBE"
    )


def test_labels_of_a_mirror_that_has_no_column_of_them_are_refused(mirror: Path) -> None:
    put(mirror, "pairs/train.parquet", pairs(2).drop("score"))
    corpus = corpus_of("paraphrase", splits={"train": 2}, mirror_labels={"YES": 1, "NO": 0})
    refuse(corpus, "column label missing", "sentence1, sentence2")


def test_a_corpus_of_bodies_loses_headers_and_says_so(mirror: Path) -> None:
    messages = ["From: a\nSubject: tea\n\nThe kettle boils.\n\nTwice.", "no header at all", "From: b\r\n\r\nSnow fell."]
    columns = {"text": messages, "label": [0, 1, 0], "label_name": ["a", "b", "a"]}
    put(mirror, "pairs/train.parquet", pl.DataFrame(columns))
    found = {}
    for bodies in ((), ("pairs",)):
        fetch(corpus_of("clustering", splits={"train": 3}, bodies=bodies))
        path = corpus_path("mine", "pairs", "sentences")
        found[bodies] = read_table(path, kind="sentences").column("text").to_pylist()
        text = read_record(path, kind="sentences")["notes"]["text"]
        assert text.startswith("bodies without headers") == bool(bodies)
    assert found[()] == messages
    assert found["pairs",] == ["The kettle boils.\n\nTwice.", "no header at all", "Snow fell."]


def test_a_corpus_of_short_texts_leaves_longer_ones_out_and_counts_what_is_left(mirror: Path) -> None:
    texts = ["one two three", "", "four  five \t six", "one two three four"]
    put(mirror, "pairs/train.parquet", pl.DataFrame({"text": texts, "label": [0, 1, 1, 0]}))
    done = fetch(corpus_of("classification", splits={"train": 4}, longest={"pairs": 3}))
    assert (done.sentences, done.items) == (3, 3)
    items, path = corpus_path("mine", "pairs", "items"), corpus_path("mine", "pairs", "sentences")
    assert read_table(items, kind="items.classification").column("label").to_pylist() == [0, 1, 1]
    assert read_table(path, kind="sentences").column("text").to_pylist() == texts[:3]
    notes = read_record(path, kind="sentences")["notes"]
    assert notes["splits"] == {"train": 3}
    assert notes["text"].startswith("texts of at most 3 words")


def test_a_corpus_names_the_one_that_a_head_for_it_is_trained_on(mirror: Path) -> None:
    put(mirror, "pairs/train.parquet", pairs(3))
    for supervised in ({}, {"pairs": "pairs-trained"}):
        fetch(corpus_of(splits={"train": 3}, supervised=supervised))
        notes = read_record(corpus_path("mine", "pairs", "items"), kind="items.similarity")["notes"]
        assert notes.get("supervised") == supervised.get("pairs")


def test_replaced_characters_are_summed_over_the_splits(mirror: Path) -> None:
    corpus = corpus_of(splits={"train": 2, "test": 3})
    readings = {
        split: Reading(check_columns(pairs(count), corpus.dataset, where=split).with_columns(split=pl.lit(split)),
                       "archive", replaced=replaced)
        for split, count, replaced in (("train", 2, 4), ("test", 3, 1))
    }  # fmt: skip
    write_corpus("mine", corpus, readings)
    notes = read_record(corpus_path("mine", "pairs", "sentences"), kind="sentences")["notes"]
    assert notes["replaced_characters"] == 5


# --- what the mirror lacks --------------------------------------------------------------------------


@pytest.mark.parametrize("place", [None, "", "no/such/folder", "a-file"])
def test_without_a_mirror_the_variable_is_named(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, place: str | None
) -> None:
    (mirror / "a-file").touch()
    monkeypatch.delenv("SENTFOLD_MIRROR")
    if place is not None:
        monkeypatch.setenv("SENTFOLD_MIRROR", str(mirror / place) if place else "")
    for skip in (False, True):
        # A mirror that is not there at all is no reason for blanks.
        with pytest.raises(SourceError, match="there is no mirror") as caught:
            download("stsb", SUITE, skip_missing=skip)
        assert "SENTFOLD_MIRROR" in str(caught.value)
        assert nothing_was_written()


def test_a_file_that_the_mirror_lacks_is_named(mirror: Path) -> None:
    with pytest.raises(MissingError, match="the mirror lacks") as caught:
        download("stsb", SUITE)
    assert "stsb/test.parquet" in caught.value.where
    assert "skip_missing" in caught.value.remedy
    assert nothing_was_written()


def test_with_skip_missing_the_absence_and_its_reason_are_recorded(mirror: Path) -> None:
    result = download("stsb", SUITE.model_copy(update={"skip_missing": True}))
    assert result.items == result.sentences == 0
    assert result.absent is not None
    assert "stsb/test.parquet" in result.absent
    for part, kind in (("sentences", "sentences"), ("items", "items.similarity")):
        path = corpus_path("mine", "stsb", part)
        assert absence(path, kind=kind) == result.absent
        with pytest.raises(ArtifactError, match="empty on purpose"):
            read_table(path, kind=kind)


def test_the_command_line_overrides_what_the_suite_says_of_missing_corpora(mirror: Path) -> None:
    with pytest.raises(MissingError):
        download("stsb", SUITE.model_copy(update={"skip_missing": True}), skip_missing=False)
    assert nothing_was_written()
    assert download("stsb", SUITE, skip_missing=True).absent


def unrecorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue whose one data set is an archive of unknown sha256, at an address that no server has."""
    urls = {"https://example.invalid/pairs.txt": None}
    entry = {
        "task": "similarity", "title": "t", "citation": "c", "licence": "l", "splits": {"test": 3},
        "corpora": {"pairs": ("test",)}, "archive": {"test": {"urls": urls, "reader": "sick"}},
    }  # fmt: skip
    corpus = Corpus(slug="pairs", dataset_name="pairs", dataset=Dataset.model_validate(entry), splits=("test",))
    monkeypatch.setattr("pipeline.stages.download.find_corpus", lambda _slug, _suite: corpus)


def test_an_archive_whose_sha256_nobody_recorded_is_a_blank_that_says_how_to_record_it(
    mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unrecorded(monkeypatch)
    suite = SUITE.model_copy(update={"source": "hub", "corpora": ("pairs",)})
    assert not suite.skip_missing
    absent = download("pairs", suite).absent
    assert absent is not None
    assert "no sha256 of this archive" in absent
    assert "--record-hash pairs" in absent
    assert absence(corpus_path("mine", "pairs", "items"), kind="items.similarity") == absent


def test_no_blank_is_made_where_the_command_line_forbids_blanks(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unrecorded(monkeypatch)
    with pytest.raises(MissingError, match="no sha256"):
        download("pairs", SUITE.model_copy(update={"source": "hub"}), skip_missing=False)
    assert nothing_was_written()


def test_a_blank_is_filled_when_the_file_appears(mirror: Path) -> None:
    skipping = SUITE.model_copy(update={"skip_missing": True})
    assert download("stsb", skipping).absent
    put(mirror, "stsb/test.parquet", pairs(1379))
    assert download("stsb", skipping).absent is None
    assert absence(corpus_path("mine", "stsb", "sentences"), kind="sentences") is None


# --- what the mirror has wrong ----------------------------------------------------------------------


def refuse(corpus: Corpus, *parts: str) -> None:
    with pytest.raises(SentfoldError) as caught:
        fetch(corpus)
    assert isinstance(caught.value, SourceError)
    assert not isinstance(caught.value, MissingError)
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in:\n{caught.value}"
    assert nothing_was_written()


@pytest.mark.parametrize("count", [0, 2, 4])
def test_a_wrong_number_of_items_is_refused(mirror: Path, count: int) -> None:
    put(mirror, "pairs/test.parquet", pairs(count))
    refuse(corpus_of(splits={"test": 3}), "wrong number", "pairs (test)", "expected  3", f"got       {count}")


def test_a_wrong_count_is_an_error_even_where_missing_corpora_are_skipped(mirror: Path) -> None:
    put(mirror, "stsb/test.parquet", pairs(1378))
    with pytest.raises(SourceError, match="wrong number"):
        download("stsb", SUITE, skip_missing=True)
    assert nothing_was_written()


@pytest.mark.parametrize("column", ["sentence1", "sentence2", "score", "subset"])
def test_a_column_that_is_missing_or_renamed_is_named(mirror: Path, column: str) -> None:
    put(mirror, "pairs/test.parquet", pairs(3).rename({column: "renamed"}))
    refuse(corpus_of(splits={"test": 3}), column, "missing", "renamed")


@pytest.mark.parametrize("column", ["sentence1", "score"])
def test_an_empty_value_is_refused_by_its_column(mirror: Path, column: str) -> None:
    frame = pairs(3).with_columns(pl.when(pl.int_range(3) == 1).then(None).otherwise(pl.col(column)).alias(column))
    put(mirror, "pairs/test.parquet", frame)
    refuse(corpus_of(splits={"test": 3}), f"column {column} has 1 empty")


def test_a_score_that_is_no_number_is_refused(mirror: Path) -> None:
    put(mirror, "pairs/test.parquet", pairs(3, score=["1.0", "high", "2.0"]))
    refuse(corpus_of(splits={"test": 3}), "wrong type", "high")


def test_a_score_that_is_not_a_number_is_refused(mirror: Path) -> None:
    put(mirror, "pairs/test.parquet", pairs(3, score=[1.0, float("nan"), 2.0]))
    refuse(corpus_of(splits={"test": 3}), "score")


def test_a_score_outside_of_the_corpuss_scale_is_refused_with_the_scale(mirror: Path) -> None:
    corpus = corpus_of(splits={"test": 4}, scale=(0, 5))
    put(mirror, "pairs/test.parquet", pairs(4, score=[0.0, 5.0, 2.5, 1.0]))
    assert len(read_checked(corpus, "test", source="mirror").frame) == 4
    for outside in (5.001, -0.2):
        put(mirror, "pairs/test.parquet", pairs(4, score=[0.0, 5.0, outside, 1.0]))
        with pytest.raises(SourceError, match="outside the scale of the corpus") as caught:
            read_checked(corpus, "test", source="mirror")
        assert caught.value.expected == "0 to 5" and caught.value.got == str(outside)


@pytest.mark.parametrize(
    ("task", "column", "meant", "other"),
    [("inference", "label", [0, 1, 2], -1), ("ranking", "relevance", [0, 1, 1], 2)],
)
def test_a_value_that_means_nothing_to_the_task_is_refused(
    task: str, column: str, meant: list[int], other: int
) -> None:
    texts = ("premise", "hypothesis", "query_id", "query", "candidate_id", "candidate")
    frame = pl.DataFrame(dict.fromkeys(texts, TEXTS[:3]) | {"rank": [1, 2, 3], column: meant})
    dataset = corpus_of(task, splits={"test": 3}).dataset
    assert len(check_columns(frame, dataset, where="test")) == 3
    with pytest.raises(SourceError, match="mean nothing") as caught:
        check_columns(frame.with_columns(pl.Series(column, [0, 1, other])), dataset, where="test")
    assert caught.value.got == str(other)


def test_a_file_cut_anywhere_is_refused(mirror: Path) -> None:
    path = put(mirror, "pairs/test.parquet", pairs(3))
    whole = path.read_bytes()
    for size in (0, 1, 4, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        refuse(corpus_of(splits={"test": 3}), "cannot be read", "pairs/test.parquet", "copy the file")


@pytest.mark.slow
def test_a_small_file_that_stands_for_gigabytes_and_a_pipe_are_refused(mirror: Path) -> None:
    path = put(mirror, "pairs/test.parquet", pl.DataFrame({"sentence1": ["x" * 10_000] * 50_000}))
    assert path.stat().st_size < 100_000
    refuse(corpus_of(splits={"test": 50_000}), "cannot be read", "pairs/test.parquet", "may take")
    path.unlink()
    os.mkfifo(path)
    refuse(corpus_of(splits={"test": 3}), "cannot be read", "pairs/test.parquet", "not a regular file")


def test_a_mirror_file_is_pinned_by_its_first_use(mirror: Path) -> None:
    path = put(mirror, "stsb/test.parquet", pairs(1379))
    download("stsb", SUITE)
    assert Path("suites/mine/mirror.lock").read_text() == f"{sha256_of(path)}  stsb/test.parquet\n"
    download("stsb", SUITE)
    put(mirror, "stsb/test.parquet", pairs(1379, score=[5.0] * 1379))
    with pytest.raises(SourceError, match=r"(?s)first use.*stsb/test\.parquet.*mirror\.lock"):
        download("stsb", SUITE)
    with Path("suites/mine/mirror.lock").open("a") as lock:
        lock.write(f"{sha256_of(path)}  stsb/test.parquet\n")  # a second line for the new bytes allows neither
    with pytest.raises(SourceError, match=r"(?s)first use.*[0-9a-f]{64} and [0-9a-f]{64}"):
        download("stsb", SUITE)


def test_a_lock_file_without_a_last_line_end_and_of_binary_mode_pins_all_its_files(tmp_path: Path) -> None:
    lock, one, two = tmp_path / "mirror.lock", "1" * 64, "2" * 64
    lock.write_text(f"{one} *a/test.parquet")
    pin_files(lock, {"a/test.parquet": one, "b/test.parquet": two})
    assert lock.read_text() == f"{one} *a/test.parquet\n{two}  b/test.parquet\n"
    for name in ("a", "b"):
        with pytest.raises(SourceError, match=f"first use(?s:.*){name}/test"):
            pin_files(lock, {f"{name}/test.parquet": "3" * 64})


@pytest.mark.parametrize("line", ["", "1" * 63 + "  a", "1" * 64 + "\ta", "1" * 64 + "  ", "<<<<<<< HEAD"])
def test_a_line_of_a_lock_file_that_pins_nothing_is_named(tmp_path: Path, line: str) -> None:
    lock = tmp_path / "mirror.lock"
    lock.write_text(f"{'1' * 64}  a\n{line}\n")
    with pytest.raises(SourceError, match=r"mirror\.lock, line 2"):
        pin_files(lock, {"b": "2" * 64})


def test_a_link_or_a_pipe_in_place_of_a_lock_file_is_refused(tmp_path: Path) -> None:
    lock, victim = tmp_path / "mirror.lock", tmp_path / "victim"
    for there in (False, True):
        lock.symlink_to(victim)
        with pytest.raises(SourceError, match="lock file"):
            pin_files(lock, {"a": "1" * 64})
        lock.unlink()
        assert victim.exists() == there and (not there or victim.read_text() == "")
        victim.touch()
    os.mkfifo(lock)
    with pytest.raises(SourceError, match="not a regular file"):
        pin_files(lock, {"a": "1" * 64})


def test_a_second_split_that_is_wrong_leaves_nothing_of_the_first(mirror: Path) -> None:
    put(mirror, "pairs/train.parquet", pairs(3))
    put(mirror, "pairs/test.parquet", pairs(2))
    refuse(corpus_of(splits={"train": 3, "test": 3}), "wrong number", "pairs (test)")


def test_files_of_different_columns_are_refused(mirror: Path) -> None:
    put(mirror, "pairs/a.parquet", pairs(2))
    put(mirror, "pairs/b.parquet", pairs(2, score=["x", "y"]))
    corpus = corpus_of(splits={"test": 4}, mirror={"test": ("pairs/a.parquet", "pairs/b.parquet")})
    refuse(corpus, "do not fit together", "pairs/a.parquet", "pairs/b.parquet")


def test_a_failed_download_keeps_the_corpus_that_was_there(mirror: Path) -> None:
    put(mirror, "stsb/test.parquet", pairs(1379))
    download("stsb", SUITE)
    paths = [corpus_path("mine", "stsb", part) for part in ("sentences", "items")]
    before = [sha256_of(path) for path in paths]
    put(mirror, "stsb/test.parquet", pairs(1000))
    with pytest.raises(SourceError):
        download("stsb", SUITE)
    assert [sha256_of(path) for path in paths] == before
    assert sorted(path.name for path in paths[0].parent.iterdir()) == ["items.parquet", "sentences.parquet"]


def test_labels_that_are_no_whole_numbers_are_refused_and_not_cut() -> None:
    data = corpus_of("classification", splits={"test": 2}).dataset
    whole = pl.DataFrame({"text": TEXTS[:2], "label": [0.0, 1.0]})
    assert check_columns(whole, data, where="x")["label"].to_list() == [0, 1]
    with pytest.raises(SourceError, match=r"(?s)column label.*no whole numbers.*0\.9"):
        check_columns(whole.with_columns(label=pl.Series([0.9, 1.0])), data, where="x")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"caf\xe9"] * 3).view(pa.string()),
        pa.array([Decimal(1)] * 3, pa.decimal256(60, 0)),
    ],
    ids=["texts that are not UTF-8", "decimal256"],
)
def test_a_parquet_file_that_polars_cannot_hold_is_refused(column: pa.Array) -> None:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"text": column}), sink)
    with pytest.raises(pa.ArrowInvalid):
        frame_of_parquet(sink.getvalue().to_pybytes())


def test_files_of_a_split_that_share_no_column_are_not_filled_up_to_gigabytes(mirror: Path) -> None:
    put(mirror, "pairs/a.parquet", pl.DataFrame({f"c{number}": pl.Series([], dtype=pl.Null) for number in range(1000)}))
    put(mirror, "pairs/b.parquet", pl.DataFrame({"score": pl.Series([1], dtype=pl.Int8).new_from_index(0, 1_000_000)}))
    corpus = corpus_of(splits={"test": 1}, mirror={"test": ("pairs/a.parquet", "pairs/b.parquet")})
    with pytest.raises(SourceError, match="leave out most of their columns"):
        read_mirror("pairs", corpus.dataset, "test")


@pytest.mark.parametrize("label", [date(2020, 1, 1), timedelta(days=1), {"a": 1}], ids=["date", "duration", "struct"])
def test_a_label_that_is_a_date_a_duration_or_a_struct_is_refused(label: object) -> None:
    data = corpus_of("classification", splits={"test": 2}).dataset
    with pytest.raises(SourceError, match="wrong type"):
        check_columns(pl.DataFrame({"text": TEXTS[:2], "label": [label] * 2}), data, where="x")
