"""Word vectors, counts and clusters from the files of a user, or from an installed package."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sentfold.data.tables import DataError, decode_texts, refuse_holes, shorten
from sentfold.errors import ArtifactError, EncoderError, SourceError, first_line
from sentfold.files import FREE, RATIO, read_parquet
from sentfold.forms import compose
from sentfold.libraries import TEXT_EXTRA

if TYPE_CHECKING:
    from sentfold.encoders.base.lexicon import Lexicon

Float64 = npt.NDArray[np.float64]

MOST_MARKED = 0.1  # of all words may have combining marks, or no Latin letter
LATIN = re.compile("[A-Za-z0-9]")


@contextmanager
def readers_installed(words: str) -> Iterator[None]:
    """Turn a missing package, which reads these words, into an EncoderError that names the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise EncoderError(
            f"the package '{error.name}' is missing, which reads these words", where=f"--words {words}",
            remedy=f"{TEXT_EXTRA}, or give Parquet with word, vector",
        ) from None  # fmt: skip


def whole_words(texts: Sequence[str], tokenizer: str) -> list[str]:
    """The texts as a tokenizer has to get them that would cut words at decomposed accents: these are composed.

    Letters that are one character stay, also where Unicode's form NFC takes them apart. The Turkish capital i becomes a
    small one where texts are put into lower case before they are split: Python would make two characters of it, and the
    word would be cut. For the tokenizer that splits at blanks alone nothing changes.
    """
    if tokenizer == "whitespace":
        return list(texts)

    def join(found: re.Match[str]) -> str:
        composed = compose(found[0])
        return composed if len(composed) < len(found[0]) else found[0]

    whole = [text if text.isascii() else _decomposed().sub(join, text) for text in texts]
    return [text.replace("\u0130", "i") for text in whole] if tokenizer == "regex" else whole


def cut_words(texts: Sequence[str], tokenizer: str) -> dict[str, int]:
    """The number of words in which a letter has a mark, by what an encoder counts; {} if there are none.

    A tokenizer cuts these words at the mark: Unicode has no single character for such a letter with its mark.

    texts  as whole_words gives them
    """
    count = 0 if tokenizer in ("whitespace", "treebank") else len(_marked_words(texts))
    return {"words cut at a letter with a mark (tokens)": count} if count else {}


def read_lexicon(
    sentences: list[str],
    fitting: list[str],
    tokenizer: str,
    words: str,
    dimension: int,
    binary: bool,
    counts: Path | None,
) -> Lexicon:
    """Words with vectors and counts.

    Raises ArtifactError or SourceError for a file that cannot be read, and DataError for texts whose words are cut.

    sentences  all whose words may be asked for, as whole_words gives them
    fitting    those that words are counted in, where no counts are given
    """
    from collections import Counter

    from sentfold.encoders.base.lexicon import Lexicon
    from sentfold.words.counts import WordCounts
    from sentfold.words.tokenizers import tokenize

    refuse_other_languages(sentences, tokenizer)
    names, vectors = read_word_vectors(sentences, tokenizer, words, dimension, binary)
    if counts is None:
        counter = Counter(token for tokens in tokenize(fitting, tokenizer) for token in tokens)
        table_of_counts = WordCounts(tuple(counter), np.array(list(counter.values()), dtype=np.int64))
    else:
        table = read_columns(counts, "word", "count")
        table_of_counts = WordCounts(read_words(table, counts), read_integers(table, "count", counts))
    return Lexicon(names, vectors, table_of_counts)


def uncounted_notes(sentences: Sequence[str], tokenizer: str, lexicon: Lexicon) -> list[str]:
    """A note on words with a vector and without a count, where there are some.

    Methods that weigh words by counts take these for the rarest. Cost: all sentences are tokenized once more.
    """
    from collections import Counter

    from sentfold.words.tokenizers import tokenize

    named, known = set(lexicon.words), set(lexicon.counts.words)
    words = Counter(token for tokens in tokenize(sentences, tokenizer) for token in tokens if token in named)
    unknown = Counter({word: count for word, count in words.items() if word not in known})
    if not unknown:
        return []
    ((word, _),) = unknown.most_common(1)
    return [
        f"{unknown.total():,} of {words.total():,} words have no count, such as {shorten(word)}: a method that weighs "
        "words by counts takes them for the rarest. Counts are of words as the tokenizer writes them, mostly lower case"
    ]


