"""The archive source against a real HTTP server: downloads, unpacking, hashes and readers."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.corpora import archive, archive_readers, unpack
from pipeline.corpora.archive_readers import READERS, Member
from pipeline.corpora.catalogue import Dataset
from pipeline.corpora.fetch import Patience
from pipeline.corpora.reading import Reading
from pipeline.corpora.unpack import read_members
from sentfold.errors import SourceError

from .hub_server import Page, PageServer, serving
from .swapping import swapping

ONE_TRY = Patience(connect=10, read=20, tries=1)  # long enough for a busy machine

POSITIVE = b"the soup was warm and good\nwhat a lovely evening\n"
NEGATIVE = b"the train was late again\n"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageServer]:
    monkeypatch.setenv("SENTFOLD_CACHE", str(tmp_path / "cache"))
    pages = PageServer()
    with serving(pages):
        yield pages


Hashes = dict[str, str | None]  # URL -> what the catalogue says of it


@pytest.fixture
def hashes() -> Hashes:
    return {}


def as_zip(files: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in files.items():
            target.writestr(name, data)
    return sink.getvalue()


def as_tar(files: dict[str, bytes], *, odd: tarfile.TarInfo | None = None) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as target:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            target.addfile(info, io.BytesIO(data))
        if odd is not None:
            target.addfile(odd)
    return sink.getvalue()


Pack = Callable[[dict[str, bytes]], bytes]

GOOD = {"data/reviews.pos": POSITIVE, "data/reviews.neg": NEGATIVE, "data/readme.txt": b"not data"}


def dataset(hashes: Hashes, *, count: int = 3) -> Dataset:
    return Dataset.model_validate(
        {
            "task": "classification",
            "title": "Evenings",
            "citation": "made for this test",
            "licence": "none needed",
            "splits": {"all": count},
            "corpora": {"evenings": ("all",)},
            "archive": {"all": {"urls": hashes, "members": ("data/*.pos", "data/*.neg"), "reader": "pos_neg"}},
        }
    )


def serve(server: PageServer, hashes: Hashes, data: bytes, *, sha256: str = "") -> tuple[str, Page]:
    """Put an archive on the server, and its hash (or the one given) on record."""
    url = f"{server.url}/archive"
    page = server.pages["/archive"] = Page(data)
    hashes[url] = sha256 or hashlib.sha256(data).hexdigest()
    return url, page


def read(url: str, hashes: Hashes) -> Reading:
    return archive.read_split("evenings", dataset({url: hashes.get(url)}), "all", patience=ONE_TRY)


def failure(url: str, hashes: Hashes) -> SourceError:
    with pytest.raises(SourceError) as caught:
        read(url, hashes)
    assert url in caught.value.where
    assert caught.value.remedy
    return caught.value


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# --- success -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [as_zip, as_tar])
def test_matching_members_are_read_and_the_hash_is_on_record(server: PageServer, hashes: Hashes, pack: Pack) -> None:
    data = pack(GOOD)
    url, _ = serve(server, hashes, data)
    reading = read(url, hashes)
    assert reading.frame.rows() == [
        ("the soup was warm and good", 1),
        ("what a lovely evening", 1),
        ("the train was late again", 0),
    ]
    assert (reading.source, reading.files) == ("archive", {url: hashlib.sha256(data).hexdigest()})


def test_a_plain_tar_is_told_by_its_content(server: PageServer, hashes: Hashes) -> None:
    url, _ = serve(server, hashes, gzip.decompress(as_tar(GOOD)))
    assert len(read(url, hashes).frame) == 3


def test_a_file_url_is_read_in_place(tmp_path: Path, hashes: Hashes) -> None:
    local = tmp_path / "local.zip"
    local.write_bytes(as_zip(GOOD))
    url = local.as_uri()
    hashes[url] = hashlib.sha256(local.read_bytes()).hexdigest()
    assert len(read(url, hashes).frame) == 3


def test_a_second_reading_takes_the_cached_file(server: PageServer, hashes: Hashes) -> None:
    url, page = serve(server, hashes, as_zip(GOOD))
    read(url, hashes)
    read(url, hashes)
    assert page.asked == 1


def test_a_cached_file_that_was_altered_is_downloaded_again(server: PageServer, hashes: Hashes, tmp_path: Path) -> None:
    url, page = serve(server, hashes, as_zip(GOOD))
    read(url, hashes)
    (cached,) = files_below(tmp_path / "cache")
    cached.write_bytes(b"altered")
    assert len(read(url, hashes).frame) == 3
    assert page.asked == 2


# --- what servers do -----------------------------------------------------------------------------


def test_a_wrong_hash_is_refused_and_nothing_is_kept(server: PageServer, hashes: Hashes, tmp_path: Path) -> None:
    url, _ = serve(server, hashes, as_zip(GOOD), sha256="0" * 64)
    assert "0" * 64 in failure(url, hashes).expected
    assert files_below(tmp_path / "cache") == []


def test_a_file_url_with_a_wrong_hash_is_refused(tmp_path: Path, hashes: Hashes) -> None:
    (tmp_path / "local.zip").write_bytes(as_zip(GOOD))
    url = (tmp_path / "local.zip").as_uri()
    hashes[url] = "0" * 64
    assert "another sha256" in failure(url, hashes).what


def test_other_kinds_of_url_are_refused(hashes: Hashes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTFOLD_CACHE", str(tmp_path / "cache"))
    url = "gopher://example.invalid/archive.zip"
    hashes[url] = "0" * 64
    assert "http" in failure(url, hashes).expected


# --- what archives do ----------------------------------------------------------------------------


def symlink() -> tarfile.TarInfo:
    info = tarfile.TarInfo("data/link.pos")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/hostname"
    return info


def hardlink() -> tarfile.TarInfo:
    info = tarfile.TarInfo("data/link.pos")
    info.type, info.linkname = tarfile.LNKTYPE, "data/reviews.pos"
    return info


def device() -> tarfile.TarInfo:
    info = tarfile.TarInfo("data/zero.pos")
    info.type, info.devmajor, info.devminor = tarfile.CHRTYPE, 1, 5
    return info


def sparse(size: int) -> bytes:
    """A tar with a file that is one hole of `size` bytes, for which the tar holds no byte."""
    body = (b"1\n%d\n0\n" % size).ljust(512, b"\0")
    info = tarfile.TarInfo("data/hole.pos")
    info.size = len(body)
    names = {"major": "1", "minor": "0", "name": info.name, "realsize": str(size)}
    info.pax_headers = {f"GNU.sparse.{key}": value for key, value in names.items()}
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as target:
        target.addfile(info, io.BytesIO(body))
    return sink.getvalue()


def zip_packed(method: int) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as target:
        target.writestr("data/reviews.pos", POSITIVE)
    return sink.getvalue()


def zip_with_symlink() -> bytes:
    sink = io.BytesIO(as_zip(GOOD))
    with zipfile.ZipFile(sink, "a") as target:
        info = zipfile.ZipInfo("data/link.pos")
        info.external_attr = 0o120777 << 16
        target.writestr(info, "/etc/hostname")
    return sink.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        as_zip(GOOD | {"../outside.pos": b"x"}),
        as_zip(GOOD | {"/etc/outside.pos": b"x"}),
        as_zip(GOOD | {"data\\..\\..\\outside.pos": b"x"}),
        as_tar(GOOD | {"data/../../outside.pos": b"x"}),
        as_tar(GOOD | {"/etc/outside.pos": b"x"}),
        as_tar(GOOD, odd=symlink()),
        as_tar(GOOD, odd=hardlink()),
        as_tar(GOOD, odd=device()),
        zip_with_symlink(),
        as_zip(GOOD | {"data/bomb.pos": bytes(2**23)}),
        as_tar(GOOD | {"data/bomb.pos": bytes(2**23)}),
        as_tar(GOOD | {"elsewhere/bomb": bytes(2**23)}),
        sparse(-(10**12)),
        sparse(2**27),
        zip_packed(zipfile.ZIP_BZIP2),
        zip_packed(zipfile.ZIP_LZMA),
    ],
    ids=[
        "zip-parent",
        "zip-absolute",
        "zip-backslashes",
        "tar-parent",
        "tar-absolute",
        "tar-symlink",
        "tar-hardlink",
        "tar-device",
        "zip-symlink",
        "zip-bomb",
        "tar-bomb",
        "tar-bomb-in-a-member-that-is-not-wanted",
        "tar-of-negative-size",
        "tar-hole",
        "zip-bzip2",
        "zip-lzma",
    ],
)
def test_an_unsafe_archive_is_refused_and_nothing_is_written_beside_the_download(
    server: PageServer, hashes: Hashes, tmp_path: Path, data: bytes
) -> None:
    url, _ = serve(server, hashes, data)
    before = set(files_below(tmp_path))
    assert "unsafe" in failure(url, hashes).what
    assert {path.parent for path in set(files_below(tmp_path)) - before} == {tmp_path / "cache"}


@pytest.mark.parametrize("limit", ["MAX_MEMBER", "MAX_TOTAL", "MAX_MEMBERS"])
@pytest.mark.parametrize("pack", [as_zip, as_tar])
def test_size_and_number_of_members_are_limited(
    server: PageServer, hashes: Hashes, monkeypatch: pytest.MonkeyPatch, pack: Pack, limit: str
) -> None:
    url, _ = serve(server, hashes, pack(GOOD))
    monkeypatch.setattr(unpack, limit, 2)
    assert "unsafe" in failure(url, hashes).what


@pytest.mark.parametrize("pack", [as_zip, as_tar])
def test_a_damaged_archive_with_the_recorded_hash_is_still_one_clear_error(
    server: PageServer, hashes: Hashes, pack: Pack
) -> None:
    data = pack(GOOD)
    url, _ = serve(server, hashes, data[: len(data) * 2 // 3])
    assert "damaged" in failure(url, hashes).what


def test_headers_that_lead_to_headers_without_end_are_one_clear_error(server: PageServer, hashes: Hashes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2
    url, _ = serve(server, hashes, (info.tobuf(tarfile.GNU_FORMAT) + b"a\0".ljust(512, b"\0")) * 2000)
    assert "damaged" in failure(url, hashes).what


def test_a_size_that_is_no_number_is_one_clear_error(server: PageServer, hashes: Hashes) -> None:
    url, _ = serve(server, hashes, sparse(77).replace(b"realsize=77", b"realsize=7x"))
    assert "damaged" in failure(url, hashes).what


def test_an_archive_that_is_swapped_while_it_is_read_gives_the_right_rows_or_none(
    tmp_path: Path, hashes: Hashes
) -> None:
    good, other = as_zip(GOOD), as_zip(GOOD | {"data/reviews.neg": POSITIVE})
    path = tmp_path / "archive.zip"
    path.write_bytes(good)
    url = path.as_uri()
    hashes[url] = hashlib.sha256(good).hexdigest()
    right, readings = read(url, hashes).frame.rows(), []
    with swapping(path, good, other):
        for _ in range(200):
            with suppress(SourceError):
                readings.append(read(url, hashes))
    assert all(reading.frame.rows() == right and reading.files == hashes for reading in readings)


def test_an_archive_without_a_matching_member_is_refused(server: PageServer, hashes: Hashes) -> None:
    url, _ = serve(server, hashes, as_zip({"other/reviews.pos": POSITIVE}))
    assert "no member" in failure(url, hashes).what


# --- recording -----------------------------------------------------------------------------------


def test_an_archive_without_a_recorded_hash_is_not_downloaded(server: PageServer, hashes: Hashes) -> None:
    url, page = serve(server, hashes, as_zip(GOOD))
    hashes[url] = None
    assert "--record-hash evenings" in failure(url, hashes).remedy
    assert page.asked == 0


def catalogue_of(tmp_path: Path, url: str) -> Path:
    """A catalogue in which the sha256 of the archive, and that of another one, are null."""
    path = tmp_path / "catalogue.yaml"
    path.write_text(f'# corpora\n"{url}": null\n"https://example.invalid/other.zip": null\n')
    return path


def test_a_recorded_hash_replaces_its_null_alone(server: PageServer, hashes: Hashes, tmp_path: Path) -> None:
    data = as_zip(GOOD)
    url, _ = serve(server, hashes, data)
    catalogue = catalogue_of(tmp_path, url)
    before, digest = catalogue.read_text(), hashlib.sha256(data).hexdigest()
    for known in (None, digest):
        assert archive.record_hashes(dataset({url: known}), catalogue=catalogue, patience=ONE_TRY) == {url: digest}
        assert catalogue.read_text() == before.replace(f'"{url}": null', f'"{url}": "{digest}"')


@pytest.mark.parametrize("content", [GOOD | {"data/reviews.neg": b""}, {"data/x.pos": POSITIVE}])
def test_no_hash_is_recorded_for_an_archive_that_is_not_what_was_published(
    server: PageServer, hashes: Hashes, tmp_path: Path, content: dict[str, bytes]
) -> None:
    url, _ = serve(server, hashes, as_zip(content))
    catalogue = catalogue_of(tmp_path, url)
    before = catalogue.read_bytes()
    with pytest.raises(SourceError):
        archive.record_hashes(dataset({url: None}, count=4), catalogue=catalogue, patience=ONE_TRY)
    assert catalogue.read_bytes() == before


def test_a_hash_recorded_earlier_is_never_replaced(server: PageServer, hashes: Hashes, tmp_path: Path) -> None:
    url, _ = serve(server, hashes, as_zip(GOOD))
    catalogue = catalogue_of(tmp_path, url)
    before = catalogue.read_bytes()
    with pytest.raises(SourceError, match="does not have the known file"):
        archive.record_hashes(dataset({url: "0" * 64}), catalogue=catalogue, patience=ONE_TRY)
    assert catalogue.read_bytes() == before


def test_a_malformed_hash_is_refused() -> None:
    with pytest.raises(ValueError, match="pattern"):
        dataset({"https://example.invalid/a.zip": "deadbeef"})


# --- readers -------------------------------------------------------------------------------------


def test_trec_labels_follow_sentevals_order_and_the_stray_byte_is_counted() -> None:
    lines = b"NUM:dist How far is the lake ?\nABBR:exp What does TV\xf0stand for ?\n"
    frame, replaced = READERS["trec"]([Member("train", lines)])
    assert frame.rows() == [("How far is the lake ?", 5, "NUM"), ("What does TV\ufffdstand for ?", 0, "ABBR")]
    assert replaced == 1


def test_trec_without_a_known_class_names_the_line() -> None:
    with pytest.raises(SourceError) as caught:
        READERS["trec"]([Member("train", b"NUM:dist How far ?\nFOO:bar What ?\n")])
    assert caught.value.where == "train, line 2"


def test_pos_neg_keeps_empty_lines_for_the_published_counts_include_them() -> None:
    frame, _ = READERS["pos_neg"]([Member("b.neg", b"bad\n\n"), Member("a.pos", b"good\n\nfine")])
    assert frame.rows() == [("good", 1), ("", 1), ("fine", 1), ("bad", 0), ("", 0)]


def test_newsgroups_are_ordered_by_group_and_name_and_decoded_as_latin_1() -> None:
    members = [
        Member("test/sci.space/9", b"nine\n"),
        Member("test/rec.autos/7", b"caf\xe9\n"),
        Member("test/sci.space/10", b"ten\n"),
    ]
    frame, replaced = READERS["newsgroups"](members)
    assert frame.rows() == [("caf\xe9\n", 0, "rec.autos"), ("ten\n", 1, "sci.space"), ("nine\n", 1, "sci.space")]
    assert replaced == 0


def test_sick_finds_its_columns_by_name_and_takes_either_line_end() -> None:
    header = b"pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    rows = b"1\tA cat sits\tA cat is sitting\t4.9\tENTAILMENT\r\n2\tA cat sits\tA dog runs\t1.5\tNEUTRAL\r\n"
    frame, _ = READERS["sick"]([Member("SICK_trial.txt", header + rows)])
    assert frame.rows() == [("A cat sits", "A cat is sitting", 4.9, "SICK"), ("A cat sits", "A dog runs", 1.5, "SICK")]


def test_sick_entailment_numbers_the_labels_of_the_same_lines_and_refuses_another() -> None:
    header = b"pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    rows = b"".join(b"1\tA cat\tA dog\t2\t%s\r\n" % name for name in (b"ENTAILMENT", b"NEUTRAL", b"CONTRADICTION"))
    frame, _ = READERS["sick_entailment"]([Member("SICK_train.txt", header + rows)])
    assert frame.rows() == [("A cat", "A dog", label) for label in (2, 1, 0)]
    with pytest.raises(SourceError, match="cannot be parsed"):
        READERS["sick_entailment"]([Member("SICK_train.txt", header + b"1\tA cat\tA dog\t2\tMAYBE\n")])


@pytest.mark.parametrize(
    "data",
    [
        b"pair_ID\tsentence_A\n1\tA cat\n",
        b"sentence_A\tsentence_B\trelatedness_score\nA cat\tA dog\n",
        b"sentence_A\tsentence_B\trelatedness_score\nA cat\tA dog\thigh\n",
    ],
)
def test_sick_in_another_shape_is_refused(data: bytes) -> None:
    with pytest.raises(SourceError, match="cannot be parsed"):
        READERS["sick"]([Member("SICK.txt", data)])


def test_word_counts_are_read_and_invalid_bytes_counted() -> None:
    frame, replaced = READERS["word_freq"]([Member("counts", b"the 300\ncaf\xe9 200\n\xef\xbf\xbd 5\n")])
    assert frame.rows() == [("the", 300), ("caf\ufffd", 200), ("\ufffd", 5)]
    assert replaced == 1


def test_a_count_that_no_integer_holds_is_refused_by_its_line() -> None:
    with pytest.raises(SourceError, match="line 2"):
        READERS["word_freq"]([Member("counts", b"the 300\nof 99999999999999999999\n")])


def cqa(label: str, *, declaration: str = "", body: str = "Where is it? &amp; how far") -> bytes:
    return f"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE xml [ <!ELEMENT xml (OrgQuestion*)> {declaration} ]>
<xml version="1.0"><OrgQuestion ORGQ_ID="Q1"><OrgQSubject>The park</OrgQSubject><OrgQBody>{body}</OrgQBody>
<Thread THREAD_SEQUENCE="Q1_R7"><RelQuestion RELQ_ID="Q1_R7" RELQ_RANKING_ORDER="7" RELQ_RELEVANCE2ORGQ="{label}">
<RelQSubject>A park</RelQSubject><RelQBody></RelQBody></RelQuestion>
<RelComment RELC_ID="Q1_R7_C1"><RelCText>Over there.</RelCText></RelComment></Thread></OrgQuestion></xml>""".encode()


