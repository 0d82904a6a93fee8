"""One corpus in one space: what every measure scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentfold.files import Vectors

Ints = npt.NDArray[np.int64]

POSITIVE_SHARE = 0.8  # a positive pair has at least this share of the highest human score: 4 of 5, usual for STS


@dataclass(frozen=True)
class Case:
    """One corpus in one space.

    corpus, task  the name of the corpus, and its task: the name of the measure's file
    items         column -> one value per item; the columns `row`, or `row1` and `row2`, hold rows of `vectors`
    notes         facts of the corpus, such as the unit of its bootstrap: notes["resample"]
    vectors       (n, d) float32, one per distinct sentence
    fitted        whether a measure may fit regressions on this space
    perceptron    whether a measure that has a perceptron trains the perceptron on this space
    training      the corpus, in the same space, whose pairs train the regression for this corpus; or the reason why
                  the training corpus is absent; or None if this corpus needs no training corpus
    """

    corpus: str
    task: str
    items: dict[str, list[Any]]
    notes: dict[str, Any]
    vectors: Vectors
    fitted: bool = True
    perceptron: bool = False
    training: Case | str | None = None

    @property
    def pairs(self) -> Ints:
        """(m, 2) rows of the vectors of each item's two texts."""
        return np.column_stack([self.items["row1"], self.items["row2"]]).astype(np.int64)

    @property
    def scaled(self) -> Vectors:
        """(n, d) the vectors, all divided by their median length.

        The lengths of vectors differ between spaces by a factor of a thousand, and lengths change what a regression
        learns: a penalty weighs more on short vectors, and u * v grows faster with the length than |u - v| does.
        Unit vectors do not change, so they are scored as SentEval scores them. No label is used.
        """
        vectors = within_range(self.vectors)
        lengths = np.linalg.norm(vectors, axis=1)
        median = float(np.median(lengths[lengths > 0])) if lengths.any() else 1.0
        scaled: Vectors = vectors / np.float32(median)
        return scaled

    @property
    def labels(self) -> Ints:
        """(m,) the class of each item, numbered from 0 in the order of the labels."""
        return np.unique(self.items["label"], return_inverse=True)[1].astype(np.int64)


def within_range(vectors: Vectors) -> Vectors:
    """The vectors; times a power of two where their squares would leave the range of float32.

    A power of two changes no digit of a vector, so distances keep their order and shares keep their values.
    """
    largest = float(np.abs(vectors).max(initial=0.0))
    if largest == 0 or 1e-15 <= largest <= 1e15:
        return vectors
    scaled: Vectors = np.ldexp(vectors, -int(np.frexp(largest)[1]))
    return scaled


def most_alike(case: Case) -> tuple[str, Ints]:
    """The pairs with the highest human scores: a description of these pairs, and their (m, 2) rows."""
    human = np.array(case.items["score"], dtype=np.float64)
    least = POSITIVE_SHARE * human.max()
    return f"human score >= {least:g}", case.pairs[human >= least]
