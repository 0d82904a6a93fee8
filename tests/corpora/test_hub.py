"""The hub source against a real HTTP server that speaks the hub's protocol."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.corpora import hub
from pipeline.corpora.catalogue import Dataset
from pipeline.corpora.fetch import Patience
from pipeline.corpora.hub import _shape_of_json
from pipeline.corpora.reading import Reading, check_columns, check_count
from sentfold.errors import SourceError, UnansweredError
from sentfold.files import sha256_of

from .hub_server import ID, REVISION, HubServer, Page, serving

ONE_TRY = Patience(connect=10, read=20, tries=1)  # long enough for a busy machine

PAIRS: list[dict[str, Any]] = [
    {"first": "The kettle boils.", "second": "Water is boiling in the kettle.", "rating": 4.5},
    {"first": "A dog naps on the porch.", "second": "The café opens at nine.", "rating": 0.25},
    {"first": "Snow fell all night.", "second": "It snowed until the morning.", "rating": 4.0},
]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    repository = HubServer()
    monkeypatch.setenv("HF_ENDPOINT", repository.url)
    monkeypatch.setenv("SENTFOLD_CACHE", str(tmp_path / "cache"))
    with serving(repository):
        yield repository


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    sink = io.StringIO()
    writer = csv.DictWriter(sink, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return sink.getvalue().encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def dataset(*parts: str, count: int = 3, task: str = "similarity", **changes: Any) -> Dataset:
    place = {
        "id": ID,
        "revision": REVISION,
        "files": tuple((part,) for part in parts),
        "columns": {"sentence1": "first", "sentence2": "second", "score": "rating"},
    }
    return Dataset.model_validate(
        {
            "task": task,
            "title": "Pairs",
            "citation": "made for this test",
            "licence": "none needed",
            "splits": {"test": count},
            "corpora": {"pairs": ("test",)},
            "hub": {"test": place | changes},
        }
    )


def read(data: Dataset, *, patience: Patience = ONE_TRY) -> Reading:
    return hub.read_split("pairs", data, "test", patience=patience)


def failure(data: Dataset, *, patience: Patience = ONE_TRY) -> SourceError:
    with pytest.raises(SourceError) as caught:
        read(data, patience=patience)
    return caught.value


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("test.jsonl", as_jsonl(PAIRS)),
        ("test.jsonl.gz", gzip.compress(as_jsonl(PAIRS))),
        ("data/test-00000-of-00001.parquet", as_parquet(PAIRS)),
        ("test.csv", as_csv(PAIRS)),
    ],
)
@pytest.mark.parametrize("lfs", [False, True])
def test_every_kind_of_file_gives_the_same_rows(server: HubServer, path: str, data: bytes, lfs: bool) -> None:
    server.add(path, data, lfs=lfs)
    reading = read(dataset(path))
    assert reading.frame.rows() == [(row["first"], row["second"], row["rating"], "") for row in PAIRS]
    assert reading.source == "hub"
    check_count(check_columns(reading.frame, dataset(path), where="test"), dataset(path), "test", where="test")


def test_the_record_names_repository_revision_file_and_the_sha256_of_the_bytes(
    server: HubServer, tmp_path: Path
) -> None:
    data = as_jsonl(PAIRS)
    server.add("test.jsonl", data)
    (tmp_path / "same").write_bytes(data)
    assert read(dataset("test.jsonl")).files == {f"hub:{ID}@{REVISION}/test.jsonl": sha256_of(tmp_path / "same")}


def test_several_files_make_one_split_in_the_order_of_the_catalogue(server: HubServer) -> None:
    server.add("b.jsonl", as_jsonl(PAIRS[:1]))
    server.add("a-2.jsonl", as_jsonl(PAIRS[2:]))
    server.add("a-1.jsonl", as_jsonl(PAIRS[1:2]))
    assert read(dataset("b.jsonl", "a-*.jsonl")).frame["sentence1"].to_list() == [row["first"] for row in PAIRS]


DOCUMENTS = [{"_id": "d1", "title": "Tea", "text": "is hot."}, {"_id": "d2", "title": "", "text": "Ice"}]
JUDGED = {
    "columns": {"query_id": "query-id", "document_id": "corpus-id", "relevance": "score"},
    "texts": {"documents": ("corpus.jsonl",), "queries": ("queries.jsonl",)},
}


def add_collection(server: HubServer, *judgements: tuple[str, str, int]) -> Dataset:
    """A collection in BEIR's form on the server."""
    server.add("corpus.jsonl", as_jsonl(DOCUMENTS))
    server.add("queries.jsonl", as_jsonl([{"_id": "q1", "text": "What is hot?"}]))
    rows = [{"query-id": query, "corpus-id": document, "score": score} for query, document, score in judgements]
    server.add("qrels/test.jsonl", as_jsonl(rows))
    return dataset("qrels/test.jsonl", count=len(rows), task="retrieval", **JUDGED)


