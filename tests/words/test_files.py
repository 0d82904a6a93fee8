"""Files of word vectors: every format that is out there, and every way they are broken."""

from __future__ import annotations

import gzip
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st

from sentfold.errors import SourceError
from sentfold.words import files
from sentfold.words.files import read_file

# Names as they occur: a blank inside (GloVe has "at name@domain.com" and ". . ."), a no-break space, bytes that
# are no UTF-8, one of the blank alone, digits that look like a header, and one that stands twice.
RECORDS: list[tuple[bytes, list[float]]] = [
    (b"the", [1.0, -2.5, 3e-5]),
    (b". .", [9.0, 9.0, 9.0]),
    ("caf\u00e9".encode(), [0.1, 0.2, 0.3]),
    ("caf\u00e9".encode("latin-1"), [7.0, 7.0, 7.0]),
    (b".", [4.0, 5.0, 6.0]),
    ("a\u00a0b".encode(), [8.0, 8.0, 8.0]),
    (b"1999995", [0.5, 0.5, 0.5]),
    (b"the", [6.0, 6.0, 6.0]),
    ("\u0130\u2028x".encode(), [1.5, 1.5, 1.5]),
    (b"in the end", [2.0, 2.0, 2.0]),
]
WANTED = {"the", ".", "caf\u00e9", "in the end", "1999995", "absent", "\u0130\u2028x", "in"}
FOUND = {"the": 0, "caf\u00e9": 2, ".": 4, "1999995": 6, "\u0130\u2028x": 8, "in the end": 9}


def as_text(*, header: bool = False, line_end: bytes = b"\n") -> bytes:
    lines = [b" ".join([word, *(repr(value).encode() for value in values)]) for word, values in RECORDS]
    return (b"%d 3\n" % len(RECORDS) if header else b"") + line_end.join(lines) + line_end


def as_binary(*, newline: bool = True) -> bytes:
    body = [word + b" " + struct.pack("<3f", *values) + (b"\n" if newline else b"") for word, values in UNSPACED]
    return b"%d 3\n" % len(UNSPACED) + b"".join(body)


# The binary format ends a word at its first blank, so words with one cannot be in it.
UNSPACED = [(word, values) for word, values in RECORDS if b" " not in word]


def as_gz(path: Path, data: bytes) -> Path:
    path.write_bytes(gzip.compress(data))
    return path


def as_zip(path: Path, data: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/vectors.txt", data)
        archive.writestr("__MACOSX/folder/._vectors.txt", b"junk")
    return path


def as_plain(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


Pack = Callable[[Path, bytes], Path]


@pytest.mark.parametrize("pack", [as_plain, as_gz, as_zip])
@pytest.mark.parametrize("header", [False, True])
def test_wanted_words_are_read_and_the_rest_survived(tmp_path: Path, pack: Pack, header: bool) -> None:
    held = read_file(pack(tmp_path / "v", as_text(header=header)), WANTED, dimension=3)
    assert held.words == tuple(FOUND)
    assert (held.records, held.duplicates) == (10, 1)
    assert held.vectors.dtype == np.float32
    np.testing.assert_array_equal(held.vectors, np.array([RECORDS[row][1] for row in FOUND.values()], dtype=np.float32))


@pytest.mark.parametrize("line_end", [b"\r\n", b" \n"])
def test_other_line_ends_change_nothing(tmp_path: Path, line_end: bytes) -> None:
    held = read_file(as_plain(tmp_path / "v", as_text(line_end=line_end)), WANTED, dimension=3)
    assert held.words == tuple(FOUND)


@pytest.mark.parametrize("header", [True, False])
def test_a_byte_order_mark_is_no_part_of_the_first_word_or_of_the_header(tmp_path: Path, header: bool) -> None:
    path = as_plain(tmp_path / "v", b"\xef\xbb\xbf" + as_text(header=header))
    found = read_file(path, WANTED, dimension=3)
    assert dict(zip(found.words, found.vectors.tolist(), strict=True))["the"] == pytest.approx(RECORDS[0][1])
    assert found.records == len(RECORDS)


@pytest.mark.parametrize("newline", [False, True])
@pytest.mark.parametrize("pack", [as_plain, as_gz])
def test_the_binary_format_is_read_with_and_without_line_ends(tmp_path: Path, pack: Pack, newline: bool) -> None:
    held = read_file(pack(tmp_path / "v", as_binary(newline=newline)), WANTED, dimension=3, binary=True)
    assert held.words == tuple(word for word in FOUND if " " not in word)
    assert (held.records, held.duplicates) == (len(UNSPACED), 1)
    rows = [next(values for name, values in UNSPACED if name == word.encode()) for word in held.words]
    np.testing.assert_array_equal(held.vectors, np.array(rows, dtype=np.float32))


@pytest.mark.parametrize("binary", [False, True])
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters=" \n"), min_size=1, max_size=8), min_size=1),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_what_gensim_itself_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, binary: bool, words: list[str], dimension: int, random: object
) -> None:
    words = [word for word in dict.fromkeys(words) if word.strip() == word]
    if not words:
        return
    keyed = KeyedVectors(dimension)
    vectors = np.random.default_rng(len(words)).standard_normal((len(words), dimension)).astype(np.float32)
    keyed.add_vectors(words, vectors)
    path = tmp_path_factory.mktemp("gensim") / "vectors"
    keyed.save_word2vec_format(str(path), binary=binary)
    held = read_file(path, words, dimension=dimension, binary=binary)
    rows = {word: row for row, word in enumerate(words)}
    assert sorted(held.words) == sorted(words)
    np.testing.assert_array_equal(held.vectors, vectors[[rows[word] for word in held.words]])


