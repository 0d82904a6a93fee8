# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""Compiled reconstruction weights of one row: local Gram matrix, Cholesky factor, two triangular solves."""

from __future__ import annotations

import numpy as np

from sentfold.kernels.compiled import exact, fast, prefetch

SOLVED, EQUAL, BROKEN = 0, 1, 2

LINE = 64  # bytes of a cache line
CACHE = 2 << 20  # bytes of the cache of one core
TALL, BROAD = (
    4,
    2,
)  # rows and columns of a tile of the Gram matrix; its sums and factors fill 16 registers


@exact
def solve_rows(queries, x, neighbors, regularization, floor, values, error, outcome):
    """Fill values (m, k), error (m,) and outcome (m,) for m queries; an empty `error` is not filled.

    A row whose trace is at most floor * k * |query|^2 gets equal weights (EQUAL). A row whose Cholesky factor breaks
    down is left to another solver (BROKEN).
    """
    m, k = neighbors.shape
    rows = -(-k // TALL) * TALL  # whole tiles: the spare rows are zero
    differences, gram = np.zeros((rows, x.shape[1])), np.zeros((rows, rows))
    far = x.size * x.itemsize > CACHE
    for row in range(m):
        length = _subtract(queries, x, neighbors, row, differences)
        if far:
            _fetch(x, neighbors, row + 1)
        for a in range(0, rows, TALL):
            for b in range(a, rows, BROAD):
                _multiply_tile(differences, a, b, gram)
        trace = 0.0
        for a in range(k):
            trace += gram[a, a]
        if trace <= floor * k * length:
            outcome[row] = EQUAL
            for a in range(k):
                values[row, a] = 1.0 / k
        elif _solve(gram, k, trace, regularization, values[row]):
            outcome[row] = SOLVED
        else:
            outcome[row] = BROKEN
            continue
        if error.size:
            error[row] = _error(differences, values[row])


@exact
def _fetch(x, neighbors, row):
    """Prefetch the neighbours of a row, if it exists, while the row before it is computed."""
    if row < len(neighbors):
        for a in range(neighbors.shape[1]):
            other = np.int64(neighbors[row, a])
            for c in range(0, x.shape[1], LINE // x.itemsize):
                prefetch(x, other, c)


@exact
def _subtract(queries, x, neighbors, row, differences):
    """Fill the float64 differences, neighbours minus the query; return the query's squared length."""
    length = 0.0
    for c in range(x.shape[1]):
        length += np.float64(queries[row, c]) * np.float64(queries[row, c])
    for a in range(neighbors.shape[1]):
        other = neighbors[row, a]
        for c in range(x.shape[1]):
            differences[a, c] = np.float64(x[other, c]) - np.float64(queries[row, c])
    return length


@fast
def _multiply_tile(differences, a, b, gram):
    """gram[a + i, b + j] = differences[a + i] . differences[b + j] for i < TALL and j < BROAD.

    Each loaded number is used for a whole row or column of the tile.
    """
    s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = 0.0
    for c in range(differences.shape[1]):
        left0, left1 = differences[a, c], differences[a + 1, c]
        left2, left3 = differences[a + 2, c], differences[a + 3, c]
        right0, right1 = differences[b, c], differences[b + 1, c]
        s00 += left0 * right0
        s01 += left0 * right1
        s10 += left1 * right0
        s11 += left1 * right1
        s20 += left2 * right0
        s21 += left2 * right1
        s30 += left3 * right0
        s31 += left3 * right1
    gram[a, b], gram[a, b + 1] = s00, s01
    gram[a + 1, b], gram[a + 1, b + 1] = s10, s11
    gram[a + 2, b], gram[a + 2, b + 1] = s20, s21
    gram[a + 3, b], gram[a + 3, b + 1] = s30, s31


@fast
def _solve(gram, k, trace, regularization, weights):
    """Weights from the upper triangle, which its factor overwrites; False if a pivot is not above rounding error.

    The right-hand side, all ones, is eliminated along with the matrix.
    """
    smallest = k * np.finfo(np.float64).eps * trace
    for a in range(k):
        gram[a, a] += regularization * trace
        weights[a] = 1.0
    for a in range(k):
        for above in range(a):
            factor = gram[above, a]
            for b in range(a, k):
                gram[a, b] -= factor * gram[above, b]
            weights[a] -= factor * weights[above]
        pivot = gram[a, a]
        if not pivot > smallest:
            return False
        scale = 1.0 / np.sqrt(pivot)
        for b in range(a, k):
            gram[a, b] *= scale
        weights[a] *= scale
    for back in range(k):
        a = k - 1 - back
        weights[a] /= gram[a, a]
        for b in range(a):
            weights[b] -= gram[b, a] * weights[a]
    total = 0.0
    for a in range(k):
        total += weights[a]
    rest = 1.0
    for a in range(k):
        weights[a] /= total
        rest -= weights[a]
    for a in range(k):
        weights[a] += rest / k
    return True


@exact
def _error(differences, weights):
    """Squared length of the weighted sum of the differences."""
    k, d = weights.size, differences.shape[1]
    rebuilt = np.zeros(d)
    for a in range(k):
        for c in range(d):
            rebuilt[c] += weights[a] * differences[a, c]
    total = 0.0
    for c in range(d):
        total += rebuilt[c] * rebuilt[c]
    return total
