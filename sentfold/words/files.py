"""Readers of word vector files: text or word2vec's binary format, plain, gz or zip.

A file is read once, and only the wanted words are kept. A filter selects the wanted records and writes them,
each with a number as its name, to a temporary file, which gensim parses. So gensim parses every number, but
never sees blanks inside words, bad UTF-8, a missing header or the gigabytes of unwanted words.
"""

from __future__ import annotations

import fnmatch
import gzip
import io
import os
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from sentfold.errors import SourceError, first_line, located
from sentfold.files import FREE, RATIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What unpacking raises. An encrypted zip is a RuntimeError, and a damaged gz an OSError.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)

# Longest record that is accepted, in bytes: 10,000 numbers of 30 characters, and a word.
_LONGEST = 400_000


@dataclass(frozen=True)
class FileVectors:
    """The wanted words that a file contains, and their vectors.

    words       in the order of the file
    vectors     (n, d) float32
    records     records in the file
    duplicates  later records of a word already read; the first record is used, as in gensim
    """

    words: tuple[str, ...]
    vectors: npt.NDArray[np.float32]
    records: int
    duplicates: int


def read_file(
    path: Path, wanted: Collection[str], *, dimension: int, binary: bool = False, member: str | None = None
) -> FileVectors:
    """The vectors of the wanted words, in one pass over the file.

    wanted     words, compared as UTF-8; a record whose name is not valid UTF-8 matches no word
    dimension  numbers per word; the word is everything before the last `dimension` fields of a line
    member     glob pattern of the file inside a zip; needed only if there are several
    A first line of two integers is taken for a header; its first integer must be the number of records.
    Raises SourceError if the file is damaged or cut short, has another dimension, contains values that are not
    finite numbers, contains more than its records, or unpacks to more than FREE bytes plus RATIO times its size.
    Cost O(bytes) time; memory for the wanted words only.
    """
    names = {word.encode("utf-8", errors="surrogatepass"): word for word in wanted}
    counter = _Counter()
    words: list[str] = []
    seen: set[bytes] = set()
    with tempfile.NamedTemporaryFile(suffix=".vectors") as kept, open_stream(path, member) as stream:
        # The header states the number of words, which is known only at the end: this line is overwritten then.
        kept.write(_header_line(0, dimension))
        cut = _cut_binary if binary else _cut_text
        for name, figures in cut(stream, names, dimension, counter):
            if name in seen:
                counter.duplicates += 1
                continue
            seen.add(name)
            kept.write(b"%d " % len(words) + figures)
            words.append(names[name])
        kept.seek(0)
        kept.write(_header_line(len(words), dimension))
        kept.flush()
        vectors = _parse(Path(kept.name), len(words), dimension, binary=binary)
    return FileVectors(tuple(words), vectors, counter.records, counter.duplicates)


@dataclass
class _Counter:
    records: int = 0
    duplicates: int = 0


# --- opening ------------------------------------------------------------------------------------


@contextmanager
def open_stream(path: Path, member: str | None = None) -> Iterator[BinaryIO]:
    """The unpacked bytes of a plain, gz or zip file; the first bytes tell the kind of file.

    Raises SourceError for a damaged or encrypted file. Reading raises SourceError too, for what is damaged further
    on, and once a packed file has given more than FREE bytes plus RATIO times its own size. A SentfoldError of the
    block gets the name of the file.
    """
    with located(path.name), path.open("rb") as raw, ExitStack() as opened:
        magic = raw.read(4)
        raw.seek(0)
        packed: IO[bytes] | gzip.GzipFile
        if magic.startswith(b"PK\x03\x04"):
            with _unpacking():
                archive = opened.enter_context(zipfile.ZipFile(raw))
                packed = opened.enter_context(archive.open(_find_member(archive, member)))
        elif magic.startswith(b"\x1f\x8b"):
            packed = gzip.GzipFile(fileobj=raw)  # needs no closing: it leaves that of `raw` to others
        else:
            yield raw
            return
        most = FREE + RATIO * os.fstat(raw.fileno()).st_size
        yield io.BufferedReader(_Unpacked(packed, most), 1 << 16)


class _Unpacked(io.RawIOBase):
    """At most `most` bytes of a packed stream; reading raises SourceError for more, and for a damaged stream."""

    def __init__(self, packed: IO[bytes] | gzip.GzipFile, most: int) -> None:
        self.packed, self.most = packed, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        into = memoryview(buffer)
        with _unpacking():
            more = self.packed.read(len(into))
        self.most -= len(more)
        if self.most < 0:
            raise SourceError(
                "a file of word vectors unpacks to too much",
                expected=f"at most {FREE:,} bytes and {RATIO} times the size of the packed file",
                got="more",
                remedy="unpack the file and look at it",
            )
        into[: len(more)] = more
        return len(more)


@contextmanager
def _unpacking() -> Iterator[None]:
    """Turn the errors of unpacking into a SourceError. The block holds nothing else: _DAMAGE names wide classes."""
    try:
        yield
    except _DAMAGE as error:
        raise _damaged("a whole zip or gz that is not encrypted", first_line(error)) from None


def _find_member(archive: zipfile.ZipFile, pattern: str | None) -> zipfile.ZipInfo:
    infos = {info.filename: info for info in archive.infolist() if not info.is_dir()}
    found = [name for name in infos if fnmatch.fnmatchcase(name, pattern or "*") and not name.startswith("__MACOSX/")]
    if len(found) != 1:
        raise SourceError(
            "a zip of word vectors does not contain exactly one matching file",
            expected=pattern or "one file",
            got=", ".join(found or infos)[:300] or "nothing",
            remedy="name the file with `member:`",
        )
    info = infos[found[0]]
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # zipfile unpacks bzip2 and LZMA without a limit.
        raise SourceError(
            "a zip of word vectors is not packed by deflate",
            expected="deflate, or no packing",
            got=f"packing method {info.compress_type}",
            remedy="unpack the file, or pack it by deflate",
        )
    return info


