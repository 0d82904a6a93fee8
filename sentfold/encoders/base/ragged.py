"""Sentences as ragged rows of word numbers: one flat array of ids, and the position where each sentence begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt

UNKNOWN = -1


@dataclass(frozen=True)
class Ragged:
    """The words of n sentences, in order, with repeats.

    ids      (t,) int32 rows of the lexicon; the words of sentence s are ids[offsets[s]:offsets[s + 1]]
    offsets  (n + 1,) int64, ascending from 0 to t
    dropped  (n,) int32 number of tokens of each sentence that have no row and were left out
    """

    ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    dropped: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """(n,) number of words of each sentence."""
        return np.diff(self.offsets)

    def rows(self, start: int, stop: int) -> Ragged:
        """The sentences start to stop - 1. Their ids are a view, not a copy."""
        offsets = self.offsets[start : stop + 1]
        return Ragged(self.ids[offsets[0] : offsets[-1]], offsets - offsets[0], self.dropped[start:stop])

    def take(self, rows: npt.NDArray[np.intp]) -> Ragged:
        """The sentences `rows`, in that order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        return Ragged(self.ids[np.repeat(self.offsets[:-1][rows], lengths) + inside], offsets, self.dropped[rows])


def number_tokens(tokens: Sequence[Sequence[str]], index: Mapping[str, int]) -> Ragged:
    """Rows of `index` for the tokens of each sentence; tokens that `index` lacks are left out and counted."""
    ragged = number_all(tokens, index)
    return drop_unknown(ragged)


def number_all(tokens: Sequence[Sequence[str]], index: Mapping[str, int]) -> Ragged:
    """The same as number_tokens, but the id of a token without a row is UNKNOWN."""
    lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    found = map(index.get, chain.from_iterable(tokens), repeat(UNKNOWN))
    ids = np.fromiter(found, dtype=np.int32, count=int(offsets[-1]))
    return Ragged(ids, offsets, np.zeros(len(tokens), dtype=np.int32))


def drop_unknown(ragged: Ragged) -> Ragged:
    """Leave out every UNKNOWN id, and count it in `dropped`."""
    known = ragged.ids != UNKNOWN
    if known.all():
        return ragged
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(known)])
    offsets = before[ragged.offsets]
    dropped = ragged.dropped + (ragged.lengths - np.diff(offsets)).astype(np.int32)
    return Ragged(ragged.ids[known], offsets, dropped)
