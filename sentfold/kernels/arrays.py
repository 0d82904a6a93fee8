"""Two conventions that several packages share: rows in blocks, and canonical signs of columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]

BLOCK = 1024  # rows that are converted to float64 at a time


def row_blocks(n: int, size: int = BLOCK) -> Iterator[slice]:
    """The rows 0 to n - 1 in order, `size` at a time: the fixed order of every sum over rows."""
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))


def canonical_signs(columns: Float64) -> Float64:
    """The columns, negated where the entry of largest absolute value (the first of equals) is negative."""
    if columns.size == 0:
        return columns
    rows = np.abs(columns).argmax(axis=0)
    return columns * np.where(columns[rows, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
