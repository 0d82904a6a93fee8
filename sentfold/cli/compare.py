"""Compare two models or files of vectors on your own data: the paired difference, and whether the data bears it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sentfold.cli.inputs import WORDS, Columns, Seed, Words, hash_inputs, read_inputs
from sentfold.numeric_profile import use_profile


def command(
    first: Annotated[str, typer.Argument(metavar="A", help="A file of vectors, or an encoder.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one; the difference is B minus A.")],
    on: Annotated[Path, typer.Option(help="Pairs with scores, texts with labels, or a BEIR folder.")],
    words: Words = WORDS,
    columns: Columns = None,
    to: Annotated[Path | None, typer.Option(help="A JSON file to write, with all numbers.")] = None,
    seed: Seed = 0,
) -> None:
    """Print the difference with its 95% interval, and the smallest difference that this data could show."""
    use_profile()  # before numpy is imported, so that other processors give the same bytes
    from sentfold.decision.comparison import compare_vectors
    from sentfold.files import write_json

    data, x, _ = read_inputs(on, *_vectors_or_encoder(first), columns, words)
    _, y, _ = read_inputs(on, *_vectors_or_encoder(second), columns, words, quiet=True)
    comparison = compare_vectors(data, x, y, names=(first, second), seed=seed)
    for note in comparison.notes:
        print(note, file=sys.stderr)
    print(comparison.describe())
    if to is not None:
        paths = [path for path in (on, Path(first), Path(second)) if path.exists()]
        inputs = {name: digest for path in paths for name, digest in hash_inputs(path).items()}
        write_json(to, {**comparison.to_json(), "inputs": inputs})


def _vectors_or_encoder(name: str) -> tuple[Path | None, str | None]:
    """A file is vectors; a folder, and a name of no file, is an encoder."""
    looks_like_file = Path(name).suffix.lower() in (".npy", ".npz", ".safetensors", ".parquet")
    return (Path(name), None) if Path(name).is_file() or looks_like_file else (None, name)
