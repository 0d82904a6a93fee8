"""A linear map with its centre, applied in blocks of rows, and what every such map is checked by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ParameterError

Float64 = npt.NDArray[np.float64]

BLOCK = 1024  # rows that are float64 at a time


@dataclass(frozen=True)
class LinearMap:
    """x -> (x - mean) matrix: what a linear method learned, for its own rows and for new ones.

    mean         (d,) float64, mean of the rows it was fitted on
    matrix       (d, p) float64
    eigenvalues  of the problem that gave the map, in the order of its columns where it has one each
    """

    mean: Float64
    matrix: Float64
    eigenvalues: Float64

    def apply(self, x: npt.NDArray[np.floating[Any]], *, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        """The images of rows.

        x      (n, d), fitted or new; computed in float64 whatever its type
        dtype  of the answer
        Returns (n, p). Cost O(n d p) time, O(block (d + p)) memory beside the answer.
        """
        images = np.empty((len(x), self.matrix.shape[1]), dtype=dtype)
        for rows in row_blocks(len(x)):
            images[rows] = (np.asarray(x[rows], dtype=np.float64) - self.mean) @ self.matrix
        return images


def row_blocks(n: int, size: int = BLOCK) -> Iterator[slice]:
    """The rows 0 to n - 1 in order, `size` at a time: the fixed order of every sum over rows."""
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))


def canonical_signs(columns: Float64) -> Float64:
    """Each column with its entry of largest modulus (the first such) made positive."""
    rows = np.abs(columns).argmax(axis=0)
    return columns * np.where(columns[rows, np.arange(columns.shape[1])] < 0, -1.0, 1.0)


def check_count(value: Any, symbol: str, *, least: int, most: int, where: str, meaning: str) -> int:
    """`value` as an int; ParameterError unless it is a whole number from `least` to `most`.

    symbol   what the papers call it, e.g. "p"
    where    the parameter that gives it
    meaning  what `most` is, e.g. "min(n, d)"
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        raise ParameterError(
            f"{symbol} does not fit the data",
            where=where,
            expected=f"a whole number, {least} <= {symbol} <= {meaning} = {most}",
            got=f"{symbol} = {value!r}",
            remedy=f"lower `{where}`, or leave this data out",
        )
    return int(value)
