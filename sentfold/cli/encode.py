"""Encode a file of sentences: by a method over word vectors, or by a sentence transformer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from sentfold.cli.inputs import WORDS, naming_options, print_notes, refuse_target, require_parquet
from sentfold.data.words import (
    count_numbers,
    cut_words,
    read_clusters,
    read_directions,
    read_lexicon,
    readers_installed,
    uncounted_notes,
    whole_words,
)
from sentfold.errors import EncoderError, ParameterError
from sentfold.numeric_profile import processor_flags
from sentfold.suggestions import refuse_unreadable_addresses

if TYPE_CHECKING:
    from sentfold.encoders.base.protocol import Encoded, Fitted


FIRST_LAYER, WINDOW, LENGTH = 4, 2, 128  # defaults
BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16"})  # processor flags, as Linux names them
TABLES = (".csv", ".tsv", ".jsonl", ".json", ".ndjson")


def command(
    encoder: Annotated[str, typer.Argument(help="A method, e.g. sif; or the folder or package of a transformer.")],
    source: Annotated[
        Path | None, typer.Argument(help="Sentences: UTF-8, one a line; Parquet with a column text; a table.")
    ] = None,
    target: Annotated[Path | None, typer.Argument(help="The .parquet file to write: text, vector.")] = None,
    fit_on: Annotated[
        Path | None, typer.Option(help="Sentences to learn from, with repeats; else the distinct ones of SOURCE.")
    ] = None,
    words: Annotated[
        str, typer.Option(help="Word vectors: Parquet with word, vector; a published file; or a package.")
    ] = WORDS,
    dimension: Annotated[
        int | None, typer.Option(min=1, help="Numbers per word of a published file. Default: as in its first lines.")
    ] = None,
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
    columns: Annotated[str | None, typer.Option(help="Of a table: text=a; for pairs left=a,right=b,score=c.")] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            help="Of a transformer's layers: cls, cls-pooled, mean, mean-without-sep, first-last, last-two, "
            "second-to-second-last, sbert-wk."
        ),
    ] = None,
    layer_start: Annotated[
        int, typer.Option(min=0, help="First layer of sbert-wk; 0 is the embedding layer.")
    ] = FIRST_LAYER,
    window: Annotated[int, typer.Option(min=1, help="Layers of context on each side, of sbert-wk.")] = WINDOW,
    max_length: Annotated[int, typer.Option(min=3, help="Tokens that a pooling reads of a sentence.")] = LENGTH,
    bfloat16: Annotated[
        bool, typer.Option("--bfloat16", help="A transformer in 16 bits: faster on processors with bfloat16.")
    ] = False,
) -> None:
    """Write one vector per sentence of SOURCE."""
    from sentfold.decision.encoders import encode_by_name, learned_notes, prompt_notes
    from sentfold.decision.progress import open_bar
    from sentfold.encoders.base.protocol import known_methods

    encoder, source, target = name_inputs(encoder, source, target, by, out)
    refuse_target(target, source, encoder, fit_on, words, counts, clusters, centroids, directions)
    refuse_other_vectors(target)
    is_method = pooling is None and encoder.lower() in known_methods()
    of_methods = {
        "--fit-on": fit_on, "--words": words != WORDS, "--dimension": dimension is not None, "--binary": binary,
        "--counts": counts, "--clusters": clusters, "--centroids": centroids, "--directions": directions,
        "--set": settings,
    }  # fmt: skip
    of_poolings = {
        "--layer-start": layer_start != FIRST_LAYER, "--window": window != WINDOW, "--max-length": max_length != LENGTH,
    }  # fmt: skip
    if not is_method and pooling is None:
        require_model(encoder)
    refuse_unread({} if is_method else of_methods, {} if pooling else of_poolings, encoder)
    sentences = read_sentences(source, columns)
    cut: dict[str, int] = {}
    if bfloat16:
        check_bfloat16(whole_model=pooling is None and not is_method)
    if pooling is not None:
        encoded, record = _encode_by_pooling(encoder, sentences, pooling, max_length, layer_start, window)
    elif not is_method:
        with in_bfloat16() if bfloat16 else nullcontext():
            encoded = encode_by_name(encoder, sentences)
        record = {"encoder": encoder} | ({"arithmetic": "bfloat16"} if bfloat16 else {})
    else:
        method, values = load_method(encoder, settings or [])
        plain = whole_words(sentences, values.tokenizer)
        read = plain if fit_on is None else whole_words(read_fitting(fit_on, columns), values.tokenizer)
        fitting = [*dict.fromkeys(read)] if fit_on is None else read
        with open_bar(3, "step") as bar:
            with readers_installed(words):
                every = [*plain, *fitting]
                width = count_numbers(Path(words)) if dimension is None else dimension
                lexicon = read_lexicon(every, fitting, values.tokenizer, words, width, binary, counts)
            made = method.build(read_clusters(lexicon, clusters, centroids), values)
            bar.update()
            fitted: Fitted = made.fit(fitting) if directions is None else fit_directions(made, directions)
            bar.update()
            encoded = fitted.encode(plain)
            cut = cut_words(plain, values.tokenizer)
            bar.update()
        record = {"encoder": encoder.lower(), "settings": values.model_dump(mode="json")}
    vectors, counted = encoded.vectors, {**encoded.fallbacks, **cut}
    write_vectors(target, vectors, {**record, "counted": counted}, sentences)
    print(f"{target}: {len(vectors)} vectors of {vectors.shape[1]} dimensions by {encoder}")
    for what, number in counted.items():
        if number:
            print(f"  {what}: {number}")
    if counts is not None:
        print_notes(uncounted_notes(plain, values.tokenizer, lexicon))
    if pooling is None and "settings" not in record:
        print_notes([*learned_notes(encoder), *prompt_notes(encoder)])


def refuse_other_vectors(target: Path) -> None:
    """Raise ParameterError for a target that does not end in .parquet, or that this command did not write.

    Commands that take several files of data would read the second one, as users of those commands type it.
    """
    if target.exists() and target.stat().st_size and _is_own(target):
        return
    require_parquet(target)
    if target.exists() and target.stat().st_size:
        raise ParameterError(
            "the target has something else than vectors of `sentfold encode`", where=str(target),
            expected="a new name, or a file that this command wrote", remedy="another name; or move the file away",
        )  # fmt: skip


def _is_own(path: Path) -> bool:
    from pyarrow import parquet

    from sentfold.decision.use import ENCODE

    try:
        schema = parquet.read_schema(path.absolute())  # pyarrow takes names with a colon for addresses
        return ENCODE in (schema.metadata or {}) and schema.names == ["text", "vector"]
    except (pa.ArrowException, OSError):
        return False


def refuse_unread(of_methods: Mapping[str, object], of_poolings: Mapping[str, object], encoder: str) -> None:
    """Raise ParameterError for options that were given, and that this way to encode does not read."""
    given = [name for name, value in {**of_methods, **of_poolings}.items() if value]
    if given:
        raise ParameterError(
            "an option has no effect on this encoder", where=", ".join(given),
            expected=f"options of {'a method such as sif' if given[0] in of_methods else 'a --pooling'}", got=encoder,
            remedy="leave it out; a model's own files say how many tokens it reads",
        )  # fmt: skip


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


def _encode_by_pooling(
    encoder: str, sentences: list[str], pooling: str, max_length: int, layer_start: int, window: int
) -> tuple[Encoded, dict[str, Any]]:
    """Vectors by a pooling of a transformer's layers, and the settings that made them. Raises EncoderError."""
    from sentfold.fold.texts import refuse_odd_settings
    from sentfold.poolings.by_name import encode_by_pooling

    if Path(encoder).is_dir():
        refuse_odd_settings(encoder, Path(encoder))
    if "@" in encoder:  # a commit of the hub
        refuse_unreadable_addresses()
    record: dict[str, Any] = {"encoder": encoder, "pooling": pooling, "max_length": max_length}
    if pooling == "sbert-wk":
        record |= {"layer_start": layer_start, "window": window}
    return encode_by_pooling(sentences, **record), record


