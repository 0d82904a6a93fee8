"""Encode a file of sentences: by a method over word vectors, or by a sentence transformer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from sentfold.errors import ArtifactError, EncoderError, ParameterError, first_line
from sentfold.files import FREE, RATIO, read_parquet, require_regular

if TYPE_CHECKING:
    from sentfold.encoders.base.lexicon import Lexicon
    from sentfold.encoders.base.protocol import Encoded, Fitted

Float64 = npt.NDArray[np.float64]


def command(
    encoder: Annotated[str, typer.Argument(help="A method, e.g. sif; or the folder or package of a transformer.")],
    source: Annotated[
        Path | None, typer.Argument(help="Sentences: UTF-8, one a line; or Parquet with a column text.")
    ] = None,
    target: Annotated[
        Path | None, typer.Argument(help="The Parquet file to write: vector, in the order of the sentences.")
    ] = None,
    fit_on: Annotated[Path | None, typer.Option(help="Sentences to learn from, if not SOURCE; repeats count.")] = None,
    words: Annotated[
        str, typer.Option(help="Word vectors: Parquet with word, vector; a published file; or a package.")
    ] = "wordllama",
    dimension: Annotated[int, typer.Option(min=1, help="Numbers per word of a published file.")] = 300,
    binary: Annotated[bool, typer.Option("--binary", help="The published file is word2vec's binary format.")] = False,
    counts: Annotated[Path | None, typer.Option(help="Parquet: word, count. Default: counted in FIT_ON.")] = None,
    clusters: Annotated[
        str | None, typer.Option(help="Parquet with word, cluster; or the number of clusters that k-means makes.")
    ] = None,
    centroids: Annotated[Path | None, typer.Option(help="Parquet: cluster, vector.")] = None,
    directions: Annotated[
        Path | None, typer.Option(help="Parquet: vector, singular_value; removed instead of fitted ones.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="With --out: `encode SOURCE --encoder NAME`.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With --encoder: the Parquet file to write.")] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="Of a transformer's layers: cls, cls-pooled, mean, mean-without-sep, first-last, last-two, "
            "second-to-second-last, sbert-wk."
        ),
    ] = None,
    layer_start: Annotated[int, typer.Option(min=0, help="First layer of sbert-wk; 0 is the embedding layer.")] = 4,
    window: Annotated[int, typer.Option(min=1, help="Layers of context on each side, of sbert-wk.")] = 2,
    max_length: Annotated[int, typer.Option(min=3, help="Tokens that a pooling reads of a sentence.")] = 128,
) -> None:
    """Write one vector per sentence of SOURCE."""
    from sentfold.decision.progress import open_bar
    from sentfold.encoders.base.protocol import known_methods

    encoder, source, target = name_inputs(encoder, source, target, by, out)
    sentences = read_sentences(source)
    if pooling is not None:
        from sentfold.poolings.hidden_states import encode_by_pooling

        record: dict[str, Any] = {"encoder": encoder, "pooling": pooling, "max_length": max_length}
        if pooling == "sbert-wk":
            record |= {"layer_start": layer_start, "window": window}
        encoded = encode_by_pooling(sentences, **record)
    elif encoder.lower() not in known_methods():
        record = {"encoder": encoder}
        encoded = encode_by_model(encoder, sentences)
    else:
        fitting = sentences if fit_on is None else read_sentences(fit_on)
        method, values = load_method(encoder, settings or [])
        with open_bar(3, "step") as bar:
            lexicon = read_lexicon([*sentences, *fitting], fitting, values.tokenizer, words, dimension, binary, counts)
            made = method.build(read_clusters(lexicon, clusters, centroids), values)
            bar.update()
            fitted: Fitted = made.fit(fitting) if directions is None else fit_directions(made, directions)
            bar.update()
            encoded = fitted.encode(sentences)
            bar.update()
        record = {"encoder": encoder.lower(), "settings": values.model_dump(mode="json")}
    vectors, counted = encoded.vectors, dict(encoded.fallbacks)
    write_vectors(target, vectors, {**record, "counted": counted})
    print(f"{target}: {len(vectors)} vectors of {vectors.shape[1]} dimensions by {encoder}")
    for what, number in counted.items():
        if number:
            print(f"  {what}: {number}")


def name_inputs(
    encoder: str, source: Path | None, target: Path | None, by: str | None, out: Path | None
) -> tuple[str, Path, Path]:
    """Encoder, source and target: three arguments, or the source with --encoder and --out. Raises ParameterError."""
    if source is not None and target is not None and by is None and out is None:
        return encoder, source, target
    if source is None and target is None and by is not None and out is not None:
        return by, Path(encoder), out
    raise ParameterError(
        "the encoder, the sentences and the file to write are needed once each",
        where="sentfold encode",
        expected="ENCODER SOURCE TARGET, or SOURCE --encoder NAME --out FILE",
    )


def encode_by_model(name: str, sentences: list[str]) -> Encoded:
    """Vectors by the model in a folder or in an installed package. Raises EncoderError."""
    from sentfold.encoders.base.protocol import known_methods
    from sentfold.fold.texts import find_text_encoder

    try:
        return find_text_encoder(name).encode(sentences)
    except EncoderError as error:
        error.expected = f"{error.expected}; or a method: {', '.join(known_methods())}"
        raise


def encode_by_words(name: str, texts: list[str], words: str) -> Encoded:
    """Vectors by a method with its usual settings, fitted on the very texts.

    words  as `sentfold encode` takes them; how many numbers a word has is read from a published file itself
    Raises EncoderError if what reads these words is not installed; ParameterError for a method that needs clusters.
    """
    method, values = load_method(name, [])
    if values.tokenizer == "whitespace":  # raw text has punctuation at its words
        method, values = load_method(name, ["tokenizer=regex"])
    try:
        dimension, binary = count_numbers(Path(words)), ".bin" in Path(words).suffixes
        lexicon = read_lexicon(texts, texts, values.tokenizer, words, dimension, binary, None)
        fitted: Fitted = method.build(lexicon, values).fit(texts)
    except ModuleNotFoundError as error:
        raise EncoderError(
            f"the package '{error.name}' is missing, which reads these words", where=f"--words {words}",
            remedy="pip install 'sentfold[text]', or give Parquet with word, vector",
        ) from None  # fmt: skip
    except ParameterError as error:
        error.remedy = f"write vectors with `sentfold encode {name} ... --clusters 10`, and give them as --vectors"
        raise
    return fitted.encode(texts)


def count_numbers(path: Path) -> int:
    """Numbers per word of a published file, by its first line; 1 where no such file is asked for."""
    from sentfold.words.files import open_stream

    if path.suffix == ".parquet" or not path.is_file():
        return 1
    with open_stream(path) as stream:
        fields = stream.readline(400_000).split()
    has_header = len(fields) == 2 and all(field.isdigit() for field in fields)
    return max(1, int(fields[1]) if has_header else len(fields) - 1)


def load_method(name: str, settings: list[str]) -> tuple[Any, Any]:
    """The module of a method, and its settings from KEY=VALUE texts. Raises ParameterError."""
    from sentfold.encoders.base.protocol import find_method
    from sentfold.encoders.base.settings import make_settings, parse_settings

    method = find_method(name)
    return method, make_settings(method, parse_settings(method, settings), where="--set")


def fit_directions(encoder: Any, path: Path) -> Fitted:
    """The encoder with the directions of a file instead of a fit. Raises ParameterError if it removes none."""
    if not hasattr(encoder, "fit_directions"):
        raise ParameterError("this method takes no directions", where="--directions", remedy="leave out --directions")
    fitted: Fitted = encoder.fit_directions(*read_directions(path))
    return fitted


# --- what the command reads -----------------------------------------------------------------------


def read_sentences(path: Path) -> list[str]:
    """The lines of a UTF-8 file, empty ones included, or the column text of a Parquet file. Raises ArtifactError."""
    if path.suffix == ".parquet":
        texts: list[str] = read_columns(path, "text").column("text").to_pylist()
        return texts
    try:
        require_regular(path)
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, "UTF-8, one sentence a line", error) from None
    # Not splitlines(), which also splits at characters inside of a sentence.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def read_lexicon(
    sentences: list[str],
    fitting: list[str],
    tokenizer: str,
    words: str,
    dimension: int,
    binary: bool,
    counts: Path | None,
) -> Lexicon:
    """Words with vectors and counts. Raises ArtifactError or SourceError for a file that cannot be read.

    sentences  all whose words may be asked for
    fitting    those that words are counted in, where no counts are given
    """
    from collections import Counter

    from sentfold.encoders.base.lexicon import Lexicon
    from sentfold.words.counts import WordCounts
    from sentfold.words.files import read_file
    from sentfold.words.tokenizers import tokenize
    from sentfold.words.wordllama import token_means

    lowered = [text.lower() for text in sentences]
    asked = list(dict.fromkeys(token for tokens in tokenize([*sentences, *lowered], tokenizer) for token in tokens))
    path = Path(words)
    if path.suffix == ".parquet":
        table = read_columns(path, "word", "vector")
        names, vectors = read_words(table, path), read_matrix(table, path).astype(np.float32)
    elif path.is_file():
        found = read_file(path, set(asked), dimension=dimension, binary=binary)
        names, vectors = found.words, found.vectors
    else:
        names, vectors = tuple(asked), token_means(asked, package=words, sha256=None)
    if not np.isfinite(vectors).all():
        raise ArtifactError("a word vector is not finite", where=words, expected="finite numbers")
    if counts is None:
        counter = Counter(token for tokens in tokenize(fitting, tokenizer) for token in tokens)
        table_of_counts = WordCounts(tuple(counter), np.array(list(counter.values()), dtype=np.int64))
    else:
        table = read_columns(counts, "word", "count")
        table_of_counts = WordCounts(read_words(table, counts), read_integers(table, "count", counts))
    return Lexicon(names, vectors, table_of_counts)


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
    try:
        table = read_parquet(path)
        table.validate(full=True)
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: a name that is not UTF-8
        raise unreadable(path, expected, error) from None
    for column in columns:
        if column not in table.column_names or table.column(column).null_count:
            got = "nulls" if column in table.column_names else f"the columns {', '.join(table.column_names)}"
            raise ArtifactError(
                f"a file has no complete column '{column}'", where=str(path), expected=expected, got=got
            )
    return table.select(list(columns))


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


def unreadable(path: Path, expected: str, error: Exception) -> ArtifactError:
    """The error for a file that is missing or of another format."""
    got = first_line(error)
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
    """The column vector, lists of one length, as an (n, d) array. Raises ArtifactError."""
    lists = table.column("vector").to_pylist()
    lengths = {len(row) if isinstance(row, list) else 0 for row in lists}
    if len(lengths) != 1 or 0 in lengths:
        got = str(table.schema.field("vector").type)
        raise ArtifactError(
            "the column 'vector' has no vectors", where=str(path), expected="lists of one length", got=got
        )
    return np.array(lists)


def write_vectors(path: Path, vectors: npt.NDArray[np.float32], record: dict[str, Any]) -> None:
    """Write the vectors, with what made them as metadata. Raises ArtifactError, and ParameterError for no sentences."""
    from pyarrow import parquet

    from sentfold.files import PARQUET, fixed_lists, replace_whole

    if not len(vectors):
        raise ParameterError("there are no sentences to encode", where="SOURCE")
    table = pa.table({"vector": fixed_lists(np.ascontiguousarray(vectors))})
    text = json.dumps(record, sort_keys=True, ensure_ascii=False)
    with replace_whole(path) as temporary:
        parquet.write_table(table.replace_schema_metadata({"sentfold encode": text}), temporary, **PARQUET)
