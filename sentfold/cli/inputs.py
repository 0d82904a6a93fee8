"""What the commands for a user's own data share: their options, and how data and vectors are read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentfold.errors import escape_controls

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sentfold.data.datasets import Dataset

Source = Annotated[
    Path,
    typer.Argument(
        help="Pairs with scores, texts with labels, a BEIR folder, or (decide) sentences: CSV, TSV, JSONL, Parquet."
    ),
]
Vectors = Annotated[
    Path | None, typer.Option(help="Their vectors: npy, npz, safetensors, or Parquet with texts and vectors.")
]
EncoderName = Annotated[
    str | None,
    typer.Option("--encoder", help="Or an encoder: all-MiniLM-L6-v2, a model's folder, a package, a method as sif."),
]
Words = Annotated[
    str, typer.Option(help="Word vectors of a method: Parquet with word, vector; a published file; or a package.")
]
Columns = Annotated[str | None, typer.Option(help="left=a,right=b,score=c or text=a,label=b; split=d.")]
Seed = Annotated[int, typer.Option(min=0, help="Of folds and resamples.")]
Mteb = Annotated[
    Path | None,
    typer.Option(help="A folder for mteb: the scores as its TaskResult files, the intervals in a file next to them."),
]

WORDS = "wordllama"


def read_inputs(
    source: Path, vectors: Path | None, encoder: str | None, columns: str | None, words: str, *, quiet: bool = False
) -> tuple[Dataset, npt.NDArray[np.float32], dict[str, str]]:
    """The data, its vectors, and the hashes of the files. What was guessed or is odd goes to stderr, unless quiet.

    Raises DataError, and EncoderError for an encoder that is missing.
    """
    from sentfold.data.columns import parse_columns
    from sentfold.data.datasets import read_dataset
    from sentfold.data.tables import DataError
    from sentfold.data.vectors import read_vectors

    if (vectors is None) == (encoder is None):
        raise DataError(
            "vectors are needed", where="--vectors, --encoder", expected="one of the two",
            got="neither" if vectors is None else "both", remedy="--encoder all-MiniLM-L6-v2, with sentfold[text]",
        )  # fmt: skip
    data = read_dataset(source, parse_columns(columns))
    if vectors is not None:
        (x, notes), hashes = read_vectors(vectors, data), hash_inputs(vectors)
    elif data.texts:
        x, notes, hashes = _encode(str(encoder), list(data.texts), words)
    else:
        raise DataError("there are no texts to encode", where=data.name, got="rows of vectors", remedy="give --vectors")
    for note in (*(() if quiet else data.notes), *notes):
        print(escape_controls(note), file=sys.stderr)
    return data, x, {**hash_inputs(source), **hashes}


def hash_inputs(path: Path) -> dict[str, str]:
    """File -> sha256, of a file or of all files of a folder."""
    from sentfold.files import sha256_of

    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return {str(file.relative_to(path.parent)): sha256_of(file) for file in files}


def _encode(encoder: str, texts: list[str], words: str) -> tuple[npt.NDArray[np.float32], list[str], dict[str, str]]:
    """Vectors, notes, and what made them. A method over word vectors is fitted on the texts, without their labels."""
    from sentfold.cli.encode import encode_by_words
    from sentfold.data.vectors import encode_texts
    from sentfold.encoders.base.protocol import known_methods

    if encoder.lower() not in known_methods():
        return encode_texts(encoder, texts), [], {"encoder": encoder}
    encoded = encode_by_words(encoder, texts, words)
    notes = [f"{encoder} is fitted on these {len(texts):,} texts, without their labels"]
    notes += [f"{what}: {number:,}" for what, number in encoded.fallbacks.items() if number]
    made_of = hash_inputs(Path(words)) if Path(words).is_file() else {"words": words}
    return encoded.vectors, notes, {"encoder": encoder.lower(), **made_of}