def test_judgements_of_a_collection_get_the_texts_that_they_name_and_all_documents_come_along(
    server: HubServer,
) -> None:
    data = add_collection(server, ("q1", "d1", 2))
    reading = read(data)
    frame = check_columns(reading.frame, data, where="test")
    assert frame.rows() == [("q1", "What is hot?", "d1", "Tea is hot.", 2)]
    assert reading.further == ("Tea is hot.", "Ice")
    assert [name.rpartition("/")[2] for name in reading.files] == ["test.jsonl", "queries.jsonl", "corpus.jsonl"]


@pytest.mark.parametrize(("judgement", "kind"), [(("q2", "d1", 1), "query"), (("q1", "d3", 1), "document")])
def test_a_judgement_of_a_text_that_is_not_there_is_refused(
    server: HubServer, judgement: tuple[str, str, int], kind: str
) -> None:
    error = failure(add_collection(server, ("q1", "d1", 1), judgement))
    assert f"names a {kind} without a text" in str(error) and judgement[kind == "document"] in str(error)


def test_the_first_pattern_that_matches_is_taken(server: HubServer) -> None:
    server.add("data/test-00000.parquet", as_parquet(PAIRS))
    data = dataset(files=(("test.jsonl.gz", "data/test-*.parquet"),))
    assert list(read(data).files) == [f"hub:{ID}@{REVISION}/data/test-00000.parquet"]


def test_rows_are_kept_labels_mapped_and_other_columns_dropped(server: HubServer) -> None:
    rows = [{"text": f"Sentence {n}.", "label": label, "note": "x"} for n, label in enumerate((0, 1, -1))]
    server.add("test.parquet", as_parquet(rows))
    data = dataset(
        "test.parquet",
        count=2,
        task="classification",
        columns={"text": "text", "label": "label"},
        keep={"label": (0, 1)},
        labels={"0": 1, "1": 0},
    )
    frame = read(data).frame
    assert frame.columns == ["text", "label"]
    assert frame.rows() == [("Sentence 0.", 1), ("Sentence 1.", 0)]


def test_a_label_that_the_catalogue_does_not_know_is_refused(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl([{"text": "A sentence.", "label": 7}]))
    error = failure(
        dataset(
            "test.jsonl",
            count=1,
            task="classification",
            columns={"text": "text", "label": "label"},
            labels={"0": 1, "1": 0},
        )
    )
    assert error.got == "7"


def test_subsets_are_named_by_order_where_the_catalogue_counts_them(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl(PAIRS))
    frame = read(dataset("test.jsonl", subsets={"kitchen": 2, "weather": 1})).frame
    assert frame["subset"].to_list() == ["kitchen", "kitchen", "weather"]


def test_a_mapped_column_that_is_missing_is_named_with_what_there_is(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl([{"first": "a", "other": "b", "rating": 1.0}]))
    error = failure(dataset("test.jsonl"))
    assert "'second' (for 'sentence2')" in error.what
    assert error.got == "first, other, rating"
    assert error.where == f"hub:{ID}@{REVISION}/test.jsonl"


def test_a_wrong_number_of_rows_is_refused_by_the_count(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl(PAIRS))
    data = dataset("test.jsonl", count=4)
    with pytest.raises(SourceError, match="wrong number of items") as caught:
        check_count(read(data).frame, data, "test", where="pairs")
    assert (caught.value.expected, caught.value.got) == ("4", "3")


def test_an_unknown_revision_is_named(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl(PAIRS))
    error = failure(dataset("test.jsonl", revision="f" * 40))
    assert "revision" in error.what
    assert "f" * 40 in error.where
    assert error.remedy


def test_an_unknown_repository_is_named(server: HubServer) -> None:
    error = failure(dataset("test.jsonl", id="acme/nothing"))
    assert "no such dataset" in error.what
    assert "acme/nothing" in error.where


def test_a_listed_file_that_is_gone_is_named(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl(PAIRS))
    del server.pages[f"/datasets/{ID}/resolve/{REVISION}/test.jsonl"]
    error = failure(dataset("test.jsonl"))
    assert error.where.startswith(f"hub:{ID}@{REVISION}/test.jsonl")
    assert "does not have" in error.what


