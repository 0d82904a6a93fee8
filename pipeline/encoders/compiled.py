"""Loops over words that numpy cannot express, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a loop over arrays: without the GIL, kept on disk, sums free to be reordered for SIMD.

    The order of a sum is fixed when the loop is compiled, so equal rows give equal bits wherever they stand.
    """
    decorate = njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
    return cast(Function, decorate(function))