def test_a_large_binary_file_is_cut_across_reads(tmp_path: Path) -> None:
    # Three megabytes, read one at a time: records straddle the joints.
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((8000, 100)).astype(np.float32)
    body = b"".join(b"w%d " % row + vectors[row].tobytes() + b"\n" for row in range(8000))
    path = as_plain(tmp_path / "v", b"8000 100\n" + body)
    held = read_file(path, {f"w{row}" for row in range(0, 8000, 7)}, dimension=100, binary=True)
    np.testing.assert_array_equal(held.vectors, vectors[::7])


def test_no_wanted_word_is_an_empty_answer(tmp_path: Path) -> None:
    held = read_file(as_plain(tmp_path / "v", as_text()), {"absent"}, dimension=3)
    assert (held.words, held.vectors.shape, held.records) == ((), (0, 3), 10)


def test_memory_is_for_the_wanted_words_alone(tmp_path: Path) -> None:
    import tracemalloc

    line = b" ".join([b"%f" % value for value in np.linspace(0, 1, 300)])
    path = as_gz(tmp_path / "v.gz", b"".join(b"w%d " % row + line + b"\n" for row in range(5000)))
    read_file(path, {"w1"}, dimension=300)  # imports gensim
    tracemalloc.start()
    held = read_file(path, {"w1", "w4999"}, dimension=300)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held.records == 5000
    # The file is 14 MB unpacked, its vectors 6 MB; one line, the packed stream's window and gensim's own are not 2.
    assert peak < 2 * 2**20