def require_model(name: str) -> None:
    """Raise EncoderError, which names the methods too, if there is no such folder and no such package."""
    from sentfold.encoders.base.protocol import known_methods
    from sentfold.fold.texts import locate_encoder

    try:
        locate_encoder(name)
    except EncoderError as error:
        error.expected = f"{error.expected}; or a method: {', '.join(known_methods())}"
        raise


def check_bfloat16(*, whole_model: bool) -> None:
    """Raise ParameterError unless this processor has bfloat16, and a transformer is to be computed as a whole."""
    if not whole_model:
        raise ParameterError(
            "only a transformer computes in bfloat16",
            where="--bfloat16",
            expected="the folder or the package of a transformer, without --pooling",
            remedy="leave out --bfloat16",
        )
    if not BFLOAT16 & processor_flags():
        raise ParameterError(
            "this processor computes bfloat16 slower than float32",
            where="--bfloat16",
            expected=f"one of the processor's flags {', '.join(sorted(BFLOAT16))}",
            got="none of them",
            remedy="leave out --bfloat16",
        )


@contextmanager
def in_bfloat16() -> Iterator[None]:
    """Matrix products of torch in 16 bits. benchmarks/encoding.py measures the speed and the cosines with float32."""
    import torch

    with torch.autocast("cpu", dtype=torch.bfloat16):
        yield