def refuse_other_languages(sentences: Sequence[str], tokenizer: str) -> None:
    """Raise DataError for texts, as whole_words gives them, of which a tokenizer would cut or leave out many words."""
    if tokenizer != "whitespace":
        _refuse_marks(sentences)
    if tokenizer == "treebank":
        _refuse_other_letters(sentences)


def _refuse_marks(sentences: Sequence[str]) -> None:
    """Raise DataError where many words have combining marks, which the tokenizers split off as if they were commas."""
    marked = _marked_words(sentences)
    every = sum(len(text.split()) for text in sentences)
    if len(marked) > MOST_MARKED * every:
        raise DataError(
            "words would be cut at their marks or joiners: methods over word vectors split texts as English is written",
            where="the texts",
            expected="letters without combining marks and joiners, as Hindi, Thai, Tamil, Persian and Arabic with "
            "vowel signs have them",
            got=f"{len(marked):,} of {every:,} words, such as {shorten(marked[0])}",
            remedy="encode the texts by a model, or by a program of your own and give its vectors as --vectors",
        )


def _refuse_other_letters(sentences: Sequence[str]) -> None:
    """Raise DataError where many words have no Latin letter: the tokenizer of uSIF leaves them out."""
    words = [word for text in sentences for word in text.split() if not word.isascii() or LATIN.search(word)]
    # uSIF leaves out the Italian word è, too; but such words are short and frequent, and say little.
    others = [word for word in words if not LATIN.search(unicodedata.normalize("NFD", compose(word)))]
    others = [word for word in others if any(map(str.isalpha, word))]
    if len(others) > MOST_MARKED * len(words):
        raise DataError(
            "words would be left out: uSIF takes words with a letter from a to z, or a digit", where="the texts",
            expected="words of Latin letters", got=f"{len(others):,} of {len(words):,} words without one, such as "
            f"{shorten(others[0])}", remedy="take sif or average, or a model",
        )  # fmt: skip


def _marked_words(texts: Sequence[str]) -> list[str]:
    return [word for text in texts if not text.isascii() for word in text.split() if _marked().search(word)]


@cache
def _marks() -> str:
    """All combining marks but the selectors of emojis and key caps, for a class of characters."""
    marks = [chr(code) for code in (*range(0x300, 0x20D0), *range(0x2100, 0xFE00), *range(0xFE10, 0x20000))]
    return "".join(mark for mark in marks if unicodedata.category(mark) in ("Mn", "Mc"))


@cache
def _decomposed() -> re.Pattern[str]:
    """A letter with its marks, or parts of Korean syllables."""
    return re.compile(rf"\w[{_marks()}]+|[\u1100-\u11ff]+")


@cache
def _marked() -> re.Pattern[str]:
    """A letter or digit with a combining mark, or two with a joiner or soft hyphen between them.

    No selector of an emoji (U+FE0F), and no key cap.
    """
    return re.compile(rf"\w(?:[{_marks()}]|[\u00ad\u200c\u200d]\w)")


