# mypy: disallow-untyped-calls=False
"""numba's compiler behind two typed decorators: `exact` keeps the order of operations, `fast` may change it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

# A kernel may call only kernels of its own file: the compiled copy on disk is renewed when the kernel's file or this
# file changes, not when another file changes. `prefetch` may be called too: it is in this file and changes no result.


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled on its first call, without the GIL; the compiled code is kept on disk next to the source.

    The order of operations is the order in the source, and products are not fused with sums, so a kernel gives
    the same bits on every processor.
    """
    return _compiled(function, fastmath=False)


def fast(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled as by `exact`, but sums may be reordered and fused with products for vector instructions.

    The order of a sum is fixed when the loop is compiled, so equal rows give equal bits at every row number.
    """
    return _compiled(function, fastmath={"reassoc", "contract"})


def _compiled(function: Callable[..., Any], *, fastmath: bool | set[str]) -> Callable[..., Any]:
    # numba names its files on disk after the function, and renews them when the size or time of the source changes.
    # That misses an edit that keeps both, and a change of flags. So the name has a hash while numba reads the name.
    name = function.__qualname__
    function.__qualname__ = f"{name}-{_hash_of(function.__code__.co_filename)}"
    try:
        decorate = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=fastmath)
        made: Callable[..., Any] = decorate(function)
    finally:
        function.__qualname__ = name
    return made


@cache
def _hash_of(source: str) -> str:
    """A hash of a source file and of this file, which sets the flags; "" for a function without a source file."""
    paths = Path(source), Path(__file__)
    if not paths[0].is_file():
        return ""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def _prefetch(context: Any, array: Any, row: Any, column: Any) -> Any:
    """In a kernel, start to load the cache line of array[row, column] without waiting for the data.

    Rows in random order cost more time to load than to compute with, and the processor cannot predict
    the next row.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.args[0]
        view = make_array(kind)(context, builder, values[0])
        place = cgutils.get_item_pointer(context, builder, kind, view, list(values[1:]))
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        # Arguments: 0 = for reading, 3 = keep in all caches, 1 = data, not instructions.
        builder.call(function, [builder.bitcast(place, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, row, column), generate


prefetch: Callable[..., Any] = intrinsic(_prefetch)
