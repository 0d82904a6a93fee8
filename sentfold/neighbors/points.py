"""The points of a neighbour search: the rows in their given order, and a shuffled float32 copy for the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from sentfold.errors import ParameterError

Metric = Literal["euclidean", "cosine"]
Single = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Rows = npt.NDArray[np.floating[Any]]

STRIPE = 4096  # rows that are converted at a time, so that no float64 copy of all rows is made

# Squared lengths outside of these bounds are refused: sums and differences of such squares leave float64.
LEAST_SQUARE, MOST_SQUARE = 1e-290, 1e290


def squared_lengths(x: npt.NDArray[Any], *, name: str = "row") -> Float64:
    """(n,) float64 squared lengths of the rows of x, (n, d); x is not copied as a whole. Cost O(n d).

    Raises ParameterError naming the first row that is not finite, or too long or too short, but not zero, to be
    squared in float64.
    """
    squared = np.empty(len(x))
    bad = np.zeros(len(x), dtype=np.bool_)
    with np.errstate(over="ignore"):
        for start in range(0, len(x), STRIPE):
            part = slice(start, start + STRIPE)
            stripe = x[part].astype(np.float64)
            np.einsum("ij,ij->i", stripe, stripe, out=squared[part])
            bad[part] = ~(squared[part] <= MOST_SQUARE)
            short = start + np.flatnonzero(squared[part] < LEAST_SQUARE)
            bad[short] = x[short].any(axis=1)
    wrong = np.flatnonzero(bad)
    if len(wrong):
        raise ParameterError(
            "a vector is not finite, or cannot be squared in float64",
            where=f"{name} {wrong[0]}",
            expected=f"zeros, or finite numbers whose squares have a sum from {LEAST_SQUARE} to {MOST_SQUARE}",
            got=f"{len(wrong)} such vectors; the largest number of the first is {np.abs(x[wrong[0]]).max()}",
            remedy=f"look at this {name}, scale the vectors, or embed again",
        )
    return squared


def floating_rows(x: npt.NDArray[Any], *, name: str = "row") -> tuple[Rows, Float64]:
    """`x` as a contiguous array, float32 if `x` is float32, else float64, and the squared length of every row.

    Raises ParameterError as squared_lengths does.
    """
    rows: Rows = np.ascontiguousarray(x, dtype=np.float32 if x.dtype == np.float32 else np.float64)
    return rows, squared_lengths(rows, name=name)


def check_rows(neighbors: npt.NDArray[np.integer[Any]], n: int, *, of: int | None = None) -> None:
    """Raise ParameterError unless (n, k) neighbours are rows from 0 to n - 1: scipy would write outside of arrays.

    of  the number of rows that the neighbours are chosen from, if that number is not n
    """
    pool = n if of is None else of
    whole = neighbors.ndim == 2 and neighbors.dtype.kind in "iu"
    inside = not neighbors.size or (neighbors.min() >= 0 and neighbors.max() < pool)
    if not whole or len(neighbors) != n or not inside:
        held = f", {neighbors.min()} to {neighbors.max()}" if neighbors.size else ""
        raise ParameterError(
            "the neighbours do not fit the vectors",
            where="neighbors",
            expected=f"{n} rows of whole numbers from 0 to {pool - 1}",
            got=f"{len(neighbors)} rows{held} ({neighbors.dtype})",
            remedy="compute the graph again from these vectors",
        )


@dataclass(frozen=True)
class Frame:
    """The metric and the scaling of a search.

    metric  euclidean or cosine
    scale   power of two that brings the longest row to a length near 1, so that float32 can represent all rows
    axis    whether zero vectors get an extra axis, orthogonal to all other rows: for cosine, if there is a zero vector
    """

    metric: Metric
    scale: float
    axis: bool

    @classmethod
    def around(cls, metric: Metric, *squared: Float64) -> Frame:
        """The frame for rows of these squared lengths. Raises ParameterError for another metric."""
        if metric not in get_args(Metric):
            known = ", ".join(get_args(Metric))
            raise ParameterError(
                "there is no such metric", where="metric", expected=f"one of: {known}", got=repr(metric)
            )
        if metric == "cosine":
            return cls(metric, 1.0, any(bool((lengths == 0).any()) for lengths in squared))
        longest = max(float(lengths.max(initial=0.0)) for lengths in squared)
        return cls(metric, 2.0 ** -round(np.log2(longest) / 2) if longest > 0 else 1.0, False)

    def distances(self, squared: Float64) -> Float64:
        """Distances in units of the metric, from squared distances in this frame."""
        # Half the squared distance of unit vectors is 1 - cos, without the cancellation.
        return squared / 2 if self.metric == "cosine" else np.sqrt(squared) / self.scale


@dataclass(frozen=True)
class Points:
    """n rows in a frame.

    rows     (n, d) float32 or float64, in the given order
    scales   (n,) float64; distances are those of scales[i] * rows[i]; 0 marks a zero vector under cosine
    order    (n,) int64, the row at each position
    singles  (n, d or d + 1) float32, the scaled rows by position
    halves   (n,) float32, half the squared lengths of the scaled rows, by position
    """

    rows: Rows
    scales: Float64
    order: npt.NDArray[np.int64]
    singles: Single
    halves: Single

    @classmethod
    def place(cls, rows: Rows, squared: Float64, frame: Frame, *, shuffled: bool) -> Points:
        """Points of rows with these squared lengths, in random order if `shuffled`. Cost O(n d), one float32 copy."""
        n, d = rows.shape
        lengths = np.sqrt(squared)
        zero = lengths == 0
        scales = np.full(n, frame.scale) if frame.metric == "euclidean" else (~zero) / np.where(zero, 1.0, lengths)
        # The order changes only how soon good candidates appear, not the result: any fixed seed will do.
        order = np.random.default_rng(0).permutation(n) if shuffled else np.arange(n)
        singles = np.zeros((n, d + frame.axis), dtype=np.float32)
        if rows.dtype == singles.dtype and (scales == 1).all():
            np.take(rows, order, axis=0, out=singles, mode="clip")  # the default mode would make one more copy
        else:
            for start in range(0, n, STRIPE):
                part = order[start : start + STRIPE]
                np.multiply(
                    rows[part], scales[part, None], out=singles[start : start + STRIPE, :d], casting="same_kind"
                )
        if frame.axis:
            singles[:, d] = zero[order]
        halves = squared * frame.scale**2 / 2 if frame.metric == "euclidean" else np.full(n, 0.5)
        return cls(rows, scales, order, singles, halves[order].astype(np.float32))
