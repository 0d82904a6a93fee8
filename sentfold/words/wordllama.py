"""Word vectors from the token vectors of an installed package: the vector of a word is the mean over its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentfold.errors import SourceError
from sentfold.files import sha256_of

# Paths of WordLlama's 256-dimensional vectors and of their tokenizer inside the package.
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"


def token_means(words: Sequence[str], *, package: str, sha256: dict[str, str] | None) -> npt.NDArray[np.float32]:
    """(v, d) float32: for each word, the mean of the vectors of its tokens, without special tokens.

    The tokenizer spells unknown characters as bytes, so every word has tokens and no word is out of vocabulary.
    package  installed package with the files of WordLlama; the loader of the package is not run, because it uses
             the network
    sha256   file inside the package -> the digest that the file must have; None accepts any version
    Raises SourceError if the package is not installed or a file has another digest.
    """
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    weights, tokenizer = (_checked_file(package, name, sha256) for name in (WEIGHTS, TOKENIZER))
    (table,) = load_file(weights).values()
    encodings = Tokenizer.from_file(str(tokenizer)).encode_batch(list(words), add_special_tokens=False)
    ids = [encoding.ids for encoding in encodings]
    lengths = np.array([len(tokens) for tokens in ids], dtype=np.int64)
    if not len(words) or not lengths.all():
        raise SourceError(
            "a word has no tokens", where=package, got=repr(words[int(lengths.argmin())]) if words else ""
        )
    # Sums in float64, per word and in the order of its tokens: the result does not depend on the other words.
    rows = table[np.concatenate([np.array(tokens, dtype=np.int64) for tokens in ids])].astype(np.float64)
    sums = np.add.reduceat(rows, np.concatenate([[0], np.cumsum(lengths)[:-1]]))
    return (sums / lengths[:, None]).astype(np.float32)


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