def test_a_repository_with_only_a_script_is_refused_and_the_script_not_even_downloaded(
    server: HubServer, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    script = server.add("pairs.py", f"open({str(trace)!r}, 'w').write('ran')".encode())
    error = failure(dataset("*.py", "test.jsonl"))
    assert "a loading script is never run" in error.remedy
    assert error.got == "pairs.py"
    assert script.asked == 0
    assert not trace.exists()


def test_a_body_shorter_than_promised_is_an_error_and_not_a_short_corpus(server: HubServer) -> None:
    data = as_jsonl(PAIRS)
    page = server.add("test.jsonl", data)
    page.promised, page.body = len(data), data[: data.index(b"\n") + 1]
    error = failure(dataset("test.jsonl"))
    assert isinstance(error, UnansweredError)
    assert error.where.startswith(f"hub:{ID}@{REVISION}/test.jsonl")


@pytest.mark.parametrize("lfs", [False, True])
def test_a_body_that_is_consistently_truncated_is_found_by_its_hash(server: HubServer, lfs: bool) -> None:
    page = server.add("test.jsonl", as_jsonl(PAIRS), lfs=lfs)
    page.body = page.body[: page.body.index(b"\n") + 1]
    assert not isinstance(failure(dataset("test.jsonl")), UnansweredError)


def test_a_file_of_the_cache_that_was_altered_is_fetched_again(server: HubServer, tmp_path: Path) -> None:
    page = server.add("test.jsonl", as_jsonl(PAIRS))
    read(dataset("test.jsonl"))
    (cached,) = (tmp_path / "cache").iterdir()
    cached.write_bytes(b"altered")
    assert len(read(dataset("test.jsonl")).frame) == 3
    assert page.asked == 2


# huggingface_hub asks for a listing again and again for 20 s.
@pytest.mark.parametrize("listing", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_server_that_falls_silent_is_given_up_after_the_timeout(server: HubServer, listing: bool) -> None:
    page = server.add("test.jsonl", as_jsonl(PAIRS))
    (server.pages[server.listing_path] if listing else page).stall = 30
    patience = Patience(connect=10, read=0.5, tries=1)
    assert isinstance(failure(dataset("test.jsonl"), patience=patience), UnansweredError)


def test_a_listing_that_comes_a_byte_now_and_then_is_given_up(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl(PAIRS))
    server.pages[server.listing_path].drip = 0.05
    with pytest.raises(UnansweredError, match="sends too slowly") as caught:
        hub.read_split("pairs", dataset("test.jsonl"), "test", patience=Patience(read=20, tries=1, window=0.4))
    assert caught.value.where == f"hub:{ID}@{REVISION}"


def test_a_server_that_is_busy_once_is_asked_again(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl(PAIRS))
    server.pages[server.listing_path].failures = 1
    assert len(read(dataset("test.jsonl")).frame) == 3


@pytest.mark.slow
def test_no_server_at_all_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = HubServer()
    dead.server_close()
    monkeypatch.setenv("HF_ENDPOINT", dead.url)
    error = failure(dataset("test.jsonl"))
    assert "cannot be reached" in error.what
    assert "mirror" in error.remedy
    assert "HF_ENDPOINT" in error.remedy


def test_a_web_page_instead_of_a_listing_is_one_clear_error(server: HubServer) -> None:
    server.pages[server.listing_path] = Page(b"<html>Please log in</html>")
    assert "answer cannot be used" in failure(dataset("test.jsonl")).what


@pytest.mark.parametrize("path", ["test.jsonl", "test.jsonl.gz", "test.parquet"])
def test_a_file_that_is_not_what_its_name_says_is_one_clear_error(server: HubServer, path: str) -> None:
    server.add(path, b"\x00\x01 neither table nor text \xff")
    error = failure(dataset(path))
    assert error.where == f"hub:{ID}@{REVISION}/{path}"


def as_zip(data: bytes, *, behind: bytes = b"") -> bytes:
    sink = io.BytesIO(behind)
    with zipfile.ZipFile(sink, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("test.csv", data)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("path", "data", "says"),
    [
        ("test.csv", as_zip(as_csv(PAIRS)), "an archive"),
        ("test.csv", as_zip(as_csv(PAIRS), behind=as_csv(PAIRS)), "an archive"),
        ("test.jsonl", gzip.compress(as_jsonl(PAIRS)), "an archive"),
        ("test.jsonl.gz", gzip.compress(gzip.compress(as_jsonl(PAIRS))), "an archive"),
        ("test.jsonl.gz", gzip.compress(as_jsonl(PAIRS))[:-9], "damaged"),
        ("test.csv.gz", gzip.compress(as_csv(PAIRS) + b" " * 2**24), "unsafe"),
        ("test.parquet", as_parquet([PAIRS[0] | {"first": "x" * 10_000}] * 50_000), "may take"),
    ],
    ids=["zip", "zip-at-the-end", "gz", "gz-in-gz", "cut-gz", "gz-bomb", "parquet-bomb"],
)
def test_a_file_that_unpacks_to_something_else_is_refused(server: HubServer, path: str, data: bytes, says: str) -> None:
    server.add(path, data)
    assert len(data) < 200_000
    assert says in failure(dataset(path)).got


WIDE = b"first,second,rating" + b",c" * 20_000
IDS = [PAIRS[number % 3] | {"found": {"by": [{f"d{number}": 1}]}} for number in range(10_000)]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("test.csv", WIDE + b"\n" + b"x\n" * 20_000),
        ("test.csv", b"first,second,rating\n" + b"x\n" * 20_000 + WIDE + b"\n"),
        ("test.csv.gz", gzip.compress(WIDE + b"\n" + b"x\n" * 20_000)),
        ("test.jsonl", as_jsonl([{f"k{number}": 1} for number in range(10_000)])),
        ("test.jsonl", as_jsonl([{f"k{number}": {}} for number in range(10_000)])),
        (
            "test.jsonl.gz",
            gzip.compress(b'["' + os.urandom(30_000).hex().encode() + b'",' + b"{}," * 1_000_000 + b"{}]"),
        ),
    ],
    ids=["short rows", "a long row", "short rows in gz", "other keys", "other keys of objects", "empty objects"],
)
def test_a_small_file_of_rows_that_lack_most_columns_is_refused(server: HubServer, path: str, data: bytes) -> None:
    server.add(path, data)
    assert len(data) < 600_000
    assert "leave out most of their columns" in failure(dataset(path)).got


