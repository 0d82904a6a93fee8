"""The steps of every encoder that composes word vectors: read words, compose them, remove shared directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from sentfold.encoders.base.components import Components, find_components, no_components
from sentfold.encoders.base.lexicon import Lexicon, Vectors
from sentfold.encoders.base.protocol import Encoded
from sentfold.encoders.base.ragged import Ragged, number_tokens
from sentfold.errors import ParameterError
from sentfold.kernels.compiled import fast
from sentfold.settings import Parameters
from sentfold.words.tokenizers import TokenizerName, tokenize

Float64 = npt.NDArray[np.float64]
Variant = Literal["published", "released"]
Component = Literal["joint", "none"]

# Sentences that are composed at a time: the float64 vectors of so many fit in the processor's second-level cache.
BLOCK = 256
# Longest sentence vector: clusters squared and clusters times dimensions can be far more than any memory.
LONGEST = 2**22
BLOCK_NUMBERS = 2**24  # 128 MiB: blocks of very long vectors have fewer sentences


class WordSettings(Parameters):
    """The settings that every method over word vectors has.

    variant     published: the method as its paper describes it; released: as the authors' code computes it
    tokenizer   one of words/tokenizers.py; each method has its own default
    unit_words  whether every word vector is first divided by its length
    component   joint: find directions over all fitting sentences and remove them; none: remove no directions;
                null: the method's default
    """

    variant: Variant = "published"
    tokenizer: TokenizerName = "whitespace"
    unit_words: bool = False
    component: Component | None = None

    @property
    def released(self) -> bool:
        """Whether the method follows its authors' code where the code differs from the paper."""
        return self.variant == "released"


@dataclass(frozen=True)
class Reading:
    """Sentences as rows of the lexicon, and how many sentences needed a fallback."""

    words: Ragged
    fallbacks: Mapping[str, int]


@dataclass(frozen=True)
class Reader:
    """Reads texts as rows of the lexicon.

    tokenizer  one of words/tokenizers.py
    lower      whether the text is first put in lower case
    clean      the method's own function from the tokens of all sentences to cleaned tokens, or None
    stand_in   the only token of a sentence that has no tokens, or None
    """

    lexicon: Lexicon
    tokenizer: str
    lower: bool = False
    clean: Callable[[list[list[str]]], list[list[str]]] | None = None
    stand_in: str | None = None

    def tokens(self, sentences: Sequence[str]) -> list[list[str]]:
        """The tokens of each sentence by the method's rules, known or not."""
        texts = [text.lower() for text in sentences] if self.lower else sentences
        tokens = tokenize(texts, self.tokenizer)
        return tokens if self.clean is None else self.clean(tokens)

    def read(self, sentences: Sequence[str]) -> Reading:
        """Sentences as rows of the lexicon. Words without a row are left out, and counted in `words.dropped`."""
        tokens = self.tokens(sentences)
        fallbacks = {}
        if self.stand_in is not None:
            fallbacks[f"empty, read as '{self.stand_in}'"] = sum(not words for words in tokens)
            tokens = [words or [self.stand_in] for words in tokens]
        return Reading(number_tokens(tokens, self.lexicon.index), fallbacks)


class Composer(Protocol):
    """How one method composes a sentence vector from words, before directions are removed."""

    @property
    def dimension(self) -> int:
        """Length of a sentence vector."""

    def compose(self, words: Ragged, out: Float64) -> Mapping[str, int]:
        """Write one float64 row per sentence into `out`; return the fallbacks, name -> number of sentences."""


@dataclass(frozen=True)
class WeightedMean:
    """A Composer: v_s = (1/n) sum_i weight(w_i) v(w_i).

    vectors  (v, d) float32
    weights  (v,) float64
    n is the number of words of sentence s. Cost O(words d).
    """

    vectors: Vectors
    weights: Float64

    @property
    def dimension(self) -> int:
        """Length of a sentence vector: that of a word vector."""
        return int(self.vectors.shape[1])

    def compose(self, words: Ragged, out: Float64) -> Mapping[str, int]:
        """Write one weighted mean per sentence; a sentence without words has the zero vector."""
        _weighted_means(words.ids, words.offsets, self.vectors, self.weights, out)
        return {}


