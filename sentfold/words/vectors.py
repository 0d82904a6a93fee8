"""Vectors of the words of a vocabulary, from one source or several, adjusted before an encoder uses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, model_validator

from sentfold.errors import ParameterError, SourceError
from sentfold.settings import Parameters, Slug

Float64 = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]

# The vector of a word that a source does not contain. "drop": none, the word is out of vocabulary. "mean": the mean
# vector of the words that the source contains (S3E and LASE as released). "zero": zeros.
Missing = Literal["drop", "mean", "zero"]
Scale = Literal["none", "unit", "mean"]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class WordVectorParameters(Parameters):
    """Where the vectors of words come from, and how the vectors are adjusted.

    package    an installed package with the files of WordLlama; `sha256` pins those files
    file       the name of an entry in pipeline/words/locations.yaml
    concat     other blocks, their vectors side by side in this order
    of         one other block
    missing    the vector of a word that the source, or a part of a concatenation, lacks: none, the mean, or zeros
    pvn        leading components whose variance is lowered to the variance of the next component; 0 = none
    scale      unit: every vector has length 1; mean: all vectors are divided by their mean length
    """

    package: str | None = Field(default=None, pattern=r"^[A-Za-z][A-Za-z0-9_]*$")  # a dotted name would run code
    sha256: dict[str, str] = {}
    file: str | None = None
    concat: Annotated[tuple[Slug, ...], BeforeValidator(_tuple)] | None = None
    of: Slug | None = None
    missing: Missing = "drop"
    pvn: int = Field(default=0, ge=0, le=1000)
    scale: Scale = "none"

    @model_validator(mode="after")
    def _one_place(self) -> WordVectorParameters:
        if sum(place is not None for place in (self.package, self.file, self.concat, self.of)) != 1:
            raise ValueError("give exactly one of: package, file, concat, of")
        if self.concat is not None and len(self.concat) < 2:
            raise ValueError("a concatenation needs two parts or more")
        return self

    def parts(self) -> tuple[str, ...]:
        """The names of the other blocks that this block uses."""
        return (self.of,) if self.of is not None else self.concat or ()


@dataclass(frozen=True)
class SourceVectors:
    """Vectors of the words that a source contains.

    words    in the order of the vocabulary
    vectors  (n, d)
    notes    counts and certificates of the reader
    """

    words: tuple[str, ...]
    vectors: Floats
    notes: dict[str, Any] = field(default_factory=dict)


def make_vectors(
    source: str, blocks: dict[str, WordVectorParameters], raw: dict[str, SourceVectors], words: Sequence[str]
) -> SourceVectors:
    """The vectors of the block `source` for one vocabulary.

    blocks  every block by name
    raw     the vectors as read, by the name of a block with `package` or `file`
    words   the vocabulary; the means and the variances are taken over these words
    Raises SourceError if no word is left.
    """
    block = blocks[source]
    if block.concat is not None:
        parts = [make_vectors(part, blocks, raw, words) for part in block.concat]
        found = join_parts([fill_missing(part, words, block.missing) for part in parts], words)
    else:
        found = make_vectors(block.of, blocks, raw, words) if block.of is not None else _restrict(raw[source], words)
        found = fill_missing(found, words, block.missing)
    if not found.words:
        raise SourceError(f"no word of the vocabulary has a vector in '{source}'", where="word_vectors", got="none")
    vectors = level_variance(found.vectors, block.pvn) if block.pvn else found.vectors
    if block.scale != "none":
        vectors = unit_length(vectors) if block.scale == "unit" else mean_unit_length(vectors)
    return SourceVectors(found.words, vectors, found.notes)


def fill_missing(found: SourceVectors, words: Sequence[str], missing: Missing) -> SourceVectors:
    """Fill in vectors for the words that a source lacks: the mean of its vectors, or zeros; "drop" adds none.

    A source that has none of the words stays empty: it has no mean, and zeros alone would be no vectors of words.
    """
    lacking = len(words) - len(found.words)
    if missing == "drop" or not lacking or not found.words:
        return found
    filler = np.zeros(found.vectors.shape[1]) if missing == "zero" else found.vectors.mean(axis=0, dtype=np.float64)
    row = {word: i for i, word in enumerate(found.words)}
    vectors = np.tile(filler, (len(words), 1))
    held = [i for i, word in enumerate(words) if word in row]
    vectors[held] = found.vectors
    return SourceVectors(tuple(words), vectors, {"filled": lacking})


def join_parts(parts: Sequence[SourceVectors], words: Sequence[str]) -> SourceVectors:
    """The vectors of several sources side by side, for the words that all sources contain."""
    shared = set(words).intersection(*(part.words for part in parts))
    kept = tuple(word for word in words if word in shared)
    columns = []
    for part in parts:
        row = {word: i for i, word in enumerate(part.words)}
        columns.append(part.vectors[[row[word] for word in kept]])
    filled = [part.notes.get("filled", 0) for part in parts]
    return SourceVectors(kept, np.hstack(columns), {"filled": filled} if any(filled) else {})


def _restrict(found: SourceVectors, words: Sequence[str]) -> SourceVectors:
    row = {word: i for i, word in enumerate(found.words)}
    kept = tuple(word for word in words if word in row)
    return SourceVectors(kept, found.vectors[[row[word] for word in kept]])


# --- adjustments ---------------------------------------------------------------------------------


def level_variance(vectors: npt.NDArray[np.floating[Any]], components: int) -> Float64:
    """Centred vectors with the variance of the leading components lowered to the variance of the next component.

    vectors     (v, d), one word per row, all words weighted equally
    components  D >= 1; D + 1 <= min(v, d)
    Returns (v, d) float64: x - sum_{j<=D} (l_j - l_{D+1}) / l_j (u_j . x) u_j for centred x, with l_j, u_j
    the variances and directions of the principal components.
    Raises ParameterError if there are too few words or dimensions. Cost O(v d^2).
    Source: Wang et al. 2018, "Post-processing of word representations via variance normalization and
    dynamic embedding", arXiv:1808.06305; S3E and LASE apply it with D = 10.
    """
    x = np.asarray(vectors, dtype=np.float64)
    if components + 1 > min(x.shape):
        raise ParameterError(
            "too few words for variance normalization",
            where="pvn",
            expected=f"pvn + 1 <= min(words, dimensions) = {min(x.shape)}",
            got=f"pvn = {components}",
            remedy="lower `pvn`, or add sentences",
        )
    x = x - x.mean(axis=0)
    variances, directions = np.linalg.eigh(x.T @ x)
    leading = variances[::-1][: components + 1]
    u = directions[:, ::-1][:, :components]
    # A variance can be 0, for example of the second component of two words: the share is 0 then.
    share = np.divide(leading[:-1] - leading[-1], leading[:-1], out=np.zeros(components), where=leading[:-1] > 0)
    shrunk: Float64 = x - ((x @ u) * share) @ u.T
    return shrunk


def squarable(vectors: Floats) -> Floats:
    """The vectors; as float64 where their squares leave the range of float32: k-means would see one point alone."""
    largest = float(np.abs(vectors).max(initial=0.0))
    return vectors if largest == 0 or 1e-15 <= largest <= 1e15 else vectors.astype(np.float64)


def unit_length(vectors: npt.NDArray[np.floating[Any]]) -> Float64:
    """Every row divided by its length; a zero row stays zero."""
    x = np.asarray(vectors, dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
    scaled: Float64 = x / np.where(lengths > 0, lengths, 1.0)[:, None]
    return scaled


def mean_unit_length(vectors: npt.NDArray[np.floating[Any]]) -> Float64:
    """All rows divided by their mean length; unchanged if the mean length is zero."""
    x = np.asarray(vectors, dtype=np.float64)
    mean = float(np.sqrt(np.einsum("ij,ij->i", x, x)).mean())
    return x / (mean if mean > 0 else 1.0)