BROKEN: dict[str, tuple[bytes, bool, str]] = {
    "a line cut short": (b"the 1 2 3\ncat 1 2", False, "too few numbers"),
    "an unwanted line cut short": (b"the 1 2 3\ndog 1", False, "too few numbers"),
    "another dimension in the header": (b"2 4\nthe 1 2 3 4\ncat 1 2 3 4\n", False, "another dimension"),
    "fewer lines than the header says": (b"3 3\nthe 1 2 3\ncat 1 2 3\n", False, "differs from its header"),
    "more lines than the header says": (b"1 3\nthe 1 2 3\ncat 1 2 3\n", False, "differs from its header"),
    "a figure that is none": (b"the 1 x 3\n", False, "damaged"),
    "a blank line between others": (b"the 1 2 3\n\ncat 1 2 3\n", False, "too few numbers"),
    "an underscore, which Python skips": (b"the 1 1_0 3\n", False, "no number"),
    "an infinite figure": (b"the 1 inf 3\n", False, "damaged"),
    "not a number": (b"the 1 nan 3\n", False, "damaged"),
    "binary without a header": (b"the " + struct.pack("<3f", 1, 2, 3), True, "no valid header"),
    "binary of another dimension": (b"1 4\nthe " + struct.pack("<4f", 1, 2, 3, 4), True, "no valid header"),
    "binary cut short": (b"2 3\nthe " + struct.pack("<3f", 1, 2, 3) + b"cat ", True, "differs from its header"),
    "more binary records than the header says": (
        b"1 3\nthe " + struct.pack("<3f", 1, 2, 3) + b"\ncat " + struct.pack("<3f", 1, 2, 3),
        True,
        "more than its header says",
    ),
    "binary that is text": (b"2 3\nthe 1 2 3\ncat 1 2 3\n", True, "differs from its header"),
    "binary with an infinite figure": (b"1 3\nthe " + struct.pack("<3f", 1, np.inf, 3), True, "damaged"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_one_clear_error_with_its_name(tmp_path: Path, case: str) -> None:
    data, binary, what = BROKEN[case]
    path = as_plain(tmp_path / "some.vectors", data)
    with pytest.raises(SourceError) as caught:
        read_file(path, {"the", "cat"}, dimension=3, binary=binary)
    assert what in caught.value.what
    assert "some.vectors" in caught.value.where


@pytest.mark.parametrize("line", [b"1" * 5000 + b" 3", b"1 " + b"9" * 400])
def test_a_first_line_of_more_digits_than_any_number_of_words_is_no_header(tmp_path: Path, line: bytes) -> None:
    path = as_plain(tmp_path / "some.vectors", line + b"\nthe 1 2 3\n")
    assert read_file(path, {"the"}, dimension=3).words == ("the",)
    with pytest.raises(SourceError, match="no valid header"):
        read_file(path, {"the"}, dimension=3, binary=True)


@pytest.mark.parametrize("pack", [as_gz, as_zip])
def test_a_packed_file_that_was_cut_short_is_refused(tmp_path: Path, pack: Pack) -> None:
    path = pack(tmp_path / "v", as_text() * 1000)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(SourceError, match="damaged"):
        read_file(path, WANTED, dimension=3)


def test_a_zip_of_several_files_needs_a_name(tmp_path: Path) -> None:
    path = tmp_path / "v.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", b"hello")
        archive.writestr("deep/v.txt", as_text())
    with pytest.raises(SourceError) as caught:
        read_file(path, WANTED, dimension=3)
    assert "readme.txt, deep/v.txt" in str(caught.value)
    assert read_file(path, WANTED, dimension=3, member="*v.txt").words == tuple(FOUND)
    with pytest.raises(SourceError, match="exactly one"):
        read_file(path, WANTED, dimension=3, member="*.bin")


@pytest.mark.parametrize("pack", [as_gz, as_zip])
def test_a_small_packed_file_of_line_ends_is_refused_at_once(tmp_path: Path, pack: Pack) -> None:
    # Line ends cost 1 bit packed and half a microsecond each: 39 KB took 19 seconds, and a megabyte 8 minutes.
    for middle in (b"", b"the 1 2 3\n"):
        path = pack(tmp_path / "v", middle + b"\n" * 4_000_000 + b"cat 1 2 3\n")
        start = time.process_time()
        with pytest.raises(SourceError, match="too few numbers"):
            read_file(path, WANTED, dimension=3)
        assert time.process_time() - start < 0.5


def test_blank_lines_at_the_end_of_a_file_are_no_records(tmp_path: Path) -> None:
    for header in (False, True):
        path = as_gz(tmp_path / "v", as_text(header=header) + b"\n \r\n" * 1_000_000)
        start = time.process_time()
        held = read_file(path, WANTED, dimension=3)
        assert time.process_time() - start < 0.5
        assert (held.words, held.records) == (tuple(FOUND), 10)


@pytest.mark.parametrize("binary", [False, True])
def test_a_packed_file_may_not_unpack_to_a_hundred_times_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binary: bool
) -> None:
    monkeypatch.setattr(files, "FREE", 10_000)
    line = b"cat " + struct.pack("<3f", 1, 2, 3) if binary else b"cat 1 2 3\n"
    data = (b"1000000 3\n" if binary else b"") + line * 1_000_000
    with pytest.raises(SourceError, match="unpacks to too much"):
        read_file(as_gz(tmp_path / "v", data), WANTED, dimension=3, binary=binary)
    assert read_file(as_plain(tmp_path / "v", data), WANTED, dimension=3, binary=binary).records == 1_000_000


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damage_anywhere_in_a_zip_is_one_clear_error(tmp_path: Path, method: int) -> None:
    path = tmp_path / "v.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("v.txt", as_text() * (50 if method else 5))  # unpacked, each byte is a byte of the archive
    whole = path.read_bytes()
    for place in range(4, len(whole)):  # the first four bytes tell that the file is a zip
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            read_file(path, WANTED, dimension=3)
        except SourceError as error:
            assert error.where == "v.zip"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_packed_by_what_python_unpacks_without_a_limit_is_refused_unread(tmp_path: Path, method: int) -> None:
    path = tmp_path / "v.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("v.txt", as_text())
    with pytest.raises(SourceError, match=r"(?s)not packed by deflate.*v\.zip"):
        read_file(path, WANTED, dimension=3)


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    path = as_zip(tmp_path / "v.zip", as_text())
    data = bytearray(path.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(signature) + flags] |= 1
    path.write_bytes(data)
    with pytest.raises(SourceError, match="encrypted"):
        read_file(path, WANTED, dimension=3)


def test_no_word_is_made_of_the_second_half_of_a_line_that_is_too_long(tmp_path: Path) -> None:
    path = as_plain(tmp_path / "v", b"x" * 400_000 + b"the 1 2 3\n")
    with pytest.raises(SourceError, match="too long"):
        read_file(path, WANTED, dimension=3)
