"""What the commands for a user's own data read: data, vectors by a file or an encoder, and the hashes of both."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sentfold.data.datasets import Dataset


def read_inputs(
    source: Path, vectors: Path | None, encoder: str | None, columns: str | None
) -> tuple[Dataset, npt.NDArray[np.float32], dict[str, str]]:
    """The data, its vectors, and the hashes of the files. What was guessed or is odd is printed to stderr.

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
    for note in (*data.notes, *notes):
        print(note, file=sys.stderr)
    return data, x, {**hash_inputs(source), **(hash_inputs(vectors) if vectors else {"encoder": str(encoder)})}


def hash_inputs(path: Path) -> dict[str, str]:
    """File -> sha256, of a file or of all files of a folder."""
    from sentfold.files import sha256_of

    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return {str(file.relative_to(path.parent)): sha256_of(file) for file in files}
