"""Encoders over word vectors, used as scikit-learn's estimators are: construct, fit, encode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sentfold.encoders.base.lexicon import Clusters, Lexicon
from sentfold.encoders.base.protocol import Encoded, Fitted, find_method
from sentfold.encoders.base.settings import make_settings
from sentfold.errors import ParameterError
from sentfold.words.counts import WordCounts
from sentfold.words.tokenizers import tokenize
from sentfold.words.vectors import squarable

WordVectors = Mapping[str, npt.ArrayLike]
TOKEN_VECTORS = "wordllama"  # the package whose token vectors are used if no word vectors are given
MOST_CLUSTERS = 2**16  # of a mapping from words to numbers of clusters
FREQUENT = 1e-3  # a of the weight a / (a + p) of a word in k-means


class WordEstimator:
    """Sentence vectors composed of word vectors. After `encode`, `encoding_.fallbacks` counts the fallbacks.

    vectors   word -> vector; None: the words of the fitting sentences, each with the mean of WordLlama's vectors of
              its tokens (the package wordllama must be installed)
    counts    word -> number of occurrences in a large corpus; None: in the fitting sentences
    clusters  word -> number of its cluster, or the number of clusters that k-means makes; only some methods need
              clusters
    settings  settings of the method; the class `Settings` in the method's file lists them
    """

    method: ClassVar[str]

    def __init__(
        self,
        vectors: WordVectors | None = None,
        *,
        counts: Mapping[str, int] | None = None,
        clusters: Mapping[str, int] | int | None = None,
        **settings: Any,
    ) -> None:
        self.vectors = vectors
        self.counts = counts
        self.clusters = clusters
        module = find_method(self.method)
        # In raw text, punctuation touches the words; the tokenizer `regex` separates them.
        usual = {"tokenizer": "regex"} if module.Settings().tokenizer == "whitespace" else {}
        self.settings = make_settings(module, {**usual, **settings}, where=type(self).__name__)

    def fit(self, sentences: Sequence[str]) -> Self:
        """Learn from `sentences` what the method needs from a corpus. Raises ParameterError."""
        sentences = _listed(sentences)
        lexicon = make_lexicon(
            sentences,
            self.settings.tokenizer,
            vectors=self.vectors,
            counts=self.counts,
            clusters=self.clusters,
        )
        self.fitted_: Fitted = find_method(self.method).build(lexicon, self.settings).fit(sentences)
        return self

    def encode(self, sentences: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, d) float32, one vector per sentence. Raises ParameterError if `sentences` is no list of texts."""
        self.encoding_: Encoded = self.fitted_.encode(_listed(sentences))
        return self.encoding_.vectors


def make_lexicon(
    sentences: Sequence[str],
    tokenizer: str,
    *,
    vectors: WordVectors | None,
    counts: Mapping[str, int] | None = None,
    clusters: Mapping[str, int] | int | None = None,
) -> Lexicon:
    """The lexicon of an encoder; see WordEstimator. A word that the mapping `clusters` lacks is left out.

    Raises ParameterError if there are no words, if a vector is not finite in float32 or vanishes there, if a count is
    no whole number from 0 to 2^53, or if the number of clusters is not between 1 and the number of words.
    """
    counter = Counter(chain.from_iterable(tokenize(sentences, tokenizer)))
    if vectors is None:
        words, array = tuple(counter), _token_vectors(list(counter))
    else:
        words, array = tuple(vectors), _array_of(vectors)
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise ParameterError(
            "the word vectors cannot be used",
            where="vectors",
            expected="words with finite vectors of one length",
            got=f"{len(words)} words, an array of shape {array.shape}",
        )
    known = counter if counts is None else counts
    bad = next((word for word, count in known.items() if not _is_whole(count, 0, 2**53)), None)
    if bad is not None:
        raise ParameterError(
            "a count cannot be used",
            where=f"counts: {bad}",
            expected="a whole number from 0 to 2^53",
            got=str(known[bad]),
            remedy="give numbers of occurrences; multiply shares by the number of words that were counted",
        )
    table = WordCounts(tuple(known), np.array(list(known.values()), dtype=np.int64))
    return add_clusters(Lexicon(words, array, table), clusters)


