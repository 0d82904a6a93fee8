# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False
"""One row's reconstruction weights: local Gram matrix, Cholesky factor, two triangular solves."""

from __future__ import annotations

import numpy as np

from pipeline.manifold.compiled import compiled, compiled_sums

SOLVED, EQUAL, BROKEN = 0, 1, 2
LANES = 8  # numbers that one vector instruction takes, at most


@compiled
def solve_rows(queries, x, neighbors, regularization, floor, values, error, outcome):
    """Fill values (m, k), error (m,) and outcome (m,) for m queries.

    A row whose trace is at most `floor` times k and its own squared length gets equal weights (EQUAL);
    one whose factor breaks down is left to be solved otherwise (BROKEN).
    """
    m, k = neighbors.shape
    d = x.shape[1]
    even = k + k % 2  # `_gram` takes two rows at a time; the spare one is zero
    differences = np.zeros((even, d))
    gram = np.zeros((even, k + 1 + LANES - (k + 1) % LANES))
    for row in range(m):
        length = _subtract(queries, x, neighbors, row, differences)
        _gram(differences, gram)
        trace = 0.0
        for a in range(k):
            trace += gram[a, a]
        if trace <= floor * k * length:
            outcome[row] = EQUAL
            for a in range(k):
                values[row, a] = 1.0 / k
        elif _solve(gram, k, trace, regularization, values, row):
            outcome[row] = SOLVED
        else:
            outcome[row] = BROKEN
            continue
        error[row] = _error(differences, values, row)


@compiled
def _subtract(queries, x, neighbors, row, differences):
    """Neighbours minus the query, each exactly rounded from its input; return the query's squared length."""
    length = 0.0
    for c in range(x.shape[1]):
        length += np.float64(queries[row, c]) * np.float64(queries[row, c])
    for a in range(neighbors.shape[1]):
        other = neighbors[row, a]
        for c in range(x.shape[1]):
            differences[a, c] = np.float64(x[other, c]) - np.float64(queries[row, c])
    return length


@compiled_sums
def _gram(differences, gram):
    """Inner products of all pairs of rows, upper triangle; four at a time, for each load is then used twice."""
    rows, d = differences.shape
    for a in range(0, rows, 2):
        for b in range(a, rows, 2):
            s00 = s01 = s10 = s11 = 0.0
            for c in range(d):
                s00 += differences[a, c] * differences[b, c]
                s01 += differences[a, c] * differences[b + 1, c]
                s10 += differences[a + 1, c] * differences[b, c]
                s11 += differences[a + 1, c] * differences[b + 1, c]
            gram[a, b], gram[a, b + 1], gram[a + 1, b], gram[a + 1, b + 1] = s00, s01, s10, s11


@compiled
def _solve(gram, k, trace, regularization, values, row):
    """Weights from the upper triangle, which is overwritten by its factor; False where a pivot is mere rounding.

    The right-hand side, all ones, is eliminated along with the matrix as one more column. Rows are changed
    from a multiple of LANES on and to their padded end, which is quicker than exact bounds, and two pivots
    at a time.
    """
    smallest = k * np.finfo(np.float64).eps * trace
    for a in range(k):
        gram[a, a] += regularization * trace
        gram[a, k] = 1.0
        gram[a, a - a % LANES : a] = 0.0  # left of the diagonal nothing is read, but what is written must not grow
    width = gram.shape[1]
    for a in range(0, k, 2):
        if not _pivot(gram, a, smallest):
            return False
        if a + 1 == k:
            break
        factor = gram[a, a + 1]
        for b in range(a + 1 - (a + 1) % LANES, width):
            gram[a + 1, b] -= factor * gram[a, b]
        if not _pivot(gram, a + 1, smallest):
            return False
        for other in range(a + 2, k):
            first, second = gram[a, other], gram[a + 1, other]
            for b in range(other - other % LANES, width):
                gram[other, b] -= first * gram[a, b] + second * gram[a + 1, b]
    total = 0.0
    for back in range(k):
        a = k - 1 - back
        left = gram[a, k]
        for b in range(a + 1, k):
            left -= gram[a, b] * values[row, b]
        values[row, a] = left / gram[a, a]
        total += values[row, a]
    rest = 1.0
    for a in range(k):
        values[row, a] /= total
        rest -= values[row, a]
    for a in range(k):
        values[row, a] += rest / k
    return True


@compiled
def _pivot(gram, a, smallest):
    """Divide row a by the root of its pivot; False where that is mere rounding."""
    pivot = gram[a, a]
    if not pivot > smallest:
        return False
    scale = 1.0 / np.sqrt(pivot)
    for b in range(a - a % LANES, gram.shape[1]):
        gram[a, b] *= scale
    return True


@compiled
def _error(differences, values, row):
    """Squared length of the weighted sum of the differences."""
    k, d = values.shape[1], differences.shape[1]
    rebuilt = np.zeros(d)
    for a in range(k):
        for c in range(d):
            rebuilt[c] += values[row, a] * differences[a, c]
    total = 0.0
    for c in range(d):
        total += rebuilt[c] * rebuilt[c]
    return total
