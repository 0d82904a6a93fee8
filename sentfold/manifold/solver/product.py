"""The product with M = (I - W)^T (I - W): two passes over neighbour lists, a block of vectors at a time."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sentfold.manifold.solver.ordering import MANY, cache_order

Block = npt.NDArray[Any]  # float32 or float64, as the caller chose

# Vectors per pass. A row of 16 float32 numbers is one cache line, and its sum stays in registers. From MANY rows on,
# a block does not fit the cache of one core: two adjacent lines then cost less than twice one line, and half a line
# costs less than one. With fewer rows, wider blocks gain nothing and narrower blocks are slower.
NARROW, WIDTH, WIDE = 8, 16, 32

# By width, how many neighbours ahead rows are prefetched. The neighbour lists are padded by FARTHEST entries.
AHEAD = {NARROW: 64, WIDTH: 64, WIDE: 128}
FARTHEST = max(AHEAD.values())

CACHE_LINE = 64  # bytes
ALIGNMENT = 128  # bytes: processors fetch cache lines in pairs

# A hub is a row whose diagonal entry of M is this many times the mean; at most MOST_HUBS of them are damped.
HUB = 2.0
MOST_HUBS = 1000

# A thread has at least this many rows; for fewer it costs more than it gains.
ROWS_PER_WORKER = 8192


@intrinsic(prefer_literal=True)
def _subtract_neighbors(
    typing_context: Any,
    own: Any,
    x: Any,
    columns: Any,
    weights: Any,
    start: Any,
    stop: Any,
    row: Any,
    out: Any,
    literal_width: Any,
) -> Any:
    """out[row] = own[row] - sum of weights[a] * x[columns[a]] over start <= a < stop, on flat blocks of the width.

    Vector instructions keep the sums in registers, which LLVM does not do for the plain loop. Rows are prefetched,
    because most of them are not in the nearest cache.
    """
    width = literal_width.literal_value
    signature = types.void(own, x, columns, weights, types.intp, types.intp, types.intp, out, literal_width)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def pointer(place: int) -> Any:
            return context.make_array(signature.args[place])(context, builder, arguments[place]).data

        own_data, x_data, column_data, weight_data, out_data = (pointer(place) for place in (0, 1, 2, 3, 7))
        first, last, row = arguments[4:7]
        number = x_data.type.pointee
        vector, index = ir.VectorType(number, width), ir.IntType(64)
        bytes_each = 4 if isinstance(number, ir.FloatType) else 8

        def row_pointer(data: Any, place: Any) -> Any:
            flat = builder.gep(data, [builder.mul(place, ir.Constant(index, width))])
            return builder.bitcast(flat, vector.as_pointer())

        def load_row(data: Any, place: Any) -> Any:
            loaded = builder.load(row_pointer(data, place))
            loaded.align = bytes_each
            return loaded

        def spread(scalar: Any) -> Any:
            single = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
            return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), zeros)

        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        fetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], fnty=ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        )

        def fetch_ahead(place: Any) -> None:
            coming = builder.load(builder.gep(column_data, [builder.add(place, ir.Constant(index, AHEAD[width]))]))
            address = builder.bitcast(row_pointer(x_data, builder.sext(coming, index)), byte)
            for offset in range(0, width * bytes_each, CACHE_LINE):
                line = builder.gep(address, [ir.Constant(index, offset)])
                builder.call(fetch, [line, ir.Constant(word, 0), ir.Constant(word, 3), ir.Constant(word, 1)])

        def minus_neighbor(total: Any, place: Any) -> Any:
            fetch_ahead(place)
            neighbor = builder.sext(builder.load(builder.gep(column_data, [place])), index)
            weight = builder.fneg(builder.load(builder.gep(weight_data, [place])))
            product = builder.fmul(spread(weight), load_row(x_data, neighbor), flags=("contract",))
            return builder.fadd(product, total, flags=("contract",))

        mine, before = load_row(own_data, row), builder.block
        pairs, body = builder.append_basic_block("pairs"), builder.append_basic_block("pair")
        rest, single, end = (builder.append_basic_block(name) for name in ("rest", "single", "end"))
        # Two sums, because each addition to a single sum would wait for the one before.
        even = builder.sub(last, builder.srem(builder.sub(last, first), ir.Constant(index, 2)))
        builder.branch(pairs)
        builder.position_at_end(pairs)
        place, one, two = builder.phi(index), builder.phi(vector), builder.phi(vector)
        place.add_incoming(first, before)
        one.add_incoming(mine, before)
        two.add_incoming(ir.Constant(vector, [0.0] * width), before)
        builder.cbranch(builder.icmp_signed("<", place, even), body, rest)
        builder.position_at_end(body)
        one.add_incoming(minus_neighbor(one, place), body)
        two.add_incoming(minus_neighbor(two, builder.add(place, ir.Constant(index, 1))), body)
        place.add_incoming(builder.add(place, ir.Constant(index, 2)), body)
        builder.branch(pairs)
        builder.position_at_end(rest)
        builder.cbranch(builder.icmp_signed("<", even, last), single, end)
        builder.position_at_end(single)
        odd = minus_neighbor(one, even)
        builder.branch(end)
        builder.position_at_end(end)
        total = builder.phi(vector)
        total.add_incoming(one, rest)
        total.add_incoming(odd, single)
        stored = builder.store(builder.fadd(total, two), row_pointer(out_data, row))
        stored.align = bytes_each
        return context.get_dummy_value()

    return signature, generate


class _Kernels(NamedTuple):
    """The compiled loops over rows for blocks of one width; all blocks are flat arrays."""

    difference: Any
    recur: Any
    hub_products: Any
    remove_hubs: Any


# Numba passes `typing_context` to an intrinsic itself; mypy misses this argument in the calls below.
@cache
def _kernels(width: int) -> _Kernels:
    @numba.njit(nogil=True, cache=True)
    def difference(starts: Any, columns: Any, weights: Any, x: Any, out: Any, low: int, high: int) -> None:
        """out = x - W x for the rows low..high."""
        for i in range(low, high):
            _subtract_neighbors(x, x, columns, weights, starts[i], starts[i + 1], i, out, width)  # type: ignore[call-arg]

    @numba.njit(nogil=True, cache=True, fastmath={"contract"})
    def recur(
        starts: Any,
        columns: Any,
        weights: Any,
        y: Any,
        now: Any,
        before: Any,
        factors: Any,
        out: Any,
        low: int,
        high: int,
    ) -> None:
        """out = a now + b before + c (y - W^T y) for the rows low..high; factors holds a, b, c."""
        a, b, c = factors[0], factors[1], factors[2]
        for i in range(low, high):
            _subtract_neighbors(y, y, columns, weights, starts[i], starts[i + 1], i, out, width)  # type: ignore[call-arg]
            for j in range(i * width, (i + 1) * width):
                out[j] = a * now[j] + b * before[j] + c * out[j]

    @numba.njit(nogil=True, cache=True)
    def hub_products(starts: Any, columns: Any, weights: Any, y: Any, hubs: Any, out: Any) -> None:
        """out = y - W^T y for the rows of the hubs alone."""
        for h in hubs:
            _subtract_neighbors(y, y, columns, weights, starts[h], starts[h + 1], h, out, width)  # type: ignore[call-arg]

    @numba.njit(nogil=True, cache=True)
    def remove_hubs(rows: Any, starts: Any, columns: Any, weights: Any, u: Any, y: Any) -> None:
        """y -= B u, in place, for a sparse B of the given rows and few columns."""
        for a in range(len(rows)):
            _subtract_neighbors(y, u, columns, weights, starts[a], starts[a + 1], rows[a], y, width)  # type: ignore[call-arg]

    return _Kernels(difference, recur, hub_products, remove_hubs)


def empty_block(n: int, kind: npt.DTypeLike, *, width: int = WIDTH) -> Block:
    """An (n, width) array whose rows are aligned to cache lines; a misaligned row would touch one more line."""
    size = n * width * np.dtype(kind).itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(kind).reshape(n, width)


def padded_block(vectors: Block, *, width: int = WIDTH) -> Block:
    """A copy of (n, m) vectors, m <= width, as an (n, width) block with zeros in the other columns."""
    block = empty_block(len(vectors), vectors.dtype, width=width)
    block[:, : vectors.shape[1]] = vectors
    block[:, vectors.shape[1] :] = 0
    return block


def _both(values: Block) -> dict[np.dtype[Any], Block]:
    """The numbers as float64 and as float32."""
    return {np.dtype(kind): np.ascontiguousarray(values, dtype=kind) for kind in (np.float64, np.float32)}


def _hand_back_freed_memory() -> None:
    """Return freed memory to the system; glibc would keep about half the size of an operator after building it."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim:
            trim(0)