@pytest.mark.parametrize(
    ("path", "data"), [("test.jsonl", as_jsonl(IDS)), ("test.json", json.dumps(IDS).encode())], ids=["lines", "a list"]
)
def test_inner_keys_that_are_ids_are_no_columns(server: HubServer, path: str, data: bytes) -> None:
    server.add(path, data)
    assert read(dataset(path)).frame["sentence1"].to_list() == [row["first"] for row in IDS]


@pytest.mark.slow
def test_ids_as_inner_keys_behind_what_datasets_looks_at_are_no_columns(server: HubServer) -> None:
    long = [PAIRS[0] | {"first": "x" * 2**20, "found": {"by": [{"d": 1}]}} for _ in range(11)]
    server.add("test.jsonl", as_jsonl(long + IDS))
    assert len(read(dataset("test.jsonl")).frame) == len(long + IDS)


@pytest.mark.slow
def test_rows_that_are_no_objects_are_not_taken_for_rows(server: HubServer) -> None:
    server.add("test.json", json.dumps([[row] for row in IDS]).encode())
    assert "no object, but a list" in failure(dataset("test.json")).got


@pytest.mark.parametrize(
    "content", [b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": {"b": [[], {}]}}', b' [{"a": {"b": 1}}, {}, {}]\n']
)
def test_the_keys_and_objects_of_json_are_counted_in_lines_and_in_a_list(content: bytes) -> None:
    assert _shape_of_json(content) == (2, 4)


def test_a_listing_with_a_size_that_is_no_number_is_one_clear_error(server: HubServer) -> None:
    server.add("test.jsonl", as_jsonl(PAIRS))
    listing = server.pages[server.listing_path]
    listing.body = json.dumps([entry | {"size": "many"} for entry in json.loads(listing.body)]).encode()
    assert "answer cannot be used" in failure(dataset("test.jsonl")).what


@pytest.mark.parametrize("sha256", ["", None])
def test_a_listing_without_a_sha256_is_not_taken_for_a_check(server: HubServer, sha256: str | None) -> None:
    server.add("test.jsonl", as_jsonl(PAIRS), lfs=True)
    listing = server.pages[server.listing_path]
    (entry,) = json.loads(listing.body)
    entry["lfs"]["oid"] = sha256
    listing.body = json.dumps([entry]).encode()
    assert "test.jsonl" in failure(dataset("test.jsonl")).where


def test_a_second_reading_needs_no_second_download(server: HubServer) -> None:
    page = server.add("test.jsonl", as_jsonl(PAIRS))
    read(dataset("test.jsonl"))
    asked = page.asked
    read(dataset("test.jsonl"))
    assert page.asked == asked