def read_word_vectors(
    sentences: Sequence[str], tokenizer: str, words: str, dimension: int, binary: bool
) -> tuple[tuple[str, ...], npt.NDArray[np.float32]]:
    """Words and their (v, d) vectors: all of a Parquet file; of other sources those that the sentences may ask for.

    words  Parquet with word, vector; a published file, of `dimension` numbers a word, or `binary`; or a package
    Raises ArtifactError or SourceError for a file that cannot be read.
    """
    from sentfold.words.files import read_file
    from sentfold.words.tokenizers import tokenize
    from sentfold.words.wordllama import token_means

    lowered = [text.lower() for text in sentences]
    asked = list(dict.fromkeys(token for tokens in tokenize([*sentences, *lowered], tokenizer) for token in tokens))
    path = Path(words)
    if path.suffix.lower() == ".parquet":
        table = read_columns(path, "word", "vector")
        names, vectors = read_words(table, path), read_matrix(table, path).astype(np.float32)
    elif path.is_file():
        if words.isidentifier() and find_spec(words):
            raise ArtifactError(
                f"a file here and an installed package are both called '{words}'",
                where="word vectors",
                expected="a name that one of them has",
                got=f"{path.absolute()}, and the package",
                remedy=f"write ./{words} for the file; for the package, work in another folder",
            )
        if not binary:
            _refuse_tabs(path)
        found = read_file(path, set(asked), dimension=dimension, binary=binary)
        names, vectors = found.words, found.vectors
    elif path.suffix or path.name != words:
        raise unreadable(path, "Parquet with word, vector; a published file; or the name of a package", "no such file")
    else:
        if words != "wordllama" and (not words.isidentifier() or find_spec(words) is None):
            raise unreadable(path, "a file of word vectors, or the name of an installed package", "neither")
        # A package is asked for one word at least, which tells how many numbers a vector of it has.
        means = token_means(asked or ["a"], package=words, sha256=None)
        names, vectors = tuple(asked), means[: len(asked)]
    if not np.isfinite(vectors).all():
        raise ArtifactError("a word vector is not finite", where=words, expected="finite numbers")
    return names, vectors


def _refuse_tabs(path: Path) -> None:
    """Raise SourceError for a text file of words whose numbers follow tabs: no word would be found in it."""
    from sentfold.words.files import open_stream

    with open_stream(path) as stream:
        stream.readline(400_000)  # can be a header
        line = stream.readline(400_000)
    if b"\t" in line.partition(b" ")[0].strip():
        raise SourceError(
            "word vectors are separated by tabs", where=str(path), expected="blanks between a word and its numbers",
            got=f"{line[:60]!r} in line 2", remedy="of the file, unpacked: tr '\\t' ' ' < OLD > NEW",
        )  # fmt: skip


def count_numbers(path: Path) -> int:
    """Numbers per word of a published file, by its header or first lines; 1 where no such file is asked for.

    A word can have blanks, or be a number, and a first line can be a remark: of each line, the numbers at its end are
    counted, and the number that most lines have is taken; of equally many, the least.
    """
    from sentfold.words.files import open_stream

    if path.suffix.lower() == ".parquet" or not path.is_file():
        return 1
    with open_stream(path) as stream:
        fields = stream.readline(400_000).removeprefix(b"\xef\xbb\xbf").split()
        if len(fields) == 2 and all(field.isdigit() and len(field) < 19 for field in fields):
            return max(1, int(fields[1]))
        lines = [fields, *(stream.readline(400_000).split() for _ in range(9))]
    counts = Counter(filter(None, (_numbers_at_end(line[1:]) for line in lines)))
    return min(counts, key=lambda count: (-counts[count], count), default=1)


def _numbers_at_end(fields: Sequence[bytes]) -> int:
    for count, field in enumerate(reversed(fields)):
        try:
            float(field)
        except ValueError:
            return count
    return len(fields)


def read_clusters(lexicon: Lexicon, clusters: str | None, centroids: Path | None) -> Lexicon:
    """The lexicon with the clusters of a file, or with as many as k-means is to make; words in none become unknown."""
    from sentfold.encoders.base.estimator import add_clusters

    if clusters is None:
        return lexicon
    if clusters.isdecimal():
        return add_clusters(lexicon, int(clusters))
    path = Path(clusters)
    table = read_columns(path, "word", "cluster")
    labels = dict(zip(read_words(table, path), read_integers(table, "cluster", path).tolist(), strict=True))
    return add_clusters(lexicon, labels, None if centroids is None else read_centroids(centroids))