def load_method(name: str, settings: list[str]) -> tuple[Any, Any]:
    """The module of a method, and its settings from KEY=VALUE texts. Raises ParameterError.

    The tokenizer is that of all other commands, unless a setting names one.
    """
    from sentfold.decision.encoders import tokenizer_of_raw_text
    from sentfold.encoders.base.protocol import find_method
    from sentfold.encoders.base.settings import make_settings, parse_settings

    method = find_method(name)
    values = parse_settings(method, settings)
    with naming_options():
        return method, make_settings(method, {**tokenizer_of_raw_text(method), **values}, where="--set")


def fit_directions(encoder: Any, path: Path) -> Fitted:
    """The encoder with the directions of a file instead of a fit. Raises ParameterError if it removes none."""
    if not hasattr(encoder, "fit_directions"):
        raise ParameterError("this method takes no directions", where="--directions", remedy="leave out --directions")
    fitted: Fitted = encoder.fit_directions(*read_directions(path))
    return fitted


# --- what the command reads -----------------------------------------------------------------------


def read_sentences(path: Path, columns: str | None = None) -> list[str]:
    """The lines of a text file, or one column of a Parquet file, `text` unless others are named; empty texts included.

    Of Parquet without it, of another table, or a folder, the texts of its columns, as `sentfold append` reads them.
    Raises ArtifactError, and DataError for columns that the file has not.
    """
    from sentfold.data.beir import with_titles
    from sentfold.data.columns import parse_columns
    from sentfold.data.tables import (
        DataError,
        lines_of,
        read_arrow_table,
        refuse_holes,
        refuse_table,
        table_of,
    )

    refuse_holes(path)
    wanted = parse_columns(columns)
    is_parquet = path.suffix.lower() == ".parquet"
    arrow, name = read_arrow_table(path) if is_parquet else None, wanted.get("text", "text")
    others = bool(wanted.keys() - {"text"}) or (arrow is not None and not wanted and "text" not in arrow.column_names)
    if path.suffix.lower() in TABLES or path.is_dir() or (is_parquet and others):
        from sentfold.decision.use import read_texts

        found, notes = read_texts(path, wanted)
        print_notes(notes)
        return found
    if arrow is None and wanted:
        raise DataError(
            "a file has no such columns", where=f"--columns, {path}", expected="no --columns: each line is a text",
            got=str(columns),
        )  # fmt: skip
    if arrow is not None:
        used = [column for column in arrow.column_names if column in ("_id", "title", name)]
        table = with_titles(table_of(path, arrow.select(used)), wanted)
        print_notes(table.notes)
        cells = table.columns.get(name, [None])
        if not all(isinstance(cell, str) for cell in cells):
            raise DataError(
                f"a file has no complete column '{name}'", where=str(path), expected="a text in each row",
                got="nulls or other types" if name in table.columns else f"the columns {', '.join(arrow.column_names)}",
                remedy="name the column of texts: --columns text=a; and leave out the rows without one",
            )  # fmt: skip
        return cells
    lines = lines_of(path)
    refuse_table(path, [line for line in lines if line])
    return lines[:-1] if lines[-1] == "" else lines


def read_fitting(path: Path, columns: str | None) -> list[str]:
    """The sentences to learn from: a text file has no columns, and a table those of --columns, as the source has."""
    from sentfold.data.tables import DataError

    if not (columns and (path.suffix.lower() in (*TABLES, ".parquet") or path.is_dir())):
        return read_sentences(path)
    try:
        return read_sentences(path, columns)
    except DataError as error:
        if str(error).startswith("there is no column"):
            error.remedy = f"--columns is for both files: give {path} as a text file, or with the columns of the source"
        raise


def write_vectors(path: Path, vectors: npt.NDArray[np.float32], record: dict[str, Any], texts: list[str]) -> None:
    """Write the vectors with their texts, and what made them as metadata.

    Raises ArtifactError; ParameterError for no sentences, and for a file to which `append` added texts meanwhile;
    EncoderError for a vector that is not finite.
    """
    from pyarrow import parquet

    from sentfold.decision.use import ENCODE, behind_links, hold_file, replace_in_mode
    from sentfold.files import PARQUET, fixed_lists

    if not len(vectors):
        raise ParameterError("there are no sentences to encode", where="SOURCE")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise EncoderError(
            "an encoder gave a vector that is not finite", where=f"sentence {bad[0]} (from 0)",
            expected="finite numbers", got=f"{len(bad)} of {len(vectors)} vectors with infinity or NaN",
        )  # fmt: skip
    table = pa.table({"text": pa.array(texts, pa.string()), "vector": fixed_lists(np.ascontiguousarray(vectors))})
    text = json.dumps(record, sort_keys=True, ensure_ascii=False)
    place = behind_links(path)  # a link stays a link; pyarrow takes ~ for the home
    with hold_file(place) if place.exists() else nullcontext():
        refuse_other_vectors(path)
        with replace_in_mode(place) as temporary:
            parquet.write_table(table.replace_schema_metadata({ENCODE: text.encode()}), temporary, **PARQUET)