@dataclass(frozen=True)
class _Lists:
    """One sparse matrix by rows, with its weights in both precisions."""

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    weights: dict[np.dtype[Any], Block]

    @classmethod
    def of(cls, matrix: sp.csr_array) -> _Lists:
        matrix.sort_indices()
        return cls(
            matrix.indptr.astype(np.int64),
            np.append(matrix.indices, np.zeros(FARTHEST)).astype(np.int32),
            _both(matrix.data),
        )


@dataclass(frozen=True)
class _Damping:
    """The hubs h, Gamma of M' = M - M[:, h] Gamma M[h, :], and the non-empty rows of B = (I - W)[:, h]."""

    hubs: npt.NDArray[np.int64]
    gamma: dict[np.dtype[Any], Block]
    rows: npt.NDArray[np.int64]
    lists: _Lists

    @classmethod
    def of(cls, difference: sp.csc_array, trace: float) -> _Damping | None:
        """The damping of the columns that are far longer than the mean column; None if no column is."""
        n = difference.shape[1]
        lengths = np.add.reduceat(difference.data**2, difference.indptr[:-1])
        longest = np.sort(np.argsort(-lengths, kind="stable")[: min(MOST_HUBS, n // 40)])
        limit = HUB * trace / n
        hubs = longest[lengths[longest] > limit]
        if not len(hubs):
            return None
        columns = difference[:, hubs]
        values, vectors = np.linalg.eigh((columns.T @ columns).toarray())
        # Every eigenvalue of M restricted to the hubs that is above the limit is lowered to the limit.
        gamma = (vectors * (np.maximum(values - limit, 0) / values**2)) @ vectors.T
        by_row = sp.csr_array(columns)
        rows = np.flatnonzero(np.diff(by_row.indptr))
        return cls(hubs.astype(np.int64), _both(gamma), rows.astype(np.int64), _Lists.of(by_row[rows]))

    def apply(self, backward: _Lists, y: Block, scratch: Block, *, width: int) -> None:
        """y -= B Gamma B^T y, in place, for flat blocks of the given width. backward: the lists of W^T."""
        kind, kernels = y.dtype, _kernels(width)
        kernels.hub_products(backward.starts, backward.columns, backward.weights[kind], y, self.hubs, scratch)
        u = self.gamma[kind] @ scratch.reshape(-1, width)[self.hubs]
        lists = self.lists
        kernels.remove_hubs(self.rows, lists.starts, lists.columns, lists.weights[kind], u.reshape(-1), y)


@dataclass
class Operator:
    """M as an operator on blocks of vectors; M itself is never formed.

    The damped operator is M' = M - M[:, h] Gamma M[h, :]. The largest eigenvalues of M come from hubs h, rows that
    are neighbours of very many rows; the largest eigenvalue of M' is a half or a third of that of M. Two low
    eigenvectors of M with eigenvalues a and b are coupled in M' by less than a b. A filter of M' therefore leads to
    the same vectors with fewer products.

    order     (n,) the sentence of each row of a block: rows are renumbered so that neighbours are close together in
              memory
    products  number of applications of M to a vector so far
    trace     sum of all eigenvalues, from the entries of I - W
    workers   threads; the bits of a result do not depend on their number
    """

    order: npt.NDArray[np.int32]
    trace: float
    workers: int
    _forward: _Lists
    _backward: _Lists
    _damping: _Damping | None
    products: int = field(default=0)

    def __post_init__(self) -> None:
        used = max(1, min(self.workers, self.n // ROWS_PER_WORKER))
        self._pool = ThreadPoolExecutor(max_workers=used) if used > 1 else None
        self._parts = {
            id(lists): np.searchsorted(lists.starts, np.linspace(0, lists.starts[-1], used + 1)[1:-1])
            for lists in (self._forward, self._backward)
        }

    @classmethod
    def from_weights(cls, weights: sp.csr_array, *, workers: int = 2) -> Operator:
        """The operator of a sparse (n, n) weight matrix W. Cost O(nnz log nnz) time, O(nnz) memory."""
        order = cache_order(weights)
        renumbered = sp.csr_array(sp.csr_array(weights)[order][:, order])
        trace = float(renumbered.shape[0] - 2 * renumbered.trace() + (renumbered.data**2).sum())
        damping = _Damping.of(sp.csc_array(sp.eye_array(len(order)) - renumbered), trace)
        lists = _Lists.of(renumbered), _Lists.of(sp.csr_array(renumbered.T))
        del renumbered
        _hand_back_freed_memory()
        return cls(order, trace, workers, *lists, damping)

    @property
    def n(self) -> int:
        """Number of sentences."""
        return len(self.order)

    @property
    def width(self) -> int:
        """The width of a block with the lowest cost per vector: WIDTH or WIDE."""
        return WIDE if self.n >= MANY else WIDTH

    @property
    def few(self) -> int:
        """The smallest useful width of a block: NARROW or WIDTH."""
        return NARROW if self.n >= MANY else WIDTH

    def recur(
        self,
        now: Block,
        before: Block,
        out: Block,
        scratch: Block,
        factors: tuple[float, float, float],
        *,
        damped: bool = False,
    ) -> None:
        """out = a now + b before + c M now, for blocks of one precision and width; (a, b, c) = factors.

        The four blocks are contiguous, have NARROW, WIDTH or WIDE columns each, and are distinct; only `before` may be
        the same array as `now`. damped: M' replaces M.
        """
        kind, width = now.dtype, now.shape[1]
        kernels = _kernels(width)
        flat = [block.reshape(-1) for block in (scratch, now, before, out)]
        self._pass(kernels.difference, self._forward, kind, flat[1], flat[0])
        if damped and self._damping is not None:
            self._damping.apply(self._backward, flat[0], flat[3], width=width)
        self._pass(kernels.recur, self._backward, kind, *flat[:3], np.array(factors, dtype=kind), flat[3])
        self.products += width

    def multiply(self, vectors: Block) -> Block:
        """M times (n, m) vectors, as a new array in the precision of the vectors."""
        out = np.empty_like(vectors)
        for columns, image in self.images(vectors):
            out[:, columns] = image
        return out

    def images(self, vectors: Block, *, width: int = WIDTH) -> Iterator[tuple[slice, Block]]:
        """M times (n, m) vectors, `width` at a time. Yields the columns and their images."""
        for start in range(0, vectors.shape[1], width):
            part = vectors[:, start : start + width]
            block = padded_block(part, width=width)
            image, scratch = (empty_block(self.n, vectors.dtype, width=width) for _ in range(2))
            self.recur(block, block, image, scratch, (0.0, 0.0, 1.0))
            yield slice(start, start + part.shape[1]), image[:, : part.shape[1]]

    def restore(self, vectors: Block) -> Block:
        """Rows of `vectors` back in the order of the sentences."""
        restored = np.empty_like(vectors)
        restored[self.order] = vectors
        return restored

    def _pass(self, kernel: Any, lists: _Lists, kind: np.dtype[Any], *blocks: Block) -> None:
        arguments = (lists.starts, lists.columns, lists.weights[kind], *blocks)
        spans = list(pairwise([0, *self._parts[id(lists)], self.n]))
        if self._pool is None:
            kernel(*arguments, *spans[0])
        else:
            # list() waits for every part and raises the error of a part.
            list(self._pool.map(lambda span: kernel(*arguments, *span), spans))

    def __enter__(self) -> Operator:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
