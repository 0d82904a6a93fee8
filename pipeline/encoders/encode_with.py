"""The command `encode-with`: any method on files of one's own, outside any suite."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from pipeline.artifacts import write_vectors
from pipeline.encoders.components import Components
from pipeline.encoders.encode import with_clusters
from pipeline.encoders.gem import Directions, GemEncoder
from pipeline.encoders.lexicon import Lexicon
from pipeline.encoders.protocol import Encoded, Encoder, Fitted, find_method
from pipeline.encoders.settings import make_settings, parse_settings
from pipeline.encoders.word_encoder import FittedWordEncoder, WordEncoder
from pipeline.errors import ArtifactError, ParameterError, first_line
from pipeline.words.adjust import level_variance
from pipeline.words.counts import WordCounts
from pipeline.words.partition import Partition, centroids_of

Float64 = npt.NDArray[np.float64]

# Leading components whose variance S3E and LASE level before they cluster.
LEVELLED = 10


@dataclass(frozen=True)
class Files:
    """What the command reads. Text: UTF-8, one sentence a line. The others: Parquet.

    sentences   to encode
    fit_on      to learn from
    words       columns word, vector
    counts      columns word, count
    clusters    columns word, cluster; words without one become unknown
    centroids   columns cluster, vector
    directions  columns vector, singular_value; one direction a row
    """

    sentences: Path
    fit_on: Path
    words: Path
    counts: Path
    clusters: Path | None = None
    centroids: Path | None = None
    directions: Path | None = None

    @property
    def all(self) -> list[Path]:
        """Those that were given."""
        return [path for path in vars(self).values() if path is not None]


@dataclass(frozen=True)
class Request:
    """How the command is to encode.

    variant    published or released, or None: the method's default
    component  joint: directions over all of fit_on; per-side: over each side of it apart (see fit_sides);
               none; or None: the method's default
    tokenizer  one of words/tokenizers.py, or None: the method's own
    settings   key=value texts: settings of the method, and of the command `pvn` (see level_words) and `sides`
               (see encode_sides)
    """

    method: str
    variant: str | None = None
    component: str | None = None
    tokenizer: str | None = None
    settings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """What was done: sentences, dimension, fallbacks, and the command's own decisions in words."""

    sentences: int
    dimension: int
    fallbacks: dict[str, int]
    remarks: list[str]


def encode_with(files: Files, request: Request, out: Path) -> Report:
    """Encode the sentences of a file with words, counts, clusters and directions from files; write `out`.

    `out` has one column, vector (fixed_size_list<float32>), its rows in the order of the sentences.
    Raises ParameterError or EncoderError for a wrong request, ArtifactError for a file that cannot be read.
    """
    module = find_method(request.method)
    values = parse_settings(module, request.settings)
    pvn, sides = values.pop("pvn", "auto"), values.pop("sides", "auto")
    if sides not in ("auto", "stacked", "interleaved"):
        raise ParameterError(
            "unknown arrangement of sides", where="--set sides", expected="auto, stacked or interleaved", got=str(sides)
        )
    component = "joint" if request.component == "per-side" else request.component
    given = {"variant": request.variant, "component": component, "tokenizer": request.tokenizer}
    values |= {key: value for key, value in given.items() if value is not None}
    settings = make_settings(module, values, where="the command line")
    sentences, corpus = read_lines(files.sentences), read_lines(files.fit_on)
    follows_s3e = module.__name__.endswith((".s3e", ".lase")) and settings.released
    with threadpool_limits(1):
        lexicon, remarks = read_lexicon(files, missing_as_mean=follows_s3e)
        if follows_s3e or pvn not in ("auto", 0):
            lexicon, remark = level_words(lexicon, pvn)
            remarks.append(remark)
        encoder = module.build(lexicon, settings)
        if files.directions is not None:
            if request.component == "per-side":
                raise ParameterError(
                    "directions are given, so none are found per side",
                    where="--component",
                    got="per-side",
                    remedy="leave out --directions, or say --component joint",
                )
            encoded = fit_given(encoder, files.directions).encode(sentences)
            remarks.append(f"directions: those of {files.directions}")
        elif request.component == "per-side":
            encoded, remark = encode_sides(encoder, sentences, corpus, sides)
            remarks.append(remark)
        else:
            encoded = encoder.fit(corpus).encode(sentences)
    record: dict[str, Any] = {
        "method": module.__name__.rpartition(".")[2],
        "settings": settings.model_dump(mode="json"),
    }
    record |= {"component": request.component, "pvn": pvn, "sides": sides}
    write_vectors(
        out,
        encoded.vectors,
        parameters=record,
        inputs=files.all,
        notes={"fallbacks": dict(encoded.fallbacks), "remarks": remarks},
    )
    return Report(len(sentences), encoded.vectors.shape[1], dict(encoded.fallbacks), remarks)


# --- directions -----------------------------------------------------------------------------------