@fast
def _weighted_means(
    ids: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    vectors: Vectors,
    weights: Float64,
    out: Float64,
) -> None:
    for s in range(len(offsets) - 1):
        row = out[s]
        row[:] = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            weight = weights[ids[t]]
            vector = vectors[ids[t]]
            for j in range(len(row)):
                row[j] += weight * vector[j]
        # Divide after the sum: inside the sum, the compiler would divide every product.
        n = max(offsets[s + 1] - offsets[s], 1)
        for j in range(len(row)):
            row[j] /= n


@dataclass(frozen=True)
class Removal:
    """Which directions to find and remove; see find_components."""

    count: int
    iterations: int | None = None
    weighted: bool = False


def choose_removal(
    settings: WordSettings, *, count: int, default: Component, iterations: int | None = None, weighted: bool = False
) -> Removal | None:
    """The removal that the settings ask for, or the method's `default`; None if nothing is removed.

    iterations  number of iterations of the solver in the authors' code. Only the released variant uses this number; the
                published variant is exact
    """
    if (settings.component or default) == "none" or count == 0:
        return None
    return Removal(count, iterations if settings.released else None, weighted)


class SentenceReader(Protocol):
    """What WordEncoder needs from a reader."""

    def tokens(self, sentences: Sequence[str]) -> list[list[str]]:
        """The tokens of each sentence by the method's rules, known or not."""

    def read(self, sentences: Sequence[str]) -> Reading:
        """Sentences as rows of the lexicon."""


@dataclass(frozen=True)
class WordEncoder:
    """An Encoder made of a reader, a composer and a removal (None: nothing is removed).

    Raises ParameterError if a sentence vector has no numbers, or more than LONGEST.
    """

    reader: SentenceReader
    composer: Composer
    removal: Removal | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.composer.dimension <= LONGEST:
            raise ParameterError(
                "the sentence vectors would have no numbers" if not self.composer.dimension else "too long a vector",
                where="the settings of the encoder",
                expected=f"sentence vectors of 1 to {LONGEST:,} numbers",
                got=f"{self.composer.dimension:,} numbers",
                remedy="keep a part of the vector, or use fewer clusters, numbered from 0 without gaps",
            )

    def fit(self, sentences: Sequence[str]) -> FittedWordEncoder:
        """Find the directions to remove over `sentences`. A sentence that occurs twice counts twice."""
        return self.fit_words(self.reader.read(sentences).words)

    def fit_words(self, words: Ragged) -> FittedWordEncoder:
        """The same as `fit`, for sentences as rows of the lexicon."""
        if self.removal is None or len(words) == 0:
            return FittedWordEncoder(self, no_components(self.composer.dimension))
        components = find_components(
            (block.copy() for _, block, _ in compose_blocks(self.composer, words)),
            count=self.removal.count,
            iterations=self.removal.iterations,
            weighted=self.removal.weighted,
        )
        return FittedWordEncoder(self, components)

    def fit_directions(self, rows: Float64, values: Float64) -> FittedWordEncoder:
        """Remove the first of the given directions, at most as many as the method removes. See DirectedEncoder.

        Raises ParameterError if the method, with these settings, removes no directions, or if these do not fit.
        """
        if self.removal is None:
            raise ParameterError(
                "this method, with these settings, removes no directions",
                where="directions",
                remedy="give no directions, or set `component: joint`",
            )
        rows, values = first_directions(rows, values, count=self.removal.count, width=self.composer.dimension)
        strengths = values**2 / (values**2).sum() if self.removal.weighted else np.ones(len(values))
        return FittedWordEncoder(self, Components(rows, values, strengths))