@pytest.mark.parametrize(("label", "relevance"), [("PerfectMatch", 1), ("Relevant", 1), ("Irrelevant", 0)])
def test_cqa_pairs_carry_their_relevance_and_rank(label: str, relevance: int) -> None:
    frame, _ = READERS["cqa"]([Member("dev.xml", cqa(label))])
    assert frame.rows() == [("Q1", "The park Where is it? & how far", "Q1_R7", "A park", relevance, 7)]


def test_cqa_takes_missing_labels_from_the_gold_file() -> None:
    gold = Member("test.relevancy", b"Q1\tQ1_R7\t7\t0.14\ttrue\n")
    frame, _ = READERS["cqa"]([Member("input.xml", cqa("?")), gold])
    assert frame["relevance"].to_list() == [1]


def test_cqa_without_any_label_is_refused() -> None:
    with pytest.raises(SourceError, match="no label"):
        READERS["cqa"]([Member("input.xml", cqa("?"))])


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
        '<!ENTITY % a SYSTEM "file:///etc/hostname">',
    ],
)
def test_xml_that_declares_an_entity_is_refused(declaration: str) -> None:
    with pytest.raises(SourceError, match="declares an entity"):
        READERS["cqa"]([Member("dev.xml", cqa("Relevant", declaration=declaration, body="nothing"))])


