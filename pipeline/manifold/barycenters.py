# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disable-error-code=call-arg
"""One row's reconstruction weights: local Gram matrix, Cholesky factor, two triangular solves."""

from __future__ import annotations

from itertools import product

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pipeline.manifold.compiled import compiled, prefetch

SOLVED, EQUAL, BROKEN = 0, 1, 2

LINE = 64  # bytes that memory hands over at a time
CACHE = 2 << 20  # bytes that a core has near at hand

# The two inner loops are written as vector instructions: the compiler's own take half of the widest registers,
# and it cannot know that the rows of one matrix do not overlap. Their sums are in an order of their own and
# fused, so the bits of a weight depend on the kind of processor.
WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))  # 32 registers of eight numbers, otherwise 16 of four
LANES = 8 if WIDE else 4
TALL, BROAD = (4, 4) if WIDE else (4, 2)  # a tile of the Gram matrix, whose sums fill the registers


@compiled
def solve_rows(queries, x, neighbors, regularization, floor, values, error, outcome):
    """Fill values (m, k), error (m,) and outcome (m,) for m queries; no errors where `error` is empty.

    A row whose trace is at most `floor` times k and its own squared length gets equal weights (EQUAL);
    one whose factor breaks down is left to be solved otherwise (BROKEN).
    """
    m, k = neighbors.shape
    d = x.shape[1]
    # Whole tiles and registers: the spare rows and columns are zero. A spare register more keeps the rows
    # apart in the cache where d is a power of two.
    rows = -(-k // TALL) * TALL
    differences = np.zeros((rows, d + LANES - d % LANES))
    gram = np.zeros((rows, -(-max(rows, k + 1) // LANES) * LANES))
    far = x.size * x.itemsize > CACHE
    for row in range(m):
        length = _subtract(queries, x, neighbors, row, differences)
        if far:
            _fetch(x, neighbors, row + 1)
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
        if error.size:
            error[row] = _error(differences, values, row)


@compiled
def _fetch(x, neighbors, row):
    """Ask for the neighbours of a row, if there is one, while the row before it is worked on."""
    if row < len(neighbors):
        for a in range(neighbors.shape[1]):
            other = np.int64(neighbors[row, a])
            for c in range(0, x.shape[1], LINE // x.itemsize):
                prefetch(x, other, c)


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


@compiled
def _gram(differences, gram):
    """Inner products of all pairs of rows, upper triangle, a tile at a time."""
    rows = differences.shape[0]
    for a in range(0, rows, TALL):
        for b in range(a, rows, BROAD):
            _multiply_tile(differences, a, b, gram)


@intrinsic
def _multiply_tile(typing_context, differences, a, b, gram):
    """gram[a + i, b + j] = differences[a + i] . differences[b + j] for i < TALL and j < BROAD.

    Each number that is loaded serves a whole side of the tile.
    """

    def generate(context, builder, signature, arguments):
        rows, out = (_Matrix(context, builder, signature, arguments, place) for place in (0, 3))
        before, loop, end = builder.block, builder.append_basic_block("columns"), builder.append_basic_block("sums")
        builder.branch(loop)
        builder.position_at_end(loop)
        column = builder.phi(INDEX)
        column.add_incoming(INDEX(0), before)
        pairs = list(product(range(TALL), range(BROAD)))
        sums = {pair: builder.phi(VECTOR) for pair in pairs}
        left = [rows.load(builder.add(arguments[1], INDEX(i)), column) for i in range(TALL)]
        right = [rows.load(builder.add(arguments[2], INDEX(j)), column) for j in range(BROAD)]
        added = {(i, j): _fused(builder, left[i], right[j], sums[i, j]) for i, j in pairs}
        for pair in pairs:
            sums[pair].add_incoming(ZEROS, before)
            sums[pair].add_incoming(added[pair], loop)
        coming = builder.add(column, INDEX(LANES))
        column.add_incoming(coming, loop)
        builder.cbranch(builder.icmp_signed("<", coming, rows.width), loop, end)
        builder.position_at_end(end)
        for i, j in pairs:
            place = out.place(builder.add(arguments[1], INDEX(i)), builder.add(arguments[2], INDEX(j)))
            builder.store(_total(builder, added[i, j]), place)
        return context.get_dummy_value()

    return types.void(differences, types.intp, types.intp, gram), generate


@intrinsic
def _subtract_above(typing_context, gram, a, start):
    """gram[a, start : start + LANES] -= the sum of gram[c, a] gram[c, start : start + LANES] over the rows c < a."""

    def generate(context, builder, signature, arguments):
        matrix, (row, start) = _Matrix(context, builder, signature, arguments, 0), arguments[1:]
        before = builder.block
        loop, body, end = (builder.append_basic_block(name) for name in ("rows", "row", "rest"))
        mine = matrix.load(row, start)
        builder.branch(loop)
        builder.position_at_end(loop)
        above, left = builder.phi(INDEX), builder.phi(VECTOR)
        builder.cbranch(builder.icmp_signed("<", above, row), body, end)
        builder.position_at_end(body)
        factor = builder.fneg(builder.load(matrix.place(above, row)))
        single = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), factor, ir.IntType(32)(0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        spread = builder.shuffle_vector(single, ir.Constant(VECTOR, ir.Undefined), everywhere)
        less = _fused(builder, spread, matrix.load(above, start), left)
        for value, first, later in ((above, INDEX(0), builder.add(above, INDEX(1))), (left, mine, less)):
            value.add_incoming(first, before)
            value.add_incoming(later, body)
        builder.branch(loop)
        builder.position_at_end(end)
        builder.store(left, builder.bitcast(matrix.place(row, start), VECTOR.as_pointer())).align = 8
        return context.get_dummy_value()

    return types.void(gram, types.intp, types.intp), generate


INDEX, NUMBER = ir.IntType(64), ir.DoubleType()
VECTOR = ir.VectorType(NUMBER, LANES)
ZEROS = ir.Constant(VECTOR, [0.0] * LANES)


class _Matrix:
    """A float64 matrix by rows in the code that is being generated."""

    def __init__(self, context, builder, signature, arguments, place):
        array = context.make_array(signature.args[place])(context, builder, arguments[place])
        self.builder, self.data, self.width = builder, array.data, builder.extract_value(array.shape, 1)

    def place(self, row, column):
        return self.builder.gep(self.data, [self.builder.add(self.builder.mul(row, self.width), column)])

    def load(self, row, column):
        loaded = self.builder.load(self.builder.bitcast(self.place(row, column), VECTOR.as_pointer()))
        loaded.align = 8
        return loaded


def _fused(builder, one, two, three):
    """one * two + three."""
    return builder.fadd(builder.fmul(one, two, flags=("contract",)), three, flags=("contract",))


def _total(builder, vector):
    """The sum of a vector's numbers."""
    shape = ir.FunctionType(NUMBER, [NUMBER, VECTOR])
    add_up = cgutils.get_or_insert_function(builder.module, shape, f"llvm.vector.reduce.fadd.v{LANES}f64")
    return builder.call(add_up, [NUMBER(-0.0), vector], fastmath=("reassoc",))


@compiled
def _solve(gram, k, trace, regularization, values, row):
    """Weights from the upper triangle, which is overwritten by its factor; False where a pivot is mere rounding.

    The right-hand side, all ones, is eliminated along with the matrix as one more column. Rows are changed
    from a multiple of LANES on and to their padded end.
    """
    smallest = k * np.finfo(np.float64).eps * trace
    for a in range(k):
        gram[a, a] += regularization * trace
        gram[a, k] = 1.0
        first = a - a % LANES
        gram[a, first:a] = 0.0  # left of the diagonal nothing is read, but what is written must not grow
        for start in range(first, gram.shape[1], LANES):
            _subtract_above(gram, a, start)
        if not _pivot(gram, a, smallest):
            return False
    for back in range(k):
        a = k - 1 - back
        solved = gram[a, k] / gram[a, a]
        values[row, a] = solved
        for b in range(a):
            gram[b, k] -= gram[b, a] * solved
    total = 0.0
    for a in range(k):
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