def fit_given(encoder: Encoder, path: Path) -> Fitted:
    """The encoder with directions from a file instead of a fit, as many of the first as it would remove.

    Raises ParameterError if the method removes none.
    """
    table = read_columns(path, ("vector", "singular_value"))
    rows = read_matrix(table, "vector", path).astype(np.float64)
    values = np.asarray(table.column("singular_value").to_numpy(), dtype=np.float64)
    if isinstance(encoder, GemEncoder):
        return encoder.fit_directions(Directions(rows, values))
    if not isinstance(encoder, WordEncoder) or encoder.removal is None:
        raise ParameterError(
            "this method, so set, removes no directions",
            where="--directions",
            got=str(path),
            remedy="leave out --directions, or say --component joint",
        )
    removal = encoder.removal
    rows, values = rows[: removal.count], values[: removal.count]
    strengths = values**2 / (values**2).sum() if removal.weighted else np.ones(len(values))
    return FittedWordEncoder(encoder, Components(np.ascontiguousarray(rows), values, strengths))


def encode_sides(encoder: Encoder, sentences: list[str], corpus: list[str], sides: Any) -> tuple[Encoded, str]:
    """Encode each side of the pairs as fitted on that side alone.

    sides  stacked: the first half of each file is one side, the second half the other; interleaved: sides
           take turns, line by line; auto: where `sentences` are one side of `corpus`, stacked or interleaved,
           they are fitted on themselves, else stacked
    Raises ParameterError if a file has an odd number of lines.
    """
    half = len(corpus) // 2
    if sides == "auto" and sentences in (corpus[:half], corpus[half:], corpus[::2], corpus[1::2]):
        return encoder.fit(sentences).encode(sentences), f"per side: fitted on one side, {len(sentences)} sentences"
    if len(sentences) % 2 or len(corpus) % 2:
        raise ParameterError(
            "an odd number of sentences has no two sides",
            where="--component per-side",
            expected="the first sides of all pairs, then the second sides; or one side of the fitting file",
            got=f"{len(sentences)} sentences to encode, {len(corpus)} to fit on",
            remedy="arrange the lines so, or say --component joint",
        )
    first, second = (slice(0, None, 2), slice(1, None, 2)) if sides == "interleaved" else (None, None)
    vectors: npt.NDArray[np.float32] | None = None
    fallbacks: dict[str, int] = {}
    for number, turn in enumerate((first, second)):
        where = turn or slice(number * len(sentences) // 2, (number + 1) * len(sentences) // 2)
        source = turn or slice(number * half, (number + 1) * half)
        encoded = encoder.fit(corpus[source]).encode(sentences[where])
        if vectors is None:
            vectors = np.empty((len(sentences), encoded.vectors.shape[1]), dtype=np.float32)
        vectors[where] = encoded.vectors
        for name, count in encoded.fallbacks.items():
            fallbacks[name] = fallbacks.get(name, 0) + count
    assert vectors is not None
    arrangement = "interleaved" if sides == "interleaved" else "stacked"
    return Encoded(vectors, fallbacks), f"per side: fitted twice, {half} {arrangement} sentences each"


# --- words ----------------------------------------------------------------------------------------


def read_lexicon(files: Files, *, missing_as_mean: bool) -> tuple[Lexicon, list[str]]:
    """Words with counts and clusters from the files, and what was noticed.

    missing_as_mean  a clustered word without a vector gets the mean of the others, as S3E's code has it;
                     otherwise it is unknown
    """
    table = read_columns(files.words, ("word", "vector"))
    words, vectors = read_words(table, files.words), read_matrix(table, "vector", files.words).astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ArtifactError("a word vector is not finite", where=str(files.words), expected="finite numbers")
    table = read_columns(files.counts, ("word", "count"))
    counts = np.asarray(table.column("count").to_numpy(), dtype=np.int64)
    lexicon = Lexicon(words, vectors, WordCounts(read_words(table, files.counts), counts))
    if files.clusters is None:
        if files.centroids is not None:
            return nearest_clusters(lexicon, read_centroids(files.centroids)), ["clusters: the nearest centroids"]
        return lexicon, []
    table = read_columns(files.clusters, ("word", "cluster"))
    clustered = read_words(table, files.clusters)
    labels = dict(zip(clustered, np.asarray(table.column("cluster").to_numpy()).tolist(), strict=True))
    centroids = None if files.centroids is None else read_centroids(files.centroids)
    remarks = []
    missing = [word for word in clustered if word not in lexicon.index]
    if missing and missing_as_mean:
        found = vectors[[word in labels for word in words]]
        mean = found.astype(np.float64).mean(axis=0).astype(np.float32)
        lexicon = replace(
            lexicon, words=(*words, *missing), vectors=np.vstack([vectors, np.tile(mean, (len(missing), 1))])
        )
        lexicon.__dict__.pop("index", None)
        remarks.append(f"{len(missing)} clustered words without a vector got the mean vector")
    numbers = np.array([labels.get(word, -1) for word in lexicon.words], dtype=np.int32)
    left = int((numbers < 0).sum())
    if left:
        remarks.append(f"{left} words without a cluster are unknown")
    return with_clusters(lexicon, numbers, centroids), remarks


def nearest_clusters(lexicon: Lexicon, centroids: Float64) -> Lexicon:
    """The lexicon with each word in the cluster of its nearest centroid."""
    squares = (centroids**2).sum(axis=1) - 2 * lexicon.vectors.astype(np.float64) @ centroids.T
    return with_clusters(lexicon, squares.argmin(axis=1).astype(np.int32), centroids)


def level_words(lexicon: Lexicon, pvn: Any) -> tuple[Lexicon, str]:
    """The lexicon with the variance of its words levelled, or as it is, and which.

    pvn  number of leading components to level; auto: 10 if that is the space in which the centroids that
         were given are the means of their words, else 0
    """
    if pvn == "auto":
        clusters = lexicon.clusters
        if clusters is None or clusters.centroids is None or min(lexicon.vectors.shape) <= LEVELLED:
            return lexicon, "words: as given"
        levelled = replace(lexicon, vectors=level_variance(lexicon.vectors, LEVELLED))
        as_given, as_levelled = centroid_error(lexicon), centroid_error(levelled)
        if as_levelled < 0.1 * as_given:
            return levelled, f"words: variance of {LEVELLED} components levelled, for the centroids lie in that space"
        return lexicon, "words: as given"
    if not isinstance(pvn, int) or pvn < 0:
        raise ParameterError("bad value for 'pvn'", where="--set pvn", expected="auto, 0, or a number", got=str(pvn))
    if pvn == 0:
        return lexicon, "words: as given"
    return replace(
        lexicon, vectors=level_variance(lexicon.vectors, pvn)
    ), f"words: variance of {pvn} components levelled"


def centroid_error(lexicon: Lexicon) -> float:
    """How far the centroids are from being means of their words, relative to their length, by the best rule."""
    clusters = lexicon.demand_clusters("levelling")
    centroids = clusters.centroids
    assert centroids is not None
    if centroids.shape[1] != lexicon.dimension:
        return np.inf
    weights = lexicon.smooth_inverse_frequency(1e-3)
    partition = Partition(clusters.labels, clusters.size)
    held = np.bincount(clusters.labels, minlength=clusters.size)[: len(centroids)] > 0
    size = np.linalg.norm(centroids[held])
    means = (
        centroids_of(partition, lexicon.vectors, weights, rule) for rule in ("mean", "weighted-mean", "scaled-mean")
    )
    errors = [float(np.linalg.norm(mean[: len(centroids)][held] - centroids[held])) for mean in means]
    return min(errors) / float(size) if size > 0 else np.inf


# --- files ----------------------------------------------------------------------------------------


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, empty ones included. Raises ArtifactError."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, "a file of sentences cannot be read", "UTF-8, one sentence a line", error) from None
    # Not splitlines(), which also splits at characters that may stand inside a sentence.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def read_columns(path: Path, columns: tuple[str, ...]) -> pa.Table:
    """These columns of a Parquet file of anyone's making. Raises ArtifactError."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, "a file cannot be read", f"Parquet with columns {', '.join(columns)}", error) from None
    for column in columns:
        held = table.column(column) if column in table.column_names else None
        if held is None or held.null_count:
            raise ArtifactError(
                f"a file has no complete column '{column}'",
                where=str(path),
                expected=f"columns {', '.join(columns)}, without nulls",
                got=", ".join(table.column_names) if held is None else f"{held.null_count} nulls",
            )
    return table.select(list(columns))


def unreadable(path: Path, what: str, expected: str, error: Exception) -> ArtifactError:
    """The error for a file that is missing or of another format."""
    return ArtifactError(what, where=str(path), expected=expected, got=first_line(error), remedy="correct the path")


def read_words(table: pa.Table, path: Path) -> tuple[str, ...]:
    """The distinct words of a table. Raises ArtifactError if one stands twice."""
    words = tuple(table.column("word").to_pylist())
    if len(set(words)) < len(words):
        twice = Counter(words).most_common(1)[0][0]
        raise ArtifactError("a word stands twice", where=str(path), expected="distinct words", got=twice)
    return words


def read_matrix(table: pa.Table, column: str, path: Path) -> npt.NDArray[Any]:
    """A column of lists of one length as an (n, d) array. Raises ArtifactError."""
    lists = table.column(column).combine_chunks()
    held = pa.types.is_list(lists.type) or pa.types.is_fixed_size_list(lists.type) or pa.types.is_large_list(lists.type)
    lengths = set(pc.list_value_length(lists).to_pylist()) if held else set()
    flat = np.asarray(lists.flatten()) if held else np.zeros(0)
    if len(lengths) != 1 or len(flat) == 0 or flat.dtype.kind != "f":
        raise ArtifactError(
            f"a column '{column}' holds no vectors",
            where=str(path),
            expected="lists of one length",
            got=str(lists.type),
        )
    return flat.reshape(len(lists), -1)


def read_centroids(path: Path) -> Float64:
    """(k, d) float64 centroids in the order of their clusters' numbers; zeros for a number that is left out."""
    table = read_columns(path, ("cluster", "vector"))
    rows = np.asarray(table.column("cluster").to_numpy(), dtype=np.int64)
    vectors = read_matrix(table, "vector", path)
    centroids = np.zeros((int(rows.max()) + 1, vectors.shape[1]))
    centroids[rows] = vectors
    return centroids
