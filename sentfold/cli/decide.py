"""Decide which space of your vectors, if any, serves your own pairs, labels or queries better than cosine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sentfold.numeric_profile import use_profile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sentfold.data.datasets import Dataset


def command(
    source: Annotated[
        Path,
        typer.Argument(
            help="Pairs with scores, texts with labels, a BEIR folder, or sentences: CSV, TSV, JSONL, Parquet."
        ),
    ],
    vectors: Annotated[
        Path | None, typer.Option(help="Their vectors: npy, npz, safetensors, or Parquet with texts and vectors.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Or an encoder: all-MiniLM-L6-v2, a model's folder, an installed package.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="left=a,right=b,score=c or text=a,label=b; split=d.")] = None,
    to: Annotated[Path, typer.Option(help="The folder to write: verdict.html, verdict.json, the space.")] = Path(
        "verdict"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Of folds and resamples.")] = 0,
) -> None:
    """Print the verdict in at most 12 lines. The same files give the same verdict.json."""
    use_profile()  # before numpy is imported, so that other processors give the same bytes
    from dataclasses import replace

    from sentfold.decision.decide import decide_dataset
    from sentfold.decision.page import write_page
    from sentfold.decision.unlabelled import describe_sentences
    from sentfold.files import write_json

    data, x, inputs = read_inputs(source, vectors, encoder, columns)
    if data.kind == "sentences":
        geometry = describe_sentences(x, seed=seed)
        write_json(to / "verdict.json", {**geometry.to_json(), "inputs": inputs})
        print(geometry.describe())
        return
    decision = decide_dataset(data, x, seed=seed, progress=sys.stderr.isatty())
    decision = replace(decision, record={**decision.record, "inputs": inputs})
    decision.save(to)
    write_page(to / "verdict.html", decision, data, x)
    print(decision.describe())
    print(f"  {to}: verdict.html, verdict.json, and the space, which sentfold.load_space reads")


def read_inputs(
    source: Path, vectors: Path | None, encoder: str | None, columns: str | None, *, quiet: bool = False
) -> tuple[Dataset, npt.NDArray[np.float32], dict[str, str]]:
    """The data, its vectors, and the hashes of the files. What was guessed or is odd goes to stderr, unless quiet.

    Raises DataError, and EncoderError for an encoder that is missing.
    """
    from sentfold.data.columns import parse_columns
    from sentfold.data.datasets import read_dataset
    from sentfold.data.tables import DataError
    from sentfold.data.vectors import encode_texts, read_vectors

    if (vectors is None) == (encoder is None):
        raise DataError(
            "vectors are needed", where="--vectors, --encoder", expected="one of the two",
            got="neither" if vectors is None else "both", remedy="--encoder all-MiniLM-L6-v2, with sentfold[text]",
        )  # fmt: skip
    data = read_dataset(source, parse_columns(columns))
    notes: list[str] = []
    if vectors is not None:
        x, notes = read_vectors(vectors, data)
    elif data.texts:
        x = encode_texts(str(encoder), data.texts)
    else:
        raise DataError("there are no texts to encode", where=data.name, got="rows of vectors", remedy="give --vectors")
    for note in () if quiet else (*data.notes, *notes):
        print(note, file=sys.stderr)
    return data, x, {**hash_inputs(source), **(hash_inputs(vectors) if vectors else {"encoder": str(encoder)})}


def hash_inputs(path: Path) -> dict[str, str]:
    """File -> sha256, of a file or of all files of a folder."""
    from sentfold.files import sha256_of

    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return {str(file.relative_to(path.parent)): sha256_of(file) for file in files}