def test_a_rank_that_no_integer_holds_is_refused() -> None:
    for digits in (30, 5000):
        with pytest.raises(SourceError, match="no rank"):
            READERS["cqa"]([Member("dev.xml", cqa("Relevant").replace(b'ORDER="7"', b'ORDER="%b"' % (b"9" * digits)))])


def test_one_question_of_many_related_questions_is_refused_before_it_fills_the_memory() -> None:
    related = b'<RelQuestion RELQ_ID="c" RELQ_RANKING_ORDER="1" RELQ_RELEVANCE2ORGQ="Relevant"/>' * 500
    for question in (b"<OrgQuestion><OrgQBody>%b</OrgQBody>", b"<OrgQuestion ORGQ_ID='%b'>"):
        data = b"<xml>" + question % (b"a" * 1_000_000) + related + b"</OrgQuestion></xml>"
        with pytest.raises(SourceError, match="too much text"):
            READERS["cqa"]([Member("dev.xml", data)])


def test_long_bodies_and_many_groups_are_read_in_linear_time() -> None:
    started = time.process_time()
    body = "a\n" * 400_000
    frame, _ = READERS["cqa"]([Member("dev.xml", cqa("Relevant", body=body))])
    assert frame["query"].to_list() == [f"The park {body.strip()}"]
    frame, _ = READERS["newsgroups"]([Member(f"g{group:06}/1", b"x") for group in range(40_000)])
    assert frame["label"].to_list() == list(range(40_000))
    assert time.process_time() - started < 5  # 30 s where time grows with the square


def test_malformed_xml_is_one_clear_error() -> None:
    with pytest.raises(SourceError, match="malformed"):
        READERS["cqa"]([Member("dev.xml", cqa("Relevant")[:-20])])


def test_every_reader_has_a_docstring_that_says_what_it_reads() -> None:
    assert all(reader.__doc__ for reader in archive_readers.READERS.values())


def test_a_zip_of_millions_of_empty_members_is_refused_before_its_directory_is_read() -> None:
    begun = time.perf_counter()
    with pytest.raises(SourceError, match="unsafe"):
        read_members(as_zip(GOOD) + b"PK\x01\x02" * 3_000_000, "a.zip", ("data/*",))
    assert time.perf_counter() - begun < 1


def test_cqa_counts_rows_without_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_readers, "_CQA_MOST", 10_000)
    rows = b"<RelQuestion RELQ_RANKING_ORDER='1' RELQ_RELEVANCE2ORGQ='Relevant'/>" * 100
    with pytest.raises(SourceError, match="too much text"):
        READERS["cqa"]([Member("dev.xml", b"<xml>" + rows + b"</xml>")])