@dataclass(frozen=True)
class FittedWordEncoder:
    """A Fitted: a word encoder and the directions that it removes."""

    encoder: WordEncoder
    components: Components

    @property
    def learned(self) -> Mapping[str, npt.NDArray[Any]]:
        """The removed directions, their singular values, and how much of each is removed."""
        return {
            "directions": self.components.directions,
            "singular_values": self.components.singular_values,
            "strengths": self.components.strengths,
        }

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """One vector per sentence."""
        reading = self.encoder.reader.read(sentences)
        encoded = self.encode_words(reading.words)
        return Encoded(encoded.vectors, {**reading.fallbacks, **encoded.fallbacks})

    def encode_words(self, words: Ragged) -> Encoded:
        """`encode` for sentences as rows of the lexicon. Raises ParameterError if a vector is not finite."""
        composer = self.encoder.composer
        vectors = np.empty((len(words), composer.dimension), dtype=np.float32)
        fallbacks = without_words(words)
        fallbacks["vanished with the removed directions"] = 0
        for start, block, counted in compose_blocks(composer, words):
            fallbacks["vanished with the removed directions"] += self.components.remove_from(block)
            with np.errstate(over="ignore"):  # infinity is refused below
                vectors[start : start + len(block)] = block
            for name, number in counted.items():
                fallbacks[name] = fallbacks.get(name, 0) + number
        return Encoded(require_finite(vectors), fallbacks)


def first_directions(rows: Float64, values: Float64, *, count: int, width: int) -> tuple[Float64, Float64]:
    """The first `count` of the given directions and their singular values, contiguous.

    width  length of the vectors from which the directions are removed
    Raises ParameterError for directions of another length, because the compiled loops do not check the length, and for
    values of which no share can be computed.
    """
    rows, values = np.asarray(rows, dtype=np.float64), np.asarray(values, dtype=np.float64)
    kept = values[:count]
    fit = rows.ndim == 2 and values.ndim == 1 and rows.shape == (len(values), width)
    if fit and np.isfinite(rows).all() and (values >= 0).all():
        with np.errstate(over="ignore"):
            total = float(np.square(kept).sum())
        if not len(kept) or 0 < total < np.inf:
            return np.ascontiguousarray(rows[:count]), np.ascontiguousarray(kept)
    raise ParameterError(
        "the directions do not fit the words",
        where="directions",
        expected=f"k finite directions of {width} numbers, and k singular values, not all 0 and below 1e150",
        got=f"an array of shape {rows.shape}, and {values.size} singular values",
        remedy="give the directions that were written for the same method and the same words",
    )


def require_finite(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The vectors. Raises ParameterError if one is not finite: the words are too long for float32."""
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise ParameterError(
            "a sentence vector is not finite",
            where=f"vectors: sentence {bad[0]}",
            expected="word vectors, and directions, whose sums are within the range of float32",
            got=f"{len(bad)} of {len(vectors)} vectors with infinity or NaN",
            remedy="divide all word vectors by one number",
        )
    return vectors


def compose_blocks(composer: Composer, words: Ragged) -> Iterator[tuple[int, Float64, Mapping[str, int]]]:
    """First row, float64 vectors and fallbacks of each block of sentences. The next block overwrites the vectors."""
    size = max(1, min(BLOCK, BLOCK_NUMBERS // composer.dimension))
    buffer = np.empty((min(size, len(words)), composer.dimension))
    for start in range(0, len(words), size):
        stop = min(start + size, len(words))
        block = buffer[: stop - start]
        counted = composer.compose(words.rows(start, stop), block)
        yield start, block, counted


def without_words(words: Ragged) -> dict[str, int]:
    """Number of sentences without tokens, of sentences whose tokens are all unknown, and of unknown tokens."""
    bare = words.lengths == 0
    return {
        "empty": int((bare & (words.dropped == 0)).sum()),
        "all words unknown": int((bare & (words.dropped > 0)).sum()),
        "unknown words (tokens)": int(words.dropped.sum()),
    }


def settings_lexicon(lexicon: Lexicon, settings: WordSettings) -> Lexicon:
    """The lexicon; with unit word vectors if the settings ask for them."""
    return lexicon.with_unit_vectors() if settings.unit_words else lexicon