# --- cutting ------------------------------------------------------------------------------------


def _cut_text(
    stream: BinaryIO, names: Collection[bytes], dimension: int, counter: _Counter
) -> Iterator[tuple[bytes, bytes]]:
    """(name, numbers and line end) of the wanted lines of a text file. Blank lines may only end the file."""
    lines = iter(lambda: stream.readline(_LONGEST + 1), b"")
    first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")  # a byte order mark is no part of the first word
    header = _header(first)
    if header is not None and header[1] != dimension:
        raise SourceError("word vectors have another dimension", expected=str(dimension), got=str(header[1]))
    # The wanted names up to their first blank: a line that starts otherwise is skipped without being split.
    starts = {name.partition(b" ")[0] for name in names}
    least = 2 * dimension + 1  # bytes: a blank and a digit for each number, and a line end
    for line in lines if header is not None else chain([first] if first else [], lines):
        # Without this a small packed file of millions of line ends is as many records.
        if not least <= len(line) <= _LONGEST:
            if not line.strip() and _only_blanks(stream):
                break
            raise SourceError(
                "a line has too few numbers" if len(line) < least else "a line is too long",
                expected=f"a word and {dimension} numbers, {least} to {_LONGEST:,} bytes",
                got=f"{len(line):,} bytes or more after record {counter.records}: {line[:80]!r}",
                remedy="the file is cut short or damaged, or has another dimension",
            )
        counter.records += 1
        if line[: line.find(b" ")] not in starts:
            continue
        fields = line.rstrip().rsplit(b" ", dimension)
        if len(fields) != dimension + 1:
            raise SourceError(
                "a line has too few numbers",
                expected=f"a word and {dimension} numbers",
                got=f"record {counter.records}: {line[:80]!r}",
                remedy="the file is cut short, or has another dimension",
            )
        if fields[0] in names:
            figures = b" ".join(fields[1:])
            if b"_" in figures:  # Python reads 1_0 as 10
                raise SourceError(
                    "a line has a value that is no number", got=f"record {counter.records}: {figures[:80]!r}"
                )
            yield fields[0], figures + b"\n"
    _check_records(header, counter)


def _cut_binary(
    stream: BinaryIO, names: Collection[bytes], dimension: int, counter: _Counter
) -> Iterator[tuple[bytes, bytes]]:
    """(name, float32 bytes) of the wanted records of a word2vec binary file."""
    header = _header(stream.readline(_LONGEST))
    if header is None or header[1] != dimension:
        raise SourceError(
            "a binary file of word vectors has no valid header",
            expected=f"a first line with the number of words and the dimension {dimension}",
            got="no header" if header is None else f"dimension {header[1]}",
        )
    size = 4 * dimension
    buffer = b""
    start = 0
    while counter.records < header[0]:
        blank = buffer.find(b" ", start)
        if blank < 0 or len(buffer) - blank - 1 < size:
            more = stream.read(1 << 20)
            buffer, start = buffer[start:] + more, 0
            if not more or (blank < 0 and len(buffer) > len(more) + _LONGEST):
                break
            continue
        # Some programs end a record with a line end, some do not.
        name = buffer[start:blank].lstrip(b"\n")
        start = blank + 1 + size
        counter.records += 1
        if name in names:
            yield name, buffer[blank + 1 : start]
    _check_records(header, counter)
    if buffer[start:].strip() or not _only_blanks(stream):
        raise SourceError(
            "a binary file of word vectors contains more than its header says",
            expected=f"{header[0]} records, and then nothing but blanks",
            remedy="the file or its header is damaged: copy or download it again",
        )


def _only_blanks(stream: BinaryIO) -> bool:
    """Whether the rest of a stream is blank, read in large pieces."""
    return not any(piece.strip() for piece in iter(lambda: stream.read(1 << 20), b""))


def _header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 19 for field in fields):  # 18 digits fit in 64 bits
        return None
    return int(fields[0]), int(fields[1])


def _check_records(header: tuple[int, int] | None, counter: _Counter) -> None:
    if header is not None and header[0] != counter.records:
        raise SourceError(
            "the number of records in a file of word vectors differs from its header",
            expected=str(header[0]),
            got=str(counter.records),
            remedy="the file is cut short: copy or download it again",
        )


# --- parsing ------------------------------------------------------------------------------------


def _header_line(count: int, dimension: int) -> bytes:
    return b"%12d %12d\n" % (count, dimension)


def _parse(kept: Path, count: int, dimension: int, *, binary: bool) -> npt.NDArray[np.float32]:
    """The kept records as gensim parses them: (count, dimension) float32."""
    if not count:
        return np.zeros((0, dimension), dtype=np.float32)
    # Imported here: gensim takes a second to import, and only file sources need it.
    from gensim.models import KeyedVectors

    try:
        keyed = KeyedVectors.load_word2vec_format(str(kept), binary=binary)
    except (ValueError, EOFError) as error:
        raise _damaged(f"{dimension} numbers per word", first_line(error)) from None
    vectors = np.asarray(keyed.vectors, dtype=np.float32)
    if keyed.index_to_key != [str(row) for row in range(count)] or not np.isfinite(vectors).all():
        raise _damaged("finite numbers", "a value that is no number, or is infinite")
    return vectors


def _damaged(expected: str, got: str) -> SourceError:
    return SourceError(
        "a file of word vectors is damaged",
        expected=expected,
        got=got,
        remedy="copy or download it again",
    )
