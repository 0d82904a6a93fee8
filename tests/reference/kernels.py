# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Plain numba versions of the kernels that sentfold writes as vector instructions, loop for loop."""

from __future__ import annotations

import numpy as np

from sentfold.kernels.compiled import exact, fast, prefetch


@fast
def difference(starts, columns, weights, x, out):
    """out = x - W x for an (n, width) block."""
    width = x.shape[1]
    for i in range(len(starts) - 1):
        for j in range(width):
            out[i, j] = x[i, j]
        for a in range(starts[i], starts[i + 1]):
            weight, neighbor = weights[a], columns[a]
            for j in range(width):
                out[i, j] -= weight * x[neighbor, j]


@fast
def recur(starts, columns, weights, y, now, before, factors, out):
    """out = a now + b before + c (y - W^T y) for (n, width) blocks; factors holds a, b, c."""
    width = y.shape[1]
    for i in range(len(starts) - 1):
        for j in range(width):
            out[i, j] = y[i, j]
        for a in range(starts[i], starts[i + 1]):
            weight, neighbor = weights[a], columns[a]
            for j in range(width):
                out[i, j] -= weight * y[neighbor, j]
        for j in range(width):
            out[i, j] = factors[0] * now[i, j] + factors[1] * before[i, j] + factors[2] * out[i, j]


@exact
def distances(x, rows, out):
    """Squared distance of row i of x to each of the rows that rows[i] names, in float64."""
    for i in range(rows.shape[0]):
        for e in range(rows.shape[1]):
            out[i, e] = _squared(x, i, rows[i, e])


@exact
def distances_fetched(x, rows, out):
    """The same; each row is asked of memory two ahead of its use, line by line of 64 bytes."""
    m, k = rows.shape
    for i in range(m):
        for e in range(k):
            ahead = rows[i, (e + 2) % k]
            for c in range(0, x.shape[1], 64 // x.itemsize):
                prefetch(x, ahead, c)
            out[i, e] = _squared(x, i, rows[i, e])


@fast
def _squared(x, i, other):
    total = 0.0
    for c in range(x.shape[1]):
        difference = np.float64(x[i, c]) - np.float64(x[other, c])
        total += difference * difference
    return total