def add_clusters(
    lexicon: Lexicon, clusters: Mapping[str, int] | int | None, centroids: npt.NDArray[np.float64] | None = None
) -> Lexicon:
    """The lexicon with clusters. Words that the mapping `clusters` lacks are left out. Raises ParameterError.

    clusters   word -> number of its cluster, or the number of clusters that k-means makes
    centroids  (k, d) of the clusters, or None: each method computes centroids by its own rule
    """
    if clusters is None:
        return lexicon
    if not isinstance(clusters, Mapping):
        labels = _cluster(lexicon, clusters)
    else:
        numbers = [clusters.get(word, -1) for word in lexicon.words]
        most = MOST_CLUSTERS if centroids is None else len(centroids)
        bad = [number for number in numbers if not _is_whole(number, -1, most - 1)]
        if bad:
            raise ParameterError(
                "the number of a cluster cannot be used",
                where="clusters",
                expected=f"0 to {most - 1}, as a method makes a centroid for each number; -1 for no cluster",
                got=str(bad[0]),
            )
        labels = np.array(numbers, dtype=np.int32)
    return with_clusters(lexicon, labels, centroids)


def with_clusters(
    lexicon: Lexicon, labels: npt.NDArray[np.int32], centroids: npt.NDArray[np.float64] | None
) -> Lexicon:
    """The lexicon without the words that are in no cluster (label -1); for an encoder these words are unknown.

    Raises ParameterError if no word is in a cluster.
    """
    if not (labels >= 0).any():
        raise ParameterError("no word is in a cluster", where="clusters", expected="clusters of these words")
    clustered = Lexicon(lexicon.words, lexicon.vectors, lexicon.counts, Clusters(labels, centroids))
    return clustered.only(labels >= 0)


def _cluster(lexicon: Lexicon, size: int) -> npt.NDArray[np.int32]:
    from sklearn.cluster import KMeans

    if not _is_whole(size, 1, len(lexicon.words)):
        raise ParameterError(
            "the number of clusters is out of range",
            where="clusters",
            expected=f"1 to {len(lexicon.words)}, the number of words",
            got=str(size),
        )
    weights = lexicon.smooth_inverse_frequency(FREQUENT)
    labels = KMeans(int(size), n_init=10, random_state=0).fit_predict(squarable(lexicon.vectors), sample_weight=weights)
    return np.asarray(labels, dtype=np.int32)


def _listed(sentences: Sequence[str]) -> list[str]:
    """The sentences as a list, because an iterator gives them only once. Raises ParameterError for what is no text."""
    listed = [] if isinstance(sentences, str) else list(sentences)
    bad = next((place for place, text in enumerate(listed) if not isinstance(text, str)), None)
    if isinstance(sentences, str) or bad is not None:
        raise ParameterError(
            "the sentences cannot be read",
            where="sentences" if bad is None else f"sentences: {bad}",
            expected="a list of texts",
            got="one text" if bad is None else type(listed[bad]).__name__,
        )
    return listed


def _array_of(vectors: WordVectors) -> npt.NDArray[np.float32]:
    """(v, d) float32 vectors; an array of another shape if they are of several lengths, or no numbers.

    Raises ParameterError for a vector that float32 rounds to zeros.
    """
    try:
        with np.errstate(over="ignore"):  # infinity is refused by the caller
            array = np.array([vectors[word] for word in vectors], dtype=np.float32)
    except (TypeError, ValueError):
        return np.zeros(0, dtype=np.float32)
    held: Any = array.any(axis=1) if array.ndim == 2 else ()
    gone = next((word for word, kept in zip(vectors, held) if not kept and np.any(np.asarray(vectors[word]))), None)  # noqa: B905
    if gone is not None:
        raise ParameterError(
            "a word vector is too short for float32",
            where=f"vectors: {gone}",
            expected="numbers of 1e-45 and above, or zeros",
            got=f"{np.abs(np.asarray(vectors[gone])).max():g} at most",
            remedy="multiply all word vectors by one number",
        )
    return array


def _is_whole(number: Any, least: int, most: int) -> bool:
    if not isinstance(number, Real):
        return False
    value: Any = number
    return bool(least <= value <= most) and float(value).is_integer()


def _token_vectors(words: list[str]) -> npt.NDArray[np.float32]:
    from sentfold.words.wordllama import token_means

    if not words:
        return np.zeros((0, 0), dtype=np.float32)
    return token_means(words, package=TOKEN_VECTORS, sha256=None)
