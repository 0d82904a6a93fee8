"""Readers of word vector files: text or word2vec's binary format, plain, gz or zip.

A file is read once, and only the wanted words are kept. A filter selects the wanted records and writes them,
each with a number as its name, to a temporary file, which gensim parses. So gensim parses every number, but
never sees blanks inside words, bad UTF-8, a missing header or the gigabytes of unwanted words.
"""

from __future__ import annotations

import fnmatch
import gzip
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from sentfold.errors import SourceError, first_line, located

_DAMAGE = (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError)

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
    Raises SourceError if the file is damaged or cut short, has another dimension, or contains values that
    are not finite numbers. Cost O(bytes) time; memory for the wanted words only.
    """
    names = {word.encode("utf-8", errors="surrogatepass"): word for word in wanted}
    counter = _Counter()
    words: list[str] = []
    seen: set[bytes] = set()
    with tempfile.NamedTemporaryFile(suffix=".vectors") as kept, open_stream(path, member) as stream:
        # The header states the number of words, which is known only at the end: this line is overwritten then.
        kept.write(_header_line(0, dimension))
        cut = _cut_binary if binary else _cut_text
        with located(path.name):
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
        vectors = _parse(Path(kept.name), len(words), dimension, binary=binary, source=path.name)
    return FileVectors(tuple(words), vectors, counter.records, counter.duplicates)


@dataclass
class _Counter:
    records: int = 0
    duplicates: int = 0


# --- opening ------------------------------------------------------------------------------------


@contextmanager
def open_stream(path: Path, member: str | None = None) -> Iterator[BinaryIO]:
    """The unpacked bytes of a plain, gz or zip file; the first bytes tell the kind of file. Raises SourceError."""
    try:
        with path.open("rb") as raw:
            magic = raw.read(4)
            raw.seek(0)
            if magic.startswith(b"PK\x03\x04"):
                with zipfile.ZipFile(raw) as archive, archive.open(_find_member(archive, member, path)) as stream:
                    yield stream  # type: ignore[misc]  # an IO[bytes] has all that the readers need
            elif magic.startswith(b"\x1f\x8b"):
                with gzip.GzipFile(fileobj=raw) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield raw
    except _DAMAGE as error:
        raise _damaged(path.name, "a whole zip or gz", first_line(error)) from None


def _find_member(archive: zipfile.ZipFile, pattern: str | None, path: Path) -> str:
    names = [info.filename for info in archive.infolist() if not info.is_dir()]
    found = [name for name in names if fnmatch.fnmatchcase(name, pattern or "*") and not name.startswith("__MACOSX/")]
    if len(found) != 1:
        raise SourceError(
            "a zip of word vectors does not contain exactly one matching file",
            where=path.name,
            expected=pattern or "one file",
            got=", ".join(found or names)[:300] or "nothing",
            remedy="name the file with `member:`",
        )
    return found[0]


# --- cutting ------------------------------------------------------------------------------------


def _cut_text(
    stream: BinaryIO, names: Collection[bytes], dimension: int, counter: _Counter
) -> Iterator[tuple[bytes, bytes]]:
    """(name, numbers and line end) of the wanted lines of a text file."""
    lines = iter(lambda: stream.readline(_LONGEST), b"")
    first = next(lines, b"")
    header = _header(first)
    if header is not None and header[1] != dimension:
        raise SourceError("word vectors have another dimension", expected=str(dimension), got=str(header[1]))
    # The wanted names up to their first blank: a line that starts otherwise is skipped without being split.
    starts = {name.partition(b" ")[0] for name in names}
    for line in lines if header is not None else chain([first] if first else [], lines):
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
            yield fields[0], b" ".join(fields[1:]) + b"\n"
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


def _parse(kept: Path, count: int, dimension: int, *, binary: bool, source: str) -> npt.NDArray[np.float32]:
    """The kept records as gensim parses them: (count, dimension) float32."""
    if not count:
        return np.zeros((0, dimension), dtype=np.float32)
    # Imported here: gensim takes a second to import, and only file sources need it.
    from gensim.models import KeyedVectors

    try:
        keyed = KeyedVectors.load_word2vec_format(str(kept), binary=binary)
    except (ValueError, EOFError) as error:
        raise _damaged(source, f"{dimension} numbers per word", first_line(error)) from None
    vectors = np.asarray(keyed.vectors, dtype=np.float32)
    if keyed.index_to_key != [str(row) for row in range(count)] or not np.isfinite(vectors).all():
        raise _damaged(source, "finite numbers", "a value that is no number, or is infinite")
    return vectors


def _damaged(source: str, expected: str, got: str) -> SourceError:
    return SourceError(
        "a file of word vectors is damaged",
        where=source,
        expected=expected,
        got=got,
        remedy="copy or download it again",
    )
