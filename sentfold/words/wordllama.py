"""Word vectors from the token vectors of an installed package: the vector of a word is the mean over its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.errors import SourceError
from sentfold.files import sha256_of

# Paths of WordLlama's 256-dimensional vectors and of their tokenizer inside the package.
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
PIECE = 2**14  # tokens whose vectors are in memory at a time


def token_means(words: Sequence[str], *, package: str, sha256: dict[str, str] | None) -> npt.NDArray[np.float32]:
    """(v, d) float32: for each word, the mean of the vectors of its tokens, without special tokens.

    The tokenizer spells unknown characters as bytes, so every word has tokens and no word is out of vocabulary.
    package  installed package with the files of WordLlama; the loader of the package is not run, because it uses
             the network
    sha256   file inside the package -> the digest that the file must have; None accepts any version
    Raises SourceError if the package is not installed, a file has another digest, or the files do not fit together.
    Cost O(tokens d) time; O(v d + PIECE d) memory, however long the words are.
    """
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    weights, tokenizer = (_checked_file(package, name, sha256) for name in (WEIGHTS, TOKENIZER))
    tables = list(load_file(weights).values())
    encodings = Tokenizer.from_file(str(tokenizer)).encode_batch(list(words), add_special_tokens=False)
    ids = [encoding.ids for encoding in encodings]
    lengths = np.array([len(tokens) for tokens in ids], dtype=np.int64)
    if not len(words) or not lengths.all():
        raise SourceError(
            "a word has no tokens", where=package, got=repr(words[int(lengths.argmin())]) if words else ""
        )
    tokens = np.concatenate([np.array(word, dtype=np.int64) for word in ids])
    if len(tables) != 1 or tables[0].ndim != 2 or int(tokens.max()) >= len(tables[0]):
        raise SourceError(
            "the token vectors of a package do not fit its tokenizer",
            where=package,
            expected=f"one table of more than {int(tokens.max())} vectors",
            got=", ".join(str(table.shape) for table in tables) or "none",
            remedy="install the version that requirements.lock pins",
        )
    means = (sum_rows(tables[0], tokens, lengths) / lengths[:, None]).astype(np.float32)
    if not np.isfinite(means).all():
        raise SourceError(
            "a token vector is not finite", where=package, expected="finite numbers", got="NaN or infinity"
        )
    return means


def sum_rows(
    table: npt.NDArray[np.floating[Any]],
    rows: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    *,
    piece: int = PIECE,
) -> npt.NDArray[np.float64]:
    """(v, d) float64: the sum of the next lengths[0] of `rows` of the table, of the next lengths[1] of them, and so on.

    lengths  (v,) positive
    Sums are in float64, per word and in the order of its tokens: a sum depends on no other word, nor on `piece`, the
    number of rows that are in memory at a time.
    """
    word = np.repeat(np.arange(len(lengths)), lengths)
    sums = np.zeros((len(lengths), table.shape[1]))
    for start in range(0, len(rows), piece):
        part = table[rows[start : start + piece]].astype(np.float64)
        held, begins = np.unique(word[start : start + piece], return_index=True)
        if start and word[start - 1] == held[0]:  # the sum of a word that began in an earlier piece goes on
            part[0] = sums[held[0]] + part[0]
        sums[held] = np.add.reduceat(part, begins)
    return sums


def _checked_file(package: str, name: str, sha256: dict[str, str] | None) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(
            f"the package '{package}' is not installed",
            where="the Python environment",
            remedy=f"pip install {package}; in a checkout, run `make install`",
        )
    path = Path(next(iter(spec.submodule_search_locations))) / name
    if sha256 is None and path.is_file():
        return path
    got = sha256_of(path) if path.is_file() else "no such file"
    sha256 = sha256 or {}
    if sha256.get(name) != got:
        raise SourceError(
            f"the package '{package}' does not contain the pinned word vectors",
            where=name,
            expected=sha256.get(name, "a pinned sha256"),
            got=got,
            remedy="install the version that requirements.lock pins, or pin these bytes in params.yaml: word_vectors",
        )
    return path