def read_centroids(path: Path) -> Float64:
    """(k, d) float64 centroids in the order of their clusters' numbers; zeros for a number that is left out."""
    table = read_columns(path, "cluster", "vector")
    rows = read_integers(table, "cluster", path)
    vectors = read_matrix(table, path)
    if not np.isfinite(vectors).all():
        raise ArtifactError("a centroid is not finite", where=str(path), expected="finite numbers")
    if 8 * (int(rows.max()) + 1) * vectors.shape[1] > FREE + RATIO * path.stat().st_size:
        raise ArtifactError(
            "the numbers of clusters leave too many out", where=str(path), expected="numbers from 0 on",
            got=f"{len(rows):,} clusters, numbered up to {rows.max():,}",
        )  # fmt: skip
    centroids = np.zeros((int(rows.max()) + 1, vectors.shape[1]))
    centroids[rows] = vectors
    return centroids


def read_directions(path: Path) -> tuple[Float64, Float64]:
    """(k, d) float64 directions, one a row, and their (k,) singular values."""
    table = read_columns(path, "vector", "singular_value")
    values = np.asarray(table.column("singular_value").to_numpy(), dtype=np.float64)
    return read_matrix(table, path).astype(np.float64), values


def read_columns(path: Path, *columns: str) -> pa.Table:
    """These columns of a Parquet file of anyone's making, without nulls. Raises ArtifactError."""
    expected = f"Parquet with the columns {', '.join(columns)}, without nulls"
    refuse_holes(path)
    try:
        table = read_parquet(path.absolute())  # pyarrow takes names with a colon for addresses
        table.validate(full=True)
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: a name that is not UTF-8
        raise unreadable(path, expected, error) from None
    for column in columns:
        if column not in table.column_names or table.column(column).null_count:
            got = "nulls" if column in table.column_names else f"the columns {', '.join(table.column_names)}"
            raise ArtifactError(
                f"a file has no complete column '{column}'", where=str(path), expected=expected, got=got
            )
    return decode_texts(table.select(list(columns)))


def read_integers(table: pa.Table, column: str, path: Path) -> npt.NDArray[np.int64]:
    """A column of counts or numbers, (n,). Raises ArtifactError for what is no integer from 0 to 2^53."""
    try:
        numbers = np.asarray(table.column(column).cast(pa.int64()).to_numpy())
    except (pa.ArrowException, ValueError) as error:
        numbers, got = np.array([-1]), first_line(error)
    else:
        got = f"{numbers.min()} to {numbers.max()}" if len(numbers) else ""
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() <= 2**53):
        raise ArtifactError(
            f"the column '{column}' holds other things than counts", where=str(path), expected="integers, 0 to 2^53",
            got=got,
        )  # fmt: skip
    return numbers


def unreadable(path: Path, expected: str, error: Exception | str) -> ArtifactError:
    """The error for a file that is missing or of another format."""
    got = error if isinstance(error, str) else first_line(error)
    return ArtifactError(
        "a file cannot be read", where=str(path), expected=expected, got=got, remedy="correct the path"
    )


def read_words(table: pa.Table, path: Path) -> tuple[str, ...]:
    """The distinct words of a table. Raises ArtifactError if a word occurs twice."""
    words = tuple(table.column("word").to_pylist())
    if len(set(words)) < len(words):
        raise ArtifactError("a word occurs twice", where=str(path), expected="distinct words")
    return words


def read_matrix(table: pa.Table, path: Path) -> npt.NDArray[Any]:
    """The column vector, lists of one length, as an (n, d) array. Raises DataError."""
    from sentfold.data.vectors import matrix_of

    where = f"{path}, column vector"
    vectors = matrix_of(table.column("vector").combine_chunks(), where)
    if not vectors.shape[1]:
        raise DataError("vectors have no numbers", where=where, expected="lists of numbers", got="empty lists")
    return vectors
